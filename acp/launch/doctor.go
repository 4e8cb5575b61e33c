package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/plain"
)

// DoctorOptions configures an examination. A nil *DoctorOptions, and the zero value of each field, mean the defaults.
type DoctorOptions struct {
	// Time bounds the examination, not including the time to end the agent's process. The default is 2 min, because a
	// package runner may have to fetch the agent first.
	Time time.Duration
	// NoSession skips opening a session, which shows whether the user has to log in. A session that was opened is
	// closed and deleted if the agent supports that; otherwise the agent may keep it.
	NoSession bool
	// Cwd is the directory of the session. By default an empty directory is created for it, and removed afterwards.
	Cwd string
	// Client configures what the client tells the agent about itself: its name, and whether it can run logins in a
	// terminal. Its Conn and ConnectTimeout are not used.
	Client acp.ClientOptions
}

// Diagnosis is the result of an examination.
type Diagnosis struct {
	// Command is the command that was examined.
	Command *Command
	// Program is the path of the program, or "" if it was not found.
	Program string
	// Problems lists the problems, with those that block first. If it is empty, the agent starts and can be used.
	Problems []Problem
	// Agent is the agent's answer to initialize: its name and its capabilities. It is nil if there was no answer.
	Agent *acp.InitializeResponse
	// Protocol is the version of the protocol that the agent chose, of 1 and 2, or 0 if there was no answer. Agent is in
	// version 1 for both; see package translate.
	Protocol int
	// Session reports whether a session could be opened.
	Session bool
	// Took is the time until the answer to initialize, if there was one.
	Took time.Duration
	// Output is the output of the process other than its messages.
	Output rpc.ProcessOutput

	binary bool // the program is not a script
}

// OK reports whether the agent can be used: it has answered initialize, and no problem blocks.
func (d *Diagnosis) OK() bool {
	return d.Agent != nil && !slices.ContainsFunc(d.Problems, func(p Problem) bool { return p.Blocks })
}

// Has reports whether a problem of this kind was found.
func (d *Diagnosis) Has(kind ProblemKind) bool {
	return slices.ContainsFunc(d.Problems, func(p Problem) bool { return p.Kind == kind })
}

// String returns the diagnosis as lines for a terminal; text from the agent contains no control characters.
func (d *Diagnosis) String() string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, plain.Line(fmt.Sprintf(format, args...))) }
	say("command: %s", d.Command)
	if d.Program != "" && d.Program != d.Command.Program {
		say("program: %s", d.Program)
	}
	if a := d.Agent; a != nil {
		info := a.AgentInfo.Value()
		say("agent:   %s %s, protocol version %d, answered after %v", cmp.Or(info.Name, "(no name)"), info.Version,
			d.Protocol, d.Took.Round(time.Millisecond))
		say("offers:  %s", strings.Join(offers(&a.AgentCapabilities), ", "))
		for _, m := range a.AuthMethods {
			switch m := m.Variant.(type) {
			case *acp.AuthMethodTerminal:
				say("login:   %s (%s), in a terminal: %s", m.Name, m.ID, d.Command.LoginCommand(m))
			case *acp.AuthMethodAgent:
				say("login:   %s (%s)", m.Name, m.ID)
			default:
				say("login:   in a way that this program does not know: %s", m)
			}
		}
		if d.Session {
			say("session: could be opened")
		}
	}
	for _, p := range d.Problems {
		mark := "warning"
		if p.Blocks {
			mark = "problem"
		}
		say("%s: %s: %s", mark, p.Kind, p.Text)
		if p.Advice != "" {
			say("  %s", p.Advice)
		}
	}
	if d.OK() {
		say("ok")
	}
	return strings.Join(lines, "\n")
}

// offers returns the capabilities of an agent, by their names in the protocol.
func offers(c *acp.AgentCapabilities) []string {
	list := []string{"prompts"}
	add := func(has bool, name string) {
		if has {
			list = append(list, name)
		}
	}
	add(c.LoadSession, "session/load")
	s := &c.SessionCapabilities
	add(s.Resume.Present(), "session/resume")
	add(s.List.Present(), "session/list")
	add(s.Close.Present(), "session/close")
	add(s.Delete.Present(), "session/delete")
	add(s.AdditionalDirectories.Present(), "additional directories")
	add(c.Auth.Logout.Present(), "logout")
	add(c.PromptCapabilities.Image, "images")
	add(c.PromptCapabilities.Audio, "audio")
	add(c.PromptCapabilities.EmbeddedContext, "embedded context")
	add(c.MCPCapabilities.HTTP, "MCP over HTTP")
	add(c.MCPCapabilities.SSE, "MCP over SSE")
	return list
}

func (d *Diagnosis) add(p Problem) { d.Problems = append(d.Problems, p) }

// blocked adds a blocking problem.
func (d *Diagnosis) blocked(kind ProblemKind, err error, advice, format string, args ...any) {
	d.add(Problem{Kind: kind, Text: fmt.Sprintf(format, args...), Advice: advice, Blocks: true, Err: err})
}

// Doctor examines why an agent does not start. It looks at the agent's program, starts it, initializes it, opens a
// session to see whether the user is logged in, and ends it. It always returns a diagnosis; the end of ctx is one of
// its problems. Doctor runs the program, with the environment of the command: if the program comes from someone else,
// get the user's consent first, as before any other start.
func Doctor(ctx context.Context, command *Command, opts *DoctorOptions) *Diagnosis {
	o := *cmp.Or(opts, &DoctorOptions{})
	o.Time = cmp.Or(max(o.Time, 0), 2*time.Minute)
	d := &Diagnosis{Command: command}
	bounded, cancel := context.WithTimeoutCause(ctx, o.Time, errTime)
	defer cancel()
	if d.look() {
		d.examine(bounded, &o)
	}
	slices.SortStableFunc(d.Problems, func(a, b Problem) int {
		switch {
		case a.Blocks == b.Blocks:
			return 0
		case a.Blocks:
			return -1
		}
		return 1
	})
	return d
}

// errTime is the error when the time for an examination is over.
var errTime = errors.New("the examination took too long")

// noise collects output that is not a message.
type noise struct {
	mu    sync.Mutex
	lines []string
	count int
}

func (n *noise) invalid(line []byte, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if text := strings.TrimSpace(string(line)); text != "" {
		if n.count++; len(n.lines) < 3 {
			n.lines = append(n.lines, short(text))
		}
	}
}

// watched is a transport that keeps its stream, so that the output of the process can be read from it.
type watched struct {
	acp.Transport
	stream  rpc.Stream
	startup error
}

func (w *watched) Connect(ctx context.Context) (rpc.Stream, error) {
	w.stream, w.startup = w.Transport.Connect(ctx)
	return w.stream, w.startup
}

// examine starts the agent.
func (d *Diagnosis) examine(ctx context.Context, o *DoctorOptions) {
	n := &noise{}
	options := o.Client
	options.Conn = acp.ConnOptions{Logger: slog.New(slog.DiscardHandler), SkipNoise: true,
		Hooks: acp.Hooks{Invalid: n.invalid}}
	transport := &watched{Transport: acp.Command(d.Command.Cmd())}
	began := time.Now()
	both := translate.Transport(transport, translate.ClientSide, 1,
		&translate.Options{Chosen: func(version int) { d.Protocol = version }})
	conn, err := acp.Connect(ctx, both, acp.ClientHandlers{}, &options)
	if err == nil {
		d.Agent, d.Took = conn.Initialized(), time.Since(began)
		if !o.NoSession {
			cwd, made := o.Cwd, error(nil)
			if cwd == "" {
				if cwd, made = os.MkdirTemp("", "acp-doctor-"); made == nil {
					// This runs after the agent has ended, because the agent may write there. A directory that cannot
					// be removed is left to the system, which cleans up temporary directories; that is not a problem of
					// the agent.
					defer func() { _ = os.RemoveAll(cwd) }()
				}
			}
			if made != nil {
				d.blocked(SessionFailed, made, "", "there is no folder for a session: %v", made)
			} else {
				err = d.session(ctx, conn, cwd)
			}
		}
	}
	if transport.stream != nil {
		d.Output, _ = rpc.ProcessOutputOf(transport.stream)
	}
	if conn != nil {
		_ = conn.Close() // the way it ends does not matter here
	}
	if err != nil {
		d.explain(ctx, err, transport.startup)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count > 0 {
		d.add(Problem{
			Kind: Banner,
			Text: fmt.Sprintf("it writes lines to standard output that are not messages, such as %q (%d lines)", n.lines[0],
				n.count),
			Advice: "Clients may refuse this. Everything but messages belongs to standard error.",
			Blocks: false,
		})
	}
}

// session opens a session.
func (d *Diagnosis) session(ctx context.Context, conn *acp.ClientConn, cwd string) error {
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: cwd})
	if err != nil {
		return err
	}
	d.Session = true
	// A session that cannot be closed or deleted stays, as DoctorOptions.NoSession says.
	_ = session.Close(ctx)
	_, _ = conn.DeleteSession(ctx, &acp.DeleteSessionRequest{SessionID: session.ID()})
	return nil
}

// explain adds the problems that an error stands for.
func (d *Diagnosis) explain(ctx context.Context, err, startup error) {
	exit, exited := errors.AsType[*rpc.ExitError](err)
	if exited {
		d.Output = exit.ProcessOutput
	}
	call, refused := errors.AsType[*acp.CallError](err)
	version, versioned := errors.AsType[*acp.VersionError](err)
	known, explained := Explain(d.Output.Stderr + "\n" + d.Output.Noise)
	known.Err = err
	switch {
	case startup != nil:
		d.notStarted(startup)
	case versioned:
		d.blocked(WrongVersion, err, "Another version of the agent or of the client is needed.",
			"it speaks version %d of the protocol, and this client version %d", version.Got, acp.Version)
	case errors.Is(err, acp.ErrAuthRequired):
		d.blocked(LoginRequired, err, d.howToLogIn(), "the user has to log in first: %v", err)
	case refused && d.Agent != nil:
		d.blocked(SessionFailed, err, "", "it cannot open a session: %v", err)
	case refused && errors.Is(err, acp.ErrMethodNotFound):
		d.blocked(NotAnAgent, err, "Many programs are agents only with an argument, such as --acp or acp.",
			"it does not know initialize: is it an agent?")
	case refused:
		d.blocked(Refused, err, "", "it has refused initialize: %v", call.Err)
	case exited && explained:
		d.add(known)
	case exited:
		advice := ""
		if d.Output.Stderr == "" {
			advice = "It has written nothing to standard error. Run the command by hand; many programs are agents only with " +
				"an argument, such as --acp or acp."
		}
		d.blocked(Exited, err, advice, "it has ended: %s%s", exit.State, d.words())
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTime):
		d.blocked(Interrupted, err, "", "the examination was ended: %v", context.Cause(ctx))
	case ctx.Err() != nil && explained:
		d.add(known)
	case ctx.Err() != nil:
		d.blocked(Silent, err, "It runs, but as an agent it should answer at once. It may need an argument such as --acp, "+
			"ask something in a terminal, or be downloading.",
			"it has not answered in time%s", d.words())
	default:
		d.blocked(NotAnAgent, err, "", "it does not answer as an agent: %v", err)
	}
}

// words returns the last output of the process.
func (d *Diagnosis) words() string {
	text := strings.TrimSpace(d.Output.Stderr)
	if text == "" {
		if text = strings.TrimSpace(d.Output.Noise); text == "" {
			return ", and has written nothing"
		}
	}
	reason := d.Output.Reason()
	if reason == "" {
		lines := strings.Split(text, "\n")
		reason = lines[len(lines)-1]
	}
	return fmt.Sprintf("; it says: %s", short(reason))
}

// isForeign reports whether the system did not start a program because it is made for another system or processor.
func isForeign(err error) bool {
	var code syscall.Errno
	if !errors.As(err, &code) {
		return false
	}
	switch runtime.GOOS {
	case "windows":
		return code == 193 || code == 216 // ERROR_BAD_EXE_FORMAT, ERROR_EXE_MACHINE_TYPE_MISMATCH
	case "darwin":
		return code == 86 || code == syscall.ENOEXEC // EBADARCH
	}
	return code == syscall.ENOEXEC
}

// notStarted adds the reason why the system did not start the program.
func (d *Diagnosis) notStarted(err error) {
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.blocked(NotExecutable, err, "It may lie on a disk from which no programs may be run.", "%s may not be run",
			d.Program)
	case d.binary && isForeign(err):
		d.blocked(WrongSystem, err, "Get the build for this system.", "%s is not made for %s on %s",
			d.Program, runtime.GOOS, runtime.GOARCH)
	case errors.Is(err, syscall.ENOEXEC):
		d.blocked(NotExecutable, err, "A script needs a first line such as #!/bin/sh.",
			"%s is not a program that this system can run", d.Program)
	default:
		d.blocked(NotStarted, err, "", "it could not be started: %v", err)
	}
}

// howToLogIn describes the ways in which the user can log in.
func (d *Diagnosis) howToLogIn() string {
	if d.Agent == nil || len(d.Agent.AuthMethods) == 0 {
		return "The agent offers no way to log in through this client. Start it by hand, or see its documentation."
	}
	var ways []string
	for _, m := range d.Agent.AuthMethods {
		switch m := m.Variant.(type) {
		case *acp.AuthMethodTerminal:
			ways = append(ways, fmt.Sprintf("%s: run %s", m.Name, d.Command.LoginCommand(m)))
		case *acp.AuthMethodAgent:
			ways = append(ways, fmt.Sprintf("%s: authenticate with %q", m.Name, m.ID))
		default: // not a way that this program could describe
		}
	}
	return "Ways to log in: " + strings.Join(ways, "; ") + "."
}
