package policy

import (
	"errors"
	"path/filepath"

	"github.com/acpgo/sdk/acp"
)

// Remembered decides about an agent's own tool calls, for Config.Decide of acp/agentkit: by the mode of the session, by
// rules, and by its user's "always" decisions. It must not be copied after its first use.
type Remembered struct {
	Policy *Policy // nil means one without rules, which follows symbolic links on this machine
	Memory Memory  // nil means that decisions are remembered until the program ends, each for its session
	Agent  string  // the agent's name, to which the decisions apply

	own SessionMemory
}

// ForAgent returns what decides for an agent that keeps its state in a directory: by the user's decisions, which are in
// the file rules.json there. If dir is "", they are remembered as without a Memory.
func ForAgent(agent, dir string) *Remembered {
	r := &Remembered{Agent: agent}
	if dir != "" {
		r.Memory = NewFile(filepath.Join(dir, "rules.json"))
	}
	return r
}

// Decide decides by the mode, if that is one of [Modes], and otherwise by the rules and the remembered decisions. Of
// the calls of the kind edit, [ModeEdits] allows those that show what they change.
//
// It does not allow a change of hidden files, such as .git/config, .envrc and .bashrc, and of others that programs run
// or obey although nobody starts them. The working directory's own name does not count.
func (r *Remembered) Decide(session Session, call acp.ToolCall) (kind acp.PermissionOptionKind, why string, err error) {
	if kind, why = byMode(session, call); kind != "" {
		return kind, why, nil
	}
	rules, err := r.memory().Rules(session.ID())
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
// returns for the call. It fails for a call that Decide would not allow by it.
func (r *Remembered) Remember(session Session, call acp.ToolCall, kind acp.PermissionOptionKind) error {
	if why := guarded(session.Cwd(), call); why != "" && kind == acp.PermissionOptionKindAllowAlways {
		return acp.Public(errors.New(why))
	}
	policy, err := r.policy()
	if err != nil {
		return err
	}
	rule, err := policy.RuleFor(r.request(session, call), kind, r.memory())
	if err != nil {
		return err
	}
	return r.memory().Add(session.ID(), rule)
}

// Modes is [Modes].
func (r *Remembered) Modes() []acp.SessionMode { return Modes() }

func (r *Remembered) memory() Memory {
	if r.Memory == nil {
		return &r.own
	}
	return r.Memory
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

// Session is the session of an agent's tool call. *agentkit.Session of package acp/agentkit implements it.
type Session = interface {
	ID() acp.SessionID
	Cwd() string
	Mode() acp.SessionModeID
}
