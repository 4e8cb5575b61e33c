package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
)

// policy determines who decides about permissions. An agent need not ask for permission; therefore, under policyReject,
// the client writes no files and runs no commands.
type policy int

const (
	policyAsk policy = iota
	policyAllow
	policyReject
)

// play is one prompt, or one command, which begins with a colon.
type play struct {
	text   string
	policy policy
	cancel bool // after the first few updates
}

// fewUpdates is after how many updates a play is cancelled.
const fewUpdates = 3

// parseScript reads a script.
func parseScript(text string) ([]play, error) {
	var plays []play
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		verb, prompt, _ := strings.Cut(line, ":")
		p := play{text: strings.TrimSpace(prompt)}
		switch verb {
		case "":
			p.text = line
		case "allow":
			p.policy = policyAllow
		case "reject":
			p.policy = policyReject
		case "cancel":
			p.policy, p.cancel = policyAllow, true
		default:
			return nil, fmt.Errorf("line %d: expected allow, reject or cancel, a colon and a prompt, or a command: %q", number,
				line)
		}
		plays = append(plays, p)
	}
	return plays, nil
}

// talk is a conversation with an agent.
type talk struct {
	printer   *printer
	input     input
	quit      func()
	workspace workspace
	agent     *acp.ClientConn
	session   *acp.ClientSession // nil if it was closed or deleted
	attached  []acp.ContentBlock // for the next prompt

	asking sync.Mutex // one question at a time

	mu        sync.Mutex
	policy    policy
	end       context.CancelFunc // ends the turn in progress; nil if there is none
	playing   play
	updates   int // number of its updates so far
	cancelled bool
}

// open opens the session with which the conversation begins.
func (t *talk) open(ctx context.Context, agent *acp.ClientConn, c config) error {
	t.agent = agent
	return t.authenticated(ctx, func() error {
		switch {
		case c.load != "":
			return loadSession(ctx, t, []string{c.load})
		case c.resume != "":
			return resumeSession(ctx, t, []string{c.resume})
		}
		return t.newSession(ctx)
	})
}

// A loginError reports that the user must log in in a terminal, after which the agent is restarted.
type loginError struct {
	method *acp.AuthMethodTerminal
	err    error // the agent's error
}

func (e *loginError) Error() string {
	return fmt.Sprintf("%v: log in by running the agent with %q, and start again", e.err, e.method.Args)
}
func (e *loginError) Unwrap() error { return e.err }

// authenticated calls f and, if that requires authentication, authenticates and calls it once more.
func (t *talk) authenticated(ctx context.Context, f func() error) error {
	err := f()
	if !errors.Is(err, acp.ErrAuthRequired) {
		return err
	}
	for _, method := range t.agent.Initialized().AuthMethods {
		switch m := method.Variant.(type) {
		case *acp.AuthMethodAgent:
			t.printer.line("authenticating: %s", m.Name)
			if _, err := t.agent.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: m.ID}); err != nil {
				return err
			}
			return f()
		case *acp.AuthMethodTerminal: // its id must not be passed to authenticate (AUT-2)
			err = &loginError{m, err}
		default: // this program cannot log in so
		}
	}
	return err
}

// playAll runs the given plays.
func (t *talk) playAll(ctx context.Context, plays []play) error {
	for _, p := range plays {
		t.printer.line("> %s", p.text)
		if err := t.play(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// interact runs what the user types.
func (t *talk) interact(ctx context.Context, policy policy) error {
	for {
		text, err := t.ask(ctx, "> ", false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := t.play(ctx, play{text: text, policy: policy}); err != nil {
			if ctx.Err() != nil || errors.Is(err, acp.ErrClosed) {
				return err
			}
			t.printer.line("error: %v", err) // the next line may be better
		}
	}
}

// play runs one turn, or a command.
func (t *talk) play(ctx context.Context, p play) error {
	if command, ok := strings.CutPrefix(p.text, ":"); ok {
		if !strings.HasPrefix(command, ":") {
			return t.command(ctx, command)
		}
		p.text = command
	}
	if t.session == nil {
		return errNoSession
	}
	prompt := append([]acp.ContentBlock{acp.TextBlock(p.text)}, t.attached...)
	t.attached = nil
	var res *acp.PromptResponse
	err := t.authenticated(ctx, func() (err error) {
		turn, end := context.WithCancel(ctx)
		defer end()
		t.set(end, p)
		defer t.set(nil, play{policy: p.policy})
		res, err = t.session.Prompt(turn, prompt...) // the handler prints the updates
		return err
	})
	if err != nil {
		return err
	}
	t.printer.line("stopReason: %s", res.StopReason)
	return nil
}

// set records the play in progress, and how to cancel it; nil means none.
func (t *talk) set(end context.CancelFunc, p play) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end, t.playing, t.policy, t.updates, t.cancelled = end, p, p.policy, 0, false
}

// cancel cancels the turn. It returns false if there is none, or it has already been cancelled.
func (t *talk) cancel() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == nil || t.cancelled {
		return false
	}
	t.cancelled = true
	t.printer.cancelled()
	t.end()
	return true
}

// interrupts handles Ctrl-C.
func (t *talk) interrupts(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
			if !t.cancel() {
				t.quit()
			}
		case <-ctx.Done():
			return
		}
	}
}

// update serves session/update.
func (t *talk) update(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	t.printer.update(n.Update)
	t.mu.Lock()
	t.updates++
	cancel := t.playing.cancel && t.updates == fewUpdates
	t.mu.Unlock()
	if cancel {
		t.cancel()
	}
	return nil
}

// requestPermission serves session/request_permission. If the turn is cancelled, the runtime has already answered, and
// ctx ends.
func (t *talk) requestPermission(
	ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t.printer.permission(req)
	t.mu.Lock()
	policy := t.policy
	t.mu.Unlock()
	var option *acp.PermissionOption
	switch policy {
	case policyAllow:
		option = firstOf(req.Options, acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways)
	case policyReject:
		option = firstOf(req.Options, acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways)
	default:
		option = t.choose(ctx, req.Options)
	}
	if option == nil {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	t.printer.line("  → %s", option.Name)
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option.OptionID)}, nil
}

// errRejects refuses requests that would change something while everything is rejected.
var errRejects = acp.ErrInvalidRequest.WithMessagef("the user has everything refused: no file is written and no " +
	"command run")

// unlessRejecting wraps the handler of a method that changes something, so that it refuses while everything is
// rejected.
func unlessRejecting[P, R any](
	t *talk, serve func(context.Context, *acp.ClientSession, *P) (*R, error),
) func(context.Context, *acp.ClientSession, *P) (*R, error) {
	return func(ctx context.Context, session *acp.ClientSession, req *P) (*R, error) {
		t.mu.Lock()
		policy := t.policy
		t.mu.Unlock()
		if policy == policyReject {
			return nil, errRejects
		}
		return serve(ctx, session, req)
	}
}

// firstOf returns the first option of the first kind for which there is one, or nil.
func firstOf(options []acp.PermissionOption, kinds ...acp.PermissionOptionKind) *acp.PermissionOption {
	for _, kind := range kinds {
		if i := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return o.Kind == kind }); i >= 0 {
			return &options[i]
		}
	}
	return nil
}

// choose lets the user choose. Without a user, nothing is chosen.
func (t *talk) choose(ctx context.Context, options []acp.PermissionOption) *acp.PermissionOption {
	for {
		text, err := t.ask(ctx, "  number: ", true)
		if err != nil {
			return nil
		}
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 1 && n <= len(options) {
			return &options[n-1]
		}
	}
}

// ask asks the user. If the question is fresh, anything typed before it is not an answer: an agent could have talked
// the user into typing it.
func (t *talk) ask(ctx context.Context, question string, fresh bool) (answer string, err error) {
	t.printer.ask(question)
	answer, err = t.input.line(ctx, fresh)
	t.printer.answered(err == nil)
	return answer, err
}

// input passes the lines of a reader to callers that want one. It does not read before that.
type input struct {
	r        io.Reader
	terminal bool // a user is typing
	once     sync.Once
	lines    chan typed // closed at the end
}

// typed is a line, with the time at which it arrived.
type typed struct {
	text string
	at   time.Time
}

// typedAhead is how many lines a user can type before they are wanted.
const typedAhead = 16

// line waits for the next line; at a terminal, if fresh is set, it must arrive after the call. The error is io.EOF at
// the end, or the cause of ctx.
func (i *input) line(ctx context.Context, fresh bool) (string, error) {
	asked := time.Now()
	i.once.Do(func() {
		i.lines = make(chan typed, typedAhead)
		go i.read() // it ends with the input; a read from a terminal cannot be interrupted
	})
	for {
		select {
		case line, ok := <-i.lines:
			if !ok {
				return "", io.EOF
			}
			if fresh && i.terminal && !line.at.After(asked) {
				continue
			}
			return line.text, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// read reads the lines. At a terminal it never waits for a caller, so that the times of the lines are correct.
func (i *input) read() {
	defer close(i.lines)
	for r := bufio.NewReader(i.r); ; {
		text, err := r.ReadString('\n')
		if text != "" {
			line := typed{text, time.Now()}
			if !i.terminal {
				i.lines <- line
			} else {
				select {
				case i.lines <- line:
				default: // more than a user would type ahead
				}
			}
		}
		if err != nil {
			return
		}
	}
}
