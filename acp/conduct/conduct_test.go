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
	"time"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

const answer1 = `{"protocolVersion":1,"agentCapabilities":{"_later":{"a":[1.0,1e2]}}}`

// Nothing is started before the first initialize. What comes before it is refused.
func TestStart(t *testing.T) {
	connected := 0
	agent := inMemory(t, "agent", func(s rpc.Stream) error {
		for {
			line, err := s.Read()
			if err != nil {
				return nil
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				return err
			}
			if err := s.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%q}`, m.ID, m.Method)); err != nil {
				return err
			}
		}
	})
	inner := agent.Transport
	agent.Transport = transport(func(ctx context.Context) (rpc.Stream, error) {
		connected++
		return inner.Connect(ctx)
	})
	e, ended := runRaw(t, nil, &agent)
	e.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{}}`)
	e.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not initialized"}}`)
	if connected != 0 {
		t.Error("the agent was started before initialize")
	}
	for id := range 3 { // the first one starts it
		e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{}}`, id))
		e.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"initialize"}`, id))
	}
	if connected != 1 {
		t.Errorf("the agent was started %d times", connected)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// transport is a function that connects.
type transport func(context.Context) (rpc.Stream, error)

func (f transport) Connect(ctx context.Context) (rpc.Stream, error) { return f(ctx) }

// A chain is initialized from its beginning to its end, also for a second time, and the answers pass from its end to its
// beginning.
func TestInitialize(t *testing.T) {
	for proxies := range 4 {
		t.Run(fmt.Sprint(proxies), func(t *testing.T) {
			c := start(t, proxies, true, nil)
			c.initialize(answer1)
			c.initialize(`{"protocolVersion":1}`)
			if got := c.hangUp(); len(got) > 0 {
				t.Errorf("then %q", got)
			}
			if err := c.result(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without proxies the conductor is a pipe: but for the ids, no byte of a message is another one.
func TestPlainPipe(t *testing.T) {
	c := start(t, 0, true, nil)
	agent := c.components[0]
	c.client.send(`{ "params" : {"protocolVersion":2,"info":{"name":"c"},"_later":{"b": 1.0}} , "extra":[null], "method":"initialize","id":9007199254740993,"jsonrpc":"2.0"}`)
	agent.want(`{ "params" : {"protocolVersion":2,"info":{"name":"c"},"_later":{"b": 1.0}} , "extra":[null], "method":"initialize","id":1,"jsonrpc":"2.0"}`)
	agent.send(`{"result":{"protocolVersion":2,"info":{"name":"a"}},"id":1.0,"jsonrpc":"2.0","extra":{"a":1,"a":2}}`)
	c.client.want(`{"result":{"protocolVersion":2,"info":{"name":"a"}},"id":9007199254740993,"jsonrpc":"2.0","extra":{"a":1,"a":2}}`)
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"_x","params":null,"more":1}`, `{"jsonrpc":"2.0","method":"_x","params":7}`,
		`{"method":"\u005fx","jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","method":"","params":[]}`,
	} {
		c.client.send(line)
		agent.want(line)
		agent.send(line)
		c.client.want(line)
	}
}

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

// A message about the Model Context Protocol is like any other.
func TestMCP(t *testing.T) {
	c := start(t, 1, true, nil)
	c.initialize(answer1)
	proxy, agent := c.components[0], c.components[1]
	const params = `{"serverId":"s","requestId":"r","method":"tools/call","params":{"_meta":{"x":1}},"_meta":{"y":2}}`
	agent.send(`{"jsonrpc":"2.0","id":"a","method":"mcp/message","params":` + params + `}`)
	proxy.want(`{"jsonrpc":"2.0","id":3,"method":"proxy/successor","params":{"method":"mcp/message","params":` + params + `}}`)
	proxy.send(`{"jsonrpc":"2.0","id":"p","method":"mcp/message","params":` + params + `}`)
	c.client.want(`{"jsonrpc":"2.0","id":4,"method":"mcp/message","params":` + params + `}`)
	c.client.send(`{"jsonrpc":"2.0","method":"mcp/message","params":`+params+`}`, `{"jsonrpc":"2.0","id":4,"result":{"result":null}}`)
	proxy.want(`{"jsonrpc":"2.0","method":"mcp/message","params":`+params+`}`, `{"jsonrpc":"2.0","id":"p","result":{"result":null}}`)
	proxy.send(`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"mcp/message","params":`+params+`}}`, `{"jsonrpc":"2.0","id":3,"result":{"result":null}}`)
	agent.want(`{"jsonrpc":"2.0","method":"mcp/message","params":`+params+`}`, `{"jsonrpc":"2.0","id":"a","result":{"result":null}}`)
}

// A cancellation applies to the conductor's own request of the next hop, in both directions, and to no other one.
func TestCancel(t *testing.T) {
	c := start(t, 1, true, nil)
	c.initialize(answer1)
	proxy, agent := c.components[0], c.components[1]
	c.client.send(`{"jsonrpc":"2.0","id":"\u0061","method":"session/prompt","params":{}}`)
	proxy.want(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}`)
	proxy.send(`{"jsonrpc":"2.0","id":"a","method":"proxy/successor","params":{"method":"session/prompt","params":{}}}`)
	agent.want(`{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{}}`)

	c.client.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"b"}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[]}}`, `{"jsonrpc":"2.0","method":"$/cancel_request"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a"}}`)
	proxy.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
	proxy.send(`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"$/cancel_request","params":{"requestId":4}}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a"}}`)
	agent.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}`)

	// The agent asks meanwhile, and takes that back.
	agent.send(`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{}}`)
	proxy.want(`{"jsonrpc":"2.0","id":5,"method":"proxy/successor","params":{"method":"session/request_permission","params":{}}}`)
	proxy.send(`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{}}`)
	c.client.want(`{"jsonrpc":"2.0","id":6,"method":"session/request_permission","params":{}}`)
	agent.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0.0}}`)
	proxy.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`)
	proxy.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`)
	c.client.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":6}}`)

	// Answers still pass, and after them a cancellation means nothing.
	c.client.send(`{"jsonrpc":"2.0","id":6,"error":{"code":-32800,"message":"Request cancelled"}}`)
	proxy.want(`{"jsonrpc":"2.0","id":0,"error":{"code":-32800,"message":"Request cancelled"}}`)
	agent.send(`{"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"}}`)
	proxy.want(`{"jsonrpc":"2.0","id":"a","result":{"stopReason":"cancelled"}}`)
	proxy.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a"}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`)
	c.client.want(`{"jsonrpc":"2.0","id":"a","result":{}}`)
	if n := strings.Count(c.log.String(), "dropped a notification"); n != 3 {
		t.Errorf("%d notifications were dropped, want 3:\n%s", n, &c.log)
	}
}

// Updates arrive in order, and before the answer of their prompt.
func TestOrder(t *testing.T) {
	updates := tier.Pick(500, 1000, 2500, 5000)
	components := []conduct.Component{inMemory(t, "P0", passOn), inMemory(t, "P1", passOn), inMemory(t, "P2", passOn)}
	agent := inMemory(t, "agent", func(s rpc.Stream) error {
		for {
			line, err := s.Read()
			if err != nil {
				return nil
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				return err
			}
			if m.Method == "session/prompt" {
				for i := range updates {
					if err := s.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"n":%d}}`, i)); err != nil {
						return err
					}
				}
			}
			if err := s.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`, m.ID)); err != nil {
				return err
			}
		}
	})
	client, ended := runRaw(t, components, &agent)
	client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	client.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
	client.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}`)
	for i := range updates {
		client.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"n":%d}}`, i))
	}
	client.want(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1}}`)
	client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A chain without an agent is a proxy: its client has the successor of its last proxy.
func TestProxyMode(t *testing.T) {
	c := start(t, 2, false, nil)
	p0, p1 := c.components[0], c.components[1]
	c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	c.client.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"this chain has no agent: as a proxy it is initialized by proxy/initialize"}}`)
	c.client.send(`{"jsonrpc":"2.0","id":2,"method":"proxy/initialize","params":{"protocolVersion":1}}`)
	p0.want(`{"jsonrpc":"2.0","id":1,"method":"proxy/initialize","params":{"protocolVersion":1}}`)
	p0.send(`{"jsonrpc":"2.0","id":7,"method":"proxy/successor","params":{"method":"initialize","params":{"protocolVersion":1}}}`)
	p1.want(`{"jsonrpc":"2.0","id":2,"method":"proxy/initialize","params":{"protocolVersion":1}}`)
	p1.send(`{"jsonrpc":"2.0","id":7,"method":"proxy/successor","params":{"method":"initialize","params":{"protocolVersion":1}}}`)
	c.client.want(`{"jsonrpc":"2.0","id":3,"method":"proxy/successor","params":{"method":"initialize","params":{"protocolVersion":1}}}`)
	c.client.send(`{"jsonrpc":"2.0","id":3,"result":{"protocolVersion":1}}`)
	p1.want(`{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":1}}`)
	p1.send(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1}}`)
	p0.want(`{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":1}}`)
	p0.send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
	c.client.want(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1}}`)

	// From the successor, and up.
	c.client.send(`{"jsonrpc":"2.0","id":"s","method":"proxy/successor","params":{"method":"fs/read","params":[1]}}`)
	p1.want(`{"jsonrpc":"2.0","id":4,"method":"proxy/successor","params":{"method":"fs/read","params":[1]}}`)
	p1.send(`{"jsonrpc":"2.0","id":8,"method":"fs/read","params":[1]}`)
	p0.want(`{"jsonrpc":"2.0","id":5,"method":"proxy/successor","params":{"method":"fs/read","params":[1]}}`)
	p0.send(`{"jsonrpc":"2.0","id":8,"method":"fs/read","params":[1]}`)
	c.client.want(`{"jsonrpc":"2.0","id":6,"method":"fs/read","params":[1]}`)
	// Cancelled by the successor.
	c.client.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"s"}}`)
	p1.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}`)
	p1.send(`{"jsonrpc":"2.0","id":4,"result":null}`)
	c.client.want(`{"jsonrpc":"2.0","id":"s","result":null}`)
}

// Requests in both directions, and the client's cancellation, pass through 0 to 3 proxies.
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

// converse has a raw client and agent talk through proxies: updates, requests in both directions, cancellation.
func converse(t *testing.T, proxies []conduct.Component) {
	t.Helper()
	ours, theirs := rpc.Pipe()
	client, ended := runRaw(t, proxies, &conduct.Component{Transport: ours})
	agent := newEnd(t, "agent", theirs)
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
	agent.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32800,"message":"m","data":[1e400]}}`)
	client.want(`{"jsonrpc":"2.0","id":"p","error":{"code":-32800,"message":"m","data":[1e400]}}`)
	client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The trace has every message once, in the order in which they pass, without envelopes.
func TestTrace(t *testing.T) {
	var trace strings.Builder
	c := start(t, 1, true, &conduct.Options{Trace: &trace})
	c.initialize(answer1)
	proxy, agent := c.components[0], c.components[1]
	agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s\"","update":{}}}`)
	proxy.want(`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"session/update","params":{"sessionId":"s\"","update":{}}}}`)
	agent.send(`{"jsonrpc":"2.0","id":5,"method":"mcp/message","params":{"serverId":"m","requestId":"r","method":"tools/list"}}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":3,"error":{"code":-33001,"message":"no","more":1}}`)
	agent.next()
	agent.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`, `{"jsonrpc":"2.0","method":"no_params"}`)
	proxy.next()
	c.hangUp()
	if err := c.result(); err != nil {
		t.Error(err)
	}
	want := []string{
		`{"type":"request","protocol":"acp","from":"client","to":"proxy:0","id":1,"method":"proxy/initialize","params":` + initParams + `}`,
		`{"type":"request","protocol":"acp","from":"proxy:0","to":"agent","id":2,"method":"initialize","params":` + initParams + `}`,
		`{"type":"response","from":"agent","to":"proxy:0","id":2,"is_error":false,"payload":` + answer1 + `}`,
		`{"type":"response","from":"proxy:0","to":"client","id":1,"is_error":false,"payload":` + answer1 + `}`,
		`{"type":"notification","protocol":"acp","from":"agent","to":"proxy:0","method":"session/update","session":"s\"","params":{"sessionId":"s\"","update":{}}}`,
		`{"type":"request","protocol":"mcp","from":"agent","to":"proxy:0","id":3,"method":"tools/list","params":null}`,
		`{"type":"response","from":"proxy:0","to":"agent","id":3,"is_error":true,"payload":{"code":-33001,"message":"no","more":1}}`,
		`{"type":"notification","protocol":"acp","from":"agent","to":"proxy:0","method":"no_params","params":null}`,
	}
	lines := strings.Split(strings.TrimSpace(trace.String()), "\n")
	before := 0.0
	for i, line := range lines {
		var event struct{ TS *float64 }
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.TS == nil || *event.TS < before {
			t.Fatalf("%v, %s", err, line)
		}
		before = *event.TS
		if got := withoutTime(line); i >= len(want) || got != want[i] {
			t.Errorf("line %d:\n got %s", i, got)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
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
	if err := c.result(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(c.log.String(), "disk full"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &c.log)
	}
}

// Malformed and unexpected messages, and who learns of them.
func TestBadInput(t *testing.T) {
	type step struct {
		from  string // client, proxy or agent
		line  string
		reply string // what it gets itself
		at    string // who else gets something
		other string
		log   string
	}
	for name, steps := range map[string][]step{
		"client: not JSON":                         {{from: "client", line: `hello`, reply: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: `}},
		"client: a batch":                          {{from: "client", line: `[]`, reply: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: batches`}},
		"client: proxy/successor":                  {{from: "client", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"x"}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"this chain has an agent, and no successor"}}`}},
		"client: proxy/initialize":                 {{from: "client", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/initialize","params":{}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"this chain has an agent: it is initialized by initialize"}}`}},
		"client: a cancellation that is a request": {{from: "client", line: `{"jsonrpc":"2.0","id":1,"method":"$/cancel_request","params":{}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"$/cancel_request is a notification"}}`}},
		"proxy: a banner":                          {{from: "proxy", line: `Listening on port 1`, log: `text="Listening on port 1"`}, {from: "proxy", line: `again`}},
		"proxy: a broken line":                     {{from: "proxy", line: `{"jsonrpc":"2.0","method":`, reply: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error`}},
		"proxy: proxy/initialize":                  {{from: "proxy", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/initialize"}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`}},
		"proxy: no envelope":                       {{from: "proxy", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor"}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"proxy/successor: params is not an object"}}`}},
		"proxy: no method":                         {{from: "proxy", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":1}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"proxy/successor: method is not a string"}}`}},
		"proxy: two methods":                       {{from: "proxy", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"a","method":"b"}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"proxy/successor: a member occurs twice"}}`}},
		"proxy: params of a text":                  {{from: "proxy", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"a","params":"b"}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"proxy/successor: params of the message inside is neither an object nor an array"}}`}},
		"proxy: an envelope twice":                 {{from: "proxy", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"proxy/successor","params":{}}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"proxy/successor: proxy/successor applies to one hop, and is not wrapped"}}`}},
		"proxy: a notification without a method":   {{from: "proxy", line: `{"jsonrpc":"2.0","method":"proxy/successor","params":{}}`, log: `msg="dropped a notification" from="proxy:0 (P0)" method=proxy/successor error="proxy/successor: method is not a string"`}},
		"agent: proxy/successor":                   {{from: "agent", line: `{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"x"}}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the last component of the chain has no successor"}}`}},
		"agent: params of a number":                {{from: "agent", line: `{"jsonrpc":"2.0","id":1,"method":"x","params":1}`, reply: `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: params is neither an object nor an array"}}`}},
		"agent: an answer to nothing":              {{from: "agent", line: `{"jsonrpc":"2.0","id":77,"result":1}`, log: `msg="dropped an answer that matches no request" from="agent (A)" id=77`}},
		"proxy: answers twice": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3,"result":1}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","result":1}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3,"result":2}`, log: `msg="dropped an answer that matches no request" from="proxy:0 (P0)" id=3`},
		},
		"proxy: an answer with both": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3,"result":1,"error":{}}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: result and error in one response"`},
		},
		"proxy: an answer with neither": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: neither result nor error"`},
		},
		"proxy: an answer with neither, twice": { // a refusal would have an id that can be one of its own requests
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: neither result nor error"`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3}`, log: `msg="dropped an answer that matches no request" from="proxy:0 (P0)" id=3`},
		},
		"proxy: initialize as a notification": {
			{from: "proxy", line: `{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"initialize"}}`, log: `method=proxy/successor error="initialize is a request"`},
		},
		"client: initialize as a notification": {{from: "client", line: `{"jsonrpc":"2.0","method":"initialize"}`, log: `method=initialize error="initialize is a request"`}},
		"proxy: a batch":                       {{from: "proxy", line: `[{"jsonrpc":"2.0","id":3,"result":1}]`, log: `text="[{`}},
		"proxy: a log in JSON":                 {{from: "proxy", line: `{"level":"info","text":"ready"}`, log: `msg="dropped text that is not a message"`}},
		"proxy: a request without a version":   {{from: "proxy", line: `{"id":3,"method":"x"}`, reply: `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: jsonrpc is not \"2.0\""}}`}},
		"proxy: an answer without a version": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"id":3,"result":1}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: jsonrpc is not`},
		},
		"proxy: a broken answer without a version": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"id":3,"result":[}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: Parse error`},
		},
		"proxy: an answer that is not UTF-8": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","result":"` + "\xff" + `","id":3}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: Parse error`},
		},
		"proxy: a broken answer to nothing": {{from: "proxy", line: `{"jsonrpc":"2.0","id":77,"result":[}`, log: `msg="dropped an answer that matches no request" from="proxy:0 (P0)"`}},
		"client: nested too deeply":         {{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, reply: `{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"Invalid request: nested too deeply"}}`}},
		"proxy: a broken answer": {
			{from: "client", line: `{"jsonrpc":"2.0","id":"x","method":"m"}`, at: "proxy", other: `{"jsonrpc":"2.0","id":3,"method":"m"}`},
			{from: "proxy", line: `{"jsonrpc":"2.0","id":3,"result":[}`, at: "client", other: `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"proxy:0 (P0): malformed answer: Parse error`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 1, true, nil)
			c.initialize(answer1)
			ends := map[string]*end{"client": c.client, "proxy": c.components[0], "agent": c.components[1]}
			for _, s := range steps {
				ends[s.from].send(s.line)
				for who, want := range map[string]string{s.from: s.reply, s.at: s.other} {
					if want == "" {
						continue
					}
					if got := ends[who].next(); !strings.HasPrefix(got, want) {
						t.Errorf("%s:\n got %s\nwant %s", who, got, want)
					}
				}
			}
			// The chain continues.
			c.client.send(`{"jsonrpc":"2.0","method":"after"}`)
			ends["proxy"].want(`{"jsonrpc":"2.0","method":"after"}`)
			for _, e := range c.components {
				e.send(`{"jsonrpc":"2.0","method":"session/update"}`) // and has read what it was sent
			}
			c.client.want(`{"jsonrpc":"2.0","method":"session/update"}`)
			ends["proxy"].want(`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"session/update"}}`)
			for _, s := range steps {
				contains(t, c.log.String(), s.log)
			}
		})
	}
}

// A proxy that answers proxy/initialize has initialized its successor, and keeps the version.
func TestProxyBreaksInitialize(t *testing.T) {
	c := start(t, 1, true, nil)
	proxy, agent := c.components[0], c.components[1]
	c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
	contains(t, c.client.next(), `"message":"proxy:0 (P0): answered proxy/initialize without initializing its successor"`)
	c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"initialize"}}`)
	agent.next()
	agent.send(`{"jsonrpc":"2.0","id":3,"result":{"protocolVersion":1}}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":2}}`)
	contains(t, c.client.next(), `"message":"proxy:0 (P0): changed the protocolVersion of its successor from 1 to 2"`)
	// Its errors are its own.
	c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"no"}}`)
	c.client.want(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`)
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
	a.want(`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"the message is longer than 1000 bytes"}}`)
	a.send(`{"jsonrpc":"2.0","id":1,"result":"` + long + `"}`)
	contains(t, c.next(), `"message":"agent (A): the answer is longer than 1000 bytes"`)
	c.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	a.Close()
}

// A component that never answers initialize ends the chain: the last one that was asked.
func TestInitTime(t *testing.T) {
	for silent, want := range []string{"proxy:0 (P0): has not answered proxy/initialize within 10s", "proxy:1 (P1): has not answered proxy/initialize within 10s", "agent (A): has not answered initialize within 10s"} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, 2, true, &conduct.Options{InitTime: 10 * time.Second})
			c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
			for i, e := range c.components {
				e.next()
				if i == silent {
					break
				}
				e.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"initialize"}}`)
			}
			began := time.Now()
			contains(t, c.client.next(), want)
			if d := time.Since(began); d != 10*time.Second {
				t.Errorf("after %v", d)
			}
			err, ok := errors.AsType[*conduct.ComponentError](c.result())
			if !ok || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
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
			if err := c.result(); err != nil {
				t.Error(err)
			}
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

// A proxy that has swallowed an answer is named when the chain ends.
func TestSwallowed(t *testing.T) {
	c := start(t, 1, true, &conduct.Options{DrainTime: time.Millisecond})
	c.initialize(answer1)
	proxy, agent := c.components[0], c.components[1]
	c.client.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt"}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"session/prompt"}}`)
	agent.next()
	agent.send(`{"jsonrpc":"2.0","id":4,"result":1}`)
	proxy.next()
	c.client.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	proxy.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
	c.hangUp()
	if err := c.result(); err != nil {
		t.Error(err)
	}
	contains(t, c.log.String(), `msg="requests were not answered" by="proxy:0 (P0)" method=session/prompt count=1`)
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
