// Rules of version 2, which is in Preview. They follow from its schema, and apply in addition to the rules that it
// shares with version 1.

package rules

import (
	"slices"
	"strings"
	"unicode"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var version2Rules = []judge.Rule{
	// The answer says that the message is in the conversation, and all of these travel in the same direction. Work
	// that was in progress at the time of the answer may belong to an earlier prompt, and may end before the
	// message is sent.
	{ID: "V2-1", On: anyOf(updates("state_update"), results(judge.MethodClose)), Check: func(e *judge.Event) {
		s := e.Session
		if s == nil || e.Messages.Forgot || e.Kind == finding.Notification &&
			(e.Text("update", "state") != judge.StateIdle || !judge.Working(s.State)) {
			return
		}
		for _, a := range s.Accepted {
			if (!a.During || e.Kind == finding.Response) && e.MessageOf(s, a.ID, "user_message") == nil {
				e.Broken("", "the agent did not send the user message %q before this", finding.Clip(a.ID)).
					Because(a.At, "the prompt was accepted under this messageId")
			}
		}
	}},
	{ID: "V2-2", On: updates("state_update"), Check: func(e *judge.Event) {
		s := e.Session
		if s != nil && s.Made && s.State == "" && e.Text("update", "state") == judge.StateIdle &&
			e.Given("update", "stopReason") {
			e.Broken("/update/state", "the agent ended work that it never reported as running").
				Because(s.Usable, "the session is new")
		}
	}},
	{ID: "V2-3", On: updates("state_update"), Check: func(e *judge.Event) {
		s, stop := e.Session, e.Text("update", "stopReason")
		if s != nil && s.State == judge.StateIdle && e.Text("update", "state") == judge.StateIdle && stop != "" &&
			s.Stop != "" && stop != s.Stop {
			e.Broken("/update/stopReason", "the work already ended with the stop reason %s", s.Stop).
				Because(s.Stated, "the first end")
		}
	}},
	{ID: "V2-4", On: results(judge.MethodClose), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && judge.Working(s.State) {
			e.Broken("", "the session is still %s; the agent must report idle before it answers", s.State).
				Because(s.Stated, "the last state")
		}
	}},
	{ID: "V2-5", On: anyOf(updates(), requests()), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && s.Closed != nil && e.Sender() == finding.Agent && e.Once(s.ID) {
			e.Broken("/sessionId", "the agent sent this for a session that is closed").Because(s.Closed, "it was closed")
		}
	}},
	{ID: "V2-6", On: updates("tool_call_update"), Check: func(e *judge.Event) {
		s, id := e.Session, e.Text("update", "toolCallId")
		if s != nil && s.Made && s.Setup == nil && id != "" && e.Call(s, id) == nil && !e.Calls.Forgot &&
			!e.Given("update", "title") {
			e.Broken("/update", "the first update of the tool call has no title")
		}
	}},
	{ID: "V2-7", On: updates("terminal_update"), Check: func(e *judge.Event) {
		if e.Session == nil {
			return
		}
		t := e.Terminal(judge.TerminalKey(e.Session, e.Text("update", "terminalId")))
		if cwd := e.Text("update", "cwd"); t != nil && t.Cwd != "" && cwd != "" && t.Cwd != judge.Short(cwd) {
			e.Broken("/update/cwd", "the directory of the terminal has changed").Because(t.At, "the first update")
		}
	}},
	{ID: "V2-8", On: updates("terminal_output_chunk", "terminal_update"), Check: func(e *judge.Event) {
		for _, path := range [][]string{{"update", "data"}, {"update", "output", "data"}} {
			where, data := "/"+strings.Join(path, "/"), e.Content.Member(path...)
			requireBase64(e, where, data)
			// Chunks are decoded one by one, with a strict decoder.
			if data.IsText() && isBase64(data.Text()) && base64Digits(data.Text())%4 != 0 {
				e.Broken(where, "the padding of the base64 is missing")
			}
		}
	}},
	{ID: "V2-9", On: updates("user_message", "user_message_chunk", "agent_message", "agent_message_chunk", "agent_thought",
		"agent_thought_chunk", "tool_call_update", "tool_call_content_chunk", "plan_update"),
		Check: func(e *judge.Event) {
			s := e.Session
			if s != nil && s.Setup != nil && (s.SetupNew || s.Quiet()) && s.Setup.Params != nil &&
				!s.Setup.Params.Given("replayFrom") && e.Once(s.ID) {
				e.Broken("", "the agent replayed history that the client did not ask for").Because(s.Setup.At, "the request")
			}
		}},
	{ID: "V2-10", On: results(judge.MethodResume), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && s.Setup == e.Request && (s.Stated == nil || s.Stated.Number < e.Request.At.Number) {
			e.Broken("", "the agent answered before it sent the session's state").Because(e.Request.At, "the request")
		}
	}},
	// In a session that is at work, a chunk of that work may come between.
	{ID: "V2-11", On: updates("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"),
		Check: func(e *judge.Event) {
			s, id := e.Session, e.Text("update", "messageId")
			if s != nil && s.Setup != nil && (s.SetupNew || s.Quiet()) && s.Setup.Params.Given("replayFrom") && id != "" &&
				!e.MessageOf(s, id, e.Update).ReplayedIn(s.Setup) && !e.Messages.Forgot && e.Once(s.ID) {
				e.Broken("/update", "the replayed message begins with a chunk, not with a whole-message update").
					Because(s.Setup.At, "the request")
			}
		}},
	{ID: "V2-12", On: requests("auth/login", "auth/logout"), Check: func(e *judge.Event) {
		if e.Initialized != nil && e.AuthMethods.None() {
			e.Broken("", "the agent offers no authMethods").Because(e.Initialized, "the answer to initialize")
		}
	}},
	{ID: "V2-13", On: requests(judge.MethodNew, judge.MethodList, judge.MethodResume, judge.MethodClose,
		judge.MethodPrompt, judge.MethodDelete, judge.MethodSetOption),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "session") }},
	{ID: "V2-14", On: failures(judge.MethodPrompt), Check: func(e *judge.Event) {
		code, _ := e.Content.Integer("code")
		if s := e.Session; s != nil && s.Closed != nil && e.Request.At.Number < s.Closed.Number && code != codeCancelled &&
			!refusedLate(e) {
			e.Broken("/code", "got code %d, want %d for a prompt that closing the session cancelled", code, codeCancelled).
				Because(s.Closed, "the session was closed").Because(e.Request.At, "the prompt")
		}
	}},
	{ID: "V2-15", On: updates("state_update"), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && s.Background != nil && !e.Given("update", "background") {
			e.Broken("/update/background", "background is missing, although an earlier state of the session had it").
				Because(s.Background, "a state with background")
		}
	}},
	// Only while no prompt is pending and no work in progress: its messages are new, and may be in the replay.
	{ID: "V2-16", On: updates(messageKinds...), Check: func(e *judge.Event) {
		s, id := e.Session, e.Text("update", "messageId")
		if s != nil && s.Made && s.Setup != nil && s.Setup.Params.Given("replayFrom") && s.Quiet() && id != "" &&
			!e.Messages.Forgot && e.MessageOf(s, id, e.Update) == nil && e.Once(s.ID) {
			e.Broken("/update/messageId", "the session never had a message %q", finding.Clip(id)).
				Because(s.Setup.At, "the request of the replay")
		}
	}},
	{ID: "V2-17", On: anyOf(results(judge.MethodPrompt),
		updates("agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought")),
		Check: func(e *judge.Event) {
			if e.Kind == finding.Notification {
				checkReused(e)
				return
			}
			// If the agent held an earlier prompt before this one, that prompt's message may be new.
			s, id := e.Session, e.Text("messageId")
			if s == nil || e.Request == nil || len(s.Turns) != 1 || s.Lost || id == "" {
				return
			}
			before := slices.IndexFunc(s.Accepted, func(a judge.Accepted) bool { return a.ID == judge.Short(id) })
			if m := e.MessageOf(s, id, "user_message"); m != nil && m.At.Number < e.Request.At.Number {
				e.Broken("/messageId", "%q is already the id of an earlier message", finding.Clip(id)).
					Because(m.At, "the earlier message").Because(e.Request.At, "the prompt")
			} else if before >= 0 {
				e.Broken("/messageId", "%q is already the id of an earlier message", finding.Clip(id)).
					Because(s.Accepted[before].At, "the answer to the earlier prompt")
			}
		}},
	{ID: "V2-18", On: requests(judge.MethodPermission),
		Check: func(e *judge.Event) { requireUnique(e, "/options", "optionId", "another option") }},
	{ID: "V2-19", On: offersCommands, Check: func(e *judge.Event) {
		where, list := commandsOf(e)
		requireUniqueIn(e, where, list, "name", "another command")
		for i, command := range list.Items() {
			if name := command.Text("name"); strings.ContainsFunc(name, unicode.IsSpace) {
				e.Broken(schema.Element(where, i)+"/name", "%q contains white space", finding.Clip(name))
			}
		}
	}},
	{ID: "V2-20", On: offersOptions, Check: func(e *judge.Event) {
		for i, option := range configOptions(e).Items() {
			where := schema.Element(optionsPointer(e), i) + "/options"
			if option.Text("type") != "select" || !e.Sound(where) {
				continue
			}
			seen := map[string]bool{}
			var look func(where string, list *schema.Value)
			look = func(where string, list *schema.Value) {
				for i, v := range list.Items() {
					if group := v.Member("options"); group.IsArray() {
						look(schema.Element(where, i)+"/options", group)
						continue
					}
					id := v.Text("value")
					if seen[id] {
						e.Broken(schema.Element(where, i)+"/value", "the value %q occurs twice", finding.Clip(id))
					}
					seen[id] = true
				}
			}
			look(where, option.Member("options"))
		}
	}},
	{ID: "V2-21", On: results(schema.MethodInitialize), Check: func(e *judge.Event) {
		for i, method := range e.Content.Items("authMethods") {
			if method.Text("type") == "terminal" {
				requireUniqueIn(e, schema.Element("/authMethods", i)+"/env", method.Member("env"), "name", "another variable")
			}
		}
	}},
	{ID: "V2-22", On: updates("state_update"), Check: func(e *judge.Event) {
		s, stop := e.Session, e.Text("update", "stopReason")
		if s != nil && s.Heeded != nil && e.Text("update", "state") == judge.StateIdle && stop != "" && stop != "cancelled" {
			e.Broken("/update/stopReason", "the work was cancelled, so the stop reason must be cancelled").
				Because(s.Halted, "the cancellation").
				Because(s.Heeded, "when this was answered, the agent had read the cancellation")
		}
	}},
	// In a session that is at work, an update of an earlier message may be part of that work.
	{ID: "V2-23", On: updates(messageKinds...), Check: func(e *judge.Event) {
		s := e.Session
		if s == nil || s.Setup == nil || !s.SetupNew && !s.Quiet() || !s.Setup.Params.Given("replayFrom") ||
			e.Messages.Forgot {
			return
		}
		if after := e.MessageOf(s, e.Text("update", "messageId"), e.Update).ReplayedAfter(s); after != nil &&
			e.Once(s.ID+" "+s.Setup.At.ID) {
			e.Broken("/update/messageId", "the message comes too late in the replay").
				Because(after.Update, "a later message, replayed already").Because(after.At, "the same message before")
		}
	}},
	// Any other update may have crossed the answer.
	{ID: "V2-24", On: updates("state_update", "tool_call_update"), Check: func(e *judge.Event) {
		s := e.Session
		if s == nil || s.Question == nil || s.Answered == nil {
			return
		}
		id := e.Text("update", "toolCallId")
		resumed := id != "" && id == s.Question.Call || e.Text("update", "state") == judge.StateIdle
		if resumed && e.Once(s.ID) {
			e.BrokenAt(s.Question.At, "the agent waited for the user without reporting requires_action").
				Because(s.Answered, "the answer")
		}
	}},
}
