package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

// What the second turn must have, and what the first one must not.
const (
	textAgain  = "still here"
	titleAgain = "An ordinary question"
)

// patienceAgain is how long an ordinary turn may take. The driver says earlier that something hangs, by a clock that a busy
// machine does not mislead.
const patienceAgain = time.Hour

// machine is what the client serves.
type machine struct {
	roots     *local.Roots
	files     *local.Files
	terminals *local.Terminals
}

func (c config) client(r *hostile.Report) (err error) {
	m := machine{}
	dirs := []string{c.root}
	if c.others || c.sessions > 0 {
		dirs = nil // each session gets its own
	}
	if m.roots, err = local.OpenRoots(dirs...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.roots.Close()) }()
	m.files = local.NewFiles(m.roots, local.Trusted(), nil)
	m.terminals = local.NewTerminals(m.roots, local.Trusted(), &local.TerminalsOptions{KillGrace: 200 * time.Millisecond, Shell: local.DefaultShell()})
	defer func() { err = errors.Join(err, m.terminals.Close()) }()

	if c.others {
		return c.beside(r, m)
	}
	first, err := c.connect(m)
	if c.anew && err != nil {
		r.Note("the attack ended with: %.100v", err)
		return c.ordinary(m)
	}
	if err != nil {
		return err
	}
	if c.sessions > 0 {
		return errors.Join(c.openAndClose(first, m), first.close())
	}
	err = first.turn("attack", c.patience)
	if c.anew {
		// What the attack did to its own connection is its own affair, but Close must end it all.
		if closing := first.close(); errors.Is(closing, rpc.ErrStuck) {
			return closing
		}
		return c.ordinary(m)
	}
	if err == nil {
		err = first.again()
	}
	return errors.Join(err, first.close())
}

// ordinary lives through a turn with an agent that does nothing bad.
func (c config) ordinary(m machine) error {
	c.agent = []string{c.agent[0], "-case", "none"}
	second, err := c.connect(m)
	if err != nil {
		return fmt.Errorf("after the attack: %w", err)
	}
	return errors.Join(second.again(), second.close())
}

// A link is a connection to an agent, with one session.
type link struct {
	conn *acp.ClientConn

	mu      sync.Mutex
	session *acp.ClientSession // set by connect, while handlers may run
	texts   strings.Builder    // the end of what the agent said
	asked   []string           // titles of requests for permission, the last few
}

// connect starts the agent and opens a session.
func (c config) connect(m machine) (*link, error) {
	l := &link{}
	handlers := acp.ClientHandlers{SessionUpdate: l.update, RequestPermission: l.permission}
	if c.ask == "wait" {
		handlers.RequestPermission = l.waitForUser
	}
	if c.callback {
		handlers.SessionUpdate = l.callBack
	}
	m.files.Register(&handlers)
	m.terminals.Register(&handlers)
	ctx, cancel := context.WithTimeout(context.Background(), patienceAgain) // the attacks begin with the turn
	defer cancel()
	cmd := exec.Command(c.agent[0], c.agent[1:]...)
	if c.stderr {
		cmd.Stderr = os.Stderr
	}
	var err error
	l.conn, err = acp.Connect(ctx, acp.Command(cmd), handlers,
		&acp.ClientOptions{Conn: acp.ConnOptions{CancelGrace: c.grace}})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	session, err := l.conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: c.root})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a session: %w", err), l.conn.Close())
	}
	l.mu.Lock()
	l.session = session
	l.mu.Unlock()
	return l, nil
}

func (l *link) close() error {
	if err := l.conn.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}

// turn prompts, and requires that the agent ends the turn.
func (l *link) turn(text string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := l.session.Prompt(ctx, acp.TextBlock(text))
	if err != nil {
		return fmt.Errorf("the turn %q: %w", text, err)
	}
	if res.StopReason != acp.StopReasonEndTurn {
		return fmt.Errorf("the turn %q ended with %s", text, res.StopReason)
	}
	return nil
}

// again has a turn in which everything must be as it is without an attack.
func (l *link) again() error {
	l.mu.Lock()
	l.texts.Reset()
	l.asked = nil
	l.mu.Unlock()
	if err := l.turn("again", patienceAgain); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := l.texts.String(); got != textAgain {
		return fmt.Errorf("in the turn after the attack the agent said %.200q, want %q", got, textAgain)
	}
	if len(l.asked) != 1 || l.asked[0] != titleAgain {
		return fmt.Errorf("in the turn after the attack the agent asked %.200q, want %q", l.asked, titleAgain)
	}
	return nil
}

// kept is how much of what the agent says is kept, in bytes.
const kept = 1 << 10

func (l *link) update(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	if text := n.Update.AgentText(); text != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		// Updates of other sessions may arrive at any time.
		if ours := l.session == nil || l.session.ID() == n.SessionID; ours && l.texts.Len() < kept {
			l.texts.WriteString(text[:min(len(text), kept)])
		}
	}
	return nil
}

// callBack does what update does, and asks the agent something, as a client may that looks into what is new.
func (l *link) callBack(ctx context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
	if err := l.update(ctx, s, n); err != nil {
		return err
	}
	_, err := rpc.Call[struct{}](ctx, l.conn.RPC(), "_attack/callback", map[string]string{"sessionId": string(n.SessionID)})
	return err
}

func (l *link) note(req *acp.RequestPermissionRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if title := req.ToolCall.Title.Value(); len(l.asked) < 10 {
		l.asked = append(l.asked, title[:min(len(title), kept)])
	}
}

// permission refuses what the agent asks for.
func (l *link) permission(
	_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	l.note(req)
	for _, o := range req.Options {
		if o.Kind == acp.PermissionOptionKindRejectOnce {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(o.OptionID)}, nil
		}
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
}

// waitForUser waits for a user who does not come, but for the ordinary question.
func (l *link) waitForUser(
	ctx context.Context, s *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	if req.ToolCall.Title.Value() == titleAgain {
		return l.permission(ctx, s, req)
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// openAndClose opens sessions and closes each while the agent creates terminals in it. Nothing may run then.
func (c config) openAndClose(l *link, m machine) error {
	for i := range c.sessions {
		ctx, cancel := context.WithTimeout(context.Background(), patienceAgain)
		session, err := l.conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: c.root})
		if err == nil {
			err = m.roots.SetSession(session, c.root)
		}
		if err == nil {
			_, err = session.Prompt(ctx, acp.TextBlock("create"))
		}
		cancel()
		if err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
		m.roots.RemoveSession(session) // no command starts in it from now on
		if err := m.terminals.CloseSession(session); err != nil {
			return fmt.Errorf("session %d: closing its terminals: %w", i, err)
		}
		// What was killed may need a moment to end; what was not runs for much longer.
		left := 0
		for clock := hostile.NewClock(); clock.Passed() < hostile.Patience/2; time.Sleep(10 * time.Millisecond) {
			if left = running(c.root + " " + string(session.ID())); left == 0 {
				break
			}
		}
		if left > 0 {
			return fmt.Errorf("session %d: %d commands run after its terminals were closed", i, left)
		}
	}
	return nil
}

// running counts the processes that have an argument.
func running(argument string) (n int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // those that could be read are counted
	for _, name := range names {
		line, err := os.ReadFile("/proc/" + name + "/cmdline") // some have ended, and some are no processes
		if err == nil && strings.Contains(string(line), "\x00"+argument+"\x00") {
			n++
		}
	}
	return n
}

// beside serves two agents from one Roots and one Terminals, with directories of their own. The second one knows
// everything that the first one knows, and must not get at what belongs to it.
func (c config) beside(r *hostile.Report, m machine) error {
	var links [2]*link
	for i := range links {
		dir := filepath.Join(c.root, fmt.Sprint("agent", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		own := c
		own.root = dir
		if i == 0 {
			own.agent = []string{c.agent[0], "-case", "owner"}
		}
		l, err := own.connect(m)
		if err != nil {
			return err
		}
		defer l.close()
		if err := m.roots.SetSession(l.session, dir); err != nil {
			return err
		}
		links[i] = l
	}
	if err := links[0].turn("own", patienceAgain); err != nil {
		return err
	}
	return errors.Join(links[1].turn("attack", c.patience), links[1].again(), links[0].again(), links[1].close(), links[0].close())
}
