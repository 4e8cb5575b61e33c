package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/internal/test/tier"
)

// talker is a side that sends messages of several sessions, and answers requests after some time.
type talker struct {
	*peer
	name   string
	random *rand.Rand

	mu       sync.Mutex
	sent     map[string][]string // by session, as they must arrive
	received map[string][]string
	sessions map[string]string // of requests to this side and from it, by id
	answers  map[string]int    // to this side's requests
	open     sync.WaitGroup    // answers that are to be sent
}

type parsed struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		N         string
		Drop      bool
	}
	Result json.RawMessage
}

// roll returns a number below n.
func (s *talker) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// say sends a message, and notes that it must arrive.
func (s *talker) say(session, token string, arrives bool, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if arrives {
		s.sent[session] = append(s.sent[session], token)
	}
	if err := s.stream.Write([]byte(line)); err != nil {
		s.t.Error(err)
	}
}

// talk sends random messages.
func (s *talker) talk(messages int) {
	for n := range messages {
		session := fmt.Sprint("s", s.roll(3))
		drop := s.roll(10) == 0
		method := []string{"_n", "_r", "_hook_n", "_hook_r"}[s.roll(4)]
		token := fmt.Sprint(s.name, n)
		id := ""
		if strings.HasSuffix(method, "r") {
			id = fmt.Sprintf(`"id":%d,`, n)
			s.mu.Lock()
			s.sessions["mine"+fmt.Sprint(n)] = session
			s.answers[fmt.Sprint(n)] = 0
			s.mu.Unlock()
		}
		arrives := !drop || !strings.Contains(method, "hook")
		s.say(session, token, arrives, fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":{"sessionId":%q,"n":%q,"drop":%v}}`, id, method, session, token, drop))
		time.Sleep(time.Duration(s.roll(3)) * time.Millisecond)
	}
}

// listen receives messages, and answers requests.
func (s *talker) listen() {
	for line := range s.lines {
		var m parsed
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			s.t.Errorf("%s gets %s", s.name, line)
			continue
		}
		id := string(m.ID)
		s.mu.Lock()
		switch {
		case m.Method == "":
			session := s.sessions["mine"+id]
			if s.answers[id]++; strings.Contains(string(m.Result), "token") {
				s.received[session] = append(s.received[session], "answer "+id)
			}
			s.mu.Unlock()
			continue
		case m.Method == "_own":
		default:
			s.received[m.Params.SessionID] = append(s.received[m.Params.SessionID], m.Params.N)
		}
		s.mu.Unlock()
		delay := time.Duration(s.roll(5)) * time.Millisecond
		if id == "" {
			continue
		}
		s.open.Go(func() {
			time.Sleep(delay)
			s.say(m.Params.SessionID, "answer "+id, m.Method != "_own", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"token":1}}`, id))
		})
	}
}

// Whatever is sent when, and whatever hooks do, each message arrives once, each request is answered once, and the
// messages of a session keep their order, unless a hook asks one of the sides for something.
func TestOrderOfEverything(t *testing.T) {
	for _, asking := range []bool{false, true} {
		for seed := range uint64(tier.Pick(10, 20, 40, 60)) {
			synctest.Test(t, func(t *testing.T) { talkRandomly(t, seed, asking) })
			if t.Failed() {
				t.Fatalf("with the seed %d, hooks that ask: %v", seed, asking)
			}
		}
	}
}

func talkRandomly(t *testing.T, seed uint64, asking bool) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	pause := func() { time.Sleep(time.Duration(roll(4)) * time.Millisecond) }
	ask := func(ctx context.Context) error {
		if !asking || roll(3) > 0 {
			return nil
		}
		_, err := proxy.Call[struct{}](ctx, proxy.Side(roll(2)), "_own", nil)
		return err
	}
	hook := func(ctx context.Context, m *proxy.Message, next func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
		pause()
		if err := ask(ctx); err != nil {
			return nil, err
		}
		if strings.Contains(string(m.Params), `"drop":true`) {
			return json.RawMessage(`{}`), nil
		}
		result, err := next(ctx, m.Params)
		pause()
		if err := ask(ctx); err != nil {
			return nil, err
		}
		return result, err
	}
	r := newRig(t, proxy.Hooks{Raw: map[string]proxy.Raw{"_hook_n": hook, "_hook_r": hook}}, nil, true)
	var listening, talking sync.WaitGroup
	var sides []*talker
	for i, p := range []*peer{r.client, r.agent} {
		s := &talker{
			peer: p, name: fmt.Sprint("side", i, "-"), random: rand.New(rand.NewPCG(seed, uint64(i+1))),
			sent: map[string][]string{}, received: map[string][]string{}, sessions: map[string]string{}, answers: map[string]int{},
		}
		sides = append(sides, s)
		listening.Go(s.listen)
		talking.Go(func() { s.talk(40) })
	}
	talking.Wait()
	time.Sleep(time.Minute)
	for i, s := range sides {
		s.open.Wait()
		other := sides[1-i]
		s.mu.Lock()
		other.mu.Lock()
		for id, n := range s.answers {
			if n != 1 {
				t.Errorf("%s: the request %s has %d answers", s.name, id, n)
			}
		}
		for session := range s.sent {
			sent, received := s.sent[session], other.received[session]
			if asking {
				slices.Sort(sent)
				slices.Sort(received)
			}
			if !slices.Equal(sent, received) {
				t.Errorf("%s, %s\nsent     %q\nreceived %q", s.name, session, sent, received)
			}
		}
		s.mu.Unlock()
		other.mu.Unlock()
	}
	r.end()
	listening.Wait()
}

// FuzzPass compares what arrives with what was sent, through a proxy whose hooks change nothing. What hooks refuse may be
// missing.
func FuzzPass(f *testing.F) {
	for _, line := range []string{
		prompt(1, "s"), cancel("s"), update("s", 1), cancelRequest(1), result(1, endTurn), "{", "[]", "\"", "{}", "null", "\u2028",
		initialize("initialize", "null"), `{"id":1e400,"method":"_vendor/thing"}`, `{"jsonrpc":"2.0","id":1,"error":{}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"session/prompt","params":{}}`,
	} {
		f.Add(line, line)
		f.Add(line, update("s", 2))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, line := range []string{a, b} {
			if strings.Trim(line, " \t\r") == "" || strings.ContainsAny(line, "\n") || strings.HasPrefix(line, "\ufeff") {
				t.Skip()
			}
		}
		for _, hooks := range []proxy.Hooks{{}, transparent()} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, hooks, nil, true)
				r.agent.send(update("s", 0))
				synctest.Wait()
				r.client.send(a, b)
				synctest.Wait()
				var back, forth []string
				for len(r.agent.lines) > 0 {
					forth = append(forth, <-r.agent.lines)
				}
				for len(r.client.lines) > 0 {
					back = append(back, <-r.client.lines)
				}
				if len(back) == 0 || back[0] != update("s", 0) {
					t.Errorf("the client got %q", back)
				}
				want := []string{a, b}
				if len(hooks.Raw) == 0 && !slices.Equal(forth, want) {
					t.Errorf("the agent got %q, want %q", forth, want)
				}
				for _, line := range forth {
					if !slices.Contains(want, line) {
						t.Errorf("the agent got %q, which nobody sent", line)
					}
				}
				r.client.stream.Close()
				if err := <-r.served; err != nil {
					t.Errorf("the proxy ended with %v", err)
				}
				r.agent.stream.Close()
			})
		}
	})
}
