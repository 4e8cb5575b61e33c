package subject

// Clients under test, which start the probe as their agent: a relay in between passes every byte on.

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/proc"
)

// AgentWords in a client's arguments stands for the words of the agent's command, AgentLine for the command as one word
// of a shell, and DirWord, also in its variables, for the scenario's directory. Without AgentWords and AgentLine, the
// agent's command is appended. SessionWord in typed text stands for the id of the session that the client opened last.
const (
	AgentWords  = "{agent}"
	AgentLine   = "{agent-line}"
	DirWord     = "{dir}"
	SessionWord = "{session}"
)

// Client is a client to start.
type Client struct {
	Command
	// Agent are the words of a command that calls [Relay] with the last argument.
	Agent []string
	// Quote joins words to one word.
	Quote func(words []string) string
	// Type maps actions to the lines to type for them.
	Type map[probe.Action]string
	// NoInterrupt says that an interrupt does not cancel the turn.
	NoInterrupt bool
}

// Launch starts the client in the scenario's directory, or in Dir if it is set, and waits until it has started its
// agent.
func (c *Client) Launch(ctx context.Context, dir string) (_ *probe.Target, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	at := cmp.Or(c.Dir, dir)
	p := &client{exited: make(chan struct{}), rung: c.Rung, listener: listener, starts: make(chan *streams, maxStarts)}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	agent := append(slices.Clone(c.Agent), listener.Addr().String()+"/"+token)
	words := c.words(agent, dir)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = at
	id := mark + "=" + rand.Text()
	cmd.Env = append(os.Environ(), id)
	for _, variable := range c.Env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(variable, DirWord, dir))
	}
	stderr := &probe.Stderr{}
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.WaitDelay = c.Rung
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	group, err := proc.Start(cmd)
	if err != nil {
		return nil, err
	}
	p.cmd, p.group, p.stdin, p.id = cmd, group, stdin, id
	go func() { // ends with the process, which end waits for
		defer close(p.exited)
		p.status = cmd.Wait()
	}()
	p.receiving.Go(func() { p.receive(token) })
	next := func(ctx context.Context) (target *probe.Target, login bool, err error) {
		s, err := p.next(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("%w\n%s", err, stderr)
		}
		if s.stdio == nil {
			return nil, true, nil
		}
		target, err = p.target(ctx, s)
		if err != nil {
			return nil, false, err
		}
		target.Stderr, target.User = stderr, c.user(p)
		return target, false, nil
	}
	target, login, err := next(ctx)
	if login {
		err = errors.New("the client started a terminal login before asking for the login methods")
	}
	if err != nil {
		return nil, err
	}
	target.Next = next
	return target, nil
}

// target returns the probe's end of the connection to a client that has started its agent.
func (p *client) target(ctx context.Context, s *streams) (*probe.Target, error) {
	inner, err := rpc.IO(s.stdio, halfWriter{s.stdio}, 0).Connect(ctx)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	// The relay ends when it has lost both connections, and the client may wait for that.
	stream := rpc.Wrap(inner, rpc.Wrapper{
		Write:      p.sends,
		CloseWrite: func() error { return errors.Join(inner.(rpc.HalfCloser).CloseWrite(), s.logs.CloseWrite()) },
		Close: func() error {
			err := errors.Join(inner.Close(), s.logs.Close())
			if p.latest.Load() == s {
				p.end()
			}
			return err
		},
	})
	return &probe.Target{
		Stream: stream, Raw: inner.(rpc.FastStream).WriteLines,
		Log: func(text []byte) error {
			if err := s.logs.SetWriteDeadline(time.Now().Add(p.rung)); err != nil {
				return err
			}
			_, err := s.logs.Write(text)
			return err
		},
	}, nil
}

// sends stores the id of a session that a message of the probe opens, for [SessionWord].
func (p *client) sends(message []byte) ([]byte, error) {
	var answer struct {
		Result struct {
			SessionID string `json:"sessionId"`
		} `json:"result"`
	}
	if json.Unmarshal(message, &answer) == nil && answer.Result.SessionID != "" { // other messages open no session
		p.session.Store(&answer.Result.SessionID)
	}
	return message, nil
}

// words returns the client's command with the agent's command inserted.
func (c *Client) words(agent []string, dir string) []string {
	var words []string
	placed := false
	for _, word := range c.Args {
		word = strings.ReplaceAll(word, DirWord, dir)
		switch {
		case word == AgentWords:
			words = append(words, agent...)
			placed = true
		case strings.Contains(word, AgentLine):
			words = append(words, strings.ReplaceAll(word, AgentLine, c.Quote(agent)))
			placed = true
		default:
			words = append(words, word)
		}
	}
	if !placed {
		words = append(words, agent...)
	}
	return words
}

// user returns a function that does what a user of the client would do.
func (c *Client) user(p *client) func(probe.Action) <-chan struct{} {
	return func(a probe.Action) <-chan struct{} {
		text, typed := c.Type[a]
		switch {
		case typed:
			if strings.Contains(text, SessionWord) {
				session := p.session.Load()
				if session == nil {
					return nil
				}
				text = strings.ReplaceAll(text, SessionWord, *session)
			}
			if _, err := io.WriteString(p.stdin, text+"\n"); err != nil {
				return nil
			}
		case a == probe.ActCancel && !c.NoInterrupt:
			if p.cmd.Process.Signal(os.Interrupt) != nil {
				return nil
			}
		case a == probe.ActQuit:
			if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) { // already closed if the client has ended
				return nil
			}
			p.leaving.Do(func() { go p.leave() })
		default:
			return nil
		}
		return p.exited
	}
}

// client is a running client.
type client struct {
	cmd    *exec.Cmd
	group  *proc.Group
	stdin  io.WriteCloser
	exited chan struct{}
	status error // after it has ended
	rung   time.Duration
	id     string
	once   sync.Once

	leaving sync.Once

	listener  net.Listener
	starts    chan *streams // of the agent; closed when no more are accepted
	latest    atomic.Pointer[streams]
	session   atomic.Pointer[string] // the last session id that the probe sent
	receiving sync.WaitGroup
}

// maxStarts is the maximum number of starts of the agent that can wait.
const maxStarts = 4

// leave interrupts a client that does not end with its input, such as one in the middle of a turn. It returns when the
// process ends.
func (p *client) leave() {
	select {
	case <-p.exited:
	case <-time.After(p.rung):
		_ = p.cmd.Process.Signal(os.Interrupt) // may just have ended
	}
}

// end ends the client: by closing its input, by a signal, and by force.
func (p *client) end() {
	p.once.Do(func() {
		p.listener.Close()
		if p.cmd == nil {
			return // it has not been started
		}
		p.stdin.Close() // may already be closed
		for _, step := range []func(){func() { p.group.Ask() }, p.group.Kill} {
			select {
			case <-p.exited:
			case <-time.After(p.rung):
				step()
			}
		}
		<-p.exited
		p.group.Kill() // processes that it left behind
		p.group.Free()
		sweep(p.id)
		p.receiving.Wait()
		for s := range p.starts {
			s.close() // no one has waited for it
		}
	})
}

// streams are the two connections of a relay. A login has neither.
type streams struct{ stdio, logs *net.TCPConn }

func (s *streams) close() error {
	var errs []error
	for _, c := range []*net.TCPConn{s.stdio, s.logs} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// The first words on the relay's connections; a token follows.
const (
	stdioWord = "stdio"
	logsWord  = "logs"
	loginWord = "login"
)

// receive accepts the connections of relays until the listener is closed.
func (p *client) receive(token string) {
	defer close(p.starts)
	s := &streams{}
	defer func() { s.close() }() // an incomplete pair
	start := func(s *streams) {
		select {
		case p.starts <- s:
		default: // more than are waited for
			s.close()
		}
	}
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		tcp := conn.(*net.TCPConn)
		switch word := hello(tcp); {
		case word == stdioWord+" "+token && s.stdio == nil:
			s.stdio = tcp
		case word == logsWord+" "+token && s.logs == nil:
			s.logs = tcp
		case word == loginWord+" "+token:
			start(&streams{})
			conn.Close() // the relay waits for that
		default:
			conn.Close() // not from our relay
		}
		if s.stdio != nil && s.logs != nil {
			start(s)
			s = &streams{}
		}
	}
}

// next waits for the client's next start of the agent.
func (p *client) next(ctx context.Context) (*streams, error) {
	select {
	case s, ok := <-p.starts:
		if !ok {
			return nil, errors.New("the client was stopped")
		}
		if s.stdio != nil {
			p.latest.Store(s)
		}
		return s, nil
	case <-p.exited:
		return nil, errors.New("the client ended without starting its agent")
	case <-ctx.Done():
		return nil, fmt.Errorf("the client did not start its agent: %w", context.Cause(ctx))
	}
}

// hello reads the first line of a connection; "" if there is none.
func hello(conn net.Conn) string {
	failed := conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	line, err := input.ReadLine(conn, 100)
	if errors.Join(failed, err, conn.SetReadDeadline(time.Time{})) != nil {
		return ""
	}
	return line
}

// halfWriter closes one direction of a connection.
type halfWriter struct{ *net.TCPConn }

func (w halfWriter) Close() error {
	if err := w.CloseWrite(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// relayTime limits how long the relay waits when it starts.
const relayTime = 10 * time.Second

// dial opens a connection to the probe at ADDRESS/TOKEN.
func dial(address, word string) (*net.TCPConn, error) {
	address, token, ok := strings.Cut(address, "/")
	if !ok {
		return nil, errors.New("expected ADDRESS/TOKEN")
	}
	conn, err := net.DialTimeout("tcp", address, relayTime)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, word+" "+token+"\n"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn.(*net.TCPConn), nil
}

// Login is the agent that a client starts for a login in a terminal. It only notifies the probe, and asks the user
// nothing.
func Login(address string) error {
	conn, err := dial(address, loginWord)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(relayTime)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn) // until the probe has noticed
	return err
}

// Relay is the agent that a client starts. It passes everything on to the probe at an address, ADDRESS/TOKEN.
func Relay(address string, stdin io.Reader, stdout, stderr io.Writer) error {
	signal.Ignore(os.Interrupt) // it is meant for the client
	stdio, err := dial(address, stdioWord)
	if err != nil {
		return err
	}
	defer stdio.Close()
	logs, err := dial(address, logsWord)
	if err != nil {
		return err
	}
	defer logs.Close()
	var work sync.WaitGroup
	work.Go(func() {
		_, _ = io.Copy(stderr, logs) // until the probe closes it
	})
	in := make(chan error, 1)
	go func() { // nothing can end a read of standard input, but the process ends
		_, err := io.Copy(stdio, bufio.NewReader(stdin))
		in <- errors.Join(err, stdio.CloseWrite())
	}()
	_, err = io.Copy(stdout, stdio)
	if closer, ok := stdout.(io.Closer); ok {
		err = errors.Join(err, closer.Close())
	}
	if err != nil {
		return err
	}
	work.Wait() // the probe ends this when it has seen everything
	select {
	case err = <-in:
	default:
	}
	return err
}
