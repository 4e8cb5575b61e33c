package acp_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/fastpath"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// Budgets. A change that needs more must say why.
const (
	chunkSent     = 1
	chunkReceived = 3
	chunkAlone    = 5  // received when nothing else is on its way
	readCall      = 15 // fs/read_text_file, both sides
	megabyte      = 1.15
)

// osPipes is acp.Pipe over pipes of the operating system.
func osPipes(t *testing.T) (acp.Transport, acp.Transport) {
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

// open opens an end that is given to no connection.
func open(t *testing.T, transport acp.Transport) rpc.Stream {
	t.Helper()
	s := must.Get(transport.Connect(t.Context()))(t)
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return s
}

// lineOf is a session/update on the wire.
func lineOf(t *testing.T, text string) []byte {
	t.Helper()
	n := acp.SessionNotification{SessionID: "sess_0196f8c0a1b27c3d", Update: acp.AgentMessageText(text)}
	params := must.Get(codec.Append(nil, &n))(t)
	return []byte(`{"jsonrpc":"2.0","method":"session/update","params":` + string(params) + "}\n")
}

// within checks what one of n operations that f does has allocated.
func within(t *testing.T, what string, budget float64, n int, f func()) {
	t.Helper()
	if gentest.Race || !fastpath.Enabled {
		t.Skip("the race detector allocates, and so does what is not fast")
	}
	got := testing.AllocsPerRun(50, f) / float64(n)
	t.Logf("%s: %.2f allocations", what, got)
	if got >= budget+0.5 { // some are shared by many
		t.Errorf("%s: got %.2f allocations, want %v", what, got, budget)
	}
}

const flood = 200 // chunks at a time

func TestAllocationsSent(t *testing.T) {
	near, far := osPipes(t)
	out, answered, drained := open(t, far), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		if _, err := out.Read(); err != nil {
			t.Error(err)
		}
		close(answered)
		for {
			if _, err := out.Read(); err != nil {
				return // the agent has closed
			}
		}
	}()
	agent := must.Get(acp.StartAgent(t.Context(), near, acp.AgentHandlers{NewSession: newSession, Prompt: noPrompt}, nil))(t)
	must.Do(t, out.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)))
	<-answered
	session := agent.Session("sess_0196f8c0a1b27c3d")
	update := acp.AgentMessageText(strings.Repeat("x", 64))
	within(t, "a chunk sent", chunkSent, flood, func() {
		for range flood {
			must.Do(t, session.Update(t.Context(), update))
		}
	})
	must.Do(t, agent.Close())
	<-drained
}

// received connects a client to an agent that is nothing but a pipe; write has the client handle
// lines, of which count are updates.
func received(t *testing.T) (write func(lines []byte, count int)) {
	t.Helper()
	near, far := osPipes(t)
	agent := open(t, far)
	left, handled := 0, make(chan struct{})
	initialized := make(chan error, 1)
	go func() {
		_, err := agent.Read()
		if err == nil {
			err = agent.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`))
		}
		initialized <- err
	}()
	client := must.Get(acp.Connect(t.Context(), near, acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			if left--; left == 0 {
				handled <- struct{}{}
			}
			return nil
		},
	}, nil))(t)
	must.Do(t, <-initialized)
	t.Cleanup(func() { must.Do(t, client.Close()) })
	return func(lines []byte, count int) {
		left = count
		must.Do(t, agent.(rpc.FastStream).WriteLines(lines))
		<-handled
	}
}

func TestAllocationsReceived(t *testing.T) {
	write := received(t)
	line := lineOf(t, strings.Repeat("x", 64))
	lines := []byte(strings.Repeat(string(line), flood))
	within(t, "a chunk received", chunkReceived, flood, func() { write(lines, flood) })
	within(t, "a chunk received alone", chunkAlone, 1, func() { write(line, 1) })
}

func TestBytesReceived(t *testing.T) {
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	write := received(t)
	const size, n = 1 << 20, 20
	line := lineOf(t, strings.Repeat("x", size))
	write(line, 1) // makes the reader's buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		write(line, 1)
	}
	runtime.ReadMemStats(&after)
	got := float64(after.TotalAlloc-before.TotalAlloc) / n / size
	t.Logf("%.3f bytes allocated for each of text", got)
	if got > megabyte {
		t.Errorf("got %.3f bytes allocated for each of text, want at most %v", got, megabyte)
	}
}

func TestAllocationsCall(t *testing.T) {
	near, far := osPipes(t)
	agent := must.Get(acp.StartAgent(t.Context(), near, acp.AgentHandlers{NewSession: newSession, Prompt: noPrompt}, nil))(t)
	content := strings.Repeat("x", 1<<10)
	client := must.Get(acp.Connect(t.Context(), far, acp.ClientHandlers{
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{Content: content}, nil
		},
	}, nil))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(client.Close(), agent.Wait())) })
	req := &acp.ReadTextFileRequest{SessionID: "sess_0196f8c0a1b27c3d", Path: "/src/conn.go"}
	within(t, "a call", readCall, 1, func() {
		if res, err := agent.ReadTextFile(t.Context(), req); err != nil || len(res.Content) != len(content) {
			t.Fatal(res, err)
		}
	})
}
