package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
	"github.com/acpgo/sdk/internal/plain"
)

// inspectFlags are the flags of acp inspect.
type inspectFlags struct {
	cfg             *config.Config
	agent           string
	listen          bool
	connect, output string
	folder, cwd     string
	port            int
	noMask          bool
	hop             string
}

// newInspectCommand returns the command acp inspect.
func newInspectCommand(p *program) *cobra.Command {
	f := &inspectFlags{}
	c := &cobra.Command{
		Use:   "inspect [FLAGS] [FILE...] [-- AGENT [ARG...]]",
		Short: "See the protocol in a browser, judged: an agent, an editor's traffic, or recordings",
		Long: `See the protocol in a browser, judged, at the URL that is printed.

With an agent, which is a command after --, or a name of the configuration or of the registry or a URL (--agent), the
page starts the agent and talks to it: prompts, forms for all methods, and lines that need not be valid. With files
it shows recordings; two are shown side by side. With --listen it shows the traffic between an editor and
its agent: put the command that is printed into the editor's configuration in place of the agent's. That command starts
the agent and passes on every byte, also while nothing is inspected. All of this can be combined.

--output writes a report instead: one HTML file that needs no server and loads nothing.

The page is served on 127.0.0.1 only. The URL works once; that page may then be loaded again. Press Enter for another
URL. The page cannot choose what is run: that comes from this command line. Files and commands of an agent are simulated
in memory, or served from the directory of --folder, or answered by you. In that directory, each write and each command
of an agent at a URL waits for your consent on the page. Secrets are masked as in acp record.

Exit status:
  0  the report is written, or an interrupt (Ctrl-C) or TERM has ended the inspection
  2  wrong usage
  3  something could not be read or run
With --connect it is that of the agent.`,
		Example: `  acp inspect -- my-agent --acp              talk to an agent
  acp inspect --agent claude --folder .      serve files and commands in this directory
  acp inspect --listen -- my-agent --acp     watch an editor and its agent
  acp inspect before.jsonl after.jsonl       compare two recordings
  acp inspect -o report.html run.jsonl       a file for a bug report`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	f.cfg = config.Bind(c)
	flags := c.Flags()
	flags.StringVar(&f.agent, "agent", "", "the agent, as a `NAME` of the configuration or of the registry, or a URL")
	flags.BoolVar(&f.listen, "listen", false,
		"show the traffic of editors whose agent's command is the one that is printed")
	flags.StringVar(&f.connect, "connect", "",
		"be that command: start the agent, and pass its traffic on to the inspection that listens, whose address is in a "+
			"private `FILE`")
	flags.Lookup("connect").NoOptDefVal = defaultTapFile
	flags.StringVarP(&f.output, "output", "o", "", "write a report into a `FILE`; if it exists, it is replaced")
	flags.StringVar(&f.folder, "folder", "",
		"a `DIR` whose files the page may serve to the agent, and in which it may run the agent's commands")
	flags.StringVarP(&f.cwd, "cwd", "C", ".", "the `DIR` in which the agent starts")
	flags.IntVar(&f.port, "port", 0, "the port to listen on; 0 chooses a free one")
	flags.BoolVar(&f.noMask, "no-mask", false, "show secrets")
	hopFlag(flags, &f.hop, "show only")
	agentFlag(c, f.cfg)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		files, command, err := splitArgs(cmd, args)
		if err != nil {
			return err
		}
		return f.run(p, files, command)
	}
	return c
}

// defaultTapFile stands for the file in the user's state directory.
const defaultTapFile = "default"

// run checks the flags, and does what they say.
func (f *inspectFlags) run(p *program, files, command []string) error {
	live := f.agent != "" || command != nil && !f.listen && f.connect == ""
	switch {
	case f.connect != "" && (f.listen || f.output != "" || f.agent != "" || len(files) > 0):
		return usagef("--connect takes only the agent's command")
	case f.connect != "" && command == nil:
		return usagef("expected the agent's command after --")
	case f.connect != "":
		return f.tap(p, command)
	case f.agent != "" && command != nil && !f.listen:
		return usagef("expected either --agent or a command after --")
	case f.output != "" && (live || f.listen):
		return usagef("a report is of recordings: expected files only")
	case f.output != "" && len(files) == 0, !live && !f.listen && len(files) == 0:
		return usagef("expected files, an agent, or --listen")
	case f.folder != "" && !live:
		return usagef("--folder is for an agent")
	case f.port < 0 || f.port > 65535:
		return usagef("--port: expected a number from 0 to 65535")
	}
	if f.output != "" {
		return f.report(files)
	}
	return f.serve(p, files, command, live)
}

// options returns the options that the flags say.
func (f *inspectFlags) options() inspect.Options {
	return inspect.Options{Version: moduleVersion(), NoMask: f.noMask}
}

// report writes a report.
func (f *inspectFlags) report(files []string) (err error) {
	in, err := inspect.New(f.options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, name := range files {
		if err := f.read(in, name); err != nil {
			return err
		}
	}
	file, err := input.Create(f.output)
	if err != nil {
		return err
	}
	return errors.Join(in.WriteReport(file), file.Close())
}

// read reads a recording.
func (f *inspectFlags) read(in *inspect.Inspection, name string) error {
	file, err := input.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(in.Read(filepath.Base(name), file, f.hop), file.Close())
}

// serve serves the page until it is interrupted.
func (f *inspectFlags) serve(p *program, files, command []string, live bool) (err error) {
	ctx, stop := p.untilInterrupted()
	defer stop()
	o := f.options()
	if live {
		if o.Agent, err = f.liveAgent(ctx, p, command); err != nil {
			return err
		}
		if f.folder != "" {
			if o.Folder, err = workFolder(f.folder); err != nil {
				return usage(err)
			}
		}
		if o.Cwd, err = workFolder(f.cwd); err != nil {
			return usage(err)
		}
	}
	in, err := inspect.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return err
	}
	tap := inspect.TapFile{Address: listener.Addr().String()}
	if f.listen {
		tap.Secret = inspect.NewTapSecret()
		path, err := tapFile(defaultTapFile)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		remove, err := inspect.WriteTapFile(path, tap)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer func() { err = errors.Join(err, remove()) }()
		f.printTap(p, command)
	}
	server := in.Serve(listener, tap.Secret)
	defer func() { err = errors.Join(err, server.Close()) }()
	fmt.Fprintln(p.stdout, server.URL())
	if isTerminal(p.stdin) {
		go func() { // lives as long as the program
			for lines := bufio.NewScanner(p.stdin); lines.Scan(); {
				fmt.Fprintln(p.stdout, server.URL())
			}
		}()
	}
	failed := make(chan error, len(files))
	for _, name := range files {
		go func() { failed <- f.read(in, name) }()
	}
	for {
		select {
		case <-ctx.Done():
			return nil // this is how it ends
		case err := <-failed:
			if err != nil {
				return err
			}
		}
	}
}

// printTap prints the command for the editor, and its form in JSON.
func (f *inspectFlags) printTap(p *program, command []string) {
	program, err := os.Executable()
	if err != nil {
		program = "acp"
	}
	if len(command) == 0 {
		command = []string{"AGENT"}
	}
	args := append([]string{"inspect", "--connect", "--"}, command...)
	fmt.Fprintf(p.stderr, "The agent's command in the editor's configuration:\n  %s\n",
		plain.Line(launch.New(program, args...).String()))
	if text, err := json.Marshal(map[string]any{"command": program, "args": args}); err == nil {
		fmt.Fprintf(p.stderr, "or, in JSON:\n  %s\n", plain.Line(string(text)))
	}
}

// tapFile returns the path of the file for taps.
func tapFile(flag string) (string, error) {
	if flag != defaultTapFile {
		return flag, nil
	}
	state, err := names.StateDir()
	return filepath.Join(state, "inspect.json"), err
}

// liveAgent returns the agent that the page talks to.
func (f *inspectFlags) liveAgent(ctx context.Context, p *program, command []string) (*inspect.Agent, error) {
	found, err := oneAgent(ctx, p.resolver(f.cfg), f.agent, command)
	if err != nil {
		return nil, err
	}
	if found.Command == nil {
		return &inspect.Agent{Words: []string{found.Name}, Remote: true,
			Connect: func(ctx context.Context, _ io.Writer) (rpc.Transport, error) {
				return found.Connect(ctx)
			}}, nil
	}
	start := *found.Command
	start.Dir = cmp.Or(start.Dir, f.cwd)
	path, err := found.Command.Find() // a relative path is that of this directory
	if err != nil {
		return nil, err
	}
	start.Program = path
	words := append([]string{found.Command.Program}, start.Args...)
	return &inspect.Agent{
		Words: words,
		Connect: func(_ context.Context, stderr io.Writer) (rpc.Transport, error) {
			cmd := start.Cmd()
			cmd.Stderr = stderr
			transport := rpc.Command(cmd)
			transport.StopTime, transport.KillTime = stopTime, killTime
			return transport, nil
		},
	}, nil
}

// tap is the command of an editor's agent: it runs the agent, and sends a recording to the inspection. It returns only
// if the agent did not start.
func (f *inspectFlags) tap(p *program, command []string) error {
	path, err := tapFile(f.connect)
	if err != nil {
		return err
	}
	var masker *recording.Masker
	if !f.noMask {
		masker = recording.NewMasker()
	}
	o := relay.Options{Stdin: closer(p.stdin), Stdout: writeCloser(p.stdout), Stderr: p.stderr, RecordStderr: true}
	to, err := inspect.DialTap(path)
	switch {
	case errors.Is(err, inspect.ErrNoInspection): // there is nothing to say: the editor uses the agent as usual
	case err != nil:
		fmt.Fprintln(p.stderr, plain.Sprintf("acp: not inspected: %v", err))
	default:
		out := bufio.NewWriterSize(to, 64<<10)
		header := recording.Header{Tool: "acp", Version: moduleVersion(), Command: command}
		if o.Writer, err = recording.NewWriter(out, header, masker); err != nil {
			return errors.Join(err, to.Close())
		}
		o.Idle, o.MaxPending = out.Flush, 64<<20
		defer to.Close() // the agent's error counts
	}
	signals, stop := relay.Notify()
	defer stop()
	o.Signals = signals
	result, err := relay.Run(exec.Command(command[0], command[1:]...), o)
	if err != nil {
		return err
	}
	if result.Err != nil {
		fmt.Fprintln(p.stderr, plain.Sprintf("acp: not inspected to the end: %v", result.Err))
	}
	if to != nil {
		_ = to.Close() // the recording is sent
	}
	relay.Exit(result.State)
	return nil
}
