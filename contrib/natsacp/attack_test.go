package natsacp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// raw is a client that speaks JSON.
type raw struct {
	testing.TB
	stream rpc.Stream
	id     int
}

func (r *rig) raw(url string) *raw {
	c := &raw{TB: r, stream: must.Get(remote.Dial(url, nil).Connect(r.Context()))(r)}
	r.Cleanup(func() { c.stream.Close() })
	return c
}

func (c *raw) send(line string) {
	c.Helper()
	must.Do(c, c.stream.Write([]byte(line)))
}

// ask sends a request, and returns its result or error. questions are called with the ids of what the agent asks.
func (c *raw) ask(request string, questions ...func(id json.RawMessage)) string {
	c.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, c.id, request))
	for {
		var m struct {
			Method            string
			ID, Result, Error json.RawMessage
		}
		must.Do(c, json.Unmarshal(must.Get(c.stream.Read())(c), &m))
		if m.Method == acp.MethodRequestPermission {
			questions[0](m.ID)
		} else if m.Method == "" && string(m.ID) != "null" { // that of what cannot be read
			want(c, "what is answered", string(m.ID), fmt.Sprint(c.id))
			return string(m.Result) + string(m.Error)
		}
	}
}

// kept makes a gateway keep what its HTTP streams have sent.
func kept(o *natsacp.GatewayOptions) { o.Server.History = remote.MemoryHistory(1000, 1<<20) }

// A client over HTTP that loses its gateway in a turn gets at another one what it has missed: all of it, in order, and
// once, whether the turn still runs, has ended, or its node has died.
func TestResumeElsewhere(t *testing.T) {
	for _, test := range []struct{ name, prompt, wait string }{
		{"running", "say=1000 ask wait=1 say=10", ""},
		{"ended", "say=1000 ask say=10", "ended"},
		{"node died", "say=1000 ask say=10 hang", "died"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.opts.Lease = 2 * time.Second
			nc, nodeNetwork := r.network()
			r.nodeOf(nc, "n1", r.agent("n1"))
			dying, network := r.network()
			g1, _ := r.gatewayOn(dying, "g1", kept)
			var to atomic.Pointer[natsacp.Gateway] // as of a load balancer
			to.Store(g1)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { to.Load().ServeHTTP(w, req) }))
			r.Cleanup(func() {
				front.CloseClientConnections()
				front.Close()
			})
			dialer := remote.Dial(front.URL, &remote.DialOptions{Resume: true, Logger: quiet, OnGap: func(session string, err error) {
				if session != "" {
					t.Errorf("there is a gap: %v", err)
				}
			}})
			asked := make(chan struct{})
			first := r.user("", func(u *user) {
				u.transport, u.accept = dialer, map[string]string{"PRM-5": "the gateway dies", "PRM-12": "the gateway dies", "CAN-1": "the gateway dies"}
				u.ask = func(ctx context.Context, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					close(asked)
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
			})
			s := first.session()
			go s.Prompt(t.Context(), acp.TextBlock(test.prompt))
			<-asked
			first.await(s, "999;")
			network.Hold(true)
			defer network.Hold(false)
			front.CloseClientConnections()

			// Meanwhile another client answers the question.
			g2, url := r.gateway("g2", kept)
			answering := r.user(url, func(u *user) { u.accept = map[string]string{"PRM-1": "the prompt is of the first client"} })
			resumed := must.Get(answering.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(r)
			answering.await(resumed, "yes"+numbers(10))
			answering.ClientConn.Close()
			switch test.wait {
			case "ended":
				eventually(r, "the agent has ended", func() bool { return r.record(s).Node == "" })
			case "died":
				nodeNetwork.Hold(true)
				defer nodeNetwork.Hold(false)
				r.node("n2")
			}
			to.Store(g2)
			got := first.said(s)
			second := r.user("", func(u *user) {
				u.transport, u.accept = dialer, map[string]string{"PRM-1": "the prompt is of the first connection"}
			})
			again := must.Get(second.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(r)
			second.await(again, numbers(10))
			second.wantSaid(got+second.said(again), numbers(1000)+"yes"+numbers(10))
			if test.wait == "" {
				eventually(r, "the turn ends after its last update", func() bool {
					res, err := again.Prompt(t.Context(), acp.TextBlock("say=3"))
					if errors.Is(err, acp.ErrInvalidRequest) { // the session is busy
						return false
					}
					must.Do(r, err)
					if res.StopReason != acp.StopReasonEndTurn {
						t.Errorf("the turn ended with %q", res.StopReason)
					}
					return true
				})
				second.wantSaid(second.said(again), numbers(3))
			}
		})
	}
}

// A cursor that is unknown, of another session, of another user, or no longer in the log is refused.
func TestCursors(t *testing.T) {
	r, url := newFleet(t, kept, annAndBob)
	u := r.as(url, "a")
	s, other := u.session(), u.session()
	u.wantSaid(u.prompt(s, "say=3"), numbers(3))
	link := r.record(s).Link
	cursor := fmt.Sprintf("X-0.%d.1.%s", must.Get(r.log().GetLastMsgForSubject(t.Context(), "acp.log."+link))(r).Sequence, link)
	request := func(method, body string, headers map[string]string) *http.Response {
		t.Helper()
		url := "http" + strings.TrimPrefix(url, "ws")
		req := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
		for name, value := range headers {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		res := must.Get(http.DefaultClient.Do(req))(t)
		must.Do(t, res.Body.Close())
		return res
	}
	for _, test := range []struct {
		name, token, cursor string
		session             acp.SessionID
		want                int
	}{
		{"good", "a", cursor, s.ID(), 200},
		{"another user's", "b", cursor, s.ID(), 409},
		{"another session's", "a", cursor, other.ID(), 409},
		{"the connection's", "a", cursor, "", 409},
		{"unknown link", "a", strings.ReplaceAll(cursor, link, "NOLINK"), s.ID(), 409},
		{"unknown place", "a", "X-0.999999.1." + link, s.ID(), 409},
		{"wildcard", "a", "X-0.1.1.*", s.ID(), 409},
		{"nonsense", "a", "x", s.ID(), 409},
	} {
		connected := request(http.MethodPost, ask("0", "initialize", `{"protocolVersion":1}`), map[string]string{
			"Content-Type": "application/json", "Authorization": "Bearer " + test.token,
		})
		res := request(http.MethodGet, "", map[string]string{
			"Accept": "text/event-stream", "Authorization": "Bearer " + test.token, "Last-Event-ID": test.cursor,
			remote.HeaderConnection: connected.Header.Get(remote.HeaderConnection), remote.HeaderSession: string(test.session),
		})
		if res.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", test.name, res.StatusCode, test.want)
		}
	}
}

// tries returns how attempts to have a session end.
func (u *user) tries(id acp.SessionID) map[string]error {
	_, load := u.LoadSession(u.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"})
	_, resume := u.ResumeSession(u.Context(), &acp.ResumeSessionRequest{SessionID: id, Cwd: "/w"})
	_, remove := u.DeleteSession(u.Context(), &acp.DeleteSessionRequest{SessionID: id})
	return map[string]error{"load": load, "resume": resume, "delete": remove}
}

// Records that are damaged, of a newer format, or in the place of another one are not used, and not overwritten.
func TestRecords(t *testing.T) {
	r, url := newFleet(t)
	u := r.user(url)
	records := must.Get(r.js().KeyValue(t.Context(), "acp_sessions"))(r)
	good := u.session()
	for name, text := range map[string]string{
		"damaged": `{"id":`,
		"newer":   `{"id":"ID","format":1,"cwd":"/w"}`,
		"another": `{"id":"other","cwd":"/w"}`,
		"number":  `7`,
	} {
		s := u.session()
		u.wantSaid(u.prompt(s, "say=1"), numbers(1))
		must.Do(r, s.Close(t.Context()))
		eventually(r, "the agent has ended", func() bool { return r.record(s).Node == "" })
		var key string
		keys := must.Get(records.ListKeys(t.Context()))(r)
		for k := range keys.Keys() {
			if entry, err := records.Get(t.Context(), k); err == nil && strings.Contains(string(entry.Value()), string(s.ID())) {
				key = k
			}
		}
		text = strings.ReplaceAll(text, "ID", string(s.ID()))
		must.Get(records.PutString(t.Context(), key, text))(r)
		for what, err := range u.tries(s.ID()) {
			if !errors.Is(err, rpc.ErrInternal) {
				t.Errorf("%s of a session with the record %s: %v", what, name, err)
			}
		}
		if entry, err := records.Get(t.Context(), key); err != nil || string(entry.Value()) != text {
			t.Errorf("%s: the record is %v, %v", name, entry, err)
		}
		all, err := r.own().Sessions(t.Context())
		if err == nil || !strings.Contains(err.Error(), key) || len(all) != 1 || all[0].ID != string(good.ID()) {
			t.Errorf("%s: the records are %v, %v", name, all, err)
		}
		page, err := u.ListSessions(t.Context(), &acp.ListSessionsRequest{})
		if err != nil || len(page.Sessions) != 1 {
			t.Errorf("%s: the client's list is %v, %v", name, page, err)
		}
		must.Do(r, records.Purge(t.Context(), key))
	}
	u.wantSaid(u.prompt(good, "say=2"), numbers(2))
}

// A request that agents may read differently than the gateway is refused, so that it cannot reach the session of another
// user through one's own.
func TestAmbiguous(t *testing.T) {
	f := newFront(t, 1)
	f.begins()
	for _, line := range []string{
		`"method":"session/prompt","params":{"sessionId":"s","sessionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"hers","sessionId":"s","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"s","SessionID":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"s","\u0073essionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"s","ſessionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"SESSIONID":"hers","prompt":[]}`,
		`"method":"session/load","params":{"sessionId":"s","sessionid":"hers","cwd":"/w","mcpServers":[]}`,
		`"method":"_vendor/read","params":{"SessionId":"hers"}`,
		`"method":"session/prompt","params":{"sessionId":"s","prompt":[]},"Params":{"sessionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"s","prompt":[]},"params":{"sessionId":"hers","prompt":[]}`,
		`"method":"session/list","METHOD":"session/load","params":{"sessionId":"s"}`,
	} {
		if answer := f.ask(line); !strings.Contains(answer, "-32600") {
			t.Errorf("%s is answered with %s", line, answer)
		}
		f.send(`{"jsonrpc":"2.0",` + line + `}`) // the same as a notification
	}
	f.goes("+") // the next message that a node gets
	f.leaves()
}

// Two clients that prompt one session at two gateways take it from each other. Each prompt is answered, succeeds with all
// its text or fails, and runs once at most; then the session works.
func TestTwoClients(t *testing.T) {
	r := newRig(t)
	r.opts.Lease = 2 * time.Second
	r.node("n1")
	r.node("n2")
	_, url1 := r.gateway("g1")
	_, url2 := r.gateway("g2")
	others := func(u *user) { u.accept = map[string]string{"PRM-13": "the updates are of the other client's turn"} }
	one := r.user(url1, others)
	first := one.session()
	one.wantSaid(one.prompt(first, "say=1"), numbers(1))
	two := r.user(url2, others)
	second := must.Get(two.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: first.ID(), Cwd: "/w"}))(r)
	const rounds = 15
	var working sync.WaitGroup
	for name, s := range map[string]*acp.ClientSession{"one": first, "two": second} {
		working.Go(func() {
			for i := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				text := fmt.Sprintf("say=20 %s=%d", name, i)
				if _, err := s.Prompt(ctx, acp.TextBlock(text)); ctx.Err() != nil {
					t.Errorf("the prompt %q was not answered: %v", text, err)
				}
				cancel()
				if n := r.ran(s, text); n > 1 {
					t.Errorf("the prompt %q ran %d times", text, n)
				}
			}
		})
	}
	working.Wait()
	one.said(first)
	eventually(r, "the session works", func() bool {
		one.said(first)
		_, err := first.Prompt(t.Context(), acp.TextBlock("say=3"))
		return err == nil && one.said(first) == numbers(3)
	})
}

// Nodes are drained and started again while clients prompt. Nobody gets an error, and no prompt runs twice.
func TestDrains(t *testing.T) {
	r := newRig(t)
	rounds, sessions := tier.Pick(3, 6, 8, 100), tier.Pick(3, 5, 8, 20)
	_, url := r.gateway("g1")
	operator := r.fleet(dial(t, r.url))
	nodes := []*natsacp.Node{r.node("a"), r.node("b")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var working sync.WaitGroup
	var done atomic.Int64
	for range sessions {
		u := r.user(url)
		s := u.session()
		working.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("say=10 n=%d", i)
				if _, err := s.Prompt(t.Context(), acp.TextBlock(text)); err != nil {
					t.Errorf("a prompt fails: %v", err)
					return
				}
				if got := u.said(s); got != numbers(10) {
					t.Errorf("the session said %q", got)
				}
				if n := r.ran(s, text); n != 1 {
					t.Errorf("the prompt %q ran %d times", text, n)
				}
				done.Add(1)
			}
		})
	}
	for i := range rounds {
		before := done.Load()
		eventually(r, "turns end", func() bool { return done.Load() >= before+int64(sessions) || t.Failed() })
		old := nodes[i%2]
		must.Do(r, operator.Drain(t.Context(), old.Name()))
		select {
		case <-old.Drained():
		case <-time.After(patience):
			t.Fatal("the node is not drained")
		}
		must.Do(r, old.Close())
		nodes[i%2] = r.node(old.Name())
	}
	cancel()
	working.Wait()
	if err := operator.Drain(t.Context(), "another"); err == nil {
		t.Error("a node was drained that does not exist")
	}
}

// Messages of sizes around those at which they are split arrive, in both directions.
func TestSizes(t *testing.T) {
	for _, limit := range []int32{64 << 10, 1 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			r := newRig(t, func(o *server.Options) { o.MaxPayload = limit })
			r.node("n1")
			_, url := r.gateway("g1")
			u := r.user(url)
			session := u.session()
			for _, around := range []int{int(min(limit, 256<<10)) - 1<<10, int(limit)} {
				for _, off := range []int{-400, -200, -1, 0, 1, 64} {
					size := around + off
					u.wantSaid(u.prompt(session, fmt.Sprintf("long=%d", size)), strings.Repeat("x", size))
					u.wantSaid(u.prompt(session, "say=1 "+strings.Repeat("z", size)), numbers(1))
				}
			}
		})
	}
}

// When JetStream is full, prompts fail with an error, and nothing hangs. When there is room again, sessions work.
func TestFull(t *testing.T) {
	tier.Need(t, tier.Full)
	r := newRig(t, func(o *server.Options) { o.JetStreamMaxStore, o.JetStreamMaxMemory = 8<<20, -1 })
	r.opts = &natsacp.Options{Lease: 2 * time.Second, LogBytes: 4 << 20}
	r.node("n1")
	_, url := r.gateway("g1", func(o *natsacp.GatewayOptions) { o.OpenTimeout = 2 * time.Second })
	u := r.user(url)
	session := u.session()
	u.wantSaid(u.prompt(session, "say=3"), numbers(3))
	js := r.js()
	filler := must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "filler", Subjects: []string{"filler"}}))(r)
	for size := 256 << 10; size > 0; {
		if _, err := js.Publish(t.Context(), "filler", make([]byte, size)); err != nil {
			size /= 2
		}
	}
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := session.Prompt(ctx, acp.TextBlock(fmt.Sprintf("say=3 full=%d", i)))
		if err == nil || ctx.Err() != nil {
			t.Errorf("while JetStream is full, the prompt ended with %v", err)
		}
		cancel()
		if n := r.ran(session, fmt.Sprintf("say=3 full=%d", i)); n > 1 {
			t.Errorf("the prompt ran %d times", n)
		}
	}
	must.Do(r, filler.Purge(t.Context()))
	eventually(r, "the session works again", func() bool {
		u.said(session)
		_, err := session.Prompt(t.Context(), acp.TextBlock("say=3"))
		return err == nil && u.said(session) == numbers(3)
	})
}

// A cancellation arrives before messages that were sent earlier and wait.
func TestCancelOvertakes(t *testing.T) {
	r := newRig(t)
	begun, let, got := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	r.nodeOf(dial(r, r.url), "n1", natsacp.InProcess(func(ctx context.Context, t rpc.Transport) error {
		stream, err := t.Connect(ctx)
		for before := 0; err == nil; {
			var line []byte
			if line, err = stream.Read(); err != nil {
				break
			}
			switch what, id, _ := strings.Cut(brief(r, string(line)), " "); what {
			case acp.MethodInitialize:
				err = stream.Write([]byte(reply(id, `{"protocolVersion":1}`)))
			case acp.MethodNewSession:
				err = stream.Write([]byte(reply(id, `{"sessionId":"s"}`)))
			case acp.MethodPrompt:
				close(begun)
				<-let
			case acp.MethodCancel:
				got <- before
			default:
				before += len(line)
			}
		}
		return nil
	}))
	_, url := r.gateway("g1")
	nc := dial(r, r.url)
	spy := must.Get(nc.SubscribeSync(">"))(r)
	must.Do(r, nc.Flush())
	c := r.raw(url)
	c.ask(`"method":"initialize","params":{"protocolVersion":1}`)
	c.ask(`"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`)
	c.send(ask("9", acp.MethodPrompt, promptOfS))
	<-begun
	const count, size = 14, 1 << 20
	for range count {
		c.send(`{"jsonrpc":"2.0","method":"_bulk","params":{"sessionId":"s","text":"` + strings.Repeat("x", size) + `"}}`)
	}
	c.send(note(acp.MethodCancel, ""))
	// The agent continues when the node has answered the gateway's frame with the cancellation; later it would overtake less.
	for reply := ""; ; {
		m := must.Get(spy.NextMsgWithContext(t.Context()))(r)
		if strings.HasPrefix(m.Subject, "acp.up.") && m.Data[0] == 'c' {
			reply = m.Reply
		} else if m.Subject == reply {
			break
		}
	}
	close(let)
	if before := <-got; before > 4*size {
		t.Errorf("%d bytes arrived before the cancellation", before)
	}
}

// Requests that fail, or that make no sense, have the answers that the agent itself would give, and leave the session as it is.
func TestOddRequests(t *testing.T) {
	r, url := newFleet(t)
	c := r.raw(url)
	ask := func(method, params string, questions ...func(id json.RawMessage)) string {
		t.Helper()
		return c.ask(fmt.Sprintf(`"method":%q,"params":%s`, method, params), questions...)
	}
	want := func(got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("the answer is %s, want %s", got, part)
		}
	}
	want(ask("initialize", `{"protocolVersion":"one"}`), "-32602")
	want(ask("initialize", `{"protocolVersion":1}`), "protocolVersion")
	want(ask("initialize", `{"protocolVersion":1}`), "-32600")
	var made struct{ SessionID string }
	must.Do(r, json.Unmarshal([]byte(ask("session/new", `{"cwd":"/w","mcpServers":[]}`)), &made))
	session := fmt.Sprintf(`"sessionId":%q`, made.SessionID)
	want(ask("session/delete", `{"sessionId":"unknown"}`), "{}")
	want(ask("session/load", `{"cwd":"/w","mcpServers":[]}`), "-32602")
	for range 3 {
		want(ask("session/load", `{`+session+`,"cwd":"/w","mcpServers":7}`), "-32602")
	}
	prompt := func(text string) string {
		return fmt.Sprintf(`{%s,"prompt":[{"type":"text","text":%q}]}`, session, text)
	}
	want(ask("session/prompt", prompt("say=1")), "end_turn")
	for i := range 30 { // a cancellation does not reach a prompt that follows it
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{` + session + `}}`)
		want(ask("session/prompt", prompt(fmt.Sprintf("say=1 n=%d", i))), "end_turn")
	}
	want(ask("session/prompt", prompt("ask"), func(id json.RawMessage) {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s}`, id)) // neither a result nor an error
	}), "-32603")
	want(ask("session/prompt", prompt("say=2")), "end_turn")
}
