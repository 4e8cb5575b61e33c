package probe

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// CheckClient plays all scenarios against a client in this process, each as a subtest. A subtest fails if the client
// breaks a MUST, or something that it advertises does not work. The function connect runs a new instance of the client
// until its user wants nothing more:
//
//	func TestProtocol(t *testing.T) {
//		probe.CheckClient(t, func(user *probe.User, agent rpc.Transport) {
//			conn, err := acp.Connect(user.Context, agent, handlers(user), nil)
//			if err != nil {
//				return
//			}
//			defer conn.Close()
//			context.AfterFunc(user.Context, func() { conn.Close() })
//			session, err := conn.NewSession(user.Context, &acp.NewSessionRequest{Cwd: user.Dir})
//			for step := range user.Steps() {
//				if err == nil && step.Action == probe.ActPrompt {
//					session.Prompt(step.Context, acp.TextBlock("Hello"))
//				}
//			}
//		})
//	}
//
// The client may ignore steps that it does not support. These requirements are then reported as not exercised.
func CheckClient[Test T[Test]](t Test, connect func(user *User, agent rpc.Transport)) {
	t.Helper()
	CheckClientWith(t, InMemoryClient(connect), nil)
}

// CheckClientWith is like CheckClient, for any launch and with options. The defaults of the options are those of
// [Check].
func CheckClientWith[Test T[Test]](t Test, launch Launch, options *Options) *Report {
	t.Helper()
	return check(t, Client, launch, options)
}

// User is the user of a client in this process.
type User struct {
	// Dir is the scenario's own directory, in which the session should be.
	Dir string
	// Context ends when the user ends the client, whatever the client is doing.
	Context context.Context

	end       context.CancelFunc
	steps     chan *userStep
	decisions chan bool

	mu      sync.Mutex
	current *userStep
}

// Step is one action that the user wants.
type Step struct {
	Action Action
	// Context ends when the user cancels the step, which only happens to prompts, and when the client is to end.
	Context context.Context
}

type userStep struct {
	Step
	cancel context.CancelFunc
	done   chan struct{}
}

// Steps yields the steps that the user wants, one after the other, until there are no more.
func (u *User) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for {
			select {
			case step := <-u.steps:
				if !u.take(step, yield) {
					return
				}
			case <-u.Context.Done():
				return
			}
		}
	}
}

func (u *User) take(step *userStep, yield func(Step) bool) bool {
	u.mu.Lock()
	u.current = step
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.current = nil
		u.mu.Unlock()
		step.cancel()
		close(step.done)
	}()
	return yield(step.Step)
}

// Allows waits for the user's decision about a request of the agent: a permission, a form or a link. If the context
// ends first, it returns the context's error.
func (u *User) Allows(ctx context.Context) (bool, error) {
	select {
	case allowed := <-u.decisions:
		return allowed, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-u.Context.Done():
		return false, context.Cause(u.Context)
	}
}

// act adds an action that the user wants.
func (u *User) act(a Action, returned <-chan struct{}) <-chan struct{} {
	switch a {
	case ActQuit:
		u.end()
		return returned
	case ActAllow, ActReject:
		select {
		case u.decisions <- a == ActAllow:
		default: // nobody asks the user
		}
		return u.doing()
	case ActCancel:
		u.mu.Lock()
		if u.current != nil {
			u.current.cancel()
		}
		u.mu.Unlock()
		return u.doing()
	}
	step := &userStep{Step: Step{Action: a}, done: make(chan struct{})}
	step.Context, step.cancel = context.WithCancel(u.Context)
	select {
	case u.steps <- step:
		return step.done
	case <-returned:
		step.cancel()
		return nil
	}
}

// doing is closed when the client has finished its current step.
func (u *User) doing() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.current == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return u.current.done
}

// maxSteps is the maximum number of pending steps.
const maxSteps = 64

// InMemoryClient returns a Launch for a client that runs in this process.
func InMemoryClient(connect func(user *User, agent rpc.Transport)) Launch {
	return func(ctx context.Context, dir string) (*Target, error) {
		own, theirs := rpc.Pipe()
		inner, err := own.Connect(ctx)
		if err != nil {
			return nil, err
		}
		user := &User{Dir: dir, steps: make(chan *userStep, maxSteps), decisions: make(chan bool, maxSteps)}
		user.Context, user.end = context.WithCancel(context.Background())
		returned := make(chan struct{})
		go func() { // Close waits for it
			defer close(returned)
			connect(user, theirs)
		}()
		stream := rpc.Wrap(inner, rpc.Wrapper{Close: func() error {
			err := inner.Close()
			user.end()
			select {
			case <-returned:
				return err
			case <-time.After(leaveTime):
				return errors.Join(err, errors.New("the client kept running after its connection and its user had ended"))
			}
		}})
		return &Target{Stream: stream, User: func(a Action) <-chan struct{} { return user.act(a, returned) }}, nil
	}
}

// leaveTime is how long a client in memory may keep running after its connection has ended.
const leaveTime = 10 * time.Second
