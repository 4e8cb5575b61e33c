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
	"github.com/acpgo/sdk/acp/agentkit/workspace"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// state is the state of a session beside its conversation. The exported fields are stored.
type state struct {
	Model string
	Cost  float64 // in USD, so far

	models  []model
	density float64 // tokens per byte, as the API has counted them
	files   *workspace.Workspace
	tools   *mcpacp.Set
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
	s.State.density = 0.3
	if s.State.files, err = workspace.Open(s, &workspace.Options{Unset: []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}}); err != nil {
		return err
	}
	o.Modes = []acp.SessionMode{
		{ID: ask, Name: "Ask", Description: acp.Some("Asks before it changes files or runs commands")},
		{ID: edits, Name: "Accept edits", Description: acp.Some("Changes files, and asks before it runs commands")},
		{ID: readOnly, Name: "Read only", Description: acp.Some("Changes no files, and runs no commands")},
		{ID: all, Name: "Everything", Description: acp.Some("Does not ask")},
	}
	if s.State.models, err = a.models(ctx); err != nil {
		return err
	}
	o.Select("model", "Model", &s.State.Model, modelNames(s)...)
	s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, &mcpacp.Options{
		Permit: func(ctx context.Context, _ agentkit.Asker, _ *mcpacp.Tool, call *agentkit.ToolCall) error {
			return permit(ctx, s, call)
		},
	})
	if err == nil {
		tools{s}.addTo(s.State.tools)
	}
	return err
}

// models lists the API's models, the preferred one first, which need not be in the list.
func (a *agent) models(ctx context.Context) ([]model, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	provider, err := a.connect()
	if err != nil {
		return nil, err
	}
	list, err := provider.models(ctx)
	if f, ok := errors.AsType[*failure](err); ok && f.status == 401 {
		return nil, loginNeeded(err)
	}
	preferred := model{id: a.model}
	if i := slices.IndexFunc(list, func(m model) bool { return m.id == a.model }); i >= 0 {
		preferred = list[i]
	}
	switch {
	case a.model != "":
		return append([]model{preferred}, list...), nil
	case len(list) == 0:
		return nil, acp.Public(fmt.Errorf("choose a model with -model, because the API lists none: %w", err))
	}
	return list, nil
}

func modelNames(s *session) (names []string) {
	for _, m := range s.State.models {
		if !slices.Contains(names, m.id) {
			names = append(names, m.id)
		}
	}
	return names
}

// permit returns nil if the mode, a remembered decision or the user allows a call.
func permit(ctx context.Context, s *session, call *agentkit.ToolCall) error {
	kind, mode := call.State().Kind, s.Mode()
	reads := kind == acp.ToolKindRead || kind == acp.ToolKindSearch || kind == acp.ToolKindFetch
	switch {
	case reads || mode == all || mode == edits && kind == acp.ToolKindEdit:
		return call.Begin()
	case mode == readOnly:
		return errors.New("not in the mode read only")
	}
	_, err := call.Ask(ctx)
	return err
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
			req, err := a.request(ctx, t, messages[:len(messages)-1])
			if err != nil {
				return err
			}
			return a.compact(ctx, t, req)
		}},
		{Name: "model", Description: "Show or change the model", Hint: "NAME", Run: changeModel},
		{Name: "review", Description: "Review changes", Hint: "what to review", Run: talk(review)},
		{Name: "init", Description: "Write AGENTS.md", Run: talk(initialize)},
	}
}

func changeModel(ctx context.Context, t *turn, want string) error {
	names := modelNames(t.Session)
	if !slices.Contains(names, want) {
		return t.Sayf(ctx, "The model is %s. There are: %s.", t.State.Model, strings.Join(names, ", "))
	}
	return errors.Join(t.SelectOption(ctx, "model", want), t.Sayf(ctx, "The model is now %s.", want))
}
