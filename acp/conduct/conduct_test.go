package conduct_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

const answer1 = `{"protocolVersion":1,"agentCapabilities":{"_later":{"a":[1.0,1e2]}}}`

// Over a hop with an envelope, parameters, results and errors are the same bytes, and so is the _meta inside. That of the
// envelope stays behind.
func TestExactValues(t *testing.T) {
	c := start(t, 2, true, nil)
	c.initialize(answer1)
	p0, p1, agent := c.components[0], c.components[1], c.components[2]
	n := 3 // the last id
	for _, value := range []string{
		`{}`, `[]`, `{"n":[1.0,1e2,-0,12345678901234567890,1e400],"s":"\ud800 \/ \u2028","dup":1,"dup":2,"_meta":{"inner": null}}`, `[1,{"a":null}]`,
	} {
		// Down: plain, then wrapped by a proxy and unwrapped.
		c.client.send(`{"jsonrpc":"2.0","id":"c","method":"_any/method","params":` + value + `}`)
		n++
		p0.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"_any/method","params":%s}`, n, value))
		p0.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"_meta":{"outer":1},"params":` + value + `,"method":"_any/method","later":true}}`)
		n++
		p1.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"_any/method","params":%s}`, n, value))
		// Up: from the agent wrapped, from p1 wrapped, from p0 plain.
		agent.send(`{"jsonrpc":"2.0","id":{"not":"an id"},"method":"x"}`)
		agent.want(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: an id is a string, a number or null"}}`)
		agent.send(`{"jsonrpc":"2.0","method":"_up","params":` + value + `}`)
		p1.want(`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"_up","params":` + value + `}}`)
		p1.send(`{"jsonrpc":"2.0","method":"_up","params":` + value + `}`)
		p0.want(`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"_up","params":` + value + `}}`)
		// Answers.
		for _, outcome := range []string{`"result":` + value, `"result":null`, `"result": 12345678901234567890`, `"error":{"code":-32000,"message":"m","data":null,"more":` + value + `}`} {
			p1.send(`{"jsonrpc":"2.0","id":` + fmt.Sprint(n) + `,` + outcome + `}`)
			p0.want(`{"jsonrpc":"2.0","id":1,` + outcome + `}`)
			p0.send(`{"jsonrpc":"2.0","id":1.50,"method":"proxy/successor","params":{"method":"again"}}`)
			n++
			p1.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"again"}`, n))
			p1.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, n, outcome))
			p0.want(`{"jsonrpc":"2.0","id":1.50,` + outcome + `}`)
			p0.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"again","params":null}}`)
			n++
			p1.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"again"}`, n))
		}
	}
}

// Updates, in order and before the answer, requests in both directions, and the client's cancellation pass through 0 to 3
// proxies.
func TestThrough(t *testing.T) {
	for n := range 4 {
		var proxies []conduct.Component
		for i := range n {
			proxies = append(proxies, inMemory(t, fmt.Sprintf("P%d", i), passOn))
		}
		converse(t, proxies)
	}
}

// Conductors are proxies of conductors: the outer one has a chain of two proxies and one more, and an agent.
func TestNesting(t *testing.T) {
	nested := func(name string, proxies ...conduct.Component) conduct.Component {
		outer, ended := run(context.WithoutCancel(t.Context()), proxies, nil, nil)
		t.Cleanup(func() {
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return conduct.Component{Name: name, Transport: outer}
	}
	c := nested("inmost", inMemory(t, "P3", passOn))
	c = nested("middle", inMemory(t, "P1", passOn), c, inMemory(t, "P2", passOn))
	converse(t, []conduct.Component{inMemory(t, "P0", passOn), c, inMemory(t, "P4", passOn)})
}

// converse has a raw client and agent talk through proxies: many updates, requests in both directions, cancellation.
func converse(t *testing.T, proxies []conduct.Component) {
	t.Helper()
	ours, theirs := rpc.Pipe()
	client, ended := runRaw(t, proxies, &conduct.Component{Transport: ours})
	agent := newEnd(t, "agent", theirs)
	type message struct {
		ID, Params json.RawMessage
		Method     string
	}
	receive := func(e *end, method string) (id string, m message) {
		t.Helper()
		must.Do(t, json.Unmarshal([]byte(e.next()), &m))
		if m.Method != method {
			t.Fatalf("%s got %+v, want %s", e.name, m, method)
		}
		return string(m.ID), m
	}
	client.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1}}`)
	id, _ := receive(agent, "initialize")
	agent.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":1}}`)
	client.want(`{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1}}`)
	client.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"n":12345678901234567890}}`)
	id, m := receive(agent, "session/prompt")
	if string(m.Params) != `{"n":12345678901234567890}` {
		t.Errorf("params %s", m.Params)
	}
	agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"u":1}}`, `{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":[]}`)
	client.want(`{"jsonrpc":"2.0","method":"session/update","params":{"u":1}}`)
	question, _ := receive(client, "session/request_permission")
	client.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}`)
	_, m = receive(agent, "$/cancel_request")
	if string(m.Params) != `{"requestId":`+id+`}` {
		t.Errorf("%s was cancelled, want %s", m.Params, id)
	}
	client.send(`{"jsonrpc":"2.0","id":` + question + `,"result":null}`)
	agent.want(`{"jsonrpc":"2.0","id":"q","result":null}`)
	updates := tier.Pick(500, 1000, 2500, 5000)
	for n := range updates {
		agent.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"n":%d}}`, n))
	}
	agent.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32800,"message":"m","data":[1e400]}}`)
	for n := range updates {
		client.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"n":%d}}`, n))
	}
	client.want(`{"jsonrpc":"2.0","id":"p","error":{"code":-32800,"message":"m","data":[1e400]}}`)
	client.Close()
	must.Do(t, <-ended)
}

// withoutTime returns a line of a trace without its time.
func withoutTime(line string) string {
	head, tail, _ := strings.Cut(line, `"ts":`)
	_, tail, _ = strings.Cut(tail, `,`)
	return head + tail
}

// A trace that cannot be written does not stop the chain.
func TestTraceFails(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.New("disk full"))
	c := start(t, 1, true, &conduct.Options{Trace: w})
	c.initialize(answer1)
	c.hangUp()
	must.Do(t, c.result())
	if n := strings.Count(c.log.String(), "disk full"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &c.log)
	}
}

// A message that is too long is refused, or the call that it would answer fails.
func TestTooLong(t *testing.T) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	c, ended := runRaw(t, nil, &conduct.Component{Name: "A", Transport: rpc.IO(r2, w1, 1000)})
	a := newEnd(t, "agent", rpc.IO(r1, w2, 0))
	long := strings.Repeat("x", 2000)
	c.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`)
	a.next()
	a.send(`{"jsonrpc":"2.0","method":"` + long + `"}`) // nobody waits for it
	a.send(`{"jsonrpc":"2.0","id":7,"method":"` + long + `"}`)
	a.want(`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"message longer than 1000 bytes"}}`)
	a.send(`{"jsonrpc":"2.0","id":1,"result":"` + long + `"}`)
	contains(t, c.next(), `"message":"agent (A): message longer than 1000 bytes"`)
	c.Close()
	must.Do(t, <-ended)
	a.Close()
}

// When the client ends its input, its requests are still answered, for a time. What was not is said.
func TestClientEnds(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, 1, true, nil)
			c.initialize(answer1)
			proxy, agent := c.components[0], c.components[1]
			c.client.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt"}`)
			proxy.next()
			proxy.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"session/prompt"}}`)
			agent.next()
			last := make(chan []string)
			go func() { last <- c.hangUp() }()
			if answers {
				synctest.Wait()
				agent.send(`{"jsonrpc":"2.0","method":"session/update"}`)
				proxy.next()
				proxy.send(`{"jsonrpc":"2.0","method":"session/update"}`, `{"jsonrpc":"2.0","id":3,"result":1}`)
				if got := <-last; len(got) != 2 || got[1] != `{"jsonrpc":"2.0","id":1,"result":1}` {
					t.Errorf("got %q", got)
				}
			} else if got := <-last; len(got) > 0 {
				t.Errorf("got %q", got)
			}
			must.Do(t, c.result())
			// The proxy has passed the prompt on, so the agent has it.
			if said := strings.Contains(c.log.String(), `msg="requests were not answered" by="agent (A)" method=session/prompt count=1 for=1s`); said == answers {
				t.Errorf("log:\n%s", &c.log)
			}
			if strings.Contains(c.log.String(), "by=\"proxy") && !answers {
				t.Errorf("log:\n%s", &c.log)
			}
		})
	}
}

// When the context ends, so does the chain, and the client's requests get an error.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	agent := inMemory(t, "agent", func(s rpc.Stream) error {
		for {
			if _, err := s.Read(); err != nil {
				return nil
			}
		}
	})
	to, ended := run(ctx, []conduct.Component{inMemory(t, "P0", passOn)}, &agent, nil)
	client := newEnd(t, "client", to)
	client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","method":"x"}`)
	cause := errors.New("enough")
	cancel(cause)
	client.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the conductor has ended: enough"}}`)
	if err := <-ended; !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	client.Close()
}

// What the client requests while the components of a chain that has ended are closed is answered too.
func TestTooLate(t *testing.T) {
	close := make(chan struct{})
	agent := inMemory(t, "agent", func(s rpc.Stream) error { _, err := s.Read(); return err })
	inner := agent.Transport
	agent.Transport = transport(func(ctx context.Context) (rpc.Stream, error) {
		s, err := inner.Connect(ctx)
		return rpc.Wrap(s, rpc.Wrapper{Close: func() error { <-close; return s.Close() }}), err
	})
	var trace strings.Builder
	to, ended := run(t.Context(), nil, &agent, &conduct.Options{Trace: &trace})
	client := newEnd(t, "client", to)
	for id := range 3 {
		client.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{}}`, id), `{"jsonrpc":"2.0","method":"x"}`)
		client.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"agent (agent): EOF","data":{"component":"agent","name":"agent"}}}`, id))
	}
	close <- struct{}{}
	if err := <-ended; err == nil || err.Error() != "agent (agent): EOF" {
		t.Errorf("got %v", err)
	}
	client.Close()
	if n := strings.Count(trace.String(), `"from":"client","to":"conductor"`); n != 2 {
		t.Errorf("%d refused requests in the trace:\n%s", n, &trace)
	}
}

// A chain that cannot be started says so, and leaves nothing behind.
func TestCannotStart(t *testing.T) {
	missing := conduct.Component{Name: "missing", Transport: transport(func(context.Context) (rpc.Stream, error) { return nil, errors.New("no such program") })}
	client, ended := runRaw(t, []conduct.Component{inMemory(t, "P0", passOn)}, &missing)
	client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	client.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"agent (missing): cannot start: no such program","data":{"component":"agent","name":"missing"}}}`)
	if err := <-ended; err == nil || err.Error() != "agent (missing): cannot start: no such program" {
		t.Errorf("got %v", err)
	}
	client.Close()
	if err := conduct.Run(t.Context(), nil, nil, nil, nil); err == nil {
		t.Error("an empty chain is no error")
	}
}
