package main

import (
	"context"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/acp/view"
)

// hostOf returns the host that serves this machine's files and terminals, or nil if it would serve none.
func hostOf(files, terminals bool) *translate.Host {
	if !files && !terminals {
		return nil
	}
	return &translate.Host{Transport: machine{}, ReadFiles: files, WriteFiles: files, Terminals: terminals}
}

// machine is a transport to a new host.
type machine struct{}

// host serves the files and terminals of this machine to the sessions of one connection. Each write and each command is
// a question to the user.
type host struct {
	conn      *rpc.Conn
	roots     *local.Roots
	terminals *local.Terminals
	running   sync.WaitGroup // for the ends of commands
	life      context.Context

	mu    sync.Mutex
	dirs  map[acp.SessionID]string // where commands start
	shown map[acp.TerminalID]*shownTerminal
}

// hostSession is a session as package local knows it.
type hostSession struct {
	id   acp.SessionID
	conn *rpc.Conn
}

func (s hostSession) ID() acp.SessionID { return s.id }
func (s hostSession) RPC() *rpc.Conn    { return s.conn }

// hostNotice has the members of session/resume and session/close.
type hostNotice struct {
	ID   acp.SessionID `json:"sessionId"`
	Cwd  string        `json:"cwd"`
	Dirs []string      `json:"additionalDirectories"`
}

func (machine) Connect(ctx context.Context) (rpc.Stream, error) {
	roots, err := local.OpenRoots() // each session has its own
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	h := &host{roots: roots, life: life, dirs: map[acp.SessionID]string{}, shown: map[acp.TerminalID]*shownTerminal{}}
	approval := local.Asking(func(ctx context.Context, s hostSession,
		req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return rpc.Call[acp.RequestPermissionResponse](ctx, s.conn, acp.MethodRequestPermission, req)
	})
	files := local.NewFiles(roots, approval, nil)
	h.terminals = local.NewTerminals(roots, approval,
		&local.TerminalsOptions{Shell: local.DefaultShell(), OnOutput: h.output})
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.HandleNotification(ext, "session/resume", h.open)
	rpc.HandleNotification(ext, "session/close", h.closeSession)
	serves(ext, "fs/read_text_file", files.ReadTextFile)
	serves(ext, "fs/write_text_file", files.WriteTextFile)
	serves(ext, "terminal/create", h.create)
	serves(ext, "terminal/output", h.terminals.TerminalOutput)
	serves(ext, "terminal/wait_for_exit", h.terminals.WaitForTerminalExit)
	serves(ext, "terminal/kill", h.terminals.KillTerminal)
	serves(ext, "terminal/release", h.release)
	here, there := rpc.Pipe()
	if h.conn, err = rpc.Connect(ctx, here, ext, &rpc.Options{Hooks: rpc.Hooks{Serve: withSession}}); err != nil {
		end()
		return nil, errors.Join(err, roots.Close())
	}
	stream, err := there.Connect(ctx)
	if err != nil {
		end()
		return nil, errors.Join(err, h.conn.Close(), roots.Close())
	}
	return rpc.Wrap(stream, rpc.Wrapper{Close: func() error {
		end()
		err := errors.Join(stream.Close(), h.conn.Close(), h.terminals.Close())
		h.running.Wait()
		return errors.Join(err, roots.Close())
	}}), nil
}

type sessionKey struct{}

// withSession adds the id of a request's session to the context of its handler.
func withSession(ctx context.Context, info *rpc.CallInfo, next func(context.Context) error) error {
	return next(context.WithValue(ctx, sessionKey{}, acp.SessionID(info.Session)))
}

// serves serves a method with a function of package local.
func serves[P, R any](ext *rpc.Extensions[rpc.Conn], method string,
	do func(context.Context, local.Session, *P) (*R, error)) {
	rpc.Handle(ext, method, func(ctx context.Context, conn *rpc.Conn, params *P) (*R, error) {
		return do(ctx, hostSession{ctx.Value(sessionKey{}).(acp.SessionID), conn}, params)
	})
}

// open gives a session its directories.
func (h *host) open(_ context.Context, conn *rpc.Conn, n *hostNotice) error {
	h.mu.Lock()
	h.dirs[n.ID] = n.Cwd
	h.mu.Unlock()
	return h.roots.SetSession(hostSession{n.ID, conn}, n.Cwd, n.Dirs...)
}

// closeSession ends the commands of a session.
func (h *host) closeSession(_ context.Context, conn *rpc.Conn, n *hostNotice) error {
	s := hostSession{n.ID, conn}
	h.roots.RemoveSession(s)
	err := h.terminals.CloseSession(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.dirs, n.ID)
	for id, t := range h.shown {
		if t.session == n.ID {
			delete(h.shown, id)
		}
	}
	return err
}

// shownTerminal is what the client has of a terminal.
type shownTerminal struct {
	session acp.SessionID
	ended   chan struct{} // closed when the client knows how the command has ended

	mu    sync.Mutex // held while something is sent
	begun bool
	total int    // bytes of output
	next  int    // the client gets the end of the output when there are so many
	tail  []byte // the end of the output
	lost  bool   // the client has not got all of it
}

// The client gets the first output as it arrives. After that it gets the end of it each time that there is twice as
// much, and when the command has ended.
const (
	maxLive = 1 << 20
	maxTail = 256 << 10
)

func (h *host) terminal(session acp.SessionID, id acp.TerminalID) *shownTerminal {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.shown[id]
	if t == nil {
		t = &shownTerminal{session: session, ended: make(chan struct{}), next: 2 * maxLive}
		h.shown[id] = t
	}
	return t
}

// show sends an update. It fails only when the connection is over.
func (h *host) show(t *shownTerminal, id acp.TerminalID, kind string, members map[string]any) {
	members["sessionUpdate"], members["terminalId"] = kind, id
	_ = rpc.Notify(h.life, h.conn, "session/update", map[string]any{"sessionId": t.session, "update": members})
}

// output shows output of a command. The first may come before create knows the terminal.
func (h *host) output(session local.Session, id acp.TerminalID, output []byte) {
	t := h.terminal(session.ID(), id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail = append(t.tail, output...)
	if len(t.tail) > 2*maxTail {
		t.tail = append([]byte(nil), t.tail[len(t.tail)-maxTail:]...)
	}
	switch t.total += len(output); {
	case t.total <= maxLive:
		if !t.begun {
			t.begun = true
			h.show(t, id, "terminal_update", map[string]any{})
		}
		h.show(t, id, "terminal_output_chunk", map[string]any{"data": output})
	case t.total >= t.next:
		t.next *= 2
		h.show(t, id, "terminal_update", map[string]any{"output": t.snapshot()})
	default:
		t.lost = true
	}
}

// snapshot returns the end of the output, which does not begin within a character.
func (t *shownTerminal) snapshot() map[string]any {
	t.lost = false
	tail := t.tail[max(0, len(t.tail)-maxTail):]
	for range utf8.UTFMax - 1 {
		if len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	return map[string]any{"data": tail}
}

func (h *host) create(ctx context.Context, s local.Session,
	req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
	res, err := h.terminals.CreateTerminal(ctx, s, req)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	cwd := req.Cwd.Or(h.dirs[s.ID()])
	h.mu.Unlock()
	command := req.Command
	if len(req.Args) > 0 {
		command = view.Quote(append([]string{command}, req.Args...)...)
	}
	id := res.TerminalID
	t := h.terminal(s.ID(), id)
	t.mu.Lock()
	t.begun = true
	h.show(t, id, "terminal_update", map[string]any{"command": command, "cwd": cwd})
	t.mu.Unlock()
	h.running.Go(func() {
		defer close(t.ended)
		status := map[string]any{}
		exit, err := h.terminals.WaitForTerminalExit(h.life, s,
			&acp.WaitForTerminalExitRequest{SessionID: s.ID(), TerminalID: id})
		if err == nil {
			status["exitCode"], status["signal"] = exit.ExitCode, exit.Signal
		} // otherwise the session or the connection is over
		t.mu.Lock()
		defer t.mu.Unlock()
		members := map[string]any{"exitStatus": status}
		if t.lost {
			members["output"] = t.snapshot()
		}
		h.show(t, id, "terminal_update", members)
	})
	if ctx.Err() != nil { // the agent does not learn the id
		_, err := h.release(ctx, s, &acp.ReleaseTerminalRequest{SessionID: s.ID(), TerminalID: id})
		return nil, errors.Join(context.Cause(ctx), err)
	}
	return res, nil
}

// release ends a command, and frees its terminal when the client knows how the command has ended.
func (h *host) release(ctx context.Context, s local.Session,
	req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
	_, err := h.terminals.KillTerminal(ctx, s,
		&acp.KillTerminalRequest{SessionID: req.SessionID, TerminalID: req.TerminalID})
	if err == nil {
		select {
		case <-h.terminal(s.ID(), req.TerminalID).ended:
		case <-ctx.Done():
		}
	}
	res, releaseErr := h.terminals.ReleaseTerminal(ctx, s, req)
	if releaseErr != nil {
		return nil, releaseErr
	}
	h.mu.Lock()
	delete(h.shown, req.TerminalID)
	h.mu.Unlock()
	return res, nil
}
