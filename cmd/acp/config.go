package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/plain"
)

// newConfigCommand returns the command acp config.
func newConfigCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show and change the configuration",
		Long: `Show and change the configuration. Each setting is a flag of the commands that have it, an environment variable,
and a key of the file. A flag takes precedence over the variable, and the variable over the file.

A change keeps the comments and the order of the file. Errors in the file are reported with line and column.`,
		Example: `  acp config list                                     all settings, and where each comes from
  acp config set agent claude                         the agent of acp run and acp exec
  acp config set agents.mine.command my-agent --acp   an agent of your own
  acp config unset agents.mine
  acp config edit`,
	}
	cfg := config.Bind(c)
	configListing(p, cfg, c)
	c.AddCommand(configListing(p, cfg,
		&cobra.Command{Use: "list [FLAGS]", Short: "List all settings, and where each value comes from"}),
		configGet(p, cfg), configSet(p, cfg), configUnset(p, cfg), configEdit(p, cfg), configPath(p, cfg))
	return c
}

// configListing makes c a command that lists the settings.
func configListing(p *program, cfg *config.Config, c *cobra.Command) *cobra.Command {
	var asJSON bool
	c.Args = cobra.NoArgs
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(*cobra.Command, []string) error {
		values, err := cfg.Values()
		if err != nil {
			return err
		}
		p.warnOfRules(values)
		if asJSON {
			type row struct {
				Key      string        `json:"key"`
				Value    any           `json:"value"`
				Source   config.Source `json:"source"`
				Variable string        `json:"variable"`
			}
			var rows []row
			for _, v := range values {
				rows = append(rows, row{v.Key, v.Value, v.Source, v.Variable()})
			}
			return report.WriteJSON(p.stdout, rows)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		for _, v := range values {
			source := string(v.Source)
			if v.Source == config.FromVariable {
				source = "$" + v.Variable()
			}
			fmt.Fprintln(w, plain.Sprintf("%s\t%s\t%s", v.Key, cmp.Or(v.Text, "-"), source))
		}
		return w.Flush()
	}
	return c
}

// warnOfRules warns on standard error about what the rules of the setting policy allow that users may not expect.
func (p *program) warnOfRules(values []config.Value) {
	for _, v := range values {
		if v.Key != "policy" || v.Text == "" {
			continue
		}
		rules, err := readPolicy(v.Text)
		if err != nil {
			fmt.Fprintln(p.stderr, plain.Sprintf("warning: policy: %v", err))
			continue
		}
		for _, warning := range rules.Warnings() {
			fmt.Fprintln(p.stderr, plain.Sprintf("warning: %s: %s", v.Text, warning))
		}
	}
}

// completeKeys completes the first word with the keys of settings, and the second with the values of that setting.
func completeKeys(cfg *config.Config) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var words []cobra.Completion
		switch len(args) {
		case 0:
			if strings.HasPrefix(begun, "agents.") {
				for _, name := range agentCompletions(cfg, true) {
					words = append(words, "agents."+name)
				}
			}
			for i := range config.Table {
				words = append(words, cobra.CompletionWithDesc(config.Table[i].Key,
					strings.ReplaceAll(config.Table[i].Usage, "`", "")))
			}
		case 1:
			row := config.Find(args[0])
			switch {
			case row == nil || row.Path:
				return nil, cobra.ShellCompDirectiveDefault
			case row.Agents:
				words = agentCompletions(cfg, true)
			default:
				words = row.Values
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func configGet(p *program, cfg *config.Config) *cobra.Command {
	return &cobra.Command{
		Use:               "get KEY",
		Short:             "Print the value of a setting",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeKeys(cfg),
		RunE: func(_ *cobra.Command, args []string) error {
			values, err := cfg.Values()
			if err != nil {
				return err
			}
			for _, v := range values {
				if v.Key == args[0] {
					_, err := fmt.Fprintln(p.stdout, plain.Line(v.Text))
					return err
				}
			}
			return usagef("%w", config.UnknownKey(args[0]))
		},
	}
}

func configSet(p *program, cfg *config.Config) *cobra.Command {
	c := &cobra.Command{
		Use:   "set KEY VALUE...",
		Short: "Set a key of the file: a setting, or agents.NAME.KEY",
		Long: `Set a key of the file: a setting, or agents.NAME.KEY, where KEY is command, dir, env, url, token-file, token-env,
header-file, header-env, allow-insecure, registry, mode, model or option. Lists take several values, and env
takes NAME=VALUE.`,
		Example: `  acp config set registry.max-age 12h
  acp config set agents.mine.command my-agent --acp
  acp config set agents.mine.env LANG=C TERM=dumb
  acp config set agents.far.url wss://agent.example/acp`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: completeKeys(cfg),
		RunE: p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			path, _ := cfg.Path()
			return changed(config.Set(ctx, path, args[0], args[1:]))
		}),
	}
	c.Flags().SetInterspersed(false) // an agent's flags are its own
	return withoutFile(c)
}

// changed converts an error of a change of the file to a usage error, unless the file could not be written.
func changed(err error) error {
	if _, failed := errors.AsType[*fs.PathError](err); err == nil || failed {
		return err
	}
	return usagef("%w", err)
}

func configUnset(p *program, cfg *config.Config) *cobra.Command {
	return withoutFile(&cobra.Command{
		Use:               "unset KEY",
		Short:             "Remove a key from the file, or an agent: agents.NAME",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeKeys(cfg),
		RunE: p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			path, _ := cfg.Path()
			return changed(config.Unset(ctx, path, args[0]))
		}),
	})
}

func configPath(p *program, cfg *config.Config) *cobra.Command {
	return withoutFile(&cobra.Command{
		Use:   "path",
		Short: "Print the path of the file",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, _ := cfg.Path()
			if path == "" {
				return config.ErrNoFile
			}
			_, err := fmt.Fprintln(p.stdout, plain.Line(path))
			return err
		},
	})
}

// withoutFile keeps a command from reading the file, which may be invalid or missing.
func withoutFile(c *cobra.Command) *cobra.Command {
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	return c
}

func configEdit(p *program, cfg *config.Config) *cobra.Command {
	return withoutFile(&cobra.Command{
		Use:   "edit",
		Short: "Open the file in your editor, and check it",
		Long: `Open the file in the editor that $VISUAL or $EDITOR names, and check it. If there is no file, one is created with
all settings as comments.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, _ := cfg.Path()
			if path == "" {
				return config.ErrNoFile
			}
			if err := create(path, config.Template(), 0o700, 0o600); err != nil && !errors.Is(err, errExists) {
				return err
			}
			if err := p.edit(path); err != nil {
				return err
			}
			_, err := config.Read(path, true)
			return err
		},
	})
}

// edit runs the user's editor. As in other programs, the variable is a command for the shell.
func (p *program) edit(path string) error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	var cmd *exec.Cmd
	switch {
	case runtime.GOOS == "windows":
		words := append(strings.Fields(editor), path)
		if editor == "" {
			words = []string{"notepad", path}
		}
		cmd = exec.Command(words[0], words[1:]...)
	case editor == "":
		cmd = exec.Command("vi", path)
	default:
		cmd = exec.Command("sh", "-c", editor+` "$1"`, editor, path)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor: %w", err)
	}
	return nil
}
