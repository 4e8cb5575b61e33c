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

// policy says who decides about permissions. Asking for one is up to the agent; under policyReject it can do without
// neither: the client writes no file and runs no command then.
type policy int

const (
	policyAsk policy = iota
	policyAllow
	policyReject
)

// play is one prompt, or a command, which begins with a colon.
type play struct {
	text   string
	policy policy
	cancel bool // after the first few updates
}

// fewUpdates is when a play that is to be cancelled is.
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
			return nil, fmt.Errorf("line %d: want allow, reject or cancel, a colon and a prompt, or a command: %q", number, line)
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
	session   *acp.ClientSession // nil when it was closed or deleted
	attached  []acp.ContentBlock // for the next prompt

	asking sync.Mutex // one question at a time

	mu        sync.Mutex
	policy    policy
	end       context.CancelFunc // of the turn in progress, or nil
	playing   play
	updates   int // of it, so far
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

// A loginError says that the user has to log in in a terminal, after which the agent is started anew.
type loginError struct {
	method *acp.AuthMethodTerminal
	err    error // the agent's
}

func (e *loginError) Error() string {
	return fmt.Sprintf("%v: log in by running the agent with %q, and start again", e.err, e.method.Args)
}
func (e *loginError) Unwrap() error { return e.err }

// authenticated calls f, and when that takes authentication, authenticates and calls it once more.
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
		case *acp.AuthMethodTerminal: // its id is none for authenticate (AUT-2)
			err = &loginError{m, err}
		}
	}
	return err
}

// playAll plays what is given.
func (t *talk) playAll(ctx context.Context, plays []play) error {
	for _, p := range plays {
		t.printer.line("> %s", p.text)
		if err := t.play(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// interact plays what the user types.
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
			t.printer.line("error: %v", err) // another line may be better
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

// set says what is played, and how it is cancelled; nil means that nothing is.
func (t *talk) set(end context.CancelFunc, p play) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end, t.playing, t.policy, t.updates, t.cancelled = end, p, p.policy, 0, false
}

// cancel cancels the turn, and reports whether there is one that was not cancelled before.
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

// interrupts does what Ctrl-C asks for.
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

// requestPermission serves session/request_permission. When the turn is cancelled, the runtime has
// answered already, and ctx ends.
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

// errRejects answers what would change something while everything is refused.
var errRejects = acp.ErrInvalidRequest.WithMessagef("the user has everything refused: no file is written and no command run")

// unlessRejecting serves a method that changes something unless everything is refused.
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

// firstOf returns the first option of the first kind that there is, or nil.
func firstOf(options []acp.PermissionOption, kinds ...acp.PermissionOptionKind) *acp.PermissionOption {
	for _, kind := range kinds {
		if i := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return o.Kind == kind }); i >= 0 {
			return &options[i]
		}
	}
	return nil
}

// choose has the user choose. Without a user, nothing is chosen.
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

// ask asks the user. What was typed before a question that is fresh is not an answer to it: an agent could have talked the
// user into typing it.
func (t *talk) ask(ctx context.Context, question string, fresh bool) (answer string, err error) {
	t.printer.ask(question)
	answer, err = t.input.line(ctx, fresh)
	t.printer.answered(err == nil)
	return answer, err
}

// input gives the lines of a reader to who wants the next one. Nothing is read before somebody does.
type input struct {
	r        io.Reader
	terminal bool // somebody types
	once     sync.Once
	lines    chan typed // closed at the end
}

// typed is a line, and when it came.
type typed struct {
	text string
	at   time.Time
}

// typedAhead is how many lines a user can type before they are asked for.
const typedAhead = 16

// line waits for the next line, which at a terminal must come after the call if it is to be fresh. Its error is io.EOF
// at the end, or the cause of ctx.
func (i *input) line(ctx context.Context, fresh bool) (string, error) {
	asked := time.Now()
	i.once.Do(func() {
		i.lines = make(chan typed, typedAhead)
		go i.read() // it ends with the input; nothing can end a read from a terminal
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

// read reads the lines. At a terminal it never waits for who takes them: they would lose the time at which they came.
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
				default: // more than anybody types ahead
				}
			}
		}
		if err != nil {
			return
		}
	}
}
