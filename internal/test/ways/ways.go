// Package ways lets tests of connections in memory also run over the network, so that every transport passes the same
// test suite.
package ways

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// Variable is the environment variable that selects the transport of test connections. By default they are in memory.
const Variable = "ACP_TEST_WAY"

// patience is the time limit for the end of a connection.
const patience = 2 * time.Minute

// All are the ways over the network: WebSocket, HTTP/1.1, HTTP/2 without TLS.
var All = []string{"ws", "http", "h2c"}

// Pipe is rpc.Pipe, or a connection by another way, which ends with the test. Either end may be connected first. In a
// bubble of testing/synctest, where no network can be, it always is rpc.Pipe.
func Pipe(t testing.TB) (agent, client rpc.Transport) {
	t.Helper()
	way := os.Getenv(Variable)
	if way == "" || inBubble() {
		return rpc.Pipe()
	}
	return Over(t, way)
}

// inBubble says whether time is simulated: then it begins in the year 2000.
func inBubble() bool { return time.Now().Year() < 2020 }

// InMemory keeps a test in memory, for a reason why it says nothing about other ways.
func InMemory(t testing.TB, why string) {
	t.Helper()
	if way := os.Getenv(Variable); way != "" {
		t.Logf("in memory, and not by %s: %s", way, why)
		t.Setenv(Variable, "")
	}
}

// Over is Pipe by one of the ways.
func Over(t testing.TB, way string) (agent, client rpc.Transport) {
	t.Helper()
	if !slices.Contains(All, way) {
		t.Fatalf("no way %q", way)
	}
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	a := &agentEnd{opened: make(chan struct{}), closed: make(chan struct{})}
	server := remote.Handler(a.serve, nil)
	web := remote.NewHTTPServer(server)
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(way != "h2c")
	protocols.SetUnencryptedHTTP2(way == "h2c")
	transport := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 8}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// Not the Shutdown of web: it does not end a connection of HTTP/2 that begins meanwhile, as one that the client
		// dialed for a request which another connection has taken.
		err := errors.Join(server.Shutdown(ctx), web.Close())
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		if err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	scheme := "http://"
	if way == "ws" {
		scheme = "ws://"
	}
	return a, remote.Dial(scheme+listener.Addr().String(), &remote.DialOptions{HTTPClient: &http.Client{Transport: transport}})
}

// agentEnd is the agent's end, and its stream: an agent may be started before its client has connected.
type agentEnd struct {
	stream rpc.FastStream // set before opened is closed
	opened chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Connect implements rpc.Transport.
func (a *agentEnd) Connect(context.Context) (rpc.Stream, error) { return a, nil }

// serve is the connection of the client.
func (a *agentEnd) serve(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
	stream, err := transport.Connect(ctx)
	if err != nil {
		return err
	}
	fast, ok := stream.(rpc.FastStream)
	if !ok {
		return errors.New("the stream is slow")
	}
	a.stream = fast
	close(a.opened)
	select {
	case <-a.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open waits for the stream.
func (a *agentEnd) open() (rpc.FastStream, error) {
	select {
	case <-a.opened:
		return a.stream, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

func (a *agentEnd) Read() ([]byte, error) { return a.ReadLine(nil) }

func (a *agentEnd) ReadLine(beforeWait func()) ([]byte, error) {
	s, err := a.open()
	if err != nil {
		return nil, err
	}
	return s.ReadLine(beforeWait)
}

func (a *agentEnd) Write(message []byte) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	return s.Write(message)
}

func (a *agentEnd) WriteLines(lines []byte) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	return s.WriteLines(lines)
}

func (a *agentEnd) CloseWrite() error {
	s, err := a.open()
	if err != nil {
		return err
	}
	half, ok := s.(rpc.HalfCloser)
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

func (a *agentEnd) Close() (err error) {
	a.once.Do(func() {
		select {
		case <-a.opened:
			err = a.stream.Close()
		default:
		}
		close(a.closed)
	})
	return err
}
