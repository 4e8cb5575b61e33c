package storm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/faultpipe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/ways"
)

// program is the actor as a program.
var program string

// socketVariable makes the test binary an agent that passes its input and output to a socket.
const socketVariable = "ACP_STORM_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(socketVariable); path != "" {
		relay(path)
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the storms are worth a warning each
	buildtest.Main(m, map[string]*string{"../actor/actor": &program})
}

func relay(path string) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin) // how it ends is the test's
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
}

// victim is what a peer talks to.
type victim struct {
	*peer

	side, way string
	dir       string         // of its session
	user      io.WriteCloser // the input of the client's user
	screen    *screen        // the client's output
	ended     chan error     // how it ended
	pid       int            // of its process, or 0
	session   string
	inTurn    string // the id of the client's prompt
}

// start starts the agent or the client, which has one turn.
func start(t testing.TB, side, way string, maxBytes int) *victim {
	t.Helper()
	v := &victim{side: side, way: way, dir: t.TempDir(), screen: newScreen(), ended: make(chan error, 1)}
	in, user := io.Pipe()
	v.user = user
	serve := func(transport acp.Transport) {
		if side == "client" {
			client := actor.NewClient(v.dir, in, v.screen)
			client.MaxBytes = maxBytes
			err := client.Run(context.Background(), transport)
			_ = in.Close()
			v.ended <- err
			return
		}
		agent, err := actor.NewAgent(actor.AgentOptions{State: t.TempDir(), MaxBytes: maxBytes, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = errors.Join(agent.Serve(context.Background(), transport), agent.Close())
		}
		v.ended <- err
	}
	switch way {
	case "pipe":
		near, far := faultpipe.Pipe(faultpipe.Script{}, faultpipe.Script{})
		v.peer = newPeer(t, far.R, far.W)
		go serve(rpc.IO(near.R, near.W, 0))
	case "process":
		v.startProcess(t, maxBytes)
	default:
		agentEnd, clientEnd := ways.Over(t, way)
		if side == "client" {
			agentEnd, clientEnd = clientEnd, agentEnd
		}
		go serve(agentEnd)
		stream := must.Get(clientEnd.Connect(context.Background()))(t)
		m := &messages{Stream: stream}
		v.peer = newPeer(t, m, m)
	}
	if side == "client" {
		v.session = "s"
		return v
	}
	v.call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	v.session = v.open()
	return v
}

// open opens a session of the agent.
func (v *victim) open() string {
	v.t.Helper()
	session := regexp.MustCompile(`"sessionId":"([^"]+)"`).FindSubmatch(v.call("session/new", `{"cwd":`+quote(v.dir)+`,"mcpServers":[]}`))
	if session == nil {
		v.t.Fatal("no session")
	}
	return string(session[1])
}

// startProcess starts the program. That of the client starts an agent, which is this program and passes everything on.
func (v *victim) startProcess(t testing.TB, maxBytes int) {
	t.Helper()
	limit := "-max-bytes=" + strconv.Itoa(maxBytes)
	cmd := exec.Command(program, limit, "-state", t.TempDir())
	cmd.Dir = v.dir
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	var listener net.Listener
	var r io.ReadCloser
	var w io.WriteCloser
	var err error
	if v.side == "client" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(t.TempDir(), "socket")
		if listener, err = net.Listen("unix", socket); err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		cmd.Args = []string{program, "client", limit, "--", self}
		cmd.Env = append(os.Environ(), socketVariable+"="+socket)
		cmd.Stdout = v.screen
		v.user, err = cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
	} else {
		r, err = cmd.StdoutPipe()
		if err == nil {
			w, err = cmd.StdinPipe()
		}
	}
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	v.pid = cmd.Process.Pid
	if v.side == "client" {
		conn := must.Get(listener.Accept())(t)
		r, w = conn, halfCloser{conn.(*net.UnixConn)}
	}
	v.peer = newPeer(t, r, w)
	go func() {
		if v.side == "agent" {
			<-v.done // Wait closes the pipe
		}
		err := cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != 0 && status != 1 {
			t.Errorf("the process ended with %v: %.2000s", err, stderr)
		}
		v.ended <- nil
	}()
}

// halfCloser ends the writing side of a socket when it is closed.
type halfCloser struct{ *net.UnixConn }

func (h halfCloser) Close() error { return h.CloseWrite() }

// finish ends the connection, and waits for the end of the victim.
func (v *victim) finish() {
	v.t.Helper()
	if v.side == "client" {
		_ = v.user.Close()
	} else {
		_ = v.w.Close()
	}
	v.over()
	v.close()
}

// over waits until the victim has ended.
func (v *victim) over() {
	v.t.Helper()
	err := receive(v.peer, v.ended, "the end")
	if err != nil && !errors.Is(err, acp.ErrClosed) && !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, rpc.ErrStuck) {
		v.t.Errorf("it ended with %v", err)
	}
}

// turn has an ordinary turn.
func (v *victim) turn() {
	v.t.Helper()
	if v.side == "client" {
		v.endTurn(v.prompted())
		return
	}
	v.call("session/prompt", prompt(v.session, "hello"))
	v.mu.Lock()
	defer v.mu.Unlock()
	if said := v.said[v.session]; said != "You said: hello" {
		v.t.Errorf("the agent said %.300q", said)
	}
}

// endTurn ends a turn of the client, and waits until it has printed that.
func (v *victim) endTurn(id string) {
	v.t.Helper()
	turns := v.screen.count()
	v.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"stopReason":"end_turn"}}`)
	v.screen.wait(v.peer, turns+1)
}

// prompted has the user prompt, and returns the id of the request.
func (v *victim) prompted() string {
	v.t.Helper()
	if _, err := io.WriteString(v.user, "go\n"); err != nil {
		v.t.Fatal(err)
	}
	return receive(v.peer, v.prompts, "a prompt")
}

// peak returns the most memory that the process had, in MiB, or 0 if it is not known.
func (v *victim) peak() int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	kib, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.SplitN(rest, "\n", 2)[0], "kB")))
	return kib >> 10
}

// screen is what the client prints. It counts the turns that ended, and the numbers that come in order.
type screen struct {
	mu    sync.Mutex
	last  []byte
	turns int
	next  int
	wake  chan struct{}
}

func newScreen() *screen { return &screen{wake: make(chan struct{})} }

var printed = regexp.MustCompile(`#(\d+)#|\(end_turn\)`)

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, b...)
	end := 0
	for _, at := range printed.FindAllSubmatchIndex(s.last, -1) {
		end = at[1]
		if at[2] < 0 {
			s.turns++
		} else if n, _ := strconv.Atoi(string(s.last[at[2]:at[3]])); n == s.next {
			s.next++
		} else {
			s.next = -1 << 40 // out of order
		}
	}
	s.last = s.last[max(end, len(s.last)-100):]
	close(s.wake)
	s.wake = make(chan struct{})
	return len(b), nil
}

func (s *screen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

// wait waits until so many turns have ended.
func (s *screen) wait(p *peer, turns int) {
	p.t.Helper()
	for {
		s.mu.Lock()
		now, wake := s.turns, s.wake
		s.mu.Unlock()
		if now >= turns {
			return
		}
		receive(p, wake, "the end of a turn")
	}
}
