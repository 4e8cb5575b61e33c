package reconnect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/test/must"
)

// keyed is an agent that has one session, outside of its connections, and honours idempotency keys. Its turns continue
// while nobody is connected.
type keyed struct {
	version    int
	echo       bool   // the user's message comes before the answer
	waits      bool   // a turn whose connection is cut ends only when the session is resumed
	reason     string // the snapshot's stop reason
	incomplete bool   // its replays have no end
	honours    bool   // keys, in version 1

	cuts []int // at which message that it reads or writes it cuts each connection, the first one after session/new
	cut  int   // how many it has cut

	mu       *sync.Mutex
	prompts  int      // that it got
	history  []string // updates
	inserted int
	keys     map[string]string
	state    string
	rest     []string // updates of the turn that are still to come
	conns    int
	running  *sync.WaitGroup
}

const (
	textOf  = `{"sessionUpdate":"agent_message_chunk","messageId":"a%d","content":{"type":"text","text":"done"}}`
	userOf  = `{"sessionUpdate":"user_message","messageId":"m%d","content":[{"type":"text","text":"go"}]}`
	idleOf  = `{"sessionUpdate":"state_update","state":"idle","stopReason":"max_tokens"}`
	runs    = `{"sessionUpdate":"state_update","state":"running"}`
	replays = `{"sessionUpdate":"replay_complete"}`
)

func (a *keyed) transport(keys *translate.Keys) func(context.Context) (acp.Transport, error) {
	return func(ctx context.Context) (acp.Transport, error) {
		ours, theirs := acp.Pipe()
		stream, err := theirs.Connect(ctx)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.conns++
		link := &keyedLink{agent: a, stream: stream, number: a.conns, open: a.conns > 1}
		a.running.Go(link.serve)
		return translate.Transport(ours, translate.ClientSide, 1, &translate.Options{Keys: keys}), nil
	}
}

// keyedLink is a connection of the agent.
type keyedLink struct {
	agent  *keyed
	stream rpc.Stream
	number int
	open   bool // its messages count
	count  int
	dead   bool
}

// message counts a message, and cuts the connection.
func (l *keyedLink) message() {
	if l.open {
		l.count++
	}
	if l.open && l.number <= len(l.agent.cuts) && l.count == l.agent.cuts[l.number-1] {
		l.dead = true
		l.agent.cut++
		_ = l.stream.Close()
	}
}

func (l *keyedLink) write(format string, args ...any) {
	if l.message(); !l.dead && l.stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format, args...)) != nil {
		l.dead = true
	}
}

func (l *keyedLink) update(update string) {
	l.write(`"method":"session/update","params":{"sessionId":"s","update":%s}}`, update)
}

func (l *keyedLink) serve() {
	defer l.stream.Close()
	for {
		line, err := l.stream.Read()
		if err != nil {
			return
		}
		if !l.agent.handle(l, line) {
			return
		}
	}
}

// handle handles a message, and reports whether the connection is still there.
func (a *keyed) handle(l *keyedLink, line []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.message(); l.dead {
		return false
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			IdempotencyKey string
			ReplayFrom     any
			Meta           acp.Meta `json:"_meta"`
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		panic(err)
	}
	id := m.ID
	switch m.Method {
	case "initialize":
		if a.honours && strings.Contains(string(line), `"_meta":{"`+translate.MetaIdempotencyKey+`":true}`) {
			l.write(`"id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"_meta":{"%s":{}}}}`, id, translate.MetaIdempotencyKey)
		} else if a.version == 1 {
			l.write(`"id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`, id)
		} else {
			l.write(`"id":%s,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`, id)
		}
	case "session/new":
		l.write(`"id":%s,"result":{"sessionId":"s"}}`, id)
		l.open = true
	case "session/resume", "session/load":
		if m.Params.ReplayFrom != nil {
			for _, update := range a.history {
				l.update(update)
			}
			if !a.incomplete {
				l.update(replays)
			}
		}
		if a.state == "running" {
			l.update(runs)
		} else if a.version == 2 {
			l.update(strings.Replace(`{"sessionUpdate":"state_update","state":"idle"}`, `"idle"`, `"idle"`+a.reason, 1))
		}
		l.write(`"id":%s,"result":{}}`, id)
		a.work(l)
	case "session/prompt":
		a.prompt(l, id, m.Params.IdempotencyKey+string(m.Params.Meta[translate.MetaIdempotencyKey]))
	}
	return !l.dead
}

// prompt inserts a prompt, unless its key is known, and begins a turn.
func (a *keyed) prompt(l *keyedLink, id json.RawMessage, key string) {
	a.prompts++
	if a.keys == nil {
		a.keys = map[string]string{}
	}
	if first := a.keys[key]; first != "" && key != "" {
		l.write(`"id":%s,"result":{"messageId":"%s","stopReason":"max_tokens"}}`, id, first) // of both versions
		return
	}
	a.inserted++
	a.keys[key] = fmt.Sprintf("m%d", a.inserted)
	if a.version == 1 {
		l.update(fmt.Sprintf(textOf, a.inserted))
		l.write(`"id":%s,"result":{"stopReason":"max_tokens"}}`, id)
		return
	}
	user := fmt.Sprintf(userOf, a.inserted)
	a.history = append(a.history, user)
	a.state, a.rest = "running", []string{fmt.Sprintf(textOf, a.inserted), idleOf}
	if a.echo {
		l.update(user)
	}
	l.write(`"id":%s,"result":{"messageId":"%s"}}`, id, a.keys[key])
	if !a.echo {
		l.update(user)
	}
	l.update(runs)
	a.work(l)
}

// work does the rest of the turn.
func (a *keyed) work(l *keyedLink) {
	for len(a.rest) > 0 && (!l.dead || !a.waits) {
		if a.rest[0] == idleOf {
			a.state = "idle"
		} else {
			a.history = append(a.history, a.rest[0])
		}
		l.update(a.rest[0])
		a.rest = a.rest[1:]
	}
}

// TestRetryPrompts cuts the connection at each message from the prompt on, and the next one at each of its messages.
// However often it is cut, a prompt is inserted at most once, and its result is that of the turn or unknown.
func TestRetryPrompts(t *testing.T) {
	const reason = `,"stopReason":"max_tokens"`
	for _, c := range []struct {
		name  string
		agent keyed
		off   bool
		sent  int    // how often at most
		want  string // by the message at which only the first connection is cut: max_tokens or interrupted, and how often it was sent
	}{
		{"version 2", keyed{version: 2, reason: reason}, false, 3, "m1 m2 m1 m1 m1 m1 "},
		{"the message comes first", keyed{version: 2, echo: true, reason: reason}, false, 3, "m1 m2 m2 m1 m1 m1 "},
		{"the turn continues", keyed{version: 2, waits: true}, false, 3, "m1 m2 m1 m1 m1 i1 "},
		{"the outcome is not known", keyed{version: 2}, false, 3, "m1 i2 i1 i1 i1 i1 "},
		{"incomplete replays", keyed{version: 2, incomplete: true, waits: true}, false, 3, "i0 i1 m1 m1 m1 i1 "},
		{"off", keyed{version: 2, reason: reason}, true, 1, "i0 i1 i1 i1 i1 i1 "},
		{"version 1", keyed{version: 1}, false, 1, "i0 i1 i1 "},
		{"version 1, with keys", keyed{version: 1, honours: true}, false, 3, "m1 m2 m2 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			run := func(cuts ...int) (cut int) {
				synctest.Test(t, func(t *testing.T) {
					a := c.agent
					a.cuts, a.mu, a.running = cuts, &sync.Mutex{}, &sync.WaitGroup{}
					result := a.run(t, &reconnect.Options{RetryPrompts: !c.off})
					known := result == "max_tokens" && a.inserted == 1
					if !known && result != "interrupted" || a.inserted > 1 || a.prompts > c.sent {
						t.Errorf("cut at %v: %s; sent %d, inserted %d", cuts, result, a.prompts, a.inserted)
					}
					if cut = a.cut; len(cuts) == 1 && cut == 1 {
						got += fmt.Sprintf("%c%d ", result[0], a.prompts)
					}
				})
				return cut
			}
			for first := 1; run(first) == 1; first++ {
				for second := 1; run(first, second) == 2; second++ {
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// run runs a prompt, and returns its stop reason or why there is none.
func (a *keyed) run(t *testing.T, options *reconnect.Options) string {
	var keys translate.Keys
	c := must.Get(reconnect.Connect(t.Context(), a.transport(&keys), acp.ClientHandlers{}, &acp.ClientOptions{Conn: quiet()}, options))(t)
	defer a.running.Wait()
	defer c.Close()
	s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/work"}))(t)
	res, err := s.Prompt(t.Context(), acp.TextBlock("go"))
	if _, ok := errors.AsType[*reconnect.InterruptedError](err); ok && errors.Is(err, acp.ErrClosed) {
		return "interrupted"
	} else if err != nil {
		return err.Error()
	}
	return string(res.StopReason)
}

// TestUnsentPrompt loses the connection just before a prompt is sent, which is therefore sent on the next one, to an
// agent of any version.
func TestUnsentPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{loads: true}
		opts := &acp.ClientOptions{Conn: quiet()}
		var once sync.Once
		opts.Conn.Hooks.Call = func(ctx context.Context, call *rpc.CallInfo, next func(context.Context) error) error {
			if call.Method == acp.MethodPrompt {
				once.Do(func() { a.kill(); synctest.Wait() })
			}
			return next(ctx)
		}
		t.Cleanup(a.running.Wait)
		c, _ := tappedClient(t, a.transport, acp.ClientHandlers{}, opts, nil)
		s := must.Get(c.NewSession(t.Context(), folder))(t)
		must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	})
}
