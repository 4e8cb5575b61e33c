package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
)

// question is a permission request of the agent that waits for the user's answer.
type question struct {
	*view.Question
	id      json.RawMessage                       // of the request
	answer  chan<- *acp.RequestPermissionResponse // takes one answer; nil if the agent gets it
	session string
	masked  bool // a part of it is not shown
}

// errMasked rejects what the page does not show whole.
var errMasked = errors.New("nobody can allow what is masked: see --no-mask")

// decide asks about a write or a command that the agent has requested.
func (s *source) decide(ctx context.Context, at shown,
	req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	if at.masked {
		return nil, errMasked
	}
	answer := make(chan *acp.RequestPermissionResponse, 1)
	q := &question{id: at.id, answer: answer, session: string(req.SessionID)}
	q.Question = view.Ask(req, s.questionOptions(q.session, req.ToolCall.ToolCallID))
	q.Shown(view.Begun, time.Now())
	set := func(q *question) {
		s.mu.Lock()
		switch {
		case q == nil:
			delete(s.questions, at.row)
		case max(s.over[q.session], s.allOver) > at.row: // its turn has ended meanwhile
			q.answer <- &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}
		default:
			s.questions[at.row] = q
		}
		s.mu.Unlock()
		s.log.touch()
	}
	set(q)
	defer set(nil)
	select {
	case res := <-answer:
		return res, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// questionOptions returns the options of a question about a tool call, as far as the conversation has it.
func (s *source) questionOptions(session string, id acp.ToolCallID) *view.QuestionOptions {
	return &view.QuestionOptions{Latest: func() (acp.ToolCall, bool) {
		if on := s.conversations.sessions[session]; on != nil {
			return on.state.ToolCall(id)
		}
		return acp.ToolCall{}, false
	}}
}

// ask makes the question of a permission request, of which raw is the line as the agent wrote it, and reports whether
// there is one. A request that is not valid is answered like other requests.
func (s *source) ask(n int, m *show.Message, raw []byte) bool {
	var req acp.RequestPermissionRequest
	var sent struct {
		ID     json.RawMessage
		Params struct{ Options []acp.PermissionOption }
	}
	if len(s.questions) >= maxUnanswered || json.Unmarshal(raw, &sent) != nil || s.request(m, &req) != nil ||
		len(req.Options) != len(sent.Params.Options) {
		return false
	}
	for i, option := range sent.Params.Options {
		req.Options[i].OptionID = option.OptionID // not masked
	}
	q := &question{id: sent.ID, session: m.Session, masked: string(raw) != string(m.Text)}
	o := s.questionOptions(m.Session, req.ToolCall.ToolCallID)
	q.Question = view.Ask(&req, o)
	if on := s.conversations.sessions[m.Session]; on != nil {
		if call, ok := o.Latest(); ok {
			o.Idle = on.state.Snapshot().Idle()
			q.Question = view.NewQuestion(&call, req.Options, o)
		}
	}
	q.Shown(view.Begun, time.Now())
	s.questions[n] = q
	return true
}

// request reads a request of either version of the protocol as one of version 1. In version 2 it has a title, a
// description and a subject, whose members all count as input if it is not a tool call.
func (s *source) request(m *show.Message, req *acp.RequestPermissionRequest) error {
	if s.capabilities.version != 2 {
		return json.Unmarshal(m.Content, req)
	}
	var v2 struct {
		Title, Description string
		Subject            json.RawMessage
		Options            []acp.PermissionOption
	}
	if err := json.Unmarshal(m.Content, &v2); err != nil {
		return err
	}
	var subject struct{ ToolCall acp.ToolCallUpdate }
	if json.Unmarshal(v2.Subject, &subject) != nil || subject.ToolCall.ToolCallID == "" {
		subject.ToolCall = acp.ToolCallUpdate{Kind: acp.Some(acp.ToolKindExecute), RawInput: v2.Subject}
	}
	req.ToolCall, req.Options = subject.ToolCall, v2.Options
	req.ToolCall.Title = acp.Some(strings.TrimSpace(v2.Title + "\n" + v2.Description))
	return nil
}

// questionInfos returns the questions for the pages.
func (s *source) questionInfos() []questionInfo {
	var infos []questionInfo
	for _, n := range slices.Sorted(maps.Keys(s.questions)) {
		q := s.questions[n]
		info := questionInfo{N: n, Delay: view.Delay.Milliseconds(), Facts: factInfos(q.Facts), Notes: factInfos(q.Notes),
			Choices: []choiceInfo{}}
		for _, c := range q.Choices {
			info.Choices = append(info.Choices,
				choiceInfo{c.Text, c.Contradicts, c.Option.Kind == acp.PermissionOptionKindRejectOnce})
		}
		infos = append(infos, info)
	}
	return infos
}

func factInfos(facts []view.Fact) []factInfo {
	infos := []factInfo{}
	for _, f := range facts {
		infos = append(infos, factInfo{f.Name, f.Text})
	}
	return infos
}

// update notes whether the agent has changed what a question of a session is about.
func (s *source) update(session string) {
	for _, q := range s.questions {
		if q.session == session && q.Update() {
			q.Shown(view.Begun, time.Now())
		}
	}
}

// seen says that the whole question in a row is visible on the page.
func (l *live) seen(row int) {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	if q := l.source.questions[row]; q != nil {
		q.Shown(view.Whole, time.Now())
	}
}

// choose answers the question in a row with an option, or with none if its index is less than 0. It is no question
// afterwards: the end of its turn, and another page, must not answer it again.
func (l *live) choose(c *command) error {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.questions[c.Row]
	if q == nil {
		return errors.New("nothing in this row waits for an answer")
	}
	res := &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}
	if c.Option >= 0 {
		option, err := q.Choose(c.Option, time.Now())
		if err != nil {
			return err
		}
		if q.masked && option.Kind != acp.PermissionOptionKindRejectOnce &&
			option.Kind != acp.PermissionOptionKindRejectAlways {
			return errMasked
		}
		res.Outcome = acp.PermissionSelected(option.OptionID)
	}
	if q.answer != nil {
		q.answer <- res
	} else if err := l.respond(q.id, res, nil, false); err != nil {
		return err
	}
	delete(s.questions, c.Row)
	return nil
}

// endsTurn reports whether a message ends or cancels a turn of its session.
func (s *source) endsTurn(m *show.Message) bool {
	if m.Method == acp.MethodCancel {
		return m.Kind == conformance.Notification
	}
	if s.capabilities.version != 2 {
		return m.Method == acp.MethodPrompt && (m.Kind == conformance.Response || m.Kind == conformance.ErrorReply)
	}
	var state struct{ Update struct{ State string } }
	return m.Update == "state_update" && json.Unmarshal(m.Content, &state) == nil && state.Update.State == "idle"
}

// withdraw answers the questions of a session as cancelled, because the message n has ended its turn.
func (s *source) withdraw(session string, n int) {
	if len(s.over) >= maxUnanswered {
		clear(s.over)
		s.allOver = n
	}
	s.over[session] = n
	s.answerCancelled(func(q *question) bool { return q.session == session })
}

// cancelRequest answers the question of a request that the agent has cancelled as cancelled.
func (s *source) cancelRequest(params []byte) {
	var of, cancelled acp.CancelRequestNotification
	if json.Unmarshal(params, &cancelled) != nil {
		return
	}
	s.answerCancelled(func(q *question) bool {
		return json.Unmarshal(q.id, &of.RequestID) == nil && of.RequestID == cancelled.RequestID
	})
}

// answerCancelled answers some questions as cancelled.
func (s *source) answerCancelled(which func(*question) bool) {
	cancelled := &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}
	for n, q := range s.questions {
		switch {
		case !which(q):
			continue
		case q.answer != nil:
			q.answer <- cancelled
		case s.respond != nil:
			if s.respond(q.id, cancelled, nil, true) != nil {
				continue // nothing can be sent
			}
		}
		delete(s.questions, n)
	}
}
