package agentkit

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/plain"
)

// Turn is a prompt being answered, in its session. Its methods are safe for concurrent use, until Config.Prompt
// returns.
type Turn[S any] struct {
	*Session[S]
	turn
}

// turn is what does not depend on the type of the state; see sessions.
type turn struct {
	deeper
	asker

	outer any // the *Turn[S]

	request *acp.PromptRequest // set before Config.Prompt is called
	opened  *turns.Turn        // set before Config.Prompt is called
	more    chan struct{}      // holds a token when there may be a prompt to take
	over    chan struct{}      // closed when the turn has ended, except for its answer

	// Set before over is closed.
	begun    bool
	response *acp.PromptResponse
	err      error

	// Guarded by Session.mu.
	ended  bool
	ends   []*atEnd
	stored []acp.MessageID // the ids of its prompts
}

// deeper has the methods of a session one level deeper than Turn.Session: on the same level they would be ambiguous.
type deeper struct{ *session }

// asker asks the user after the texts that belong to the turn, or the subagent, of a context.
type asker struct{ of *acp.AgentSession }

// RequestPermission is acp.AgentSession.RequestPermission, after the texts of the turn or subagent that ctx belongs to.
// To ask about a tool call with all its content, use ToolCall.Ask.
func (a *asker) RequestPermission(
	ctx context.Context, call acp.ToolCallUpdate, options ...acp.PermissionOption,
) (acp.RequestPermissionOutcome, error) {
	turns.Of(ctx).Flush()
	return a.of.RequestPermission(ctx, call, options...)
}

// ElicitForm is acp.AgentSession.ElicitForm, after the texts of the turn or subagent that ctx belongs to. acp.Ask makes
// a form from a struct.
func (a *asker) ElicitForm(
	ctx context.Context, message string, schema acp.ElicitationSchema,
) (*acp.CreateElicitationResponse, error) {
	turns.Of(ctx).Flush()
	return a.of.ElicitForm(ctx, message, schema)
}

// ElicitURL is acp.AgentSession.ElicitURL, after the texts of the turn or subagent that ctx belongs to.
func (a *asker) ElicitURL(
	ctx context.Context, message string, id acp.ElicitationID, url string,
) (*acp.CreateElicitationResponse, error) {
	turns.Of(ctx).Flush()
	return a.of.ElicitURL(ctx, message, id, url)
}

type atEnd struct{ do func(context.Context) error }

// prompt is a request that is to become a turn.
type prompt struct {
	req      *acp.PromptRequest
	ctx      context.Context
	decided  chan struct{} // closed when it no longer waits
	answered chan struct{} // of a message for the running turn, which never becomes a turn: closed after the answer

	// Guarded by Session.mu.
	turn   *turn // the turn that it has become, or that has taken it
	taken  bool
	before <-chan struct{} // answered of the message before it, if any
}

func (p *prompt) steers() bool { return p.answered != nil }

// AtEnd registers do to run after Config.Prompt returns and before open texts and tool calls are closed. Functions run
// in reverse order of registration. The context of do ends after ten seconds, not with the turn, so that it can send
// updates if the turn was cancelled. Errors of do are logged. Calling stop removes do and reports whether it had not
// started. After the end of the turn AtEnd does nothing, and stop returns false.
func (t *turn) AtEnd(do func(ctx context.Context) error) (stop func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return func() bool { return false }
	}
	end := &atEnd{do}
	t.ends = append(t.ends, end)
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		i := slices.Index(t.ends, end)
		if i < 0 {
			return false
		}
		t.ends = slices.Delete(t.ends, i, i+1)
		return true
	}
}

// Update is Session.Update, after the texts of the turn that ctx belongs to.
func (t *turn) Update(ctx context.Context, update acp.SessionUpdate) error {
	turns.Of(ctx).Flush()
	return t.session.Update(ctx, update)
}

// StartToolCall starts a tool call of the turn; see [StartToolCall]. ctx is the turn's context or derived from it.
func (t *turn) StartToolCall(ctx context.Context, title string, options ...acp.ToolCallOption) (*ToolCall, error) {
	return StartToolCall(ctx, t, title, options...)
}

// Tool runs a tool as a tool call: it starts the call, runs do, and ends the call with the error of do; see
// ToolCall.End. ctx is the turn's context or derived from it. Tool returns an error only if the turn should end; a tool
// that fails is logged, shown as failed, and does not end the turn.
func (t *turn) Tool(
	ctx context.Context, kind acp.ToolKind, title string, do func(call *ToolCall) error, options ...acp.ToolCallOption,
) error {
	call, err := t.StartToolCall(ctx, title, append([]acp.ToolCallOption{acp.WithKind(kind)}, options...)...)
	if err != nil {
		return err
	}
	return call.End(do(call))
}

// Sayf sends a piece of the agent's answer, formatted as by fmt.Sprintf. Clients show consecutive pieces as one
// message. For the output of a model use NewMessage.
func (t *turn) Sayf(ctx context.Context, format string, args ...any) error {
	return t.Update(ctx, acp.AgentMessageText(fmt.Sprintf(format, args...)))
}

// Request returns the prompt that began the turn. Its content must not be changed.
func (t *turn) Request() *acp.PromptRequest { return t.request }

// NewMessage begins a message of the turn; see [NewMessage]. ctx is the turn's context or derived from it.
func (t *turn) NewMessage(ctx context.Context) *Text { return NewMessage(ctx, t) }

// NewThought begins a thought of the turn; see [NewThought]. ctx is the turn's context or derived from it.
func (t *turn) NewThought(ctx context.Context) *Text { return NewThought(ctx, t) }

// Queued returns a channel that receives a value when there may be a prompt for NextPrompt. No one else receives from
// it. It is never closed, and never ready unless WhileBusy is Steer.
func (t *turn) Queued() <-chan struct{} { return t.more }

// NextPrompt takes the first prompt that arrived since the turn began into the turn, or returns nil if there is none.
// The prompt is stored as a message of the user, after the texts that the turn has written so far, for which NextPrompt
// waits; it is answered when the turn ends. Unless WhileBusy is Steer, NextPrompt always returns nil.
func (t *turn) NextPrompt() *acp.PromptRequest {
	if t.sessions.config.WhileBusy != Steer {
		return nil
	}
	p := t.takeFirst()
	if p == nil {
		return nil
	}
	t.opened.Flush()
	err := t.recordPrompt(p.ctx, p.req)
	if t.takes(p.req); keyOf(p.req) != "" {
		err = errors.Join(err, t.changeStored(context.WithoutCancel(p.ctx), t.rememberKeys))
	}
	if err != nil {
		t.logger().Error("a prompt was not stored", "error", err)
	}
	return p.req
}

func (t *turn) takeFirst() *prompt {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.ended && len(t.waiting) > 0 {
		p := t.waiting[0]
		t.waiting = slices.Delete(t.waiting, 0, 1)
		if p.ctx.Err() != nil {
			continue // its handler sees the cancellation too
		}
		p.turn, p.taken = t, true
		close(p.decided)
		return p
	}
	return nil
}

func newTurn(s *session) *turn {
	t := s.sessions.config.makeTurn(s)
	t.session, t.asker = s, asker{s.AgentSession}
	t.more, t.over = make(chan struct{}, 1), make(chan struct{})
	return t
}

// prompt serves session/prompt.
func (ss *sessions) prompt(
	ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest,
) (*acp.PromptResponse, error) {
	s, release, err := ss.open.UseForPrompt(session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, end := s.life.Within(ctx)
	defer end()
	p := &prompt{req: req, ctx: ctx, decided: make(chan struct{})}
	if res, err := s.known(req); res != nil || err != nil {
		return res, err
	}
	if err := s.join(ctx, p); err != nil {
		s.forget(req)
		return nil, err
	}
	var res *acp.PromptResponse
	if p.taken {
		res, err = p.turn.answer(ctx)
	} else {
		res, err = p.turn.run(ctx, req)
		if !p.turn.begun {
			s.forget(req)
		}
	}
	return res, turns.Closed(ctx, err)
}

// join enters a prompt, in the order in which prompts arrived, and waits until it is decided.
func (s *session) join(ctx context.Context, p *prompt) error {
	var refused error
	err := engine.EnterTurn(ctx, func() { refused = s.enter(p) })
	if err = cmp.Or(err, refused); err != nil {
		return err
	}
	return s.await(ctx, p)
}

// enter makes a prompt a turn, makes it wait, or refuses it.
func (s *session) enter(p *prompt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	config := &s.sessions.config
	switch {
	case s.turn == nil && p.steers():
		close(p.decided)
	case s.turn == nil:
		p.turn = newTurn(s)
		s.turn = p.turn
		close(p.decided)
	case config.WhileBusy == Refuse:
		return turns.ErrBusy
	case len(s.waiting) >= config.MaxWaiting:
		return acp.ErrInvalidRequest.WithMessagef("Invalid request: %d prompts are waiting, the maximum", len(s.waiting))
	default:
		s.waiting = append(s.waiting, p)
		s.offer()
	}
	if p.steers() {
		p.before, s.steered = s.steered, p.answered
	}
	return nil
}

// offer signals to the running turn that a prompt is waiting; mu is held.
func (s *session) offer() {
	if s.sessions.config.WhileBusy != Steer || len(s.waiting) == 0 {
		return
	}
	select {
	case s.turn.more <- struct{}{}:
	default: // the signal is already there
	}
}

// await waits until a prompt is decided. If ctx ends first, the prompt leaves the queue.
func (s *session) await(ctx context.Context, p *prompt) error {
	select {
	case <-p.decided:
	case <-ctx.Done():
		if s.leave(p) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// leave removes a prompt from the queue. It returns false if that is too late.
func (s *session) leave(p *prompt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.turn != nil {
		return false
	}
	if i := slices.Index(s.waiting, p); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return true
}

// run runs the turn.
func (t *turn) run(ctx context.Context, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	t.err = errTurnLost // in case the handler does not return
	t.request = req
	ctx, t.opened = turns.With(ctx)
	defer t.finish(ctx, req)
	// The answer to the previous turn must be on its way, or the client would attribute updates of this turn to that
	// one.
	if err := engine.AwaitTurn(ctx); err != nil {
		t.err = err
	} else if ctx.Err() != nil {
		t.err = context.Cause(ctx)
	} else if err := t.begin(ctx, req); err != nil {
		t.err = err
	} else {
		t.begun = true
		t.applyOptions()
		t.response, t.err = undismissed(t.handle(ctx, req))
		if t.sessions.config.AutoSave {
			if err := t.SaveState(context.WithoutCancel(ctx)); err != nil {
				t.logger().Error("the state was not stored", "error", err)
			}
		}
	}
	return t.response, t.err
}

// handle answers the prompt with a command or with Config.Prompt.
func (t *turn) handle(ctx context.Context, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	if run, input, ok := t.sessions.command(req); ok {
		return nil, run(ctx, t, input)
	}
	return t.sessions.config.prompt(ctx, t, req)
}

// HandlePrompt wraps a handler of prompts so that it leaves nothing open, for acp.AgentHandlers.Prompt:
//
//	acp.AgentHandlers{NewSession: a.newSession, Prompt: agentkit.HandlePrompt(a.prompt)}
//
// Texts and tool calls started with the handler's context, or one derived from it, belong to the turn. When the handler
// returns, and before the prompt is answered, open texts are closed, and then open tool calls are closed as failed.
// This also happens if the turn was cancelled or the handler panics. Nothing can be started with that context
// afterwards. An error that matches ErrDismissed ends the turn with the stop reason cancelled. Sessions does all of
// this itself, without HandlePrompt.
func HandlePrompt(
	prompt func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error),
) func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
	return func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (res *acp.PromptResponse, err error) {
		ctx, o := turns.With(ctx)
		defer func() {
			if ended := o.End(ctx); ended != nil {
				res, err = nil, errors.Join(err, ended)
			}
		}()
		return undismissed(prompt(ctx, s, req))
	}
}

// undismissed turns the failure of a turn into a cancellation, if the user dismissed a question.
func undismissed(res *acp.PromptResponse, err error) (*acp.PromptResponse, error) {
	if errors.Is(err, ErrDismissed) {
		return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	return res, err
}

// errTurnLost is the error of prompts taken by a turn whose handler has panicked.
var errTurnLost = errors.New("the handler of the turn did not return")

// begin stores the prompt.
func (t *turn) begin(ctx context.Context, req *acp.PromptRequest) error {
	if t.said.store == nil {
		t.takes(req)
		return nil
	}
	err := t.recordPrompt(ctx, req)
	if err == nil {
		t.takes(req)
		err = t.changeStored(context.WithoutCancel(ctx), func(r *sessionstore.Record, state *saved) {
			r.Updated = time.Now()
			t.rememberKeys(r, state)
		})
	}
	if err == nil {
		return nil
	}
	t.logger().Error("a prompt was not stored, and not answered", "error", err)
	if answer := t.sessions.answer(t.ID(), err); !errors.Is(err, answer) {
		return answer
	}
	return errors.Join(rpc.Errorf(rpc.ErrInternal, "Internal error: the prompt could not be stored"), err)
}

// recordPrompt stores the user's prompt as one message.
func (t *turn) recordPrompt(ctx context.Context, req *acp.PromptRequest) error {
	id := acp.MessageID("msg_" + strings.ToLower(rand.Text()))
	updates := make([]acp.SessionUpdate, 0, len(req.Prompt))
	for _, block := range req.Prompt {
		updates = append(updates, acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: block,
			MessageID: acp.Some(id)}))
	}
	t.mu.Lock()
	t.stored = append(t.stored, id)
	t.mu.Unlock()
	t.out.Lock()
	defer t.out.Unlock()
	return t.said.put(context.WithoutCancel(ctx), updates)
}

// refused reports whether the turn ends with the stop reason refusal, and thus is not part of the conversation.
func (t *turn) refused(ctx context.Context) bool {
	return ctx.Err() == nil && t.err == nil && t.response != nil && t.response.StopReason == acp.StopReasonRefusal
}

// endTime bounds the work at the end of a turn.
const endTime = 10 * time.Second

// finish does the work between the handler's return and the answer, and lets the next prompt become a turn.
func (t *turn) finish(ctx context.Context, req *acp.PromptRequest) {
	defer t.pass()
	if !t.begun {
		return
	}
	turn := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	defer t.settle(ctx, turn, req) // also if one of these panics
	for do := t.nextEnd(); do != nil; do = t.nextEnd() {
		t.report("the end of a turn", do(ctx))
	}
}

// settle closes the texts and calls that the turn has left open, and stores its end. The context of the turn may have
// ended; ctx has not.
func (t *turn) settle(ctx, turn context.Context, req *acp.PromptRequest) {
	t.report("texts and tool calls that were left open", t.opened.End(turn))
	refused := t.refused(turn)
	if !refused {
		t.report("the title", t.title(ctx, req))
	}
	t.outcome(turn)
	t.report("the end of a turn", t.flush())
	t.report("the time of a turn", t.changeStored(ctx, func(r *sessionstore.Record, state *saved) {
		r.Updated = time.Now()
		if refused {
			state.Refused = append(state.Refused, t.stored...)
			state.Refused = state.Refused[max(0, len(state.Refused)-maxRefused):]
		}
		t.rememberKeys(r, state)
	}))
}

// report logs failures at the end of a turn, which are not returned to any caller. It does not log the end of the
// connection.
func (t *turn) report(what string, err error) {
	if err != nil && !errors.Is(err, acp.ErrClosed) {
		t.logger().Error(what+": failed", "error", err)
	}
}

// nextEnd removes and returns the function that was last given to AtEnd; if there is none, it ends the turn.
func (t *turn) nextEnd() func(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.ends)
	if n == 0 {
		t.ended = true
		return nil
	}
	end := t.ends[n-1]
	t.ends = t.ends[:n-1]
	return end.do
}

// title gives a session a title if it has none, and sends it to the client.
func (t *turn) title(ctx context.Context, req *acp.PromptRequest) error {
	t.mu.Lock()
	titled := t.titled
	t.mu.Unlock()
	if titled {
		return nil
	}
	title := t.sessions.config.Title(req.Prompt)
	if title == "" {
		return nil
	}
	return t.Update(ctx, acp.TitleUpdate(title))
}

// pass ends the turn, and makes the first waiting prompt the next one.
func (t *turn) pass() {
	s := t.session
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ended = true
	close(t.over)
	s.turn = nil
	s.sendBack()
	if len(s.waiting) == 0 {
		return
	}
	next := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	next.turn = newTurn(s)
	s.turn = next.turn
	close(next.decided)
	s.offer() // the others wait for that one
}

// answer returns the answer to a prompt that the turn has taken, which is that of the turn.
func (t *turn) answer(ctx context.Context) (*acp.PromptResponse, error) {
	select {
	case <-t.over:
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if !errors.Is(cause, acp.ErrTurnCancelled) {
			return nil, cause
		}
		<-t.over // it was cancelled too, and its last updates come before this answer
	}
	if t.err != nil {
		return nil, t.err
	}
	if t.response == nil {
		return nil, nil
	}
	res := *t.response
	return &res, nil
}

// Command is a command with which a prompt may begin, such as "/plan".
type Command[S any] struct {
	// Name is the command without the slash. It has no white space.
	Name string
	// Description says what the command does.
	Description string
	// Hint, if set, says what to write after the command.
	Hint string
	// Run answers a prompt that begins with the command, in place of Config.Prompt. input is the text after the
	// command, without white space around it; Turn.Request has the rest of the prompt. If Run returns nil, the turn
	// ends with the stop reason end_turn. For commands that need another stop reason, use Opening.Commands and answer
	// them in Config.Prompt. A prompt that Turn.NextPrompt returns runs no command.
	Run func(ctx context.Context, t *Turn[S], input string) error
}

// command is a Command for turns.
type command struct {
	name string
	sent acp.AvailableCommand
	run  func(ctx context.Context, t *turn, input string) error
}

func newCommand[S any](c Command[S]) command {
	return command{
		name: c.Name, sent: acp.SlashCommand(c.Name, c.Description, c.Hint),
		run: func(ctx context.Context, t *turn, input string) error { return c.Run(ctx, t.outer.(*Turn[S]), input) },
	}
}

// checkCommands panics if two commands have the same name, or if a command is not complete.
func checkCommands[S any](commands []Command[S]) {
	seen := map[string]bool{}
	for _, c := range commands {
		if c.Name == "" || strings.ContainsFunc(c.Name, unicode.IsSpace) || c.Run == nil || seen[c.Name] {
			panic(fmt.Sprintf("agentkit: NewSessions: the command %q must have a name of its own, without white space, and Run",
				c.Name))
		}
		seen[c.Name] = true
	}
}

// commands returns the author's commands in the form that clients get.
func (ss *sessions) commands() (commands []acp.AvailableCommand) {
	for _, c := range ss.config.commands {
		commands = append(commands, c.sent)
	}
	return commands
}

// command finds the command with which a prompt begins.
func (ss *sessions) command(req *acp.PromptRequest) (run func(context.Context, *turn, string) error, input string,
	ok bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(PromptText(req)), "/")
	if !ok {
		return nil, "", false
	}
	name := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		name, input = text[:i], strings.TrimSpace(text[i:])
	}
	for _, c := range ss.config.commands {
		if c.name == name {
			return c.run, input, true
		}
	}
	return nil, "", false
}

// keyed is a prompt with an idempotency key: the client may send it again, when its connection was lost.
type keyed struct {
	Key        string         `json:"key"`
	Digest     string         `json:"digest"`               // of its content
	StopReason acp.StopReason `json:"stopReason,omitempty"` // empty as long as it is not known
	Message    acp.MessageID  `json:"message,omitempty"`    // its id in the store

	turn  *turn // which has it
	begun bool  // it is in the conversation
}

// maxKeyed is how many of them are remembered of a session; older ones are forgotten.
const maxKeyed = 64

// keyOf returns the key of a prompt, or "".
func keyOf(req *acp.PromptRequest) (key string) {
	if _, err := req.Meta.Get(translate.MetaIdempotencyKey, &key); err != nil {
		return "" // it is not one
	}
	return digest([]byte(key))
}

func digest(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}

// known answers a prompt that the session has had before. It remembers any other one with a key.
func (s *session) known(req *acp.PromptRequest) (*acp.PromptResponse, error) {
	key := keyOf(req)
	if key == "" {
		return nil, nil
	}
	text, err := json.Marshal(req.Prompt)
	if err != nil {
		return nil, err
	}
	content := digest(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.keyed, func(k keyed) bool { return k.Key == key })
	if i < 0 {
		s.keyed = append(s.keyed[max(0, len(s.keyed)-maxKeyed+1):], keyed{Key: key, Digest: content})
		return nil, nil
	}
	switch k := s.keyed[i]; {
	case k.Digest != content:
		return nil, acp.InvalidParamsf("the idempotency key belongs to another prompt")
	case k.StopReason != "":
		res := &acp.PromptResponse{StopReason: k.StopReason}
		return res, res.Meta.Set(translate.MetaIdempotencyKey, k.Message)
	}
	data, err := json.Marshal(map[string]string{translate.MetaIdempotencyKey: "unknown"})
	return nil, errors.Join(&rpc.Error{
		Code: rpc.ErrInternal, Message: "The prompt was sent before, and its outcome is not known", Data: data,
	}, err)
}

// forget frees the key of a prompt that did not become part of the conversation.
func (s *session) forget(req *acp.PromptRequest) {
	key := keyOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyed = slices.DeleteFunc(s.keyed, func(k keyed) bool { return k.Key == key })
}

// takes records that the turn has a prompt, which has been stored if there is a store.
func (t *turn) takes(req *acp.PromptRequest) {
	key := keyOf(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.keyed, func(k keyed) bool { return k.Key == key }); i >= 0 {
		k := &t.keyed[i]
		k.turn, k.begun = t, true
		if n := len(t.stored); n > 0 {
			k.Message = t.stored[n-1]
		}
	}
}

// outcome records how the turn has ended, for the prompts that it has.
func (t *turn) outcome(ctx context.Context) {
	reason := acp.StopReasonEndTurn
	switch {
	case errors.Is(context.Cause(ctx), acp.ErrTurnCancelled):
		reason = acp.StopReasonCancelled
	case t.err != nil || ctx.Err() != nil:
		reason = ""
	case t.response != nil && t.response.StopReason != "":
		reason = t.response.StopReason
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(t.err, acp.ErrAuthRequired) || errors.Is(t.err, acp.ErrInvalidParams) { // the prompt is refused
		t.keyed = slices.DeleteFunc(t.keyed, func(k keyed) bool { return k.turn == t })
	}
	for i, k := range t.keyed {
		if k.turn == t {
			t.keyed[i].StopReason, t.keyed[i].turn = reason, nil
		}
	}
}

// rememberKeys writes the prompts with keys into what is stored of the session.
func (s *session) rememberKeys(_ *sessionstore.Record, state *saved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.Keyed = slices.DeleteFunc(slices.Clone(s.keyed), func(k keyed) bool { return !k.begun })
}

// steerRequest is the request of plain.SteerMethod.
type steerRequest struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      acp.Meta           `json:"_meta"`
}

// promptRequired is an answer that clients opt in to in their request: it says that the client must send the message as
// a prompt. Other clients expect the message to be taken, or an error.
const promptRequired = "promptRequired"

// EntersTurn implements engine.Enterer: it marks the request as part of the running turn.
func (*steerRequest) EntersTurn() {}

func (r *steerRequest) allowsPromptRequired() bool {
	var steering struct {
		IdleBehavior string `json:"idleBehavior"`
	}
	ok, err := r.Meta.Get(plain.SteerKey, &steering)
	return ok && err == nil && steering.IdleBehavior == promptRequired
}

type steerResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// advertise extends the hook that edits the answer to initialize with extensions, and with those for cancelling one
// tool call and for idempotency keys if the client has them.
func advertise(
	edit func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error, extensions []string,
) func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error {
	return func(ctx context.Context, req *acp.InitializeRequest, res *acp.InitializeResponse) error {
		all := extensions
		for _, key := range []string{plain.CancelKey, translate.MetaIdempotencyKey} {
			if advertises(req, key) {
				all = append(slices.Clip(all), key)
			}
		}
		for _, key := range all {
			if err := res.Meta.Set(key, map[string]bool{"supported": true}); err != nil {
				return err
			}
		}
		if edit == nil {
			return nil
		}
		return edit(ctx, req, res)
	}
}

// steer offers a message to the running turn. If no turn is running, or it ends without taking the message, the message
// is dropped: a turn that no prompt has begun would have no answer to end it. Messages are answered in their order: a
// client may send those that were dropped as prompts.
func (ss *sessions) steer(ctx context.Context, conn *acp.AgentConn, req *steerRequest) (*steerResponse, error) {
	s, release, err := ss.open.Use(conn, req.SessionID)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, end := s.life.Within(ctx)
	defer end()
	p := &prompt{
		req: &acp.PromptRequest{SessionID: req.SessionID, Prompt: req.Prompt}, ctx: ctx, decided: make(chan struct{}),
		answered: make(chan struct{}),
	}
	engine.AfterResponse(ctx, func(context.Context) { close(p.answered) })
	if err := s.join(ctx, p); err != nil {
		return nil, err
	}
	if p.before != nil {
		select {
		case <-p.before:
		case <-ctx.Done():
		}
	}
	if p.taken {
		return &steerResponse{Outcome: "injected"}, nil
	}
	if !req.allowsPromptRequired() {
		return nil, acp.ErrInvalidRequest.WithMessagef("Invalid request: no turn of the session takes the message")
	}
	return &steerResponse{Outcome: promptRequired, Reason: "noRunningTurn"}, nil
}

// sendBack decides the waiting messages that can only go to the turn that has just ended; mu is held.
func (s *session) sendBack() {
	s.waiting = slices.DeleteFunc(s.waiting, func(p *prompt) bool {
		if p.steers() {
			close(p.decided)
		}
		return p.steers()
	})
}
