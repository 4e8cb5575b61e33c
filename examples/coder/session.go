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

	models  []string
	windows map[string]int64 // of models, in tokens
	density float64          // tokens per byte, as the API has counted them
	files   *workspace.Workspace
	tools   *mcpacp.Set
}

type (
	session = agentkit.Session[state]
	turn    = agentkit.Turn[state]
)

// open prepares a session that is new, loaded, resumed or forked.
func (a *agent) open(ctx context.Context, s *session, o *agentkit.Opening) (err error) {
	s.State.density = 0.3
	if s.State.files, err = workspace.Open(s, &workspace.Options{Hidden: []string{a.dir}}); err != nil {
		return err
	}
	if s.State.models, s.State.windows, err = a.models(ctx); err != nil {
		return err
	}
	o.Select("model", "Model", &s.State.Model, s.State.models...)
	if s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, nil); err != nil {
		return err
	}
	mcpacp.AddWorkspace(s.State.tools, s.State.files)
	addPlan(s)
	return nil
}

// models lists the API's models, the preferred one first, which need not be in the list.
func (a *agent) models(ctx context.Context) (names []string, windows map[string]int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	provider, err := a.connect()
	if err != nil {
		return nil, nil, err
	}
	names, windows, err = provider.models(ctx)
	switch {
	case errors.Is(err, acp.ErrAuthRequired):
		return nil, nil, err
	case a.model != "":
		others := slices.DeleteFunc(names, func(name string) bool { return name == a.model })
		names = append([]string{a.model}, others...)
	case len(names) == 0:
		return nil, nil, acp.Public(fmt.Errorf("choose a model with -model, because the API lists none: %w", err))
	}
	return names, windows, nil
}

// The prompts of two commands.
const (
	review = "Review the changes that are not committed (git diff), or what I name here. Report mistakes first, with " +
		"file and " +
		"line. Change nothing."
	initialize = "Look at this repository, and write AGENTS.md for agents that work here: what it is, how to build " +
		"and test " +
		"it, its conventions. Keep what is true in an AGENTS.md that exists."
)

func (a *agent) commands() []agentkit.Command[state] {
	talk := func(prompt string) func(context.Context, *turn, string) error {
		return func(ctx context.Context, t *turn, _ string) error {
			_, err := a.converse(ctx, t, prompt)
			return err
		}
	}
	return []agentkit.Command[state]{
		{Name: "compact", Description: "Replace the conversation by a summary", Run: a.compactNow},
		{Name: "model", Description: "Show or change the model", Hint: "NAME", Run: changeModel},
		{Name: "review", Description: "Review changes", Hint: "what to review", Run: talk(review)},
		{Name: "init", Description: "Write AGENTS.md", Run: talk(initialize)},
	}
}

func changeModel(ctx context.Context, t *turn, want string) error {
	if !slices.Contains(t.State.models, want) {
		return t.Sayf(ctx, "The model is %s. There are: %s.", t.State.Model, strings.Join(t.State.models, ", "))
	}
	return errors.Join(t.SelectOption(ctx, "model", want), t.Sayf(ctx, "The model is now %s.", want))
}
