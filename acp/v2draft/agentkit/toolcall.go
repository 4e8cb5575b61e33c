package agentkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/turns"
)

// ToolCall is a tool call that the client has been told of. It knows what the client knows, so that content is added where
// the protocol allows it and replaced where it does not, and a question about the call says everything.
//
// A call ends by Done, by Fail, or by an Update with a status that ends it. One that is open at the end of its turn is
// closed before the session is idle: as cancelled if the turn was cancelled, else as failed. Elsewhere, defer Close. When
// the call has ended, all methods but Close, ID and State return an error that matches ErrEnded, and send nothing.
//
// The methods send with the context that the call was started with, and Ask with its own; when it has ended they return
// its cause. Done, Fail and Close work for ten seconds longer. Their errors are those of sending: a message that the client
// would refuse, such as a relative path, or a connection that is lost. What was not sent has changed nothing. An error that
// matches ErrNotStored is about what was sent.
//
// What a call shows is bounded: beyond 8 MiB in all, methods return an error that matches ErrTooLarge. Show long output in
// a [Terminal]. The methods are safe for concurrent use. What they send comes one after the other.
type ToolCall struct {
	session Asker
	ctx     context.Context
	turn    *turns.Turn // or nil
	id      v2draft.ToolCallID

	// sending has room for one: who puts something in may use what follows.
	sending chan struct{}
	call    v2draft.ToolCallUpdate // as the client knows it
	size    int                    // of its content
	ended   bool
}

// maxShown is how many bytes a call shows.
const maxShown = 8 << 20

// WithToolCallID gives a tool call an id of the agent's own, for [StartToolCall], in place of one that is made up. No
// other call of the session may have it, also none before the session was resumed.
func WithToolCallID(id v2draft.ToolCallID) v2draft.ToolCallOption {
	return func(u *v2draft.ToolCallUpdate) { u.ToolCallID = id }
}

// StartToolCall tells the client that a tool call begins. ctx is the turn's, or another one that bounds the call. The
// call is pending unless an option says otherwise; use v2draft.WithStatus(v2draft.ToolCallStatusInProgress) for a tool that
// runs at once. v2draft.WithInput gives the input of the tool, any value that encoding/json encodes.
//
// Nothing is started in a turn that was cancelled: it returns the cause of ctx then. With an error there is no call, unless
// the error matches ErrNotStored.
func StartToolCall(ctx context.Context, session Asker, title string, options ...v2draft.ToolCallOption) (*ToolCall, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	first := []v2draft.ToolCallOption{v2draft.WithTitle(title), v2draft.WithStatus(v2draft.ToolCallStatusPending)}
	u := v2draft.AboutToolCall("", append(first, options...)...)
	if u.ToolCallID == "" {
		u.ToolCallID = v2draft.ToolCallID("call_" + rand.Text())
	}
	c := &ToolCall{session: session, ctx: ctx, turn: turns.Of(ctx), id: u.ToolCallID, sending: make(chan struct{}, 1)}
	c.sending <- struct{}{}
	defer c.unlock()
	if err := c.turn.AddCall(c, c.close); err != nil {
		return nil, err
	}
	err := c.update(ctx, u)
	if err != nil && !errors.Is(err, ErrNotStored) {
		c.ended = true
		c.turn.RemoveCall(c)
		return nil, err
	}
	return c, err
}

// ID is the id of the call in the session.
func (c *ToolCall) ID() v2draft.ToolCallID { return c.id }

// State is the call as the client knows it. It waits while something is sent. The result must not be changed.
func (c *ToolCall) State() v2draft.ToolCallUpdate {
	c.sending <- struct{}{}
	defer c.unlock()
	return c.call
}

// Begin says that the tool runs now, if the call is still pending: for tools that need no permission, or have it already.
// Progress, Terminal, and Ask when the user allows the call, do so by themselves.
func (c *ToolCall) Begin() error {
	return c.locked(c.ctx, func() error { return c.begin(c.ctx) })
}

// Progress shows a text behind what the call shows already. A call that is pending is in progress from then on.
func (c *ToolCall) Progress(text string) error {
	return c.locked(c.ctx, func() error {
		return andThen(c.begin(c.ctx), func() error { return c.add(c.ctx, v2draft.ToolText(text), maxShown) })
	})
}

// Diff shows a change of a file, in place of an earlier one of that file, and the file as a location of the call. With an
// empty oldText the change creates the file. Texts are shown as a patch. The status stays as it is: a diff may be what the
// user is asked about.
func (c *ToolCall) Diff(path v2draft.AbsolutePath, oldText, newText string) error {
	diff := fileDiff(path, oldText, newText)
	return c.locked(c.ctx, func() error {
		u := v2draft.ToolCallUpdate{ToolCallID: c.id}
		locations := c.call.Locations.Value()
		if !slices.ContainsFunc(locations, func(l v2draft.ToolCallLocation) bool { return l.Path == path }) {
			u.Locations = v2draft.Some(append(slices.Clip(locations), v2draft.ToolCallLocation{Path: path}))
		}
		content := slices.Clone(c.call.Content.Value())
		at := slices.IndexFunc(content, func(old v2draft.ToolCallContent) bool { return changes(old, path) })
		if at >= 0 {
			content[at] = diff
			u.Content = v2draft.Some(content)
			return c.update(c.ctx, u)
		}
		var located error
		if u.Locations.Present() {
			located = c.update(c.ctx, u)
		}
		return andThen(located, func() error { return c.add(c.ctx, diff, maxShown) })
	})
}

// Terminal shows a terminal of the session's, if the call does not show it yet; *Terminal is one. A call that is pending is
// in progress from then on.
func (c *ToolCall) Terminal(terminal interface{ ID() v2draft.TerminalID }) error {
	id := terminal.ID()
	return c.locked(c.ctx, func() error {
		shown := slices.ContainsFunc(c.call.Content.Value(), func(content v2draft.ToolCallContent) bool {
			old, ok := content.Variant.(*v2draft.ToolCallContentTerminal)
			return ok && old.TerminalID == id
		})
		return andThen(c.begin(c.ctx), func() error {
			if shown {
				return nil
			}
			return c.add(c.ctx, v2draft.ToolTerminal(id), maxShown)
		})
	})
}

// Update says anything else about the call. What the options name is replaced, and everything else stays as it is.
func (c *ToolCall) Update(options ...v2draft.ToolCallOption) error {
	u := v2draft.AboutToolCall(c.id, options...)
	return c.locked(c.ctx, func() error { return c.update(c.ctx, u) })
}

// Ask asks the user whether the call may go on, for at most as long as ctx lasts. The request has the title of the call and
// the whole of it as the client knows it. Without options the user may allow and reject it, once.
//
// It returns the option that the user chose, and no error only if that is one that allows the call, which is in progress
// from then on. Otherwise the error is ErrRejected, for the other options and for answers that nobody offered or knows;
// ErrDismissed if there was no answer, after which agents usually end the turn; or what kept the question from being
// asked, such as v2draft.ErrTurnCancelled. All of them can be given to Fail.
func (c *ToolCall) Ask(ctx context.Context, options ...v2draft.PermissionOption) (v2draft.PermissionOption, error) {
	if len(options) == 0 {
		options = []v2draft.PermissionOption{v2draft.AllowOnce("allow", "Allow"), v2draft.RejectOnce("reject", "Reject")}
	}
	var whole v2draft.ToolCallUpdate
	err := c.locked(ctx, func() error {
		whole = c.call
		c.turn.Flush()
		return nil
	})
	if err != nil {
		return v2draft.PermissionOption{}, err
	}
	outcome, err := c.session.RequestPermission(ctx, &v2draft.RequestPermissionRequest{
		Title: whole.Title.Value(), Subject: v2draft.Some(v2draft.PermissionForToolCall(whole)), Options: options,
	})
	if err != nil {
		return v2draft.PermissionOption{}, err
	}
	if _, dismissed := outcome.Variant.(*v2draft.RequestPermissionOutcomeCancelled); dismissed {
		return v2draft.PermissionOption{}, ErrDismissed
	}
	id, ok := outcome.Selected()
	i := slices.IndexFunc(options, func(o v2draft.PermissionOption) bool { return o.OptionID == id })
	if !ok || i < 0 {
		return v2draft.PermissionOption{}, ErrRejected
	}
	chosen := options[i]
	switch chosen.Kind {
	case v2draft.PermissionOptionKindAllowOnce, v2draft.PermissionOptionKindAllowAlways:
		return chosen, c.locked(ctx, func() error { return c.begin(ctx) })
	default:
		return chosen, ErrRejected
	}
}

// Done ends the call: it is completed. Options may say more, such as v2draft.WithOutput.
func (c *ToolCall) Done(options ...v2draft.ToolCallOption) error {
	ctx, release := turns.Outlive(c.ctx, func() {})
	defer release()
	u := v2draft.AboutToolCall(c.id, options...)
	u.Status = v2draft.Some(v2draft.ToolCallStatusCompleted)
	return c.locked(ctx, func() error { return c.update(ctx, u) })
}

// Fail ends the call: it has failed, or was cancelled, if err says that the turn was. A tool that fails is no reason to end
// the turn, so the error that Fail returns is not err.
//
// The client shows of err what it would see if a handler returned it: the text of an error of v2draft.Public or of a
// v2draft.Error, which may be wrapped, and of this package's own; the error with which the client itself has answered a call,
// and the exit status of an exec.ExitError; of any other error only that the tool failed, because its text may hold what is
// not for others. Log that one. With a nil error nothing is added to what the call shows.
func (c *ToolCall) Fail(err error) error {
	ctx, release := turns.Outlive(c.ctx, func() {})
	defer release()
	u := v2draft.ToolCallUpdate{ToolCallID: c.id, Status: v2draft.Some(v2draft.ToolCallStatusFailed)}
	cancelled := err != nil && turns.Cancelled(err)
	if cancelled {
		u.Status = v2draft.Some(v2draft.ToolCallStatusCancelled)
	}
	return c.locked(ctx, func() error {
		var shown error
		if err != nil && !cancelled {
			text := turns.Visible(err)
			shown = c.add(ctx, v2draft.ToolText(text), maxShown+len(text)+itemBytes) // so that a call can always fail
		}
		return andThen(shown, func() error { return c.update(ctx, u) })
	})
}

// End ends the call with what its tool has returned: by Done if err is nil, else by Fail. It returns an error if the turn
// should end: err, if the user has dismissed a question, the context of the call has ended or a message was not sent because
// it is not valid, or that of sending. A tool that fails for another reason does not end the turn, and End returns nil.
func (c *ToolCall) End(err error) error {
	if err == nil {
		return c.Done()
	}
	return turns.Failed(c.ctx, err, c.Fail(err))
}

// Close closes the call as failed if it is open, and does nothing otherwise: defer it where the end of a turn does not do
// so.
func (c *ToolCall) Close() error { return c.close(turns.ErrLeftOpen) }

func (c *ToolCall) close(why error) error {
	if err := c.Fail(why); !errors.Is(err, ErrEnded) {
		return err
	}
	return nil
}

// locked calls do while nobody else sends, and refuses a call that has ended.
func (c *ToolCall) locked(ctx context.Context, do func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer c.unlock()
	if c.ended {
		return fmt.Errorf("tool call %.64q: %w", c.call.Title.Value(), ErrEnded)
	}
	return do()
}

func (c *ToolCall) unlock() { <-c.sending }

// andThen does the second of two things unless the first could not be sent.
func andThen(first error, second func() error) error {
	if first != nil && !errors.Is(first, ErrNotStored) {
		return first
	}
	return errors.Join(first, second())
}

// begin makes a call that is pending one in progress. The call is locked.
func (c *ToolCall) begin(ctx context.Context) error {
	if status := c.call.Status.Value(); status != v2draft.ToolCallStatusPending && status != "" { // which is the same
		return nil
	}
	return c.update(ctx, v2draft.ToolCallUpdate{ToolCallID: c.id, Status: v2draft.Some(v2draft.ToolCallStatusInProgress)})
}

// update sends an update, and takes note of it. The call is locked.
func (c *ToolCall) update(ctx context.Context, u v2draft.ToolCallUpdate) error {
	u.ToolCallID = c.id
	size := c.size
	if !u.Content.IsZero() {
		size = 0
		for _, content := range u.Content.Value() {
			size += length(content)
		}
		if u.Content.Present() {
			u.Content = v2draft.Some(slices.Clone(u.Content.Value())) // its author may change it
		}
		if err := fits(size, maxShown); err != nil {
			return err
		}
	}
	c.turn.Flush()
	err := c.session.Update(ctx, v2draft.NewSessionUpdateToolCallUpdate(u))
	if err != nil && !errors.Is(err, ErrNotStored) {
		return err
	}
	c.call.Apply(u)
	c.size = size
	if hasEnded(c.call.Status.Value()) {
		c.ended = true
		c.turn.RemoveCall(c)
	}
	return err
}

// add sends content behind what the call shows, and takes note of it. The call is locked.
func (c *ToolCall) add(ctx context.Context, content v2draft.ToolCallContent, most int) error {
	size := c.size + length(content)
	if err := fits(size, most); err != nil {
		return err
	}
	c.turn.Flush()
	err := c.session.Update(ctx, v2draft.NewSessionUpdateToolCallContentChunk(v2draft.ToolCallContentChunk{
		ToolCallID: c.id, Content: content,
	}))
	if err != nil && !errors.Is(err, ErrNotStored) {
		return err
	}
	// What was appended before is not changed: who has it sees no difference.
	c.call.Content, c.size = v2draft.Some(append(c.call.Content.Value(), content)), size
	return err
}

// hasEnded reports whether a tool call with this status is over.
func hasEnded(status v2draft.ToolCallStatus) bool {
	switch status {
	case v2draft.ToolCallStatusCompleted, v2draft.ToolCallStatusFailed, v2draft.ToolCallStatusCancelled:
		return true
	}
	return false
}

// fits refuses too much content.
func fits(size, most int) error {
	if size > most {
		return fmt.Errorf("%w: %d bytes, and %d is the most", ErrTooLarge, size, maxShown)
	}
	return nil
}

// itemBytes is about what content takes beside its texts.
const itemBytes = 64

// length is how many bytes content takes, about.
func length(content v2draft.ToolCallContent) int {
	switch v := content.Variant.(type) {
	case *v2draft.ToolCallContentDiff:
		return itemBytes*(1+len(v.Changes)) + len(v.Patch.Value().Text)
	case *v2draft.ToolCallContentContent:
		switch b := v.Content.Variant.(type) {
		case *v2draft.ContentBlockText:
			return itemBytes + len(b.Text)
		case *v2draft.ContentBlockImage:
			return itemBytes + len(b.Data)
		case *v2draft.ContentBlockAudio:
			return itemBytes + len(b.Data)
		case *v2draft.ContentBlockResource:
			switch r := b.Resource.Variant.(type) {
			case *v2draft.TextResourceContents:
				return itemBytes + len(r.Text)
			case *v2draft.BlobResourceContents:
				return itemBytes + len(r.Blob)
			}
		}
	}
	return itemBytes
}
