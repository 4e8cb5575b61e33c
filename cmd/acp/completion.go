package main

// Shell completion of agents and sessions. None of it uses the network.

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

// agentCompletions returns the agents that can be started: the installed ones and, if own is set, those of the
// configuration.
func agentCompletions(cfg *config.Config, own bool) []cobra.Completion {
	if cfg.Load() != nil {
		return nil // the command itself reports the error
	}
	var words []cobra.Completion
	if own {
		for _, name := range slices.Sorted(maps.Keys(cfg.File.Agents)) {
			words = append(words, cobra.CompletionWithDesc(name, "in the configuration"))
		}
	}
	installed, _ := agents.Registry(&cfg.Settings).Installed() // damaged agents cannot be started
	for _, i := range installed {
		if !own || cfg.File.Agents[i.ID()] == nil {
			words = append(words, cobra.CompletionWithDesc(i.ID(), plain.Sprintf("%s %s", i.Entry.Name, i.Entry.Version)))
		}
	}
	return words
}

// completeAgent completes the first word with agents that can be started, for commands with a configuration.
func completeAgent(cfg *config.Config) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return agentCompletions(cfg, true), cobra.ShellCompDirectiveNoFileComp
	}
}

// agentFlag completes the flag --agent of a command with a configuration.
func agentFlag(c *cobra.Command, cfg *config.Config) {
	c.Flags().BoolVar(&cfg.Preview, "preview", false, "take the preview version of an agent of the registry")
	completeBy(c, "agent", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return agentCompletions(cfg, true), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeRegistry completes words with agents of the registry, from the list as it was last fetched.
func (a *agentsCommand) completeRegistry(c *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
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

// sessionFlag completes a flag with the names that the user has given to sessions in a directory.
func sessionFlag(c *cobra.Command, flag string, folder *string) {
	completeBy(c, flag, func(*cobra.Command, []string, string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
		store, err := names.Default()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cwd, err := workFolder(*folder)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		sessions, _ := store.List(cwd) // without a list there is nothing to complete
		for _, s := range sessions {
			// The key of a command consists of all its words.
			agent, _, _ := strings.Cut(s.Agent, "\x00")
			words = append(words, cobra.CompletionWithDesc(s.Name,
				plain.Sprintf("with %s, %s", agent, s.Used.Local().Format(time.DateTime))))
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	})
}

// unused removes the words that are already on the command line.
func unused(words []cobra.Completion, there []string) []cobra.Completion {
	return slices.DeleteFunc(words, func(word cobra.Completion) bool {
		return slices.ContainsFunc(there, func(name string) bool {
			return word == name || len(word) > len(name) && word[:len(name)+1] == name+"\t"
		})
	})
}
