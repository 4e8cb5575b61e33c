package main

// What shells complete beside the names of commands and flags: agents. Nothing of it uses the network.

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
	"github.com/acpgo/sdk/internal/plain"
)

// completer completes words.
type completer = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// agentCompletions are the agents that can be started: the user's own ones if own, and those that are installed.
func agentCompletions(cfg *config.Config, own bool) []cobra.Completion {
	if cfg.Load() != nil {
		return nil // the command itself will tell
	}
	var words []cobra.Completion
	if own {
		for _, name := range slices.Sorted(maps.Keys(cfg.File.Agents)) {
			words = append(words, cobra.CompletionWithDesc(name, "of the configuration"))
		}
	}
	installed, _ := agents.Registry(&cfg.Settings).Installed() // what is damaged cannot be started
	for _, i := range installed {
		if !own || cfg.File.Agents[i.ID()] == nil {
			words = append(words, cobra.CompletionWithDesc(i.ID(), plain.Sprintf("%s %s", i.Entry.Name, i.Entry.Version)))
		}
	}
	return words
}

// completeAgent completes the first word with agents that can be started; for commands with a configuration.
func completeAgent(cfg *config.Config) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return agentCompletions(cfg, true), cobra.ShellCompDirectiveNoFileComp
	}
}

// agentFlag completes the flag --agent of a command with a configuration.
func agentFlag(c *cobra.Command, cfg *config.Config) {
	complete := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return agentCompletions(cfg, true), cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.RegisterFlagCompletionFunc("agent", complete); err != nil {
		panic(err) // no such flag, or twice
	}
}

// completeAgents completes words with agents: one, also of the user's own, or any number of installed ones.
func (a *agentsCommand) completeAgents(one bool) completer {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if one {
			return completeAgent(a.cfg)(c, args, begun)
		}
		return unused(agentCompletions(a.cfg, false), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRegistry completes words with agents of the registry, as its list was last fetched.
func (a *agentsCommand) completeRegistry(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if a.cfg.Load() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client := agents.Registry(&a.cfg.Settings)
	client.Offline = true
	list, err := client.List(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []cobra.Completion
	for _, e := range list.Agents {
		words = append(words, cobra.CompletionWithDesc(e.ID, plain.Sprintf("%s %s", e.Name, e.Version)))
	}
	return unused(words, args), cobra.ShellCompDirectiveNoFileComp
}

// sessionFlag completes a flag with the names that the user has given to sessions in a folder.
func sessionFlag(c *cobra.Command, flag string, folder *string) {
	complete := func(*cobra.Command, []string, string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
		store, err := names.Default()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cwd, err := workFolder(*folder)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		sessions, _ := store.List("", cwd) // without a list there is nothing to complete
		for _, s := range sessions {
			// Of a command the key is all its words.
			agent, _, _ := strings.Cut(s.Agent, "\x00")
			words = append(words, cobra.CompletionWithDesc(s.Name, plain.Sprintf("with %s, %s", agent, s.Used.Local().Format(time.DateTime))))
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // no such flag, or twice
	}
}

// unused leaves out what stands on the command line already.
func unused(words []cobra.Completion, there []string) []cobra.Completion {
	return slices.DeleteFunc(words, func(word cobra.Completion) bool {
		return slices.ContainsFunc(there, func(name string) bool {
			return word == name || len(word) > len(name) && word[:len(name)+1] == name+"\t"
		})
	})
}
