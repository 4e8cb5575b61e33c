// Rules of the page error.

package rules

import (
	"cmp"
	"regexp"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var errorRules = []judge.Rule{
	{ID: "ERR-2", On: failures(), Check: func(e *judge.Event) {
		code, ok := e.Content.Integer("code")
		reserved := code >= -32768 && code <= -32000 || code >= -32899 && code <= -32800
		if ok && reserved && !definedCodes[code] {
			e.Broken("/code", "the code %d is in a reserved range, but neither JSON-RPC nor the protocol defines it", code)
		}
	}},
	{ID: "ERR-3", On: failures(), Check: func(e *judge.Event) {
		code, ok := e.Content.Integer("code")
		side, capability := neededCapability(e)
		switch {
		case !ok || e.Request == nil || isCustom(e.Method) || code == codeMethod || e.Method == judge.MethodElicit: // ELI-23
		case capability != "" && !side.Can(capability) && !earlier[code]:
			e.Broken("/code", "got code %d, want %d: the method needs %s, which is not advertised", code, codeMethod,
				capability).
				Because(side.At, "the capabilities").Because(e.Request.At, "the request")
		case code != codeParams && noSuchMethod.MatchString(e.Text("message")):
			e.Broken("/code", "got code %d, want %d for an unknown method", code, codeMethod).
				Because(e.Request.At, "the request")
		}
	}},
	{ID: "ERR-4", On: failures(), Check: func(e *judge.Event) {
		code, ok := e.Content.Integer("code")
		switch {
		case !ok || e.Request == nil || code == codeParams:
		case e.Request.Unsupported && code != codeMethod && code != codeNotFound && !earlier[code]:
			e.Broken("/code", "got code %d, want %d for a value that is not supported", code, codeParams).
				Because(e.Request.At, "the request")
		case invalidParams.MatchString(e.Text("message")):
			e.Broken("/code", "got code %d, want %d for invalid params", code, codeParams).Because(e.Request.At, "the request")
		}
	}},
	{ID: "ERR-5", On: failures(judge.MethodPrompt, judge.MethodSetMode, judge.MethodSetOption, judge.MethodLoad,
		judge.MethodResume),
		Check: func(e *judge.Event) {
			s := e.Session
			code, ok := e.Content.Integer("code")
			if !ok || s == nil || e.Sender() != finding.Agent || e.Sessions.Forgot || !e.Request.Fits {
				return
			}
			setup := e.Method == judge.MethodLoad || e.Method == judge.MethodResume
			over := s.Closed != nil && s.Closed.Number < e.Request.At.Number || s.Deleted != nil &&
				s.Deleted.Number < e.Request.At.Number
			unknown := !setup && (s.Usable == nil && s.Named.Direction == finding.ToAgent || over)
			switch {
			case unknown && code != codeNotFound && code != codeMethod && !earlier[code]:
				found := e.Broken("/code", "got code %d, want %d for a session that is unknown or not active", code, codeNotFound).
					Because(e.Request.At, "the request")
				found.Because(s.Closed, "the session was closed").Because(s.Deleted, "the session was deleted")
			case code == codeNotFound && (setup || unknown) && !e.Given("data", "uri") &&
				judge.Short(e.Text("data", "sessionId")) != s.ID:
				e.Broken("/data", "data.sessionId does not name the session").Because(e.Request.At, "the request")
			}
		}},
	{ID: "ERR-6", On: answers(), Check: func(e *judge.Event) {
		code, _ := e.Content.Integer("code")
		r := e.Request
		switch {
		case r == nil || e.Sender() != finding.Agent || r.Method == schema.MethodInitialize || isProtocol(r.Method) ||
			isCustom(r.Method):
		case e.Initialize != nil && e.Initialize.Number < r.At.Number:
		case e.Kind == finding.ErrorReply &&
			(code == codeInvalid || code == codeMethod || code == codeParse || code == codeCancelled):
		default:
			e.Broken("", "the request came before initialize: want the error %d", codeInvalid).
				Because(r.At, "the request, before initialize")
		}
	}},
	{ID: "ERR-7", On: failures(), Check: func(e *judge.Event) {
		code, ok := e.Content.Integer("code")
		lines := e.Unread[e.Sender()]
		if !ok || e.Request != nil || e.ID != "null" && e.ID != "" || lines.At == nil || e.OddIDs[e.Sender()] {
			return
		}
		want := int64(codeParse)
		if lines.JSON {
			want = codeInvalid
		}
		// With several lines it is not known which one is answered, and a parser with a depth limit cannot classify
		// a deep line.
		if known := code == codeParse || code == codeInvalid; !known || lines.Count == 1 && !lines.Deep && code != want {
			e.Broken("/code", "got code %d, want %d for a line that is %s", code, want, lines).Because(lines.At, "the line")
		}
	}},
	{ID: "ERR-9", On: failures(), Check: func(e *judge.Event) {
		code, _ := e.Content.Integer("code")
		if code != codeAuth || e.Sender() != finding.Agent || isCustom(e.Method) {
			return
		}
		switch {
		case notAuth.MatchString(e.Text("message")) && !authWords.MatchString(e.Text("message")):
			e.Broken("/code", "the code %d only means that authentication is required", codeAuth)
		case e.Agent.At != nil && e.AuthMethods.None() && e.Client.Can("auth.terminal") && e.Client.At != nil:
			e.Broken("/code", "the agent requires authentication but offers no way to authenticate").
				Because(e.Agent.At, "its answer to initialize")
		}
	}},
}

// definedCodes has the codes that JSON-RPC and the protocol define.
var definedCodes = map[int64]bool{
	codeParse: true, codeInvalid: true, codeMethod: true, codeParams: true, codeInternal: true,
	codeCancelled: true, codeAuth: true, codeNotFound: true, codeVersion: true,
}

// earlier has the codes of errors that an agent may find before it looks at the rest of a request.
var earlier = map[int64]bool{codeParse: true, codeInvalid: true, codeAuth: true, codeCancelled: true}

// neededCapability returns the capability that the method of an answer needs, or "" if none, and the capabilities of
// the side that answers.
func neededCapability(e *judge.Event) (side *judge.Abilities, capability string) {
	switch {
	case e.Sender() == finding.Client:
		return &e.Client, nameByVersion(e, clientCapability[e.Method], "")
	case e.InForce == 1:
		return &e.Agent, cmp.Or(agentCapability[e.Method], unstableCapability[e.Method])
	case e.Method == judge.MethodDelete:
		return &e.Agent, "session.delete"
	}
	return &e.Agent, ""
}

var (
	invalidParams = regexp.MustCompile(`(?i)^\W*(invalid|missing) param(s|eter|eters)?\b`)
	authWords     = regexp.MustCompile(`(?i)auth|log.?in|sign.?in`)
	notAuth       = regexp.MustCompile(`(?i)\brate.?limit|too many requests|\bquota\b|overloaded|\btimed? ?out\b|\bbusy\b|already (running|in progress)`)
)
