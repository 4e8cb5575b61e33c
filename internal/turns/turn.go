// Package turns has what agents of all protocol versions need to run turns: which sessions are open, and who uses them
// (Table, Life); what a turn has open, and ends with it (Turn, Text); calls after a delay (Timer); and titles of sessions.
// It does not know what a session is beyond that, or what updates look like. Both agentkit packages are built on it.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Errors that the peer may read.
var (
	// ErrEnded says that a tool call, a text or a turn has ended already.
	ErrEnded = rpc.Public(errors.New("this has ended already"))
	// ErrRejected says that the user was asked and did not allow a tool call.
	ErrRejected = rpc.Public(errors.New("the user did not allow it"))
	// ErrDismissed says that the user, or the client in their place, left a question unanswered.
	ErrDismissed = rpc.Public(errors.New("the question was dismissed"))
	// ErrTooLarge says that a tool call cannot show all that.
	ErrTooLarge = rpc.Public(errors.New("too much to show"))
	// ErrLeftOpen is why a tool call fails that nobody has ended.
	ErrLeftOpen = rpc.Public(errors.New("this did not come to an end"))

	errCancelled = rpc.Public(errors.New("cancelled"))
)

// ErrNotStored says that an update was sent and could not be stored.
var ErrNotStored = errors.New("the update was not stored")

// Cancelled reports whether an error says that the work was cancelled.
func Cancelled(err error) bool {
	return errors.Is(err, acp.ErrTurnCancelled) || errors.Is(err, context.Canceled) || errors.Is(err, errCancelled)
}

// Visible is what the client may see of the error with which a tool call fails.
func Visible(err error) string {
	if Cancelled(err) {
		err = errCancelled
	}
	e := rpc.ErrorOf(err)
	if neutral := rpc.ErrorOf(rpc.ErrInternal); e.Code == neutral.Code && e.Message == neutral.Message {
		return "The tool failed."
	}
	return e.Message
}

// grace is how long after the end of a context the last updates of its work may take.
const grace = 10 * time.Second

// Outlive returns a context that ends some time after ctx, for the last updates of what ctx belongs to. It first calls
// ended when ctx ends. The caller must call release.
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

// Turn is what a turn has open. Nil is no turn. Its texts are sent by one outbox, so that they keep their order.
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

// With returns a context with which texts and tool calls of a turn are started. The turn must call End.
func With(ctx context.Context) (context.Context, *Turn) {
	o := &Turn{out: newOutbox()}
	return context.WithValue(ctx, turnKey{}, o), o
}

// without returns a context for what the texts of a turn send themselves, which must not wait for them.
func without(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, (*Turn)(nil))
}

// Of is what the turn of ctx has open, or nil.
func Of(ctx context.Context) *Turn {
	o, _ := ctx.Value(turnKey{}).(*Turn)
	return o
}

// Flush waits until the texts that were written are on their way, so that what is sent next comes after them. An error is
// of a text, whose methods return it.
func (o *Turn) Flush() {
	if o != nil {
		o.out.flush()
	}
}

// End closes everything that the turn of ctx has open.
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

// AddCall takes note of a tool call, which close closes. Without a turn there is nothing to note.
func (o *Turn) AddCall(key any, close func(why error) error) error {
	if o == nil {
		return nil
	}
	return o.add(func() { o.calls = append(o.calls, call{key, close}) })
}

// RemoveCall says that a tool call has ended.
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

// Failed is the error with which a turn should end after a tool call was ended as failed because of err, or nil if the turn
// goes on. It is err, if the user has dismissed a question or the context of the call has ended, and what ended says, the
// error of ending the call.
func Failed(ctx context.Context, err, ended error) error {
	if ended != nil || ctx.Err() != nil || errors.Is(err, ErrDismissed) {
		return errors.Join(err, ended)
	}
	return nil
}
