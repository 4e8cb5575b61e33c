package agentkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/plain"
)

// ToolCall is a tool call that the client knows about. It tracks what the client knows, so that each message about it
// carries what the protocol requires: content replaces everything that was shown before, and a request for permission
// includes everything, because the client may show nothing else.
//
// A call ends with Done, with Fail, or with an Update whose status ends it. A call that is open at the end of its turn
// is closed as failed before the prompt is answered; see HandlePrompt for what belongs to a turn. Elsewhere, defer
// Close. After that, all methods except Close, ID and State return an error that matches ErrEnded, and send nothing.
//
// The methods send with the context with which the call was started, and Ask with the context that it is given; after
// that context has ended they return its cause, but Done, Fail and Close work for ten seconds longer. Their errors are
// those of sending: a message that the client would refuse, such as one with a relative path, or a lost connection. If
// a message was not sent, nothing has changed.
//
// The method that ends the call also releases the terminals of Run, and waits for the client's answer for at most ten
// seconds; it returns an error if a terminal was not released, although the call has ended.
//
// The methods are safe for concurrent use. They send one message at a time.
//
// The content that a call shows is bounded, because all of it is sent each time it changes. Of the texts of Progress, a
// call shows at most the last 64 KiB and the last 200 texts; a note replaces earlier ones. Diffs and other content are
// never cut: beyond 8 MiB in all, methods return an error that matches ErrTooLarge.
type ToolCall struct {
	session Asker
	ctx     context.Context
	open    *turns.Turn // may be nil
	id      acp.ToolCallID
	title   string // the original title

	// sending has a capacity of one: the goroutine that puts a value in may use the following fields.
	sending chan struct{}
	call    acp.ToolCall // as the client knows it
	shown   []shown      // its content
	ended   bool
	outputs map[acp.TerminalID]string // the output of commands that have ended

	terminals []*acp.TerminalHandle // to release at the end
	commands  []*Terminal           // that have not ended
	work      work
}

// shown is a piece of a tool call's content.
type shown struct {
	acp.ToolCallContent
	progress bool      // from Progress; may be dropped
	terminal *Terminal // whose output it is, if any
}

const (
	maxProgress      = 64 << 10 // bytes of the texts of Progress
	maxProgressTexts = 200
	maxShown         = 8 << 20 // bytes of everything
)

// leftOut replaces texts of Progress that are no longer shown.
const leftOut = "(Earlier output is not shown.)"

// WithToolCallID sets the id of a tool call that [StartToolCall] starts, instead of a generated one. No other call of
// the session may have it, including calls from before the session was loaded.
func WithToolCallID(id acp.ToolCallID) acp.ToolCallOption {
	return func(u *acp.ToolCallUpdate) { u.ToolCallID = id }
}

// StartToolCall tells the client that a tool call begins. ctx is the turn's context, or another one that bounds the
// call. The call is pending unless an option says otherwise; use acp.WithStatus(acp.ToolCallStatusInProgress) for a
// tool that runs at once. acp.WithInput gives the input of the tool, any value that encoding/json encodes.
//
// If the turn was cancelled, StartToolCall starts nothing and returns the cause of ctx. If it returns an error there is
// no call, unless the error matches ErrNotStored.
func StartToolCall(ctx context.Context, session Asker, title string, options ...acp.ToolCallOption) (*ToolCall, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	u := acp.ToolCallRef("", options...)
	if u.ToolCallID == "" {
		u.ToolCallID = acp.ToolCallID("call_" + rand.Text())
	}
	c := &ToolCall{session: session, ctx: ctx, open: turns.Of(ctx), id: u.ToolCallID, title: title,
		sending: make(chan struct{}, 1)}
	next := acp.ToolCall{ToolCallID: c.id, Title: title, Status: acp.ToolCallStatusPending}
	next.Apply(u)
	show := others(next.Content)
	if err := check(show); err != nil {
		return nil, err
	}
	c.sending <- struct{}{}
	defer c.unlock()
	if err := c.open.AddCall(c, c.close); err != nil {
		return nil, err
	}
	c.open.Flush()
	err := session.Update(ctx, acp.NewSessionUpdateToolCall(next))
	if err != nil && !errors.Is(err, ErrNotStored) {
		c.ended = true
		c.open.RemoveCall(c)
		return nil, err
	}
	c.took(next, show)
	return c, err
}

// ID returns the id of the call in the session.
func (c *ToolCall) ID() acp.ToolCallID { return c.id }

// State returns the call as the client knows it. It blocks while something is being sent. The result must not be
// changed.
func (c *ToolCall) State() acp.ToolCall {
	c.sending <- struct{}{}
	defer c.unlock()
	return c.call
}

// Begin reports that the tool is running, if the call is still pending. Use it for tools that need no permission or
// already have it. Progress, Terminal and Run do this automatically, and so does Ask when the user allows the call.
func (c *ToolCall) Begin() error {
	return c.allowed(c.ctx)
}

// Progress shows a text after the content that the call already shows. A pending call becomes in progress.
func (c *ToolCall) Progress(text string) error {
	return c.send(c.ctx, acp.ToolCallUpdate{}, func(u *acp.ToolCallUpdate, show []shown) []shown {
		c.begin(u)
		return withProgress(show, text)
	})
}

// Show shows a text as the result of the call, in place of what it shows. The status does not change.
func (c *ToolCall) Show(text string) error { return c.Update(acp.WithContent(acp.ToolText(text))) }

// Diff shows a change to a file, replacing an earlier one to that file, and adds the file as a location of the call.
// The path is absolute. If oldText is empty, the change creates the file. The status does not change, because the diff
// may be shown for the user to decide about.
func (c *ToolCall) Diff(path, oldText, newText string) error {
	diff := acp.ToolEdit(path, oldText, newText)
	if oldText == "" {
		diff = acp.ToolDiff(path, newText)
	}
	return c.send(c.ctx, acp.ToolCallUpdate{}, func(u *acp.ToolCallUpdate, show []shown) []shown {
		if !slices.ContainsFunc(c.call.Locations, func(l acp.ToolCallLocation) bool { return l.Path == path }) {
			u.Locations = acp.Some(append(slices.Clip(c.call.Locations), acp.ToolCallLocation{Path: path}))
		}
		return replace(show, diff, func(v acp.ToolCallContentVariant) bool {
			old, ok := v.(*acp.ToolCallContentDiff)
			return ok && old.Path == path
		})
	})
}

// Terminal shows the output of a command in a terminal of the client as it arrives; *acp.TerminalHandle is a terminal.
// Call it before the terminal is closed. A pending call becomes in progress.
func (c *ToolCall) Terminal(terminal interface{ ID() acp.TerminalID }) error {
	id := terminal.ID()
	return c.send(c.ctx, acp.ToolCallUpdate{}, func(u *acp.ToolCallUpdate, show []shown) []shown {
		c.begin(u)
		return replace(show, acp.ToolTerminal(id), func(v acp.ToolCallContentVariant) bool {
			old, ok := v.(*acp.ToolCallContentTerminal)
			return ok && old.TerminalID == id
		})
	})
}

// Run runs a command in a terminal of the client, shows the terminal, and waits for the command's end; see
// acp.AgentSession.CreateTerminal for req. The result holds the command's output, the last 64 KiB of it unless req says
// otherwise, and how the command ended; a command that fails is not an error. ctx bounds the command: if ctx ends
// first, the command is killed, the error is the cause of ctx, and there is still a result unless the context of the
// call has ended too. The terminal is released when the call has ended, because the content of a call must not name a
// terminal that no longer exists.
//
// A Session stores the command's output in place of the terminal, which no longer exists when the session is loaded.
// The call's session must be able to create terminals, as those of packages acp and agentkit are; Run fails with
// acp.ErrUnsupported if the session, or the client, cannot.
func (c *ToolCall) Run(ctx context.Context, req *acp.CreateTerminalRequest) (*acp.TerminalOutputResponse, error) {
	session, ok := c.session.(interface {
		CreateTerminal(context.Context, *acp.CreateTerminalRequest) (*acp.TerminalHandle, error)
	})
	if !ok {
		return nil, fmt.Errorf("%w: %T has no terminals", acp.ErrUnsupported, c.session)
	}
	own := *req
	if !own.OutputByteLimit.Present() {
		own.OutputByteLimit = acp.Some[uint64](maxProgress)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	terminal, err := session.CreateTerminal(c.ctx, &own) // a command that is killed at once is shown, too
	if err != nil {
		return nil, err
	}
	if err := c.take(terminal); err != nil {
		return nil, errors.Join(err, terminal.Close(c.ctx))
	}
	if err := c.Terminal(terminal); err != nil {
		return nil, err
	}
	var late error
	if _, err := terminal.Wait(ctx); err != nil {
		if ctx.Err() == nil {
			return nil, err
		}
		late = context.Cause(ctx)
		lasting, release := turns.Outlive(c.ctx, func() {})
		defer release()
		if err := terminal.Kill(lasting); err != nil || c.ctx.Err() != nil {
			return nil, errors.Join(late, err)
		}
	}
	res, err := terminal.Output(c.ctx)
	if err != nil {
		return nil, errors.Join(late, err)
	}
	return res, errors.Join(late, c.keep(terminal.ID(), res.Output))
}

// take makes the end of the call release a terminal.
func (c *ToolCall) take(terminal *acp.TerminalHandle) error {
	if err := c.lock(c.ctx); err != nil {
		return err
	}
	defer c.unlock()
	c.terminals = append(c.terminals, terminal)
	return nil
}

// Update changes any other part of the call. It replaces the parts that the options set, and leaves everything else
// unchanged.
func (c *ToolCall) Update(options ...acp.ToolCallOption) error {
	return c.send(c.ctx, acp.ToolCallRef(c.id, options...), nil)
}

// Ask asks the user whether the call may proceed, and waits for the answer until ctx ends. The request includes the
// whole call as the client knows it. Without options the user can allow it once or reject it once, and also always if
// [Config].Decide is a Rememberer, which remembers an answer of the kind allow_always or reject_always. [Config].Decide
// decides first; the user is not asked about a call that it allows or rejects.
//
// It returns the option that the user chose. The error is nil only if that option allows the call, which is then in
// progress. Otherwise the error is ErrRejected for the other options, for answers that were not offered or are unknown,
// and if Config.Decide rejects the call; ErrDismissed if there was no answer, which ends the turn as cancelled if
// Config.Prompt returns it; or the reason why the question could not be asked, such as acp.ErrTurnCancelled. All of
// them can be passed to Fail.
func (c *ToolCall) Ask(ctx context.Context, options ...acp.PermissionOption) (acp.PermissionOption, error) {
	if len(options) == 0 {
		options = c.Options()
	}
	if chosen, err := c.decide(); err != nil {
		return chosen, err
	} else if chosen.Kind != "" {
		return chosen, c.allowed(ctx)
	}
	whole, err := c.whole(ctx)
	if err != nil {
		return acp.PermissionOption{}, err
	}
	outcome, err := c.session.RequestPermission(ctx, whole, options...)
	if err != nil {
		return acp.PermissionOption{}, err
	}
	if _, dismissed := outcome.Variant.(*acp.RequestPermissionOutcomeCancelled); dismissed {
		return acp.PermissionOption{}, ErrDismissed
	}
	id, ok := outcome.Selected()
	i := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return o.OptionID == id })
	if !ok || i < 0 {
		return acp.PermissionOption{}, ErrRejected
	}
	chosen := options[i]
	if err := c.remember(chosen); err != nil {
		shown := c.send(ctx, acp.ToolCallUpdate{}, func(_ *acp.ToolCallUpdate, show []shown) []shown {
			return withProgress(show, "This will be asked again: "+err.Error()+".")
		})
		if shown != nil {
			return chosen, shown
		}
	}
	if allows(chosen.Kind) {
		return chosen, c.allowed(ctx)
	}
	return chosen, ErrRejected
}

// remember passes a decision that is to be remembered to Config.Decide.
func (c *ToolCall) remember(chosen acp.PermissionOption) error {
	always := chosen.Kind == acp.PermissionOptionKindAllowAlways || chosen.Kind == acp.PermissionOptionKindRejectAlways
	decide, place := c.decider()
	if r, ok := decide.(Rememberer); ok && always {
		return r.Remember(place, c.State(), chosen.Kind)
	}
	return nil
}

// home returns the session whose Config applies to the call, or nil. stored is false if the call is a subagent's, whose
// updates the session does not store.
func (c *ToolCall) home() (s *session, stored bool) {
	if in, ok := c.session.(interface{ home() (*session, bool) }); ok {
		return in.home()
	}
	return nil, false
}

// decider returns Config.Decide, or nil, and the session to pass to it.
func (c *ToolCall) decider() (Decider, Place) {
	if s, _ := c.home(); s != nil {
		return s.sessions.config.Decide, s.outer
	}
	return nil, nil
}

// Options returns the default options of Ask, for questions that name some of them differently.
func (c *ToolCall) Options() []acp.PermissionOption {
	decide, _ := c.decider()
	if _, ok := decide.(Rememberer); ok {
		return []acp.PermissionOption{
			acp.AllowOnce("once", "Allow"), acp.AllowAlways("always", "Always allow"),
			acp.RejectOnce("no", "Reject"), acp.RejectAlways("never", "Always reject"),
		}
	}
	return []acp.PermissionOption{acp.AllowOnce("allow", "Allow"), acp.RejectOnce("reject", "Reject")}
}

func allows(kind acp.PermissionOptionKind) bool {
	return kind == acp.PermissionOptionKindAllowOnce || kind == acp.PermissionOptionKindAllowAlways
}

// allowed sets a pending call in progress, because it may proceed.
func (c *ToolCall) allowed(ctx context.Context) error {
	return c.send(ctx, acp.ToolCallUpdate{}, func(u *acp.ToolCallUpdate, _ []shown) []shown {
		c.begin(u)
		return nil
	})
}

// decide returns the decision of Config.Decide, as an option that the user was not shown; its kind is "" if the user is
// to be asked.
func (c *ToolCall) decide() (acp.PermissionOption, error) {
	decide, place := c.decider()
	if decide == nil {
		return acp.PermissionOption{}, nil
	}
	kind, why, err := decide.Decide(place, c.State())
	if err != nil || kind == "" {
		return acp.PermissionOption{}, err
	}
	option := acp.PermissionOption{OptionID: acp.PermissionOptionID(kind), Name: why, Kind: kind}
	if allows(kind) {
		return option, nil
	}
	return option, acp.Public(&rejectedError{why})
}

// rejectedError reports that Config.Decide has rejected a tool call, and why. The client may read it.
type rejectedError struct{ why string }

func (e *rejectedError) Error() string        { return "not allowed: " + e.why }
func (e *rejectedError) Is(target error) bool { return target == ErrRejected }

// Done ends the call as completed. Options may add more, such as acp.WithOutput.
func (c *ToolCall) Done(options ...acp.ToolCallOption) error {
	ctx, release := turns.Outlive(c.ctx, func() {})
	defer release()
	u := acp.ToolCallRef(c.id, options...)
	u.Status = acp.Some(acp.ToolCallStatusCompleted)
	return c.send(ctx, u, nil)
}

// Fail ends the call as failed. A tool that fails is not a reason to end the turn, so the error that Fail returns is
// not err.
//
// The client shows the text of err that it would see if a handler returned err: the text of an error of acp.Public or
// of an acp.Error, which may be wrapped, and of this package's own errors. It also shows the error with which the
// client itself answered a call, the exit status of an exec.ExitError, and "cancelled" if the turn was cancelled. For
// any other error it shows only that the tool failed, because the text may be private. [Config].ToolError overrides
// this. If err is nil, nothing is added to the content of the call.
//
// The title and err are logged, to the logger of the Sessions or of the connection, as a warning; or at level debug if
// the user did not allow the call, or it was cancelled.
func (c *ToolCall) Fail(err error) error {
	ctx, release := turns.Outlive(c.ctx, func() {})
	defer release()
	failed := acp.ToolCallUpdate{Status: acp.Some(acp.ToolCallStatusFailed)}
	sent := c.send(ctx, failed, func(_ *acp.ToolCallUpdate, show []shown) []shown {
		if err == nil {
			return nil
		}
		if c.work.cancelled() { // err may only be its consequence, such as a process that was killed
			err = fmt.Errorf("%w: %w", ErrCallCancelled, err)
		}
		return withProgress(show, c.explain(err))
	})
	if err != nil && !errors.Is(sent, ErrEnded) {
		level := slog.LevelWarn
		if turns.Expected(err) {
			level = slog.LevelDebug
		}
		c.logger().Log(ctx, level, "tool call failed", "title", c.title, "error", err)
	}
	return sent
}

// explain returns the text that the client shows for an error.
func (c *ToolCall) explain(err error) string {
	if s, _ := c.home(); s != nil && s.sessions.config.ToolError != nil {
		if text := s.sessions.config.ToolError(c.call, err); text != "" {
			return text
		}
	}
	return turns.Visible(err)
}

func (c *ToolCall) logger() *slog.Logger {
	switch s := c.session.(type) {
	case interface{ logger() *slog.Logger }:
		return s.logger()
	case interface{ RPC() *rpc.Conn }:
		return (*engine.Conn)(s.RPC()).Logger()
	}
	return slog.Default()
}

// End ends the call with the result of its tool: with Done if err is nil, and otherwise with Fail. It returns an error
// if the turn should end: err, if the user has dismissed a question, the context of the call has ended or a message was
// not sent because it is not valid, such as one with a relative path; or an error of sending. A tool that fails for
// another reason does not end the turn, and End returns nil.
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

// begin sets a pending call in progress.
func (c *ToolCall) begin(u *acp.ToolCallUpdate) {
	if c.call.Status == acp.ToolCallStatusPending {
		u.Status = acp.Some(acp.ToolCallStatusInProgress)
	}
}

// send sends an update, which change may extend, and records what the client then knows. change is passed the content,
// and returns the new content, or nil if it does not change.
func (c *ToolCall) send(ctx context.Context, u acp.ToolCallUpdate,
	change func(*acp.ToolCallUpdate, []shown) []shown) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	var over []*acp.TerminalHandle
	err := func() error {
		defer c.unlock() // also if Config.ToolError panics
		err := c.update(ctx, u, change)
		if c.ended {
			over, c.terminals = c.terminals, nil
		}
		return err
	}()
	return errors.Join(err, closeAll(ctx, over))
}

// closeAll releases terminals concurrently, because each may take as long as acp.TerminalHandle.Close waits.
func closeAll(ctx context.Context, terminals []*acp.TerminalHandle) error {
	if len(terminals) == 0 {
		return nil
	}
	errs := make([]error, len(terminals))
	var closing sync.WaitGroup
	for i, terminal := range terminals {
		closing.Go(func() { errs[i] = terminal.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// update is send for callers that have locked the call.
func (c *ToolCall) update(ctx context.Context, u acp.ToolCallUpdate,
	change func(*acp.ToolCallUpdate, []shown) []shown) error {
	u.ToolCallID = c.id
	if ends(u.Status.Value()) {
		for _, t := range slices.Clone(c.commands) {
			if err := t.exit(ctx, acp.TerminalExitStatus{}); err != nil && !errors.Is(err, ErrNotStored) {
				return err
			}
		}
	}
	show := c.shown
	if content, ok := u.Content.Get(); ok {
		show = others(content)
	}
	if change != nil {
		if changed := change(&u, show); changed != nil {
			show = changed
			u.Content = acp.Some(contents(show))
		}
		if !u.Status.Present() && !u.Content.Present() { // nothing has changed
			return nil
		}
	}
	if u.Content.Present() {
		if err := check(show); err != nil {
			return err
		}
	}
	if u.Status.Value() == acp.ToolCallStatusFailed && c.work.cancelled() {
		if u.Meta == nil {
			u.Meta = c.call.Meta // which this would replace
		}
		u.Meta = maps.Clone(u.Meta)
		if err := u.Meta.Set(plain.CancelKey, map[string]bool{"cancelled": true}); err != nil {
			return err
		}
	}
	next := c.call
	next.Apply(u)
	c.open.Flush()
	err := c.session.Update(ctx, acp.NewSessionUpdateToolCallUpdate(u))
	if err != nil && !errors.Is(err, ErrNotStored) {
		return err
	}
	c.took(next, show)
	if u.Content.Present() {
		err = errors.Join(err, c.record(ctx))
	}
	return err
}

// keep records the output of a command whose terminal the call shows.
func (c *ToolCall) keep(id acp.TerminalID, output string) error {
	if err := c.lock(c.ctx); err != nil {
		return err
	}
	defer c.unlock()
	return c.kept(c.ctx, id, output)
}

// kept is keep for callers that have locked the call.
func (c *ToolCall) kept(ctx context.Context, id acp.TerminalID, output string) error {
	if c.outputs == nil {
		c.outputs = map[acp.TerminalID]string{}
	}
	c.outputs[id] = output
	return c.record(ctx)
}

// record makes a session that stores its updates store the content of the call with text in place of terminals.
func (c *ToolCall) record(ctx context.Context) error {
	if len(c.outputs) == 0 {
		return nil
	}
	s, stored := c.home()
	if !stored {
		return nil
	}
	content := make([]acp.ToolCallContent, 0, len(c.shown))
	for _, s := range c.shown {
		if t, ok := s.Variant.(*acp.ToolCallContentTerminal); ok {
			output, ended := c.outputs[t.TerminalID]
			if !ended {
				continue
			}
			s.ToolCallContent = acp.ToolText(CodeBlock(output))
		}
		content = append(content, s.ToolCallContent)
	}
	return s.recordOnly(ctx, acp.UpdateToolCall(c.id, acp.WithContent(content...)), true)
}

// whole returns the call as the client knows it, for a request for permission.
func (c *ToolCall) whole(ctx context.Context) (acp.ToolCallUpdate, error) {
	if err := c.lock(ctx); err != nil {
		return acp.ToolCallUpdate{}, err
	}
	defer c.unlock()
	c.open.Flush()
	return turns.Whole(c.call), nil
}

// lock waits until no other message is being sent; it fails if the call has ended.
func (c *ToolCall) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.ended {
		c.unlock()
		return fmt.Errorf("tool call %.64q: %w", c.call.Title, ErrEnded)
	}
	return nil
}

func (c *ToolCall) unlock() { <-c.sending }

// took records what the client now knows.
func (c *ToolCall) took(call acp.ToolCall, show []shown) {
	c.call, c.shown = call, show
	if ends(call.Status) {
		c.ended = true
		c.work.end()
		c.open.RemoveCall(c)
	}
}

// withProgress adds a text of Progress, and drops the oldest ones if there are too many.
func withProgress(show []shown, text string) []shown {
	show = slices.Clone(show)
	if len(text) > maxProgress {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxProgress:], "")
	}
	show = append(show, shown{ToolCallContent: acp.ToolText(text), progress: true})
	texts, bytes := 0, 0
	for i := len(show) - 1; i >= 0; i-- {
		if !show[i].progress {
			continue
		}
		text := show[i].Text()
		texts++
		bytes += len(text)
		if texts > 1 && (texts > maxProgressTexts || bytes > maxProgress) {
			return dropped(show, i)
		}
	}
	return show
}

// dropped returns show without its texts of Progress up to index last, and with a note in their place.
func dropped(show []shown, last int) []shown {
	said := false
	kept := show[:0]
	for i, s := range show {
		switch {
		case !s.progress || i > last:
			kept = append(kept, s)
		case !said:
			said = true
			kept = append(kept, shown{ToolCallContent: acp.ToolText(leftOut), progress: true})
		}
	}
	return kept
}

// replace puts content in place of the content for which old is true, or at the end.
func replace(show []shown, content acp.ToolCallContent, old func(acp.ToolCallContentVariant) bool) []shown {
	show = slices.Clone(show)
	i := slices.IndexFunc(show, func(s shown) bool { return old(s.Variant) })
	if i < 0 {
		return append(show, shown{ToolCallContent: content})
	}
	show[i].ToolCallContent = content
	return show
}

// others returns the content that does not come from Progress.
func others(content []acp.ToolCallContent) []shown {
	show := make([]shown, len(content))
	for i := range content {
		show[i].ToolCallContent = content[i]
	}
	return show
}

// contents returns the content that is sent to the client.
func contents(show []shown) []acp.ToolCallContent {
	content := make([]acp.ToolCallContent, len(show))
	for i := range show {
		content[i] = show[i].ToolCallContent
	}
	return content
}

// check refuses too much content.
func check(show []shown) error {
	bytes := 0
	for _, s := range show {
		if !s.progress { // Progress has a bound of its own, so that a call can always fail
			bytes += length(s.ToolCallContent)
		}
	}
	if bytes > maxShown {
		return fmt.Errorf("%w: %d bytes, and %d is the most", ErrTooLarge, bytes, maxShown)
	}
	return nil
}

// length returns the approximate size of content in bytes: that of its JSON, unless it is one of the frequent kinds, or
// has no JSON.
func length(content acp.ToolCallContent) int {
	const item = 64 // for its names and short members
	switch v := content.Variant.(type) {
	case *acp.ToolCallContentDiff:
		return item + len(v.Path) + len(v.OldText.Value()) + len(v.NewText)
	case *acp.ToolCallContentContent:
		if text, ok := v.Content.Variant.(*acp.ContentBlockText); ok {
			return item + len(text.Text)
		}
	default: // measured below
	}
	raw, _ := content.MarshalJSON()
	return item + len(raw)
}

// Cancellable returns a context for the work of the call, and lets the client cancel the call alone, which clients of
// version 2 can do. The context ends with the call and with the call's own context, and with the cause ErrCallCancelled
// when the client cancels the call. A call that then fails is shown as cancelled, and the turn continues. Call it only
// for tools that end soon after the context. The client cannot cancel calls outside of a Session, nor those of
// subagents.
func (c *ToolCall) Cancellable() (context.Context, error) {
	if err := c.lock(c.ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	return c.work.start(c, c.ctx, c.id, func() error {
		return c.tell(c.ctx, plain.CancelKey, map[string]any{"supported": true})
	})
}

// Cancellable is ToolCall.Cancellable for the command of the terminal alone: if the client cancels the command, the
// call continues. If the client may cancel the call, too, call that method first: the context of the command then ends
// with that of the call. Call it only for commands that end soon after the context, and report the end with Exit or
// Exited.
func (t *Terminal) Cancellable() (context.Context, error) {
	c := t.call
	if err := c.lock(c.ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	if t.ended {
		return nil, errTerminalEnded
	}
	parent := c.ctx
	if c.work.ctx != nil {
		parent = c.work.ctx
	}
	return t.work.start(c, parent, t.id, func() error {
		if !t.own {
			return nil
		}
		return t.send(c.ctx, plain.TerminalInfoKey, map[string]any{"cancel": true})
	})
}

// work is what the client can cancel of a tool call: all of it, or a terminal. The call's lock guards it.
type work struct {
	ctx  context.Context // nil if it cannot be cancelled
	stop func()
}

// start makes the context, unless there is one. If the client can cancel work, offer tells it that it may.
func (w *work) start(c *ToolCall, parent context.Context, id any, offer func() error) (context.Context, error) {
	if w.ctx != nil {
		return w.ctx, nil
	}
	ctx, cancel := context.WithCancelCause(parent)
	stop := func() { cancel(ErrEnded) }
	if s, stored := c.home(); stored && c.clientHas(plain.CancelKey) {
		s.cancellable(id, cancel) // first, as the client may be quick
		stop = func() {
			s.cancellable(id, nil)
			cancel(ErrEnded)
		}
		if err := offer(); err != nil {
			stop()
			return nil, err
		}
	}
	w.ctx, w.stop = ctx, stop
	return ctx, nil
}

// end ends the context, after which the client can no longer cancel the work.
func (w *work) end() {
	if w.ctx != nil {
		w.stop()
	}
}

// cancelled reports whether the client has cancelled the work.
func (w *work) cancelled() bool {
	return w.ctx != nil && errors.Is(context.Cause(w.ctx), ErrCallCancelled)
}

// cancellable sets the function that cancels a tool call or terminal; nil removes it.
func (s *session) cancellable(id any, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel == nil {
		delete(s.cancels, id)
		return
	}
	if s.cancels == nil {
		s.cancels = map[any]context.CancelCauseFunc{}
	}
	s.cancels[id] = cancel
}

type cancelCallRequest struct {
	SessionID  acp.SessionID  `json:"sessionId"`
	ToolCallID acp.ToolCallID `json:"toolCallId"`
}

type cancelCommandRequest struct {
	SessionID  acp.SessionID  `json:"sessionId"`
	TerminalID acp.TerminalID `json:"terminalId"`
}

// handleCancel adds the methods of the extension.
func (ss *sessions) handleCancel(x *acp.Extensions[acp.AgentConn]) {
	type none = struct{}
	rpc.Handle(x, plain.CancelCallMethod, func(_ context.Context, c *acp.AgentConn, r *cancelCallRequest) (*none, error) {
		return &none{}, ss.cancel(c, r.SessionID, r.ToolCallID)
	})
	rpc.Handle(x, plain.CancelTermMethod, func(_ context.Context, c *acp.AgentConn, r *cancelCommandRequest) (*none,
		error) {
		return &none{}, ss.cancel(c, r.SessionID, r.TerminalID)
	})
}

// cancel ends the context of a tool call or terminal.
func (ss *sessions) cancel(conn *acp.AgentConn, session acp.SessionID, id any) error {
	s, release, err := ss.open.Use(conn, session)
	if err != nil {
		return err
	}
	defer release()
	s.mu.Lock()
	cancel := s.cancels[id]
	s.mu.Unlock()
	if cancel == nil {
		return acp.InvalidParamsf("there is nothing with the id %.64q that can be cancelled", id)
	}
	cancel(ErrCallCancelled)
	return nil
}
