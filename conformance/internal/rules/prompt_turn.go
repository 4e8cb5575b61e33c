// Rules of the page prompt-turn.

package rules

import (
	"cmp"
	"strconv"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var promptTurnRules = []judge.Rule{
	// An answer makes the session usable, and the client has read it before it prompts.
	{ID: "PRM-1", On: requests(judge.MethodPrompt), Check: func(e *judge.Event) {
		s, id := e.Session, e.Text("sessionId")
		switch {
		case e.Garbled[finding.Client] || e.Sender() != finding.Client || e.Initialized == nil || id == "":
		case s != nil && s.Setup != nil:
			e.Broken("/sessionId", "the client prompted before %s was answered", s.Setup.Method).
				Because(s.Setup.At, "the request")
		case (s == nil || s.Usable == nil) && !e.Sessions.Forgot && e.Once(id):
			e.Broken("/sessionId", "no session/new, session/load or session/resume opened the session %q", finding.Clip(id))
		}
	}},
	{ID: "PRM-2", On: requests(judge.MethodPrompt), Check: func(e *judge.Event) {
		for i, block := range e.Content.Items("prompt") {
			name := map[string]string{"image": "image", "audio": "audio", "resource": "embeddedContext"}[block.Text("type")]
			capability := nameByVersion(e, "promptCapabilities.", "session.prompt.") + name
			if name != "" && !e.Agent.Can(capability) {
				e.Broken(schema.Element("/prompt", i), "the client sent this, but the agent does not advertise %s", capability).
					Because(e.Agent.At, "its capabilities")
			}
		}
	}},
	{ID: "PRM-3", On: updates("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"),
		Check: func(e *judge.Event) {
			s, id := e.Session, e.Text("update", "messageId")
			if s == nil {
				return
			}
			other := map[string]string{"user_message_chunk": "agent_message", "agent_message_chunk": "user_message"}[e.Update]
			if m := e.MessageOf(s, id, other); m != nil && e.Once(s.ID+" "+id) {
				e.Broken("/update/messageId", "a message of the user and a message of the agent both have the id %q",
					finding.Clip(id)).
					Because(m.At, "the first message with this id")
				return
			}
			checkReused(e)
		}},
	{ID: "PRM-5", End: func(e *judge.Event) {
		for _, r := range e.Unanswered(finding.Agent) {
			if r.Method == judge.MethodPrompt && e.ClosedBy == finding.Agent && r.Cancelled == nil {
				e.BrokenAt(r.At, "the prompt was never answered")
			}
		}
	}},
	{ID: "PRM-6", On: anyOf(updates("tool_call", "tool_call_update"), requests(judge.MethodPermission)),
		Check: func(e *judge.Event) {
			call := toolCallOf(e)
			c, status := e.Call(e.Session, call.Text("toolCallId")), call.Text("status")
			switch {
			case c == nil:
			case c.Allowed != nil:
				if !c.Ran && e.Update == "tool_call_update" && status == "completed" {
					e.Broken("/update/status", "the tool call was completed without ever being in_progress").
						Because(c.Allowed, "the permission")
				}
			case c.Final == nil && !c.Decided &&
				(e.Method == judge.MethodPermission && cmp.Or(status, c.Status) == "in_progress" || c.Asking != nil &&
					status == "in_progress"):
				if e.Once(e.Session.ID + " " + c.ID) {
					e.Broken("", "the tool call is in_progress while its permission is open").Because(c.At, "the tool call").
						Because(c.Asking, "the request for permission").Mildly(finding.Advice)
				}
			}
		}},
	// The agent can learn of a cancellation only from a message that a judge has seen before the answer.
	{ID: "PRM-7", On: results(judge.MethodPrompt), Check: func(e *judge.Event) {
		if t := wronglyCancelledTurn(e); t != nil && t.Before == nil {
			e.Broken("/stopReason", "the turn ended as cancelled, but nothing cancelled it").Because(t.Prompt.At, "the prompt")
		}
	}},
	// The client sends both, so it cancelled before it answered. A permission request that the agent itself has
	// cancelled may be answered with an error.
	{ID: "PRM-9", On: answers(judge.MethodPermission), Check: func(e *judge.Event) {
		r := e.Request
		if r == nil || r.Turn == nil || r.Turn.Cancelled == nil || e.Sender() != finding.Client {
			return
		}
		if e.Kind == finding.Response && e.Text("outcome", "outcome") != "cancelled" || e.Kind == finding.ErrorReply &&
			r.Cancelled == nil {
			e.Broken("/outcome", "the turn was cancelled, so the outcome must be cancelled").
				Because(r.Turn.Cancelled, "the cancellation").Because(r.At, "the request for permission")
		}
	}},
	// Without such a message, the answer may have crossed the cancellation.
	{ID: "PRM-11", On: results(judge.MethodPrompt), Check: func(e *judge.Event) {
		if t := turnOf(e); t != nil && t.Obeyed != nil && e.Text("stopReason") != "cancelled" {
			e.Broken("/stopReason", "the turn was cancelled, so the stop reason must be cancelled").
				Because(t.Cancelled, "the cancellation").
				Because(t.Obeyed, "when this was answered, the agent had read the cancellation")
		}
	}},
	{ID: "PRM-12", On: failures(judge.MethodPrompt), Check: func(e *judge.Event) {
		if t := turnOf(e); t != nil && t.Obeyed != nil && t.Prompt.Cancelled == nil {
			e.Broken("", "a cancelled turn must end with the stop reason cancelled, not with an error").
				Because(t.Cancelled, "the cancellation").
				Because(t.Obeyed, "when this was answered, the agent had read the cancellation")
		}
	}},
	// The answer and the update travel in the same direction, so neither overtakes the other.
	{ID: "PRM-13", On: updates(historyKinds...), Check: func(e *judge.Event) {
		s := e.Session
		if s == nil || s.Last == nil || len(s.Turns) > 0 || s.Lost || s.Setup != nil || s.Loaded != nil {
			return
		}
		level := finding.Advice
		if m := e.MessageOf(s, e.Text("update", "messageId"), e.Update); s.Last.Cancelled != nil {
			level = e.Rule.Level
		} else if m != nil && m.Update.Number > s.Last.Prompt.At.Number {
			level = finding.Should
		}
		if e.Once(s.ID + " " + strconv.Itoa(s.Last.Ended.Number)) {
			e.Broken("", "the agent sent an update after the answer that ended the turn").
				Because(s.Last.Cancelled, "the cancellation").Because(s.Last.Ended, "the answer to the prompt").Mildly(level)
		}
	}},
	// The client has to read the answer first, and a judge sees it before the client does.
	{ID: "PRM-15", On: requests(judge.MethodPrompt), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && len(s.Turns) > 0 && e.Sender() == finding.Client {
			e.Broken("", "the client prompted before the previous prompt was answered").
				Because(s.Turns[len(s.Turns)-1].Prompt.At, "the previous prompt")
		}
	}},
	{ID: "PRM-16", On: results(judge.MethodPrompt), Check: func(e *judge.Event) {
		if t := wronglyCancelledTurn(e); t != nil && t.Before != nil {
			e.Broken("/stopReason", "this turn was not cancelled; the session/cancel came before it, when no turn was running").
				Because(t.Before, "the cancellation").Because(t.Prompt.At, "the prompt")
		}
	}},
}

// turnOf returns the turn that the answer to a prompt ends, or nil if it is unknown.
func turnOf(e *judge.Event) *judge.Turn {
	if e.Request == nil || e.Request.Method != judge.MethodPrompt {
		return nil
	}
	return e.Request.Turn
}

// wronglyCancelledTurn returns the turn that ends as cancelled although nothing cancelled it, or nil.
func wronglyCancelledTurn(e *judge.Event) *judge.Turn {
	t := turnOf(e)
	if t == nil || e.Text("stopReason") != "cancelled" || t.Cancelled != nil || t.Prompt.Cancelled != nil || t.Dismissed ||
		t.Closing || e.Session == nil || e.Session.Closing {
		return nil
	}
	return t
}
