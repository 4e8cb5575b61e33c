// Command client starts an agent and talks to it in the terminal.
//
// It is a fixture of this module's tests and imports internal packages. To start a client of your own, copy
// examples/kit-client.
//
//	client [flags] -- AGENT [arguments]
//
// Its prompts come from -p, which may be repeated, from the file that -script names, or otherwise from standard input,
// one per line. It prints what the agent does, asks the user for permission on the agent's behalf (or decides itself,
// with -allow or -reject), asks the user to fill in forms, and serves files and terminals in the directory -root, in
// which the agent is started. Ctrl-C cancels the turn; without a turn, or the second time, it quits.
//
// A line that begins with a colon is a command to this client: :sessions lists the sessions, :load ID opens one again,
// :mode MODE switches the mode, :help lists the others. The conversation begins in a new session, or in that of -load
// or -resume. Sessions get the additional directories of -add and the MCP servers of -mcp. If a login in a terminal is
// required, it happens at the start, if the prompts come from standard input.
//
// In ACP an agent need not ask for permission: an agent that does not ask can still have files in the root written, and
// commands run. With -reject it cannot: all permission requests are refused, and the client offers neither terminals
// nor writing of files; it still reads files of the root. Only the operating system can restrict what the agent's own
// process does: run an agent that you do not trust in a sandbox.
//
// Text from the agent is printed with a mark at the beginning of each line ("< ", and "agent: " for its standard
// error), and with characters escaped that a terminal would not simply show.
//
// Some agents send a whole command line where the protocol requires the name of a program. If there is no such program,
// the system's shell runs the line, unless -shell=false forbids it.
//
// A script has one prompt per line, after an action:
//
//	# a comment
//	allow: a prompt whose permission requests are granted
//	reject: a prompt whose permission requests are refused; until the next one, no file is written or command started
//	cancel: a prompt that is cancelled after its first few updates; its permission requests are granted
//	:mode code
//
// With -reject, every line of a script rejects.
//
// With -check, and with a script, every message is judged by the protocol's schema and rules. Each finding is printed,
// the last line is of the form "123 messages, 0 findings", and findings make the exit status 1. Violations other than
// those of a MUST are only findings with -warnings, and so are members that the schema does not define, which most
// agents send.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// config is the parsed command line.
type config struct {
	workspace
	load        string // the session to load or resume first
	resume      string
	plays       []play // prompts and commands
	interactive bool   // read prompts from standard input
	policy      policy // for those prompts; policyReject applies to everything
	check       bool
	warnings    bool // warnings are findings
	shell       bool // a shell runs whole command lines
	command     []string
}

func main() {
	c, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err == nil {
		err = run(context.Background(), c, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, plain.Sprintf("client: %v", err))
		os.Exit(1)
	}
}

const synopsis = "usage: client [flags] -- AGENT [arguments]"

// parse reads the command line.
func parse(args []string, usage io.Writer) (config, error) {
	var c config
	var prompts []string
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.Usage = func() {
		fmt.Fprintln(usage, synopsis)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.root, "root", ".",
		"directory of the agent and its session: its files can be read and written, its commands run there")
	flags.Func("add", "a further `directory` of the sessions; may be repeated", func(dir string) error {
		dir, err := filepath.Abs(dir)
		c.more = append(c.more, dir)
		return err
	})
	flags.Func("mcp", "an MCP `server` of the sessions, NAME=COMMAND or NAME=URL; may be repeated",
		func(text string) error {
			server, err := parseServer(text)
			c.servers = append(c.servers, server)
			return err
		})
	flags.StringVar(&c.load, "load", "", "begin in the session with this `id`, and show what was said in it")
	flags.StringVar(&c.resume, "resume", "", "begin in the session with this `id`")
	flags.Func("p", "say `text`; may be repeated", func(text string) error {
		prompts = append(prompts, text)
		return nil
	})
	script := flags.String("script", "", "say what this `file` says, and check")
	allow := flags.Bool("allow", false, "grant all requests for permission")
	reject := flags.Bool("reject", false, "refuse all requests for permission, write no files and run no commands")
	flags.BoolVar(&c.check, "check", false, "check every message")
	flags.BoolVar(&c.warnings, "warnings", false,
		"when checking, count also what breaks no MUST, and members that the schema does not know")
	flags.BoolVar(&c.shell, "shell", true, "run a command without arguments in the shell if there is no such program")
	if err := flags.Parse(args); err != nil {
		return c, flag.ErrHelp
	}
	switch {
	case c.load != "" && c.resume != "":
		return c, errors.New("-load and -resume exclude each other")
	case *allow && *reject:
		return c, errors.New("-allow and -reject exclude each other")
	case *allow:
		c.policy = policyAllow
	case *reject:
		c.policy = policyReject
	}
	for _, prompt := range prompts {
		c.plays = append(c.plays, play{text: prompt, policy: c.policy})
	}
	if c.command = flags.Args(); len(c.command) == 0 {
		return c, errors.New(synopsis)
	}
	if *script != "" {
		text, err := os.ReadFile(*script)
		if err != nil {
			return c, err
		}
		plays, err := parseScript(string(text))
		if err != nil {
			return c, fmt.Errorf("%s: %w", *script, err)
		}
		c.plays, c.check = append(c.plays, plays...), true
	}
	if c.policy == policyReject {
		for i := range c.plays {
			c.plays[i].policy = policyReject
		}
	}
	c.interactive = prompts == nil && *script == ""
	root, err := filepath.Abs(c.root)
	c.root = root
	return c, err
}

// errFindings reports that there were findings, which have been printed.
var errFindings = errors.New("messages did not conform")

// run starts the agent and runs all plays. The last line that it prints is the result of the check.
func run(ctx context.Context, c config, in io.Reader, out io.Writer) error {
	p := &printer{w: out}
	log.SetOutput(besides{p, os.Stderr}) // of package slog too
	defer log.SetOutput(os.Stderr)
	monitor := conformance.NewMonitor(conformance.V1(), &conformance.MonitorOptions{
		OnMessage: func(m conformance.Message) { p.findings(m.Findings) },
		OnEnd:     p.findings,
		Ignore: func(f conformance.Finding) bool {
			return !c.warnings && (f.Level > conformance.MustNot || f.Rule == "EXT-2")
		},
	})
	err := converse(ctx, c, in, p, monitor)
	if login, ok := errors.AsType[*loginError](err); ok && c.interactive {
		if err = logIn(ctx, c, login.method, in, out); err == nil {
			err = converse(ctx, c, in, p, monitor)
		}
	}
	if c.check {
		p.line("%s", monitor.Stats())
		if monitor.Stats().Findings() > 0 {
			err = errors.Join(err, errFindings)
		}
	}
	return err
}

// logIn runs the agent's command as a login in this terminal.
func logIn(ctx context.Context, c config, method *acp.AuthMethodTerminal, in io.Reader, out io.Writer) error {
	command, err := agentCommand(c)
	if err != nil {
		return err
	}
	return command.Login(ctx, method, launch.Terminal{Stdin: in, Stdout: out, Stderr: os.Stderr})
}

// converse starts the agent, opens a session, runs all plays in it, and ends all three.
func converse(ctx context.Context, c config, in io.Reader, p *printer, monitor *conformance.Monitor) (err error) {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	roots, err := local.OpenRoots(append([]string{c.root}, c.more...)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, roots.Close()) }()
	commands := &local.TerminalsOptions{OnOutput: p.terminal}
	if c.shell {
		commands.Shell = local.DefaultShell()
	}
	terminals := local.NewTerminals(roots, local.Trusted(), commands)
	defer func() { err = errors.Join(err, terminals.Close()) }()

	talk := &talk{printer: p, input: input{r: in, terminal: isTerminal(in)}, quit: quit, policy: c.policy,
		workspace: c.workspace}
	handlers := acp.ClientHandlers{SessionUpdate: talk.update, RequestPermission: talk.requestPermission,
		CreateElicitation: talk.elicit}
	if c.policy == policyReject {
		local.NewFiles(roots, nil, nil).Register(&handlers)
	} else {
		local.NewFiles(roots, local.Trusted(), nil).Register(&handlers)
		terminals.Register(&handlers)
		handlers.WriteTextFile = unlessRejecting(talk, handlers.WriteTextFile)
		handlers.CreateTerminal = unlessRejecting(talk, handlers.CreateTerminal)
	}

	agentProgram, err := agentCommand(c)
	if err != nil {
		return err
	}
	command := agentProgram.Cmd()
	stderr := plain.NewWriter(besides{p, os.Stderr}, "agent: ")
	defer func() { err = errors.Join(err, stderr.Flush()) }()
	command.Stderr = stderr
	var transport acp.Transport = acp.Command(command)
	if c.check {
		transport = monitor.WrapClient(transport)
	}
	agent, err := acp.Connect(ctx, transport, handlers, &acp.ClientOptions{
		Info:          acp.Implementation{Name: "acp-example-client", Title: acp.Some("Example client"), Version: "1.0.0"},
		Session:       acp.ClientSessionCapabilities{Notices: acp.Some(acp.NoticeCapabilities{})},
		BooleanConfig: true,
		TerminalAuth:  c.interactive, // there is a user
		Elicitation: acp.ElicitationCapabilities{
			Form: acp.Some(acp.ElicitationFormCapabilities{}),
			URL:  acp.Some(acp.ElicitationURLCapabilities{}),
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	// Quitting ends the agent, and with it everything that waits for it.
	defer context.AfterFunc(ctx, func() { agent.Close() })()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	interruptible, stop := context.WithCancel(ctx)
	var interrupts sync.WaitGroup
	interrupts.Go(func() { talk.interrupts(interruptible, signals) })
	defer func() { stop(); interrupts.Wait() }()

	if err := talk.open(ctx, agent, c); err != nil {
		return err
	}
	err = talk.playAll(ctx, c.plays)
	if err == nil && c.interactive {
		err = talk.interact(ctx, c.policy)
	}
	if ctx.Err() != nil {
		return nil // the user wants to quit, whatever that interrupted
	}
	if err != nil {
		return err
	}
	if talk.session == nil {
		return nil
	}
	return talk.leave(ctx, talk.session)
}

// isTerminal reports whether r is a terminal.
func isTerminal(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// agentCommand returns the agent's command, to be run in the root. Its program is looked up from the current directory.
func agentCommand(c config) (*launch.Command, error) {
	program, err := launch.New(c.command[0]).Find()
	return &launch.Command{Program: program, Args: c.command[1:], Dir: c.root}, err
}
