package natsacp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// balancer passes requests to one of several gateways, as a load balancer does.
type balancer struct {
	*httptest.Server
	to atomic.Pointer[natsacp.Gateway]
}

func newBalancer(r *rig, g *natsacp.Gateway) *balancer {
	b := &balancer{}
	b.to.Store(g)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { b.to.Load().ServeHTTP(w, req) }))
	r.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
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
			nc, nodeValve := r.valved()
			r.nodeOn(nc, "n1")
			dying, valve := r.valved()
			g1, err := r.fleet(dying).StartGateway(t.Context(), &natsacp.GatewayOptions{
				Name: "g1", Logger: quiet, Server: &remote.HandlerOptions{Logger: quiet, History: remote.MemoryHistory(1000, 1<<20)},
			})
			r.must(err)
			newServer(t, g1) // ends it
			front := newBalancer(r, g1)
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
			valve.set(true)
			defer valve.set(false)
			front.CloseClientConnections()

			// Meanwhile another client answers the question.
			g2, url := r.gateway("g2", kept)
			answering := r.user(url, func(u *user) { u.accept = map[string]string{"PRM-1": "the prompt is of the first client"} })
			resumed, err := answering.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"})
			r.must(err)
			answering.await(resumed, "yes"+numbers(10))
			answering.ClientConn.Close()
			switch test.wait {
			case "ended":
				r.eventually("the agent has ended", func() bool { return r.record(s).Node == "" })
			case "died":
				nodeValve.set(true)
				defer nodeValve.set(false)
				r.node("n2")
			}
			front.to.Store(g2)
			got := first.said(s)
			second := r.user("", func(u *user) {
				u.transport, u.accept = dialer, map[string]string{"PRM-1": "the prompt is of the first connection"}
			})
			again, err := second.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"})
			r.must(err)
			second.await(again, numbers(10))
			second.wantSaid(got+second.said(again), numbers(1000)+"yes"+numbers(10))
			if test.wait == "" {
				r.eventually("the turn ends after its last update", func() bool {
					res, err := again.Prompt(t.Context(), acp.TextBlock("say=3"))
					if errors.Is(err, acp.ErrInvalidRequest) { // the session is busy
						return false
					}
					r.must(err)
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

// get opens the stream of a session after a cursor, and returns the status.
func get(t *testing.T, url, connection, session, token, cursor string) (int, io.ReadCloser) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	for name, value := range map[string]string{
		"Accept": "text/event-stream", remote.HeaderConnection: connection, remote.HeaderSession: session,
		"Authorization": "Bearer " + token, "Last-Event-ID": cursor,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	return res.StatusCode, res.Body
}

func post(t *testing.T, url, connection, token, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	if connection != "" {
		req.Header.Set(remote.HeaderConnection, connection)
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	return res
}

// A cursor that is unknown, of another session, of another user, or no longer in the log is refused.
func TestCursors(t *testing.T) {
	r := newRig(t)
	r.node("n1")
	g, _ := r.gateway("g1", kept, func(o *natsacp.GatewayOptions) {
		o.Server.Authenticate = remote.BearerToken(map[string]string{"ann": "a", "bob": "b"})
	})
	front := newBalancer(r, g)
	ids := make(chan string, 1000)
	cursors := &http.Client{Transport: spy(func(res *http.Response) {
		if res.Header.Get("Content-Type") == "text/event-stream" {
			res.Body = &tee{res.Body, ids, ""}
		}
	})}
	u := r.user("", func(u *user) {
		u.transport = remote.Dial(front.URL, &remote.DialOptions{HTTPClient: cursors, Resume: true, Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer a"}}, nil
		}})
	})
	s, other := u.session(), u.session()
	u.wantSaid(u.prompt(s, "say=3"), numbers(3))
	link := r.record(s).Link
	cursor := ""
	for !strings.HasSuffix(cursor, link) {
		cursor = <-ids
	}
	connect := func(token string) string {
		res := post(t, front.URL, "", token, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
		defer res.Body.Close()
		return res.Header.Get(remote.HeaderConnection)
	}
	ann, bob := connect("a"), connect("b")
	for _, test := range []struct {
		name, connection, token, cursor string
		session                         acp.SessionID
		want                            int
	}{
		{"good", ann, "a", cursor, s.ID(), 200},
		{"another user's", bob, "b", cursor, s.ID(), 409},
		{"another session's", ann, "a", cursor, other.ID(), 409},
		{"the connection's", ann, "a", cursor, "", 409},
		{"unknown link", ann, "a", strings.ReplaceAll(cursor, link, "NOLINK"), s.ID(), 409},
		{"unknown place", ann, "a", "X-0.999999.1." + link, s.ID(), 409},
		{"wildcard", ann, "a", "X-0.1.1.*", s.ID(), 409},
		{"nonsense", ann, "a", "x", s.ID(), 409},
	} {
		connection := connect(test.token)
		status, body := get(t, front.URL, connection, string(test.session), test.token, test.cursor)
		body.Close()
		if status != test.want {
			t.Errorf("%s: status %d, want %d", test.name, status, test.want)
		}
	}
}

type spy func(*http.Response)

func (s spy) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		s(res)
	}
	return res, err
}

// tee sends the ids of events to a channel.
type tee struct {
	io.ReadCloser
	ids  chan<- string
	rest string
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.rest += string(p[:n])
	for {
		line, rest, ok := strings.Cut(t.rest, "\n")
		if !ok {
			return n, err
		}
		t.rest = rest
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			t.ids <- id
		}
	}
}

// Records that are damaged, of a newer format, or in the place of another one are not used, and not overwritten.
func TestRecords(t *testing.T) {
	r := newRig(t)
	r.node("n1")
	_, url := r.gateway("g1")
	u := r.user(url)
	js, err := jetstream.New(dial(t, r.url))
	r.must(err)
	records, err := js.KeyValue(t.Context(), "acp_sessions")
	r.must(err)
	good := u.session()
	for name, text := range map[string]string{
		"damaged": `{"id":`,
		"newer":   `{"id":"ID","format":1,"cwd":"/w"}`,
		"another": `{"id":"other","cwd":"/w"}`,
		"number":  `7`,
	} {
		s := u.session()
		u.wantSaid(u.prompt(s, "say=1"), numbers(1))
		r.must(s.Close(t.Context()))
		r.eventually("the agent has ended", func() bool { return r.record(s).Node == "" })
		var key string
		keys, err := records.ListKeys(t.Context())
		r.must(err)
		for k := range keys.Keys() {
			if entry, err := records.Get(t.Context(), k); err == nil && strings.Contains(string(entry.Value()), string(s.ID())) {
				key = k
			}
		}
		text = strings.ReplaceAll(text, "ID", string(s.ID()))
		_, err = records.PutString(t.Context(), key, text)
		r.must(err)
		for what, do := range map[string]func() error{
			"load": func() error {
				_, err := u.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"})
				return err
			},
			"resume": func() error {
				_, err := u.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"})
				return err
			},
			"delete": func() error {
				_, err := u.DeleteSession(t.Context(), &acp.DeleteSessionRequest{SessionID: s.ID()})
				return err
			},
		} {
			if err := do(); !errors.Is(err, rpc.ErrInternal) {
				t.Errorf("%s of a session with the record %s: %v", what, name, err)
			}
		}
		if entry, err := records.Get(t.Context(), key); err != nil || string(entry.Value()) != text {
			t.Errorf("%s: the record is %v, %v", name, entry, err)
		}
		all, err := r.fleet(dial(t, r.url)).Sessions(t.Context())
		if err == nil || !strings.Contains(err.Error(), key) || len(all) != 1 || all[0].ID != string(good.ID()) {
			t.Errorf("%s: the records are %v, %v", name, all, err)
		}
		page, err := u.ListSessions(t.Context(), &acp.ListSessionsRequest{})
		if err != nil || len(page.Sessions) != 1 {
			t.Errorf("%s: the client's list is %v, %v", name, page, err)
		}
		r.must(records.Purge(t.Context(), key))
	}
	u.wantSaid(u.prompt(good, "say=2"), numbers(2))
}

// A request that agents may read differently than the gateway is refused, so that it cannot reach the session of another
// user through one's own.
func TestAmbiguous(t *testing.T) {
	r := newRig(t)
	reached := make(chan string, 100)
	n, err := r.fleet(dial(t, r.url)).StartNode(t.Context(), natsacp.InProcess(func(ctx context.Context, tr rpc.Transport) error {
		stream, err := tr.Connect(ctx)
		if err != nil {
			return err
		}
		for {
			line, err := stream.Read()
			if err != nil {
				return nil
			}
			var m struct {
				ID     json.RawMessage
				Method string
			}
			must(t, json.Unmarshal(line, &m))
			result := "{}"
			switch m.Method {
			case acp.MethodInitialize:
				result = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`
			case acp.MethodNewSession:
				result = `{"sessionId":"mine"}`
			default:
				reached <- string(line)
			}
			if m.ID != nil {
				if err := stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)); err != nil {
					return nil
				}
			}
		}
	}), &natsacp.NodeOptions{Name: "n1", Logger: quiet})
	r.must(err)
	r.Cleanup(func() { r.must(n.Close()) })
	_, url := r.gateway("g1")
	stream, err := remote.Dial(url, nil).Connect(t.Context())
	r.must(err)
	defer stream.Close()
	ask := func(id int, line string) string {
		t.Helper()
		r.must(stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s}`, id, line)))
		for {
			answer, err := stream.Read()
			r.must(err)
			if strings.Contains(string(answer), fmt.Sprintf(`"id":%d,`, id)) {
				return string(answer)
			}
		}
	}
	ask(0, `"method":"initialize","params":{"protocolVersion":1}`)
	ask(1, `"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`)
	for i, line := range []string{
		`"method":"session/prompt","params":{"sessionId":"mine","sessionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"hers","sessionId":"mine","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"mine","SessionID":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"mine","\u0073essionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"mine","ſessionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"SESSIONID":"hers","prompt":[]}`,
		`"method":"session/load","params":{"sessionId":"mine","sessionid":"hers","cwd":"/w","mcpServers":[]}`,
		`"method":"_vendor/read","params":{"SessionId":"hers"}`,
		`"method":"session/prompt","params":{"sessionId":"mine","prompt":[]},"Params":{"sessionId":"hers","prompt":[]}`,
		`"method":"session/prompt","params":{"sessionId":"mine","prompt":[]},"params":{"sessionId":"hers","prompt":[]}`,
		`"method":"session/list","METHOD":"session/load","params":{"sessionId":"mine"}`,
	} {
		if answer := ask(i+10, line); !strings.Contains(answer, "-32600") {
			t.Errorf("%s is answered with %s", line, answer)
		}
		r.must(stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0",%s}`, line))) // the same as a notification
	}
	if answer := ask(99, `"method":"session/prompt","params":{"sessionId":"mine","prompt":[]}`); !strings.Contains(answer, "result") {
		t.Errorf("a clear request is answered with %s", answer)
	}
	if line := <-reached; !strings.Contains(line, "session/prompt") || strings.Contains(line, "hers") || len(reached) > 0 {
		t.Errorf("the agent got %s and %d more", line, len(reached))
	}
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
	second, err := two.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: first.ID(), Cwd: "/w"})
	r.must(err)
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
	r.eventually("the session works", func() bool {
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
		r.eventually("turns end", func() bool { return done.Load() >= before+int64(sessions) || t.Failed() })
		old := nodes[i%2]
		r.must(operator.Drain(t.Context(), old.Name()))
		select {
		case <-old.Drained():
		case <-time.After(patience):
			t.Fatal("the node is not drained")
		}
		r.must(old.Close())
		nodes[i%2] = r.node(old.Name())
	}
	cancel()
	working.Wait()
}

// Messages of sizes around those at which they are split arrive, in both directions.
func TestSizes(t *testing.T) {
	for _, limit := range []int32{64 << 10, 1 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s, err := server.NewServer(&server.Options{
				Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: limit,
			})
			must(t, err)
			s.Start()
			t.Cleanup(func() {
				s.Shutdown()
				s.WaitForShutdown()
			})
			r := newRig(t)
			r.url = s.ClientURL()
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
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		JetStreamMaxStore: 8 << 20, JetStreamMaxMemory: -1,
	})
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	r := newRig(t)
	r.url = s.ClientURL()
	r.opts = &natsacp.Options{Lease: 2 * time.Second, LogBytes: 4 << 20}
	r.node("n1")
	_, url := r.gateway("g1", func(o *natsacp.GatewayOptions) { o.OpenTimeout = 2 * time.Second })
	u := r.user(url)
	session := u.session()
	u.wantSaid(u.prompt(session, "say=3"), numbers(3))
	js, err := jetstream.New(dial(t, r.url))
	r.must(err)
	filler, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "filler", Subjects: []string{"filler"}})
	r.must(err)
	for size := 256 << 10; size > 0; {
		if _, err := js.Publish(t.Context(), "filler", make([]byte, size)); err != nil {
			size /= 2
		}
	}
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err = session.Prompt(ctx, acp.TextBlock(fmt.Sprintf("say=3 full=%d", i)))
		if err == nil || ctx.Err() != nil {
			t.Errorf("while JetStream is full, the prompt ended with %v", err)
		}
		cancel()
		if n := r.ran(session, fmt.Sprintf("say=3 full=%d", i)); n > 1 {
			t.Errorf("the prompt ran %d times", n)
		}
	}
	r.must(filler.Purge(t.Context()))
	r.eventually("the session works again", func() bool {
		u.said(session)
		_, err := session.Prompt(t.Context(), acp.TextBlock("say=3"))
		return err == nil && u.said(session) == numbers(3)
	})
}

// A cancellation arrives before messages that were sent earlier and wait.
func TestCancelOvertakes(t *testing.T) {
	r := newRig(t)
	begun, let, got := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	n, err := r.fleet(dial(t, r.url)).StartNode(t.Context(), natsacp.InProcess(func(ctx context.Context, tr rpc.Transport) error {
		stream, err := tr.Connect(ctx)
		if err != nil {
			return err
		}
		for before := 0; ; {
			line, err := stream.Read()
			if err != nil {
				return nil
			}
			var m struct {
				ID     json.RawMessage
				Method string
			}
			must(t, json.Unmarshal(line, &m))
			result := ""
			switch m.Method {
			case acp.MethodInitialize:
				result = `{"protocolVersion":1}`
			case acp.MethodNewSession:
				result = `{"sessionId":"s"}`
			case acp.MethodPrompt:
				close(begun)
				<-let
			case acp.MethodCancel:
				got <- before
			default:
				before += len(line)
			}
			if result != "" {
				if err := stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)); err != nil {
					return nil
				}
			}
		}
	}), &natsacp.NodeOptions{Name: "n1", Logger: quiet})
	r.must(err)
	r.Cleanup(func() { r.must(n.Close()) })
	_, url := r.gateway("g1")
	nc := dial(r, r.url)
	spy, err := nc.SubscribeSync(">")
	r.must(err)
	r.must(nc.Flush())
	stream, err := remote.Dial(url, nil).Connect(t.Context())
	r.must(err)
	defer stream.Close()
	send := func(line string) { r.must(stream.Write([]byte(line))) }
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	_, err = stream.Read()
	r.must(err)
	send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	_, err = stream.Read()
	r.must(err)
	send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
	<-begun
	const count, size = 14, 1 << 20
	for range count {
		send(`{"jsonrpc":"2.0","method":"_bulk","params":{"sessionId":"s","text":"` + strings.Repeat("x", size) + `"}}`)
	}
	send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`)
	// The agent continues when the node has answered the gateway's frame with the cancellation; later it would overtake less.
	for reply := ""; ; {
		m, err := spy.NextMsgWithContext(t.Context())
		r.must(err)
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
	r := newRig(t)
	r.node("n1")
	_, url := r.gateway("g1")
	stream, err := remote.Dial(url, nil).Connect(t.Context())
	r.must(err)
	defer stream.Close()
	id := 0
	send := func(line string) {
		t.Helper()
		r.must(stream.Write([]byte(line)))
	}
	// ask sends a request, and returns its answer; question is called with the id of a request of the agent.
	ask := func(method, params string, question func(id json.RawMessage)) string {
		t.Helper()
		id++
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
		for {
			line, err := stream.Read()
			r.must(err)
			var m struct {
				ID            json.RawMessage
				Method        string
				Result, Error json.RawMessage
			}
			r.must(json.Unmarshal(line, &m))
			switch {
			case m.Method == acp.MethodRequestPermission:
				question(m.ID)
			case m.Method == "" && string(m.ID) != fmt.Sprint(id):
				t.Errorf("the gateway answers nothing with %s", line)
			case m.Method == "":
				return string(m.Result) + string(m.Error)
			}
		}
	}
	want := func(got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("the answer is %s, want %s", got, part)
		}
	}
	want(ask("initialize", `{"protocolVersion":"one"}`, nil), "-32602")
	want(ask("initialize", `{"protocolVersion":1}`, nil), "protocolVersion")
	want(ask("initialize", `{"protocolVersion":1}`, nil), "-32600")
	var made struct{ SessionID string }
	r.must(json.Unmarshal([]byte(ask("session/new", `{"cwd":"/w","mcpServers":[]}`, nil)), &made))
	session := fmt.Sprintf(`"sessionId":%q`, made.SessionID)
	want(ask("session/delete", `{"sessionId":"unknown"}`, nil), "{}")
	want(ask("session/load", `{"cwd":"/w","mcpServers":[]}`, nil), "-32602")
	for range 3 {
		want(ask("session/load", `{`+session+`,"cwd":"/w","mcpServers":7}`, nil), "-32602")
	}
	prompt := func(text string) string {
		return fmt.Sprintf(`{%s,"prompt":[{"type":"text","text":%q}]}`, session, text)
	}
	want(ask("session/prompt", prompt("say=1"), nil), "end_turn")
	for i := range 30 { // a cancellation does not reach a prompt that follows it
		send(`{"jsonrpc":"2.0","method":"session/cancel","params":{` + session + `}}`)
		want(ask("session/prompt", prompt(fmt.Sprintf("say=1 n=%d", i)), nil), "end_turn")
	}
	want(ask("session/prompt", prompt("ask"), func(id json.RawMessage) {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s}`, id)) // neither a result nor an error
	}), "-32603")
	want(ask("session/prompt", prompt("say=2"), nil), "end_turn")
}

// What a node says after another one has taken its session is not stored, even if it was already on its way.
func (r *rig) wantFenced(link string) {
	r.Helper()
	nc, err := nats.Connect(r.url)
	r.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	r.must(err)
	log, err := js.Stream(r.Context(), "acp_log")
	r.must(err)
	last, err := log.GetLastMsgForSubject(r.Context(), "acp.log."+link)
	r.must(err)
	if len(last.Data) == 0 || last.Data[0] != 'F' {
		r.Errorf("after the fence, there is %.100q", last.Data)
	}
}
