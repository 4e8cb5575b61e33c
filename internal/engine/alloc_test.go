package engine_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/fastpath"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// Budgets. A change that needs more must say why.
const (
	notificationSent     = 0
	notificationReceived = 2
	callBothSides        = 16
)

// osPipes is rpc.Pipe over pipes of the operating system.
func osPipes(t *testing.T) (Transport, Transport) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return rpc.IO(r1, w2, 0), rpc.IO(r2, w1, 0)
}

// within checks what one of n operations that f does has allocated.
func within(t *testing.T, budget float64, n int, f func()) {
	t.Helper()
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	got := testing.AllocsPerRun(50, f) / float64(n)
	t.Logf("%.2f allocations", got)
	if got >= budget+0.5 { // some are shared by many
		t.Errorf("got %.2f allocations, want %v", got, budget)
	}
}

const flood = 200 // notifications at a time

var smallChunk = &chunk{SessionID: "sess_0196f8c0a1b27c3d", Text: strings.Repeat("x", 64)}

func allocConn(t *testing.T, transport Transport, routes ...Route) *Conn {
	t.Helper()
	c := must.Get(Connect(t.Context(), transport, func(*Conn) []Route { return routes }, nil))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// allocStream is the other end of a connection, without a connection.
func allocStream(t *testing.T, transport Transport) Stream {
	t.Helper()
	s := must.Get(transport.Connect(t.Context()))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAllocationsReceived(t *testing.T) {
	near, far := osPipes(t)
	in := allocStream(t, far)
	left, handled := 0, make(chan struct{})
	allocConn(t, near, chunkMethod.Handle(func(context.Context, *chunk) error {
		if left--; left == 0 {
			handled <- struct{}{}
		}
		return nil
	}))
	lines := []byte(strings.Repeat(note("chunk", `{"sessionId":"`+smallChunk.SessionID+`","text":"`+smallChunk.Text+`"}`)+"\n", flood))
	within(t, notificationReceived, flood, func() {
		left = flood
		must.Do(t, in.(rpc.FastStream).WriteLines(lines))
		<-handled
	})
}

func TestAllocationsCall(t *testing.T) {
	if !fastpath.Enabled {
		t.Skip("it is about fast paths")
	}
	near, far := osPipes(t)
	allocConn(t, far, tellMethod.Handle(func(_ context.Context, p *chunk) (*chunk, error) { return p, nil }))
	c := allocConn(t, near)
	within(t, callBothSides, 1, func() {
		must.Get(tellMethod.Call(t.Context(), c, smallChunk))(t)
	})
}
