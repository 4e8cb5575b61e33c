package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/await"
)

// execFlags are the flags of acp exec that are not settings.
type execFlags struct {
	cfg           *config.Config
	files, attach []string
	session       string
	fresh         bool
	cwd           string
	login         string
	json          bool
	verbose       bool
	trafficFlags
}

// newExecCommand returns the command acp exec.
func newExecCommand(p *program) *cobra.Command {
	f := &execFlags{}
	c := &cobra.Command{
		Use:   "exec [FLAGS] PROMPT... [-- AGENT [ARG...]]",
		Short: "Send a prompt to an agent and print its answer, for scripts",
		Long: `Send a prompt to an agent and print its answer, for scripts.

The agent is a name from the configuration or the registry, or a URL (--agent), or a command after --.

The prompt consists of the words, then the files of --file, in one text. The word - stands for standard input, which
is also read if there is no other prompt and it is not a terminal.

--format selects what goes to standard output. text: the agent's messages as they arrive, without control characters;
other activity goes to standard error. quiet: only the last message, at the end. json: one object per line, the
parameters of each session/update as the agent wrote them, after a first line {"session":{...}} and before a last
line {"result":{...}}; each permission request is a line {"permission":{...}} once it is answered.

The rules of --policy decide on permission requests. --allow allows those that no rule covers, --deny rejects them.
Without these flags the user is asked on the terminal; without a terminal the request is rejected.

The first interrupt cancels the turn and waits for the agent's response; the second kills the agent. Nothing of the
agent is left running, however the program ends.

Exit status:
    0  done: the agent ended its turn
    1  --check has findings
    2  wrong usage, or a mode, model, option or kind of file that the agent does not offer
    3  failed
    4  the agent refused, or reached its token or request limit; standard error says which
    5  the agent requires a login
    6  the agent died, or the connection was lost
    7  done, but permission was rejected because no user could be asked
  124  the time of --timeout has passed
  130  interrupted; 129 and 143: ended by SIGHUP or SIGTERM; 141: standard output was closed`,
		Example: `  acp exec --agent claude "what does this project do?"
  git diff | acp exec --agent gemini --format quiet "write a commit message for this:" -
  acp exec --allow --timeout 10m --file task.md -- my-agent --acp
  acp exec --agent claude --session review --attach screen.png "is this the button that you meant?"
  acp exec --agent claude --deny "find the bug in main.go"
  acp exec --agent claude --format json --record run.jsonl --check "run the tests" | jq .update`,
		Args: cobra.ArbitraryArgs,
	}
	f.cfg = config.Bind(c)
	flags := c.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil, "a `FILE` with the prompt, or a part of it; - means standard input")
	flags.StringArrayVarP(&f.attach, "attach", "a", nil,
		"a `FILE` to attach: an image or a sound as such, a text embedded if the agent accepts that, anything else as a link")
	flags.StringVarP(&f.session, "session", "s", "",
		"continue the session with this `NAME`, or begin one; a name belongs to an agent and a directory")
	flags.BoolVar(&f.fresh, "new", false, "with --session: begin another session with the name")
	flags.StringVarP(&f.cwd, "cwd", "C", ".", "the `DIR` in which the agent works")
	flags.StringVar(&f.login, "login", "",
		"first log in with this `METHOD`; without it, the methods of an agent that requires a login are listed")
	f.trafficFlags.add(c, "report violations of the protocol on standard error")
	flags.BoolVar(&f.json, "json", false, "the same as --format json")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print what the agent writes to standard error")
	agentFlag(c, f.cfg)
	sessionFlag(c, "session", &f.cwd)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		words, command, err := splitArgs(cmd, args)
		if err != nil {
			return err
		}
		if f.json {
			if cmd.Flags().Changed("format") && f.cfg.Format != "json" {
				return usagef("expected either --json or --format %s", f.cfg.Format)
			}
			f.cfg.Format = "json"
		}
		return execute(p, f, words, command)
	}
	return c
}

// execute runs the prompt.
func execute(p *program, f *execFlags, words, command []string) error {
	x := &execution{p: p, f: f, format: f.cfg.Format}
	x.updated = make(chan struct{}, 1)
	if err := x.settings(); err != nil {
		return err
	}
	stop := x.begin()
	defer stop()
	if err := x.readPrompt(words); err != nil {
		return x.failed(err)
	}
	agent, err := await.Do(x.ctx, flushTime, func() (*agents.Agent, error) { return x.findAgent(command) })
	if err != nil {
		return x.failed(err)
	}
	x.agent = agent
	x.key = cmp.Or(strings.Join(command, "\x00"), x.agent.Name)
	if f.record != "" {
		x.record = recordFile(f.record, x.agent.Name, time.Now())
	}
	return x.perform()
}

// settings applies the flags and settings. It starts nothing.
func (x *execution) settings() (err error) {
	f, cfg := x.f, x.f.cfg
	switch {
	case cfg.Allow && cfg.Deny:
		return usagef("expected either --allow or --deny")
	case f.fresh && f.session == "":
		return usagef("--new needs --session")
	case cfg.Timeout < 0:
		return usagef("--timeout: expected a time above 0")
	}
	if err := f.trafficFlags.valid(); err != nil {
		return err
	}
	if x.options, err = talkOptions(cfg, f.cwd); err != nil {
		return err
	}
	for _, name := range f.attach {
		if _, err := os.Stat(name); err != nil {
			return usage(err)
		}
	}
	return nil
}

// maxPrompt is the maximum length of the prompt in bytes.
const maxPrompt = 32 << 20

// readPrompt reads the prompt.
func (x *execution) readPrompt(words []string) error {
	var parts []string
	used := false // whether standard input has been used
	read := func(name string) error {
		label, open := name, func() (io.ReadCloser, error) { return os.Open(name) }
		if name == "-" {
			if used {
				return usagef("standard input is used twice")
			}
			used = true
			label, open = "standard input", func() (io.ReadCloser, error) { return io.NopCloser(x.p.stdin), nil }
		}
		text, err := x.readAll(label, open)
		parts = append(parts, text)
		return err
	}
	for len(words) > 0 {
		if words[0] == "-" {
			if err := read("-"); err != nil {
				return err
			}
			words = words[1:]
			continue
		}
		n := slices.Index(words, "-")
		if n < 0 {
			n = len(words)
		}
		parts, words = append(parts, strings.Join(words[:n], " ")), words[n:]
	}
	files := x.f.files
	if len(parts)+len(files) == 0 && !isTerminal(x.p.stdin) {
		files = []string{"-"}
	}
	for _, name := range files {
		if err := read(name); err != nil {
			return err
		}
	}
	for i := range parts {
		parts[i] = strings.TrimRight(parts[i], "\r\n")
	}
	x.prompt = strings.Join(parts, "\n\n")
	switch {
	case strings.TrimSpace(x.prompt) == "":
		return usagef("expected a prompt: as words before --, in a file (--file), or on standard input")
	case !utf8.ValidString(x.prompt):
		return usagef("the prompt is not valid UTF-8")
	}
	return nil
}

// readAll reads a part of the prompt, until the run is cancelled.
func (x *execution) readAll(name string, open func() (io.ReadCloser, error)) (string, error) {
	return await.Do(x.ctx, 0, func() (string, error) {
		from, err := open()
		if err != nil {
			return "", usage(err)
		}
		defer from.Close()
		text, err := io.ReadAll(io.LimitReader(from, maxPrompt+1))
		if err != nil {
			return "", usage(fmt.Errorf("%s: %w", name, err))
		}
		if len(text) > maxPrompt {
			return "", usagef("%s: longer than %d MiB", name, maxPrompt>>20)
		}
		return string(text), nil
	})
}

// findAgent finds the named agent or that of a command.
func (x *execution) findAgent(command []string) (*agents.Agent, error) {
	cfg := x.f.cfg
	resolver := x.p.resolver(cfg)
	if ask := resolver.Ask; ask != nil {
		resolver.Ask = func(ctx context.Context, question string) (bool, error) {
			defer x.limit.asking()()
			return ask(ctx, question)
		}
	}
	switch {
	case command != nil && cfg.Sources["agent"] == config.FromFlag:
		return nil, usagef("expected either --agent or a command after --")
	case command != nil:
		agent, err := resolver.Command(command)
		if err != nil {
			return nil, usage(err)
		}
		return agent, nil
	case cfg.Agent != "":
		return resolver.Resolve(x.ctx, cfg.Agent)
	}
	return nil, usagef("expected an agent: --agent NAME, or its command after --")
}

// recordFile returns the name of the file for a recording.
func recordFile(name, agent string, now time.Time) string {
	agent = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '-'
		}
		return r
	}, agent)
	return strings.NewReplacer("%%", "%", "%a", agent, "%t", now.Format("20060102-150405"), "%p", fmt.Sprint(os.Getpid())).
		Replace(name)
}

// blocks returns the content blocks of the prompt for an agent.
func (x *execution) blocks(can acp.PromptCapabilities) ([]acp.ContentBlock, error) {
	blocks := []acp.ContentBlock{acp.TextBlock(x.prompt)}
	for _, name := range x.f.attach {
		block, err := talk.Attachment(name, can)
		if err != nil {
			if _, unsupported := errors.AsType[*talk.UnsupportedError](err); unsupported {
				err = usage(err)
			}
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}
