package policy

import (
	"errors"

	"github.com/acpgo/sdk/acp"
)

// Remembered decides about an agent's own tool calls, by rules and by its user's "always" decisions. Its methods are
// those that acp/agentkit's Config.Policy and Config.Remember call.
type Remembered struct {
	Policy *Policy // nil means one without rules, which follows symbolic links on this machine
	Memory Memory
	Agent  string // the agent's name, to which the decisions apply
}

// Decide decides by the mode, as [AnswerByMode] does, and otherwise as Answer does.
func (r *Remembered) Decide(
	session Session, mode acp.SessionModeID, call acp.ToolCall,
) (kind acp.PermissionOptionKind, why string, err error) {
	if kind, why = answerByMode(mode, session.Cwd(), call); kind != "" {
		return kind, why, nil
	}
	return r.Answer(session, call)
}

// Answer is [Policy.Answer] by the rules and the remembered decisions. Like the modes, it does not allow changes of
// files that programs run or obey although nobody starts them.
func (r *Remembered) Answer(session Session, call acp.ToolCall) (kind acp.PermissionOptionKind, why string, err error) {
	rules, err := r.Memory.Rules(session.ID())
	if err != nil {
		return "", "", err
	}
	policy, err := r.policy()
	if err != nil {
		return "", "", err
	}
	d, err := policy.Explain(r.request(session, call), rules...)
	if err != nil {
		return "", "", err
	}
	if why := guarded(session.Cwd(), call); why != "" && d.Effect == Allow {
		return "", why, nil
	}
	return d.Kind(), d.Why, nil
}

// Remember adds a decision of the kind allow_always or reject_always to the memory, as the rule that [Policy.RuleFor]
// returns for the call. It fails for a call that Answer would not allow by it.
func (r *Remembered) Remember(session Session, call acp.ToolCall, kind acp.PermissionOptionKind) error {
	if why := guarded(session.Cwd(), call); why != "" && kind == acp.PermissionOptionKindAllowAlways {
		return acp.Public(errors.New(why))
	}
	policy, err := r.policy()
	if err != nil {
		return err
	}
	rule, err := policy.RuleFor(r.request(session, call), kind, r.Memory)
	if err != nil {
		return err
	}
	return r.Memory.Add(session.ID(), rule)
}

func (r *Remembered) policy() (*Policy, error) {
	if r.Policy != nil {
		return r.Policy, nil
	}
	return New(nil, &Options{Resolve: ResolveLinks})
}

func (r *Remembered) request(session Session, call acp.ToolCall) Request {
	return Request{Agent: r.Agent, Cwd: session.Cwd(), ToolCall: call}
}

// Session is the part of a session that [Remembered] uses. *agentkit.Session of package acp/agentkit implements it.
type Session interface {
	ID() acp.SessionID
	Cwd() string
}
