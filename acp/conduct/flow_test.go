package conduct_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// big is a notification of 100 KB.
func big(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"n":%d,"fill":"%s"}}`, n, strings.Repeat("x", 100_000))
}

// A client that does not read stops the agent, for as long as it likes, and nothing is lost.
func TestClientIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 50
		c := start(t, 0, true, nil)
		c.initialize(answer1)
		var sent atomic.Int32
		go func() {
			for n := range all {
				c.components[0].send(big(n))
				sent.Add(1)
			}
		}()
		time.Sleep(24 * time.Hour)
		if n := sent.Load(); n < 10 || n > 13 { // 1 MiB, and what is on its way
			t.Errorf("%d messages were taken", n)
		}
		// The other direction continues.
		c.client.send(`{"jsonrpc":"2.0","method":"x"}`)
		c.components[0].want(`{"jsonrpc":"2.0","method":"x"}`)
		for n := range all {
			c.client.want(big(n))
		}
	})
}

// echo sends back each message that it reads. While it writes it does not read.
func echo(e *end) {
	for {
		line, err := e.Read()
		if err != nil || e.Write(bytes.Clone(line)) != nil {
			return
		}
	}
}

// Both directions are full, and neither end reads before what it writes is read: the conductor reads on.
func TestBothDirectionsFull(t *testing.T) {
	tier.Need(t, tier.Full)
	synctest.Test(t, func(t *testing.T) {
		const all = 50 // 5 MB
		c := start(t, 1, true, nil)
		go passOn(c.components[0])
		c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		c.components[1].want(`{"jsonrpc":"2.0","id":2,"method":"initialize"}`)
		c.components[1].send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		c.client.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		go echo(c.components[1])
		for n := range all {
			c.client.send(big(n))
		}
		for n := range all {
			c.client.want(big(n))
		}
	})
}

// An agent that waits for the client to read is read on when its own queue is full: it takes what the client sends.
func TestBothWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, all = 20, 180 // 2 MB, and more than the 16 MiB at which all would stop
		c := start(t, 0, true, nil)
		c.initialize(answer1)
		agent := c.components[0]
		go func() {
			for n := range first {
				agent.send(big(n))
			}
			for n := range all {
				agent.want(big(n))
			}
			agent.send(`{"jsonrpc":"2.0","method":"done"}`)
		}()
		synctest.Wait() // the agent cannot send more
		for n := range all {
			c.client.send(big(n))
		}
		for n := range first {
			c.client.want(big(n))
		}
		c.client.want(`{"jsonrpc":"2.0","method":"done"}`)
	})
}

// Where that would never end, the chain does. What the conductor holds is bounded.
func TestNobodyReads(t *testing.T) {
	tier.Need(t, tier.Full)
	synctest.Test(t, func(t *testing.T) {
		c := start(t, 0, true, nil)
		c.initialize(answer1)
		go echo(c.components[0])
		began, sent := time.Now(), 0
		for c.client.Write([]byte(big(sent))) == nil {
			if time.Since(began) < time.Minute { // when the chain has ended, everything is read for a time
				sent++
			}
			time.Sleep(time.Millisecond)
		}
		err := c.result()
		if err == nil || !strings.Contains(err.Error(), "does not read: ") {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d < time.Minute || d > 2*time.Minute {
			t.Errorf("after %v", d)
		}
		if megabytes := sent / 10; megabytes < 16 || megabytes > 2*17+5 {
			t.Errorf("%d MB were taken", megabytes)
		}
	})
}

// A client that reads slowly does not end the chain, even if it takes more than a minute for what was collected.
func TestSlowReader(t *testing.T) {
	tier.Need(t, tier.Full)
	synctest.Test(t, func(t *testing.T) {
		const all = 250 // 25 MB
		c := start(t, 0, true, nil)
		c.initialize(answer1)
		go echo(c.components[0])
		go func() {
			for n := range all {
				if c.client.Write([]byte(big(n))) != nil {
					return
				}
			}
		}()
		for n := range all {
			time.Sleep(time.Second)
			c.client.want(big(n))
		}
	})
}

// A component that asks what it is refused, and does not read the refusals, is stopped, and ends the chain.
func TestRefusalsNotRead(t *testing.T) {
	tier.Need(t, tier.Full)
	synctest.Test(t, func(t *testing.T) {
		c := start(t, 0, true, nil)
		c.initialize(answer1)
		line := `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 100_000) + `","method":"proxy/successor"}`
		for c.components[0].Write([]byte(line)) == nil {
			time.Sleep(time.Millisecond)
		}
		if err := c.result(); err == nil || !strings.HasPrefix(err.Error(), "agent (A): does not read: ") {
			t.Errorf("got %v", err)
		}
	})
}

// The requests that are in flight to a component are bounded.
func TestManyRequests(t *testing.T) {
	c := start(t, 0, true, nil)
	c.initialize(answer1)
	go func() {
		for {
			if _, err := c.components[0].Read(); err != nil {
				return
			}
		}
	}()
	var lines []byte
	for id := range 10_000 {
		lines = fmt.Appendf(lines, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", id)
	}
	must.Do(t, c.client.Stream.(rpc.FastStream).WriteLines(lines))
	c.client.send(`{"jsonrpc":"2.0","id":"more","method":"x"}`)
	c.client.want(`{"jsonrpc":"2.0","id":"more","error":{"code":-32603,"message":"agent (A) has 10000 requests in flight"}}`)
}

// slowStream is a stream that has no more than it must, as one of another library.
type slowStream struct{ rpc.Stream }

// Streams need not be fast.
func TestSlowStreams(t *testing.T) {
	slow := func(c conduct.Component) conduct.Component {
		inner := c.Transport
		c.Transport = transport(func(ctx context.Context) (rpc.Stream, error) {
			s, err := inner.Connect(ctx)
			return slowStream{s}, err
		})
		return c
	}
	converse(t, []conduct.Component{slow(inMemory(t, "P0", passOn)), slow(inMemory(t, "P1", passOn))})
}

// A component that takes nothing any more, but lives on, ends the chain.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		agent := transport(func(context.Context) (rpc.Stream, error) { return deafStream{closed}, nil })
		client, ended := runRaw(t, nil, &conduct.Component{Transport: agent})
		client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		client.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"agent: broken pipe","data":{"component":"agent"}}}`)
		if err := <-ended; err == nil || err.Error() != "agent: broken pipe" {
			t.Errorf("got %v", err)
		}
		client.Close()
	})
}

type deafStream struct{ closed chan struct{} }

func (s deafStream) Read() ([]byte, error) { <-s.closed; return nil, errors.New("closed") }
func (s deafStream) Write([]byte) error    { return errors.New("broken pipe") }
func (s deafStream) Close() error          { close(s.closed); return nil }
