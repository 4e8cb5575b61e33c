//go:build unix

package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/fastpath"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// sockets returns the two ends of a connection.
func sockets(t *testing.T, network string) (a, b net.Conn) {
	t.Helper()
	switch network {
	case "pipe":
		return net.Pipe()
	case "locked":
		a, b := net.Pipe()
		return &locked{Conn: a}, b
	}
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l := must.Get(net.Listen(network, address))(t)
	defer l.Close()
	a = must.Get(net.Dial(network, l.Addr().String()))(t)
	return a, must.Get(l.Accept())(t)
}

// locked ends its writing side after a Write in progress, as tls.Conn does.
type locked struct {
	net.Conn
	mu sync.Mutex
}

func (c *locked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *locked) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return nil
}

// What is in flight when a side closes arrives, although the other side's output was not read.
func TestSocketIsClosedInOrder(t *testing.T) {
	notes := 2000
	if !fastpath.Enabled {
		notes = 100 // each is written by itself, and takes more room in the socket
	}
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			ours, theirs := sockets(t, network)
			conn := must.Get(Connect(t.Context(), IO(ours, ours, 0), nil, nil))(t)
			// The peer writes what is not read any more when the connection closes, and reads late.
			must.Get(fmt.Fprintln(theirs, note("_a", `{}`)))(t)
			for i := range notes {
				must.Do(t, Notify(context.Background(), conn, "_note", &echoParams{N: i, SessionID: strings.Repeat("x", 100)}))
			}
			closed := make(chan error, 1)
			go func() { closed <- conn.Close() }()
			in := bufio.NewReader(theirs)
			for i := 0; ; i++ {
				line, err := in.ReadString('\n')
				if err == io.EOF && line == "" && i == notes {
					break
				}
				if err != nil {
					t.Fatalf("after %d of %d messages: %v", i, notes, err)
				}
				if i%100 == 0 {
					must.Get(fmt.Fprintln(theirs, note("_b", `{}`)))(t)
				}
			}
			must.Do(t, theirs.Close())
			must.Do(t, <-closed)
		})
	}
}

// Half of a connection of one value is closed where that is possible, and what comes is read.
func TestSocketIsHalfClosed(t *testing.T) {
	for network, want := range map[string]error{"tcp": nil, "unix": nil, "pipe": errors.ErrUnsupported} {
		t.Run(network, func(t *testing.T) {
			ours, theirs := sockets(t, network)
			stream := must.Get(IO(ours, ours, 0).Connect(t.Context()))(t)
			for range 2 {
				if err := stream.(HalfCloser).CloseWrite(); !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			if want == nil {
				if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the peer sees %v", err)
				}
			}
			go fmt.Fprintln(theirs, "{}")
			if line, err := stream.Read(); string(line) != "{}" || err != nil {
				t.Errorf("got %q, %v", line, err)
			}
			must.Do(t, errors.Join(theirs.Close(), stream.Close(), stream.Close()))
		})
	}
}

// A peer that neither reads nor ends does not keep Close, nor a Read or Write that waits.
func TestSocketOfSilentPeer(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, network := range []string{"tcp", "unix", "pipe", "locked"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			ours, theirs := sockets(t, network)
			defer theirs.Close()
			stream := must.Get(IO(ours, ours, 0).Connect(t.Context()))(t)
			waits := make(chan error, 2)
			go func() {
				_, err := stream.Read()
				waits <- err
			}()
			go func() { waits <- stream.Write(make([]byte, 16<<20)) }()
			if _, err := theirs.Read(make([]byte, 1)); err != nil { // the Write has begun
				t.Fatal(err)
			}
			start := time.Now()
			must.Do(t, stream.Close())
			if d := time.Since(start); d > lingerTime+patience/2 {
				t.Errorf("Close took %v", d)
			}
			for range 2 {
				if err := <-waits; err == nil {
					t.Error("what waited ends without error")
				}
			}
		})
	}
}

// closeOnce is a stream that is one value for both directions and no pointer, and that fails when it is closed
// twice.
type closeOnce struct {
	io.ReadWriter
	closed *bool
}

func (c closeOnce) Close() error {
	if *c.closed {
		return errors.New("closed twice")
	}
	*c.closed = true
	return nil
}

func TestOneValueIsClosedOnce(t *testing.T) {
	c := closeOnce{new(bytes.Buffer), new(bool)}
	stream := must.Get(IO(c, c, 0).Connect(t.Context()))(t)
	if err := stream.(HalfCloser).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("there is no side to end alone: %v", err)
	}
	if err := stream.Close(); err != nil || !*c.closed {
		t.Errorf("closed %t, %v", *c.closed, err)
	}
}
