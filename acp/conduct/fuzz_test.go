package conduct

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// initialized is a chain of two proxies and an agent without connections: what is sent stays in the queues.
func initialized(trace io.Writer) *chain {
	c := &chain{
		ctx: context.Background(), log: slog.New(slog.DiscardHandler), began: time.Now(), started: true,
		decode: codec.NewDecoder(nil), inside: codec.NewDecoder(nil), options: Options{InitTime: time.Hour, Trace: trace},
	}
	c.room = sync.NewCond(&c.mu)
	c.initTimer = time.AfterFunc(time.Hour, c.initTimeout)
	for _, place := range []string{"client", "proxy:0", "proxy:1", "agent"} {
		c.add(place, Component{})
	}
	c.agent = c.ports[3]
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
	c.ended = make(chan struct{})
	for _, p := range c.ports {
		p.handed = true // no stream is written
	}
	if c.initTimeout(); c.over {
		t.Errorf("the chain has ended: %v", c.err)
	}
}
