package conduct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/wire"
)

// initialized is a chain of two proxies and an agent without connections: what is sent stays in the queues.
func initialized(trace io.Writer) *chain {
	c := newChain(nil, make([]Component, 2), &Component{}, &Options{InitTime: time.Hour, Trace: trace, Logger: slog.New(slog.DiscardHandler)})
	c.ctx, c.started = context.Background(), true
	return c
}

// Whatever lines the client and the components send, the conductor sends messages alone, and its trace is JSON.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`0{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n" + `1{"jsonrpc":"2.0","id":"a","method":"proxy/successor","params":{"method":"initialize"}}` + "\n" + `2{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1}}`,
		`0{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n" + `0{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1.0}}` + "\n" + `1{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`,
		`3{"jsonrpc":"2.0","id":1,"method":"mcp/message","params":{"method":"a\u0000","params":[]}}` + "\n" + `2{"jsonrpc":"2.0","id":1}`,
		`2{"id":1e0,"jsonrpc":"2.0","method":"proxy/successor","params":{"params":{"a":1,"a":2},"method":"\ud800","_meta":{}}}` + "\n" + `3{"jsonrpc":"2.0","id":1,"result":[}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`0{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 2*soft) + `"}`))
	f.Fuzz(func(t *testing.T, script []byte) {
		var trace bytes.Buffer
		c := initialized(&trace)
		c.mu.Lock()
		defer c.mu.Unlock()
		for line := range bytes.Lines(script) {
			if line = bytes.TrimSuffix(line, []byte("\n")); len(line) == 0 {
				continue
			}
			c.message(c.ports[line[0]%4], line[1:])
		}
		c.writeTrace()
		if cap(c.trace) > soft {
			t.Errorf("%d bytes are kept for the trace", cap(c.trace))
		}
		d := codec.NewDecoder(nil)
		for _, p := range c.ports {
			for line := range bytes.Lines(p.pending) {
				if m := wire.Parse(d, line); m.Kind == wire.KindInvalid || m.Broken != nil {
					t.Errorf("%s is sent %s: %v", p.place, line, m.Failure)
				}
			}
		}
		for line := range bytes.Lines(trace.Bytes()) {
			if d.Reset(line); d.Kind() != '{' {
				t.Errorf("the trace has %s", line)
			}
			d.Skip()
			if err := d.End(); err != nil {
				t.Errorf("the trace has %s: %v", line, err)
			}
		}
		c.initTimer.Stop()
	})
}

func BenchmarkUpdate(b *testing.B) {
	c := initialized(nil)
	update := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello, world."}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		c.message(c.agent, update)
		c.ports[2].pending = c.ports[2].pending[:0]
	}
}

// A timeout that has waited for the lock, while an initialize was sent, does not end the chain.
func TestInitTimeoutWaited(t *testing.T) {
	c := initialized(nil)
	defer c.initTimer.Stop()
	c.message(c.client(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
	if c.initTimeout(); c.over {
		t.Errorf("the chain has ended: %v", c.err)
	}
}

// No timer is left behind by a chain that has ended while it waited for an answer.
func TestTimersStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, theirs := rpc.Pipe()
		agent, ours := rpc.Pipe()
		c := newChain(theirs, nil, &Component{Transport: ours}, &Options{DrainTime: time.Hour})
		ended := make(chan error, 1)
		go func() { ended <- c.run(t.Context()) }()
		a := must.Get(agent.Connect(t.Context()))(t)
		b := must.Get(client.Connect(t.Context()))(t)
		must.Do(t, b.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)))
		must.Do(t, b.(rpc.HalfCloser).CloseWrite())
		must.Get(a.Read())(t)
		synctest.Wait() // for the answer
		must.Do(t, a.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)))
		must.Get(b.Read())(t)
		must.Do(t, <-ended)
		for i, timer := range c.timers {
			if timer.Stop() {
				t.Errorf("timer %d of %d has not stopped", i, len(c.timers))
			}
		}
		if len(c.timers) != 2 {
			t.Errorf("%d timers", len(c.timers))
		}
		must.Do(t, errors.Join(a.Close(), b.Close()))
	})
}
