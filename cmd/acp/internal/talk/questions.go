package talk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/plain"
)

// Question is a permission request.
type Question struct {
	Session acp.SessionID
	// Agent is the user's name for the agent.
	Agent string
	// Call is the tool call with everything that is known about it.
	Call acp.ToolCall
	// Options are the options to choose from.
	Options []acp.PermissionOption
	// Idle says that no turn of the session is in progress, and Unknown that the agent names a session that nobody has
	// opened.
	Idle, Unknown bool
	// Decision says why no rule decided.
	Decision policy.Decision
	// Always says what options of the kinds allow_always and reject_always remember.
	Always []Always

	latest func() (acp.ToolCall, bool)
}

// Always is what an option of a kind remembers.
type Always struct {
	Kind acp.PermissionOptionKind
	// Rule is what is remembered if Err is nil, and File where; "" means for the session only. Err says why nothing is
	// remembered.
	Rule policy.Rule
	File string
	Err  error
}

// View returns the question as the user has to see it. session is the name of the session; "" if there is only one.
func (q *Question) View(session string) *view.Question {
	o := &view.QuestionOptions{Agent: q.Agent, Session: session, Idle: q.Idle, Latest: q.latest}
	if len(q.Decision.Verdicts) > 0 { // without rules, that none matches says nothing
		o.Reason = q.Decision.Why
	}
	if q.Unknown {
		o.Notes = append(o.Notes, view.Fact{Name: "warning",
			Text: fmt.Sprintf("the agent asks in the session %q, which you have not opened", q.Session)})
	}
	for _, about := range q.Decision.About {
		name, quoted, _ := strings.Cut(about, " ")
		prefix, err := strconv.QuotedPrefix(quoted)
		text, _ := strconv.Unquote(prefix) // "" on error
		var words []string
		if name == "line" && json.Unmarshal([]byte(text), &words) == nil { // the rules give a command in words as JSON
			text = view.Quote(words...)
		}
		if flaw := strings.TrimSpace(strings.TrimPrefix(quoted, prefix)); flaw != "" {
			text += " (" + flaw + ")"
		}
		if err == nil && (name == "path" || name == "line") {
			o.Found = append(o.Found, view.Fact{Name: name, Text: text})
		}
	}
	for _, v := range q.Decision.Verdicts {
		for _, warning := range v.Rule.Warnings() {
			o.Notes = append(o.Notes, view.Fact{Name: "warning", Text: warning})
		}
	}
	said := ""
	for _, a := range q.Always {
		name := strings.ReplaceAll(string(a.Kind), "_", " ")
		if a.Err != nil {
			o.Notes = append(o.Notes, view.Fact{Name: name, Text: fmt.Sprintf("remembers nothing: %v", a.Err)})
			continue
		}
		text := a.sentence()
		if text == said {
			text = "the same"
		} else {
			said = text
		}
		o.Notes = append(o.Notes, view.Fact{Name: name, Text: text}, view.Fact{Name: RuleNote, Text: a.Rule.String()})
	}
	return view.NewQuestion(&q.Call, q.Options, o)
}

// RuleNote is the name of the notes of a [Question] that say what is remembered as a rule, each after one that says it
// in words.
const RuleNote = "rule"

// does are the kinds of tools in words that fit before what they are about.
var does = map[acp.ToolKind]string{
	acp.ToolKindRead: "reading ", acp.ToolKindEdit: "changing ", acp.ToolKindDelete: "deleting ",
	acp.ToolKindMove:   "moving ",
	acp.ToolKindSearch: "searching ", acp.ToolKindFetch: "fetching ",
}

// sentence says in words what is remembered, after "allow always" or "reject always". It quotes only what cannot be
// mistaken for words of its own; everything else has been shown as a fact.
func (a *Always) sentence() string {
	cwd := ""
	if len(a.Rule.Cwds) > 0 {
		cwd = a.Rule.Cwds[0]
	}
	relative := func(path string) string {
		if below, ok := strings.CutPrefix(path, cwd+"/"); ok && cwd != "" {
			return below
		}
		return path
	}
	quoted := func(text string) bool { return len(text) <= 100 && !strings.ContainsFunc(text, unquotable) }
	what := "the tool "
	switch r := &a.Rule; {
	case len(r.Lines) == 1 && quoted(r.Lines[0]) && len(r.Paths) == 0:
		what = "`" + r.Lines[0] + "`"
		var words []string
		if json.Unmarshal([]byte(r.Lines[0]), &words) == nil {
			what = "`" + view.Quote(words...) + "`"
		}
	case len(r.Lines) > 0:
		what = "exactly this, and nothing else,"
	case len(r.Paths) == 1 && quoted(r.Paths[0]):
		what = cmp.Or(does[r.Kinds[0]], "using ") + "`" + relative(r.Paths[0]) + "`"
	case len(r.Paths) > 0:
		what = cmp.Or(does[r.Kinds[0]], "using ") + "exactly these files"
	case quoted(r.Tools[0]):
		what += "`" + r.Tools[0] + "`, whatever its input,"
	default:
		what += "of this name, whatever its input,"
	}
	switch {
	case cwd == "":
		what = strings.TrimSuffix(what, ",")
	case quoted(cwd):
		what += " in " + cwd
	default:
		what += " in this directory"
	}
	if a.File != "" {
		return what + ", from now on (kept in " + a.File + ")"
	}
	return what + ", for this session"
}

// unquotable reports whether a character could end a quotation, or begin a new line.
func unquotable(r rune) bool { return r == '`' || !plain.Visible(r) && r != ' ' }

// Elicitation is a form for the user to fill in, or a URL for the user to open.
type Elicitation struct {
	// Session is the session concerned, or "".
	Session acp.SessionID
	Message string
	// Form is the form; nil for a URL.
	Form *acp.ElicitationSchema
	// URL is the address to open. To accept means that the user agrees to open it; when everything there is done, an
	// Event with the ID says so.
	URL string
	ID  acp.ElicitationID
}

type asker = policy.AskFunc

// permissions returns the handler of session/request_permission, which asks the rules and then the user.
func (c *Client) permissions() asker {
	var ask asker
	if c.opts.Ask != nil {
		ask = c.ask
	}
	return view.TrackPermissions(c.states, policy.Handler(c.rules, ask, &policy.HandlerOptions{
		Cwd:    func(s *acp.ClientSession) string { return c.cwdOf(s.ID()) },
		Memory: c.memory,
		Decided: func(s *acp.ClientSession, req *acp.RequestPermissionRequest, by policy.Decision,
			option *acp.PermissionOption) {
			c.event(Event{Kind: Decided, Session: s.ID(), Decision: &Decision{Request: req, By: by, Option: option}})
		},
		Failed: func(s *acp.ClientSession, err error) { c.event(Event{Kind: Warning, Session: s.ID(), Err: err}) },
	}))
}

// asksLocal asks about a write or a command on this machine as about a permission request of the agent. The user sees
// it as a tool call, which has ended when it is decided.
func (c *Client) asksLocal(ask asker) asker {
	return func(ctx context.Context, session *acp.ClientSession,
		req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		turn := c.turnOf(session.ID())
		ctx, stop := whileAlso(ctx, turn)
		defer stop()
		res, err := ask(ctx, session, req)
		if err == nil && turn.Err() != nil { // the answer came too late
			err = context.Cause(turn)
		}
		status := acp.ToolCallStatusFailed
		if err == nil {
			if id, ok := res.Outcome.Selected(); ok && slices.ContainsFunc(req.Options, func(o acp.PermissionOption) bool {
				return o.OptionID == id && o.Kind == acp.PermissionOptionKindAllowOnce
			}) {
				status = acp.ToolCallStatusCompleted
			}
		}
		ended := acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: req.ToolCall.ToolCallID,
			Status: acp.Some(status)})
		return res, errors.Join(err, c.update(ctx, session, &acp.SessionNotification{SessionID: session.ID(), Update: ended}))
	}
}

// ask asks the user. The request has the complete tool call.
func (c *Client) ask(ctx context.Context, s *acp.ClientSession,
	req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	owner := c.owner(s.ID())
	q := &Question{Session: s.ID(), Agent: c.opts.Agent.Name, Options: req.Options, Unknown: owner == nil}
	q.Idle = owner != nil && owner.state.Snapshot().Idle()
	q.Call.ToolCallID = req.ToolCall.ToolCallID
	q.Call.Apply(req.ToolCall)
	q.latest = func() (acp.ToolCall, bool) { return c.states.ToolCall(s.ID(), req.ToolCall.ToolCallID) }
	if len(q.Options) == 0 {
		c.event(Event{Kind: Warning, Session: s.ID(),
			Err: fmt.Errorf("the agent asks for permission for %s, and offers no answer", view.Subject(&q.Call))})
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	// Entries of the memory that could not be read have been reported as a warning.
	remembered, _ := c.memory.Rules(s.ID())
	about := policy.Request{Agent: s.Conn().Initialized().AgentInfo.Value().Name, Cwd: c.cwdOf(s.ID()), ToolCall: q.Call}
	q.Decision, _ = c.rules.Explain(about, remembered...)
	for _, kind := range []acp.PermissionOptionKind{acp.PermissionOptionKindAllowAlways,
		acp.PermissionOptionKindRejectAlways} {
		if slices.ContainsFunc(q.Options, func(o acp.PermissionOption) bool { return o.Kind == kind }) {
			rule, err := c.rules.RuleFor(about, kind, c.memory)
			q.Always = append(q.Always, Always{kind, rule, c.opts.MemoryFile, err})
		}
	}
	chosen, over, err := askUser(ctx, c, s.ID(), c.opts.Ask, q)
	if err != nil && !over {
		return nil, err
	}
	if over || chosen == "" {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(chosen)}, nil
}

// askUser asks the user, and reports whether the answer is no longer needed: the agent sends no more, or its turn is
// over. The context of a handler ends only when the connection is over, which gives handlers the time to answer, and
// knows nothing of the turns for which subagents work.
func askUser[Q, R any](ctx context.Context, c *Client, session acp.SessionID,
	ask func(context.Context, Q) (R, error), q Q) (answer R, over bool, err error) {
	c.mu.Lock()
	alive := c.alive
	c.mu.Unlock()
	request, stop := whileAlso(ctx, alive)
	defer stop()
	turn, ended := whileAlso(c.turnOf(session), request) // when the caller of the turn continues, no question waits
	defer ended()
	c.asking.Add(1)
	answer, err = ask(turn, q)
	c.asking.Add(-1)
	c.heard.Store(time.Now().UnixNano())
	return answer, turn.Err() != nil || request.Err() != nil, err
}

// whileAlso returns a context that ends when ctx ends, or soon after other has ended. Its values are those of ctx.
func whileAlso(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// cwdOf returns the directory of a session; "" if it is not known.
func (c *Client) cwdOf(id acp.SessionID) string {
	if s := c.owner(id); s != nil {
		return s.cwd
	}
	return ""
}

// registerElicitation registers the handlers of forms and URLs.
func (c *Client) registerElicitation(h *acp.ClientHandlers) {
	if c.opts.Form == nil && c.opts.URL == nil {
		return
	}
	h.CreateElicitation = c.elicit
	h.CompleteElicitation = func(_ context.Context, _ *acp.ClientConn, n *acp.CompleteElicitationNotification) error {
		c.event(Event{Kind: URLCompleted, Elicitation: n.ElicitationID})
		return nil
	}
}

func (c *Client) elicit(ctx context.Context, _ *acp.ClientConn,
	req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
	e := &Elicitation{Message: req.Message}
	var answer func(context.Context, *Elicitation) (*acp.CreateElicitationResponse, error)
	switch v := req.Variant.(type) {
	case *acp.CreateElicitationRequestForm:
		if scope, ok := v.Variant.(*acp.ElicitationFormModeSession); ok {
			e.Session = scope.SessionID
		}
		e.Form, answer = &v.RequestedSchema, c.opts.Form
	case *acp.CreateElicitationRequestURL:
		if scope, ok := v.Variant.(*acp.ElicitationURLModeSession); ok {
			e.Session = scope.SessionID
		}
		e.URL, e.ID, answer = v.URL, v.ElicitationID, c.opts.URL
	default: // a form or a page is all that this client can show: declined
	}
	if answer == nil { // the connection refuses what was not advertised
		res := acp.NewCreateElicitationResponseDecline()
		return &res, nil
	}
	res, over, err := askUser(ctx, c, e.Session, answer, e)
	if over {
		cancelled := acp.NewCreateElicitationResponseCancel()
		return &cancelled, nil
	}
	return res, err
}
