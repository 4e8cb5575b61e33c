package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// state is the state of a session beside its conversation. The exported fields are stored.
type state struct {
	Model string
	Cost  float64 // in USD, so far

	windows map[string]int64 // of the models
	density float64          // tokens per byte, as the API has counted them
	files   *files
	mcp     *mcpacp.Set
}

type (
	session = agentkit.Session[state]
	turn    = agentkit.Turn[state]
)

// The modes.
const (
	ask      = "ask"
	edits    = "edits"
	readOnly = "read"
	all      = "all"
)

// open prepares a session that is new, loaded, resumed or forked.
func (a *agent) open(ctx context.Context, s *session, o *agentkit.Opening) (err error) {
	dirs := append([]string{o.Cwd}, o.AdditionalDirectories...)
	if s.State.files, err = openFiles(s, dirs); err != nil {
		return err
	}
	s.AtClose(s.State.files.close)
	if err := a.roots.SetSession(s, o.Cwd, o.AdditionalDirectories...); err != nil {
		return err
	}
	s.AtClose(func() { a.roots.RemoveSession(s) })
	o.Modes = []acp.SessionMode{
		{ID: ask, Name: "Ask", Description: acp.Some("Asks before it changes files or runs commands")},
		{ID: edits, Name: "Accept edits", Description: acp.Some("Changes files, and asks before it runs commands")},
		{ID: readOnly, Name: "Read only", Description: acp.Some("Changes no files, and runs no commands")},
		{ID: all, Name: "Everything", Description: acp.Some("Does not ask")},
	}
	models, err := a.models(ctx)
	if err != nil {
		return err
	}
	s.State.windows, s.State.density = map[string]int64{}, 0.3
	var names []string
	for _, m := range models {
		if _, twice := s.State.windows[m.id]; !twice {
			names, s.State.windows[m.id] = append(names, m.id), m.window
		}
	}
	o.Select("model", "Model", &s.State.Model, names...)
	o.ConfigOptions[0].Category = acp.Some(acp.SessionConfigOptionCategoryModel)
	s.State.mcp, err = mcpacp.Connect(ctx, s, o.MCPServers, &mcpacp.Options{Permit: a.permitMCP})
	return err
}

// models lists the API's models, the preferred one first, which need not be in the list.
func (a *agent) models(ctx context.Context) ([]modelInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	list, err := a.connect().models(ctx)
	if f, ok := errors.AsType[*failure](err); ok && f.status == 401 {
		return nil, loginNeeded(err)
	}
	i := slices.IndexFunc(list, func(m modelInfo) bool { return m.id == a.model })
	switch {
	case i >= 0:
		return slices.Insert(slices.Delete(slices.Clone(list), i, i+1), 0, list[i]), nil
	case a.model != "":
		return append([]modelInfo{{id: a.model}}, list...), nil
	case len(list) == 0:
		return nil, acp.Public(fmt.Errorf("choose a model with -model, because the API lists none: %w", err))
	}
	return list, nil
}

// permit returns nil if the mode, a remembered rule or the user allows a call.
func (a *agent) permit(ctx context.Context, t *turn, call *agentkit.ToolCall, reads bool) error {
	mode := t.Mode()
	switch {
	case reads || mode == all || mode == edits && call.State().Kind == acp.ToolKindEdit:
		return call.Begin()
	case mode == readOnly:
		return errors.New("not in the mode read only")
	}
	chosen, err := call.Ask(ctx, acp.AllowOnce("once", "Allow"), acp.AllowAlways("always", "Always allow"),
		acp.RejectOnce("no", "Reject"), acp.RejectAlways("never", "Always reject"))
	if chosen.OptionID == "always" || chosen.OptionID == "never" {
		rule, none := a.rules.RuleFor(about(t.Session, call.State()), chosen.Kind, a.memory)
		if none == nil {
			none = a.memory.Add(t.ID(), rule)
		}
		if none != nil {
			none = notify(ctx, t, fmt.Sprintf("This will be asked again: %v.", none))
		}
		err = errors.Join(err, none)
	}
	return err
}

func (a *agent) permitMCP(ctx context.Context, asker agentkit.Asker, tool *mcpacp.Tool, call *agentkit.ToolCall) error {
	return a.permit(ctx, asker.(*turn), call, tool.Annotations != nil && tool.Annotations.ReadOnlyHint)
}

// decide answers for the user, by the rules that are remembered.
func (a *agent) decide(s *session, call acp.ToolCall) (kind acp.PermissionOptionKind, why string, err error) {
	remembered, err := a.memory.Rules(s.ID())
	if err != nil {
		return "", "", err
	}
	decision, err := a.rules.Explain(about(s, call), remembered...)
	return decision.Kind(), decision.Why, err
}

func about(s *session, call acp.ToolCall) policy.Request {
	return policy.Request{Agent: name, Cwd: s.Cwd(), ToolCall: call}
}

// The prompts of two commands.
const (
	review     = "Review the changes that are not committed (git diff), or what I name here. Report mistakes first, with file and line. Change nothing."
	initialize = "Look at this repository, and write AGENTS.md for agents that work here: what it is, how to build and test it, its " +
		"conventions. Keep what is true in an AGENTS.md that exists."
)

func (a *agent) commands() []agentkit.Command[state] {
	talk := func(prompt string) func(context.Context, *turn, string) error {
		return func(ctx context.Context, t *turn, about string) error {
			_, err := a.converse(ctx, t, prompt+" "+about)
			return err
		}
	}
	return []agentkit.Command[state]{
		{Name: "compact", Description: "Replace the conversation by a summary", Run: func(ctx context.Context, t *turn, _ string) error {
			messages, err := conversation(ctx, t)
			if err != nil {
				return err
			}
			_, err = a.compact(ctx, t, messages[:len(messages)-1])
			return err
		}},
		{Name: "model", Description: "Show or change the model", Hint: "NAME", Run: changeModel},
		{Name: "review", Description: "Review changes", Hint: "what to review", Run: talk(review)},
		{Name: "init", Description: "Write AGENTS.md", Run: talk(initialize)},
	}
}

func changeModel(ctx context.Context, t *turn, want string) error {
	options := slices.Clone(t.ConfigOptions())
	i := slices.IndexFunc(options, func(o acp.SessionConfigOption) bool { return o.ID == "model" })
	changed := *options[i].Variant.(*acp.SessionConfigOptionSelect)
	values, _ := changed.Options.All()
	var names []string
	for _, value := range values {
		names = append(names, string(value.Value))
	}
	if !slices.Contains(names, want) {
		return t.Sayf(ctx, "The model is %s. There are: %s.", changed.CurrentValue, strings.Join(names, ", "))
	}
	changed.CurrentValue = acp.SessionConfigValueID(want)
	options[i].Variant = &changed
	return errors.Join(t.Update(ctx, acp.ConfigUpdate(options...)), t.Sayf(ctx, "The model is now %s.", want))
}
