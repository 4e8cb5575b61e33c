// This file owns what a turn has open, its texts and tool calls: their order, and their end with the turn.

package agentkit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
)

// Sender sends the updates of one session. *acp.AgentSession is one, and so are Session and Turn. An agent of acp/unstable
// makes one of its session in a few lines: see the example.
type Sender interface {
	// Update sends an update. Updates arrive in the order of the calls.
	Update(ctx context.Context, update acp.SessionUpdate) error
}

// Asker sends the updates of one session, and asks its user. *acp.AgentSession, Session and Turn are such.
type Asker interface {
	Sender
	// RequestPermission asks whether a tool call may go on; see acp.AgentSession.
	RequestPermission(
		ctx context.Context, call acp.ToolCallUpdate, options ...acp.PermissionOption,
	) (acp.RequestPermissionOutcome, error)
}

// Errors to match with errors.Is. The peer may read the text of each: a handler may return one, and ToolCall.Fail
// shows it.
var (
	// ErrEnded says that the tool call, the text or the turn has ended already.
	ErrEnded = acp.Public(errors.New("this has ended already"))
	// ErrRejected says that the user was asked and did not allow the tool call.
	ErrRejected = acp.Public(errors.New("the user did not allow it"))
	// ErrDismissed says that the user, or the client in their place, left the question unanswered.
	ErrDismissed = acp.Public(errors.New("the question was dismissed"))
	// ErrTooLarge says that a tool call cannot show all that; see ToolCall.
	ErrTooLarge = acp.Public(errors.New("too much to show"))

	errLeftOpen  = acp.Public(errors.New("this did not come to an end"))
	errCancelled = acp.Public(errors.New("cancelled"))
)

// grace is how long after the end of a context the last updates of its work may take.
const grace = 10 * time.Second

// outlive returns a context that ends some time after ctx, for the last updates of what ctx belongs to. It first calls
// ended when ctx ends. The caller must call release.
func outlive(ctx context.Context, ended func()) (lasting context.Context, release func()) {
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

// HandlePrompt makes of a handler of prompts one that leaves nothing open, for acp.AgentHandlers.Prompt, or for that of
// acp/unstable:
//
//	acp.AgentHandlers{NewSession: a.newSession, Prompt: agentkit.HandlePrompt(a.prompt)}
//
// What is started with the handler's context, or one derived from it, belongs to the turn. When the handler returns,
// and before the prompt is answered, texts that are open are closed, and then tool calls that are open are closed as
// failed; this also when the turn was cancelled, and when the handler panics. Nothing can be started with that context
// afterwards. Sessions do this by themselves.
func HandlePrompt[Session, Request, Response any](
	prompt func(context.Context, Session, *Request) (*Response, error),
) func(context.Context, Session, *Request) (*Response, error) {
	return func(ctx context.Context, s Session, req *Request) (res *Response, err error) {
		ctx, o := withOpen(ctx)
		defer func() {
			if ended := o.end(ctx); ended != nil {
				res, err = nil, errors.Join(err, ended)
			}
		}()
		return prompt(ctx, s, req)
	}
}

// open is what a turn has open. Its texts are sent by one outbox, so that they keep their order.
type open struct {
	out *outbox

	mu    sync.Mutex
	over  bool
	texts []*Text
	calls []*ToolCall
}

type openKey struct{}

// withOpen returns a context with which texts and tool calls of a turn are started. The turn must call end.
func withOpen(ctx context.Context) (context.Context, *open) {
	o := &open{out: newOutbox()}
	return context.WithValue(ctx, openKey{}, o), o
}

// withoutOpen returns a context for what the texts of a turn send themselves, which must not wait for them.
func withoutOpen(ctx context.Context) context.Context {
	return context.WithValue(ctx, openKey{}, (*open)(nil))
}

// openOf is what the turn of ctx has open, or nil.
func openOf(ctx context.Context) *open {
	o, _ := ctx.Value(openKey{}).(*open)
	return o
}

// flush waits until the texts that were written are on their way, so that what is sent next comes after them. An error is
// of a text, whose methods return it.
func (o *open) flush() {
	if o != nil {
		o.out.flush()
	}
}

// end closes everything that the turn of ctx has open.
func (o *open) end(ctx context.Context) error {
	o.mu.Lock()
	o.over = true
	texts, calls := o.texts, o.calls
	o.texts, o.calls = nil, nil
	o.mu.Unlock()
	var errs []error
	for _, t := range texts {
		errs = append(errs, t.Close())
	}
	why := errLeftOpen
	if ctx.Err() != nil {
		why = errCancelled
	}
	for _, c := range calls {
		errs = append(errs, c.close(why))
	}
	return errors.Join(errs...)
}

// addText, addCall and their opposites keep account. Without a turn there is nothing to keep.
func (o *open) addText(t *Text) error     { return add(o, textsOf, t) }
func (o *open) addCall(c *ToolCall) error { return add(o, callsOf, c) }
func (o *open) removeText(t *Text)        { remove(o, textsOf, t) }
func (o *open) removeCall(c *ToolCall)    { remove(o, callsOf, c) }

func textsOf(o *open) *[]*Text     { return &o.texts }
func callsOf(o *open) *[]*ToolCall { return &o.calls }

func add[T any](o *open, list func(*open) *[]*T, v *T) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return ErrEnded
	}
	of := list(o)
	*of = append(*of, v)
	return nil
}

func remove[T any](o *open, list func(*open) *[]*T, v *T) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	of := list(o)
	*of = slices.DeleteFunc(*of, func(other *T) bool { return other == v })
}
