package agentkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/internal/turns"
)

// ToolCall is a tool call that the client knows about. It tracks what the client knows, so that content is added where
// the protocol allows that and replaced where it does not, and a question about the call includes everything.
//
// A call ends with Done, with Fail, or with an Update whose status ends it. A call that is open at the end of its turn
// is closed before the session is idle: as cancelled if the turn was cancelled, and otherwise as failed. Elsewhere,
// defer Close. After that, all methods except Close, ID and State return an error that matches ErrEnded, and send
// nothing.
//
// The methods send with the context with which the call was started, and Ask with the context that it is given; after
// that context has ended they return its cause, but Done, Fail and Close work for ten seconds longer. Their errors are
// those of sending: a message that the client would refuse, such as one with a relative path, or a lost connection. If
// a message was not sent, nothing has changed. An error that matches ErrNotStored is about a message that was sent.
//
// The content that a call shows is bounded: beyond 8 MiB in all, methods return an error that matches ErrTooLarge. Show
// long output in a [Terminal]. The methods are safe for concurrent use. They send one message at a time.
type ToolCall struct {
	session Asker
	ctx     context.Context
	turn    *turns.Turn // may be nil
	id      acpv2.ToolCallID

	// sending has a capacity of one: the goroutine that puts a value in may use the following fields.
	sending chan struct{}
	call    acpv2.ToolCallUpdate // as the client knows it
	size    int                  // size of its content
	ended   bool
}

// maxShown is how many bytes a call may show.
const maxShown = 8 << 20

// WithToolCallID sets the id of a tool call that [StartToolCall] starts, instead of a generated one. No other call of
// the session may have it, including calls from before the session was resumed.
func WithToolCallID(id acpv2.ToolCallID) acpv2.ToolCallOption {
	return func(u *acpv2.ToolCallUpdate) { u.ToolCallID = id }
}

// StartToolCall tells the client that a tool call begins. ctx is the turn's context, or another one that bounds the
// call. The call is pending unless an option says otherwise; use acpv2.WithStatus(acpv2.ToolCallStatusInProgress)
// for a tool that runs at once. acpv2.WithInput gives the input of the tool, any value that encoding/json encodes.
//
// If the turn was cancelled, StartToolCall starts nothing and returns the cause of ctx. If it returns an error there is
// no call, unless the error matches ErrNotStored.
func StartToolCall(ctx context.Context, session Asker, title string, options ...acpv2.ToolCallOption) (*ToolCall, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	first := []acpv2.ToolCallOption{acpv2.WithTitle(title), acpv2.WithStatus(acpv2.ToolCallStatusPending)}
	u := acpv2.AboutToolCall("", append(first, options...)...)
	if u.ToolCallID == "" {
		u.ToolCallID = acpv2.ToolCallID("call_" + rand.Text())
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

// ID returns the id of the call in the session.
func (c *ToolCall) ID() acpv2.ToolCallID { return c.id }

// State returns the call as the client knows it. It blocks while something is being sent. The result must not be
// changed.
func (c *ToolCall) State() acpv2.ToolCallUpdate {
	c.sending <- struct{}{}
	defer c.unlock()
	return c.call
}

// Begin reports that the tool is running, if the call is still pending. Use it for tools that need no permission or
// already have it. Progress and Terminal do this automatically, and so does Ask when the user allows the call.
func (c *ToolCall) Begin() error {
	return c.locked(c.ctx, func() error { return c.begin(c.ctx) })
}

// Progress shows a text after the content that the call already shows. A pending call becomes in progress.
func (c *ToolCall) Progress(text string) error {
	return c.locked(c.ctx, func() error {
		return andThen(c.begin(c.ctx), func() error { return c.add(c.ctx, acpv2.ToolText(text), maxShown) })
	})
}

// Diff shows a change to a file, replacing an earlier one to that file, and adds the file as a location of the call. If
// oldText is empty, the change creates the file. Texts are shown as a patch. The status does not change, because the
// diff may be shown for the user to decide about.
func (c *ToolCall) Diff(path acpv2.AbsolutePath, oldText, newText string) error {
	diff := fileDiff(path, oldText, newText)
	return c.locked(c.ctx, func() error {
		u := acpv2.ToolCallUpdate{ToolCallID: c.id}
		locations := c.call.Locations.Value()
		if !slices.ContainsFunc(locations, func(l acpv2.ToolCallLocation) bool { return l.Path == path }) {
			u.Locations = acpv2.Some(append(slices.Clip(locations), acpv2.ToolCallLocation{Path: path}))
		}
		content := slices.Clone(c.call.Content.Value())
		at := slices.IndexFunc(content, func(old acpv2.ToolCallContent) bool { return changes(old, path) })
		if at >= 0 {
			content[at] = diff
			u.Content = acpv2.Some(content)
			return c.update(c.ctx, u)
		}
		var located error
		if u.Locations.Present() {
			located = c.update(c.ctx, u)
		}
		return andThen(located, func() error { return c.add(c.ctx, diff, maxShown) })
	})
}

// Terminal shows a terminal of the session, if the call does not show it yet; *Terminal is a terminal. A pending call
// becomes in progress.
func (c *ToolCall) Terminal(terminal interface{ ID() acpv2.TerminalID }) error {
	id := terminal.ID()
	return c.locked(c.ctx, func() error {
		shown := slices.ContainsFunc(c.call.Content.Value(), func(content acpv2.ToolCallContent) bool {
			old, ok := content.Variant.(*acpv2.ToolCallContentTerminal)
			return ok && old.TerminalID == id
		})
		return andThen(c.begin(c.ctx), func() error {
			if shown {
				return nil
			}
			return c.add(c.ctx, acpv2.ToolTerminal(id), maxShown)
		})
	})
}

// Update changes any other part of the call. It replaces the parts that the options set, and leaves everything else
// unchanged.
func (c *ToolCall) Update(options ...acpv2.ToolCallOption) error {
	u := acpv2.AboutToolCall(c.id, options...)
	return c.locked(c.ctx, func() error { return c.update(c.ctx, u) })
}

// Ask asks the user whether the call may proceed, and waits for the answer until ctx ends. The request has the title of
// the call and all of it as the client knows it. Without options the user can allow it once or reject it once.
//
// It returns the option that the user chose. The error is nil only if that option allows the call, which is then in
// progress. Otherwise the error is ErrRejected for the other options and for answers that were not offered or are
// unknown; ErrDismissed if there was no answer, after which agents usually end the turn; or the reason why the question
// could not be asked, such as acpv2.ErrTurnCancelled. All of them can be passed to Fail.
func (c *ToolCall) Ask(ctx context.Context, options ...acpv2.PermissionOption) (acpv2.PermissionOption, error) {
	if len(options) == 0 {
		options = []acpv2.PermissionOption{acpv2.AllowOnce("allow", "Allow"), acpv2.RejectOnce("reject", "Reject")}
	}
	var whole acpv2.ToolCallUpdate
	err := c.locked(ctx, func() error {
		whole = c.call
		c.turn.Flush()
		return nil
	})
	if err != nil {
		return acpv2.PermissionOption{}, err
	}
	outcome, err := c.session.RequestPermission(ctx, &acpv2.RequestPermissionRequest{
		Title: whole.Title.Value(), Subject: acpv2.Some(acpv2.PermissionForToolCall(whole)), Options: options,
	})
	if err != nil {
		return acpv2.PermissionOption{}, err
	}
	if _, dismissed := outcome.Variant.(*acpv2.RequestPermissionOutcomeCancelled); dismissed {
		return acpv2.PermissionOption{}, ErrDismissed
	}
	id, ok := outcome.Selected()
	i := slices.IndexFunc(options, func(o acpv2.PermissionOption) bool { return o.OptionID == id })
	if !ok || i < 0 {
		return acpv2.PermissionOption{}, ErrRejected
	}
	chosen := options[i]
	switch chosen.Kind {
	case acpv2.PermissionOptionKindAllowOnce, acpv2.PermissionOptionKindAllowAlways:
		return chosen, c.locked(ctx, func() error { return c.begin(ctx) })
	default:
		return chosen, ErrRejected
	}
}

// Done ends the call as completed. Options may add more, such as acpv2.WithOutput.
func (c *ToolCall) Done(options ...acpv2.ToolCallOption) error {
	ctx, release := turns.Outlive(c.ctx, func() {})
	defer release()
	u := acpv2.AboutToolCall(c.id, options...)
	u.Status = acpv2.Some(acpv2.ToolCallStatusCompleted)
	return c.locked(ctx, func() error { return c.update(ctx, u) })
}

// Fail ends the call as failed, or as cancelled if err reports that the turn was cancelled. A tool that fails is not a
// reason to end the turn, so the error that Fail returns is not err.
//
// The client shows the text of err that it would see if a handler returned err: the text of an error of acpv2.Public
// or of a acpv2.Error, which may be wrapped, and of this package's own errors. It also shows the error with which the
// client itself answered a call, and the exit status of an exec.ExitError. For any other error it shows only that the
// tool failed, because the text may be private; log such errors. If err is nil, nothing is added to the content of the
// call.
func (c *ToolCall) Fail(err error) error {
	ctx, release := turns.Outlive(c.ctx, func() {})
	defer release()
	u := acpv2.ToolCallUpdate{ToolCallID: c.id, Status: acpv2.Some(acpv2.ToolCallStatusFailed)}
	cancelled := err != nil && turns.Cancelled(err)
	if cancelled {
		u.Status = acpv2.Some(acpv2.ToolCallStatusCancelled)
	}
	return c.locked(ctx, func() error {
		var shown error
		if err != nil && !cancelled {
			text := turns.Visible(err)
			shown = c.add(ctx, acpv2.ToolText(text), maxShown+len(text)+itemBytes) // so that a call can always fail
		}
		return andThen(shown, func() error { return c.update(ctx, u) })
	})
}

// End ends the call with the result of its tool: with Done if err is nil, and otherwise with Fail. It returns an error
// if the turn should end: err, if the user has dismissed a question, the context of the call has ended or a message was
// not sent because it is not valid; or an error of sending. A tool that fails for another reason does not end the turn,
// and End returns nil.
func (c *ToolCall) End(err error) error {
	if err == nil {
		return c.Done()
	}
	return turns.Failed(c.ctx, err, c.Fail(err))
}

// Close closes the call as failed if it is open, and does nothing otherwise. Defer it where no turn ends the call.
func (c *ToolCall) Close() error { return c.close(turns.ErrLeftOpen) }

func (c *ToolCall) close(why error) error {
	if err := c.Fail(why); !errors.Is(err, ErrEnded) {
		return err
	}
	return nil
}

// locked calls do while no other message is being sent; it fails if the call has ended.
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

// andThen calls second unless first says that the message could not be sent.
func andThen(first error, second func() error) error {
	if first != nil && !errors.Is(first, ErrNotStored) {
		return first
	}
	return errors.Join(first, second())
}

// begin sets a pending call in progress. The call is locked.
func (c *ToolCall) begin(ctx context.Context) error {
	if status := c.call.Status.Value(); status != acpv2.ToolCallStatusPending && status != "" { // which is the same
		return nil
	}
	return c.update(ctx, acpv2.ToolCallUpdate{ToolCallID: c.id, Status: acpv2.Some(acpv2.ToolCallStatusInProgress)})
}

// update sends an update, and records it. The call is locked.
func (c *ToolCall) update(ctx context.Context, u acpv2.ToolCallUpdate) error {
	u.ToolCallID = c.id
	size := c.size
	if !u.Content.IsZero() {
		size = 0
		for _, content := range u.Content.Value() {
			size += length(content)
		}
		if u.Content.Present() {
			u.Content = acpv2.Some(slices.Clone(u.Content.Value())) // the caller may change it
		}
		if err := fits(size, maxShown); err != nil {
			return err
		}
	}
	c.turn.Flush()
	err := c.session.Update(ctx, acpv2.NewSessionUpdateToolCallUpdate(u))
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

// add sends content to show after the existing content, and records it. The call is locked.
func (c *ToolCall) add(ctx context.Context, content acpv2.ToolCallContent, most int) error {
	size := c.size + length(content)
	if err := fits(size, most); err != nil {
		return err
	}
	c.turn.Flush()
	err := c.session.Update(ctx, acpv2.NewSessionUpdateToolCallContentChunk(acpv2.ToolCallContentChunk{
		ToolCallID: c.id, Content: content,
	}))
	if err != nil && !errors.Is(err, ErrNotStored) {
		return err
	}
	// Existing elements are not changed, so earlier copies of the slice stay valid.
	c.call.Content, c.size = acpv2.Some(append(c.call.Content.Value(), content)), size
	return err
}

// hasEnded reports whether a tool call with this status has ended.
func hasEnded(status acpv2.ToolCallStatus) bool {
	switch status {
	case acpv2.ToolCallStatusCompleted, acpv2.ToolCallStatusFailed, acpv2.ToolCallStatusCancelled:
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

// itemBytes is approximately how many bytes content takes in addition to its texts.
const itemBytes = 64

// length returns the approximate size of content in bytes: that of its JSON, unless it is text or has no JSON.
func length(content acpv2.ToolCallContent) int {
	if v, ok := content.Variant.(*acpv2.ToolCallContentContent); ok {
		if text, ok := v.Content.Variant.(*acpv2.ContentBlockText); ok {
			return itemBytes + len(text.Text)
		}
	}
	raw, _ := content.MarshalJSON()
	return itemBytes + len(raw)
}
