package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/acpgo/sdk/acp"
)

// An AskFunc asks the user: it is a client's handler of session/request_permission.
type AskFunc func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse,
	error)

// HandlerOptions configures what a handler knows about a request beyond its content, and what it remembers. A nil
// *HandlerOptions, and the zero value of each field, mean the defaults.
type HandlerOptions struct {
	// Agent returns the agent's name. "" means that it is unknown; rules that name agents then allow nothing. The
	// default is the name with which the agent introduced itself on the session's connection.
	Agent func(session *acp.ClientSession) string
	// Cwd returns the session's working directory. "" means that it is unknown; rules that name working directories, or
	// have patterns relative to them, then allow nothing. The default is [acp.ClientSession.Cwd].
	Cwd func(session *acp.ClientSession) string
	// Known returns what is known about a tool call of a session, such as view.Sessions.ToolCall does.
	// A request may carry only a part of the call, which is merged with the known call unless that has ended. A handler
	// inside view.TrackPermissions gets the whole call without it. By default only the content of the request is known.
	Known func(session acp.SessionID, id acp.ToolCallID) (acp.ToolCall, bool)
	// Memory keeps the user's "always" decisions. The default is a SessionMemory.
	Memory Memory
	// AllowAlways lets the handler choose an option of the kind allow_always, if there is none of the kind allow_once.
	// This makes the agent stop asking, even for requests that no rule allows.
	AllowAlways bool
	// Decided is called for every decision of a rule, and for every answer of the user, before it is sent. by is the
	// chosen option, or nil if none was chosen.
	Decided func(session *acp.ClientSession, req *acp.RequestPermissionRequest, decision Decision,
		by *acp.PermissionOption)
	// Failed is called with the error if a decision could not be remembered. The user's answer still holds.
	Failed func(session *acp.ClientSession, err error)
}

// Handler returns a handler for ClientHandlers.RequestPermission that answers requests that a policy allows or rejects,
// and asks the user about the rest. To allow, it chooses an option of the kind allow_once; to reject, one of the kind
// reject_once or else reject_always. It also asks if there is no such option, or more than one that allows. ask may be
// nil if there is no user: then such requests are rejected once, or answered as cancelled if there is no option for
// that.
//
// When the user chooses an option of the kinds allow_always or reject_always, the rule that [Policy.RuleFor] returns
// for the same request is added to the memory, with the same kind, tool and paths, and exactly the same line. It is not
// added to a file if the agent or the working directory is not known, and not added at all if no rule can allow the
// request.
func Handler(p *Policy, ask AskFunc, opts *HandlerOptions) AskFunc {
	h := &handler{policy: p, ask: ask, HandlerOptions: *cmp.Or(opts, &HandlerOptions{})}
	if h.Cwd == nil {
		h.Cwd = (*acp.ClientSession).Cwd
	}
	if h.Memory == nil {
		h.Memory = &SessionMemory{}
	}
	return h.serve
}

type handler struct {
	policy *Policy
	ask    AskFunc
	HandlerOptions
}

// request builds the request from everything that is known.
func (h *handler) request(session *acp.ClientSession, req *acp.RequestPermissionRequest) Request {
	r := Request{ToolCall: acp.ToolCall{ToolCallID: req.ToolCall.ToolCallID}}
	if h.Known != nil {
		if call, ok := h.Known(session.ID(), req.ToolCall.ToolCallID); ok && !ended(call) {
			r.ToolCall = call
		}
	}
	r.ToolCall.Apply(req.ToolCall)
	r.Agent, r.Cwd = h.agent(session), h.Cwd(session)
	return r
}

// ended reports whether a call has ended. A request with its id is then about another call.
func ended(call acp.ToolCall) bool {
	return call.Status == acp.ToolCallStatusCompleted || call.Status == acp.ToolCallStatusFailed
}

func (h *handler) agent(session *acp.ClientSession) string {
	if h.Agent != nil {
		return h.Agent(session)
	}
	if answer := session.Conn().Initialized(); answer != nil {
		return answer.AgentInfo.Value().Name
	}
	return ""
}

func (h *handler) serve(
	ctx context.Context, session *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	request := h.request(session, req)
	decision, err := h.decide(session, request)
	if err != nil {
		h.failed(session, err)
	}
	if option := h.option(decision.Effect, req.Options); option != nil {
		return h.choose(session, req, decision, option), nil
	}
	if h.ask == nil {
		decision.Why = "no user can be asked: " + decision.Why
		option, _ := acp.OptionOfKind(req.Options, acp.PermissionOptionKindRejectOnce) // nobody has decided it for always
		return h.choose(session, req, decision, option), nil
	}
	res, err := h.ask(ctx, session, req)
	if err != nil || res == nil {
		return res, err
	}
	chosen := chosenOption(req.Options, res)
	if chosen != nil {
		h.remember(session, request, chosen.Kind)
	}
	if h.Decided != nil {
		h.Decided(session, req, decision, chosen)
	}
	return res, nil
}

// decide decides by the rules and by the remembered ones. If those cannot be read, nothing is allowed, because they may
// contain a rejection.
func (h *handler) decide(session *acp.ClientSession, request Request) (Decision, error) {
	remembered, err := h.Memory.Rules(session.ID())
	if err == nil {
		var d Decision
		if d, err = h.policy.Explain(request, remembered...); err == nil {
			return d, nil
		}
	}
	d, explained := h.policy.Explain(request)
	if d.Effect == Allow {
		d.Effect, d.Why = Ask, "the remembered rules cannot be read"
	}
	return d, errors.Join(err, explained)
}

// choose answers with an option, or with cancelled.
func (h *handler) choose(
	session *acp.ClientSession, req *acp.RequestPermissionRequest, d Decision, option *acp.PermissionOption,
) *acp.RequestPermissionResponse {
	if h.Decided != nil {
		h.Decided(session, req, d, option)
	}
	if option == nil {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option.OptionID)}
}

// option returns the option that carries out the decision, or nil.
func (h *handler) option(effect Effect, options []acp.PermissionOption) *acp.PermissionOption {
	switch effect {
	case Allow:
		once, n := acp.OptionOfKind(options, acp.PermissionOptionKindAllowOnce)
		if n == 0 && h.AllowAlways {
			once, n = acp.OptionOfKind(options, acp.PermissionOptionKindAllowAlways)
		}
		if n == 1 {
			return once
		}
	case Reject:
		if once, n := acp.OptionOfKind(options, acp.PermissionOptionKindRejectOnce); n > 0 {
			return once
		}
		always, _ := acp.OptionOfKind(options, acp.PermissionOptionKindRejectAlways)
		return always
	}
	return nil
}

func chosenOption(options []acp.PermissionOption, res *acp.RequestPermissionResponse) *acp.PermissionOption {
	id, ok := res.Outcome.Selected()
	if !ok {
		return nil
	}
	for i := range options {
		if options[i].OptionID == id {
			return &options[i]
		}
	}
	return nil
}

// remember stores an "always" decision.
func (h *handler) remember(session *acp.ClientSession, request Request, kind acp.PermissionOptionKind) {
	if kind != acp.PermissionOptionKindAllowAlways && kind != acp.PermissionOptionKindRejectAlways {
		return
	}
	rule, err := h.policy.RuleFor(request, kind, h.Memory)
	if err == nil {
		err = h.Memory.Add(session.ID(), rule)
	}
	if err != nil {
		h.failed(session, fmt.Errorf("policy: cannot remember the decision: %w", err))
	}
}

func (h *handler) failed(session *acp.ClientSession, err error) {
	if h.Failed != nil {
		h.Failed(session, err)
	}
}
