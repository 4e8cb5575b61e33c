// Package turns is the part of agentkit that is about time: the open sessions and their users (Table, Life); the open
// texts and tool calls of a turn, which end with it (Turn, Text); delayed calls (Timer); and titles of sessions. It
// knows nothing else about sessions, and nothing about updates.
package turns

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// Errors that the peer may read.
var (
	// ErrEnded reports that a tool call, a text or a turn has already ended.
	ErrEnded = rpc.Public(errors.New("this has already ended"))
	// ErrRejected reports that the user was asked and did not allow a tool call.
	ErrRejected = rpc.Public(errors.New("the user did not allow it"))
	// ErrDismissed reports that the user, or the client in their place, left a question unanswered.
	ErrDismissed = rpc.ErrDismissed
	// ErrCallCancelled reports that the client has cancelled a tool call, but not its turn.
	ErrCallCancelled = rpc.Public(errors.New("cancelled"))
	// ErrTooLarge reports that the content of a tool call is too large.
	ErrTooLarge = rpc.Public(errors.New("too much to show"))
	// ErrLeftOpen is the error of a tool call that was still open when its turn ended.
	ErrLeftOpen = rpc.Public(errors.New("this did not end"))

	errCancelled = rpc.Public(errors.New("cancelled"))
)

// ErrNotStored reports that an update was sent but could not be stored.
var ErrNotStored = errors.New("the update was not stored")

// Cancelled reports whether err means that the work was cancelled.
func Cancelled(err error) bool {
	return errors.Is(err, acp.ErrTurnCancelled) || errors.Is(err, context.Canceled) || errors.Is(err, ErrCallCancelled) ||
		errors.Is(err, errCancelled)
}

// Visible returns the part of a tool call's error that the client may see: among other things, its own answers, which
// are no secret to it, and the exit status of a command.
func Visible(err error) string {
	if Cancelled(err) {
		err = errCancelled
	}
	e := rpc.ErrorOf(err)
	if neutral := rpc.ErrorOf(rpc.ErrInternal); e.Code != neutral.Code || e.Message != neutral.Message {
		return e.Message
	}
	if answered, ok := errors.AsType[*rpc.CallError](err); ok && ofClient(answered.Method) {
		if len(answered.Err.Data) == 0 {
			return answered.Err.Message
		}
		return answered.Err.Message + ": " + string(answered.Err.Data)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ProcessState != nil {
		return exit.ProcessState.String()
	}
	return "The tool failed."
}

// ofClient reports whether clients serve a method. A tool may also have called a program other than the client.
func ofClient(method string) bool {
	prefixes := []string{"fs/", "terminal/", "session/request_permission", "elicitation/"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(method, prefix) })
}

// Mistaken reports whether an error says that a message was not sent because it is invalid, which is the author's
// mistake. A message that the client does not support is not.
func Mistaken(err error) bool {
	_, unsent := errors.AsType[*engine.UnsentError](err)
	return unsent && !errors.Is(err, acp.ErrUnsupported)
}

// Expected reports whether an error ends a tool call without a failure: by the user's decision, or by the end of the
// connection.
func Expected(err error) bool {
	return Cancelled(err) || errors.Is(err, ErrRejected) || errors.Is(err, ErrDismissed) ||
		errors.Is(err, acp.ErrClosed)
}

// grace is the time for the last updates of work whose context has ended.
const grace = 10 * time.Second

// Outlive returns a context that ends some time after ctx, for the last updates of the work that ctx belongs to. When
// ctx ends, ended is called first. The caller must call release.
func Outlive(ctx context.Context, ended func()) (lasting context.Context, release func()) {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		ended()
		timer := time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(lasting, func() { timer.Stop() })
	})
	return lasting, func() {
		stop()
		cancel(nil)
	}
}

// Turn holds the open texts and tool calls of a turn. A nil Turn means that there is no turn. Its texts share one
// outbox, which keeps their order.
type Turn struct {
	out *outbox

	mu    sync.Mutex
	over  bool
	texts []*Text
	calls []call
}

// call is a tool call.
type call struct {
	key   any
	close func(why error) error
}

type turnKey struct{}

// With returns a context in which texts and tool calls belong to a new turn. The caller must call End.
func With(ctx context.Context) (context.Context, *Turn) {
	o := &Turn{out: newOutbox()}
	return context.WithValue(ctx, turnKey{}, o), o
}

// withoutTurn returns a context for the messages that texts of a turn send, which must not wait for the texts.
func withoutTurn(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, (*Turn)(nil))
}

// Of returns the turn of ctx, or nil.
func Of(ctx context.Context) *Turn {
	o, _ := ctx.Value(turnKey{}).(*Turn)
	return o
}

// Flush waits until the texts written so far are on their way, so that a message sent next arrives after them. Errors
// are returned by the methods of the texts.
func (o *Turn) Flush() {
	if o != nil {
		o.out.flush()
	}
}

// End closes everything that the turn has open. ctx is the turn's context.
func (o *Turn) End(ctx context.Context) error {
	o.mu.Lock()
	o.over = true
	texts, calls := o.texts, o.calls
	o.texts, o.calls = nil, nil
	o.mu.Unlock()
	var errs []error
	for _, t := range texts {
		errs = append(errs, t.Close())
	}
	why := ErrLeftOpen
	if ctx.Err() != nil {
		why = errCancelled
	}
	for _, c := range calls {
		errs = append(errs, c.close(why))
	}
	return errors.Join(errs...)
}

// AddCall adds a tool call, which the turn closes with close. Without a turn it does nothing.
func (o *Turn) AddCall(key any, close func(why error) error) error {
	if o == nil {
		return nil
	}
	return o.add(func() { o.calls = append(o.calls, call{key, close}) })
}

// RemoveCall removes a tool call that has ended.
func (o *Turn) RemoveCall(key any) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = slices.DeleteFunc(o.calls, func(c call) bool { return c.key == key })
}

func (o *Turn) addText(t *Text) error {
	if o == nil {
		return nil
	}
	return o.add(func() { o.texts = append(o.texts, t) })
}

func (o *Turn) removeText(t *Text) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts = slices.DeleteFunc(o.texts, func(other *Text) bool { return other == t })
}

func (o *Turn) add(do func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return ErrEnded
	}
	do()
	return nil
}

// Failed returns the error with which a turn should end after a tool call has failed with err, or nil if the turn
// continues. The turn ends if the user dismissed a question, if a message was not sent because it is invalid, if ctx,
// the context of the call, has ended, or if ending the call failed with the error ended.
func Failed(ctx context.Context, err, ended error) error {
	if ended != nil || ctx.Err() != nil || errors.Is(err, ErrDismissed) || Mistaken(err) {
		return errors.Join(err, ended)
	}
	return nil
}
