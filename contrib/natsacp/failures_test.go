package natsacp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/cutproxy"
	"github.com/acpgo/sdk/internal/test/must"
)

// network returns a connection to NATS that the test can cut, and hold, as if the process or the network had stopped.
func (r *rig) network() (*nats.Conn, *cutproxy.Proxy) {
	r.Helper()
	p := must.Get(cutproxy.New(strings.TrimPrefix(r.url, "nats://")))(r)
	r.Cleanup(func() { must.Do(r, p.Close()) })
	return dial(r, "nats://"+p.Addr()), p
}

// record returns the record of a session.
func (r *rig) record(s *acp.ClientSession) natsacp.Session {
	r.Helper()
	all := must.Get(r.own().Sessions(r.Context()))(r)
	at := slices.IndexFunc(all, func(one natsacp.Session) bool { return one.ID == string(s.ID()) })
	if at < 0 {
		r.Fatalf("there is no record of %s", s.ID())
	}
	return all[at]
}

// patience is how long tests wait for what takes seconds on a machine that has nothing else to do.
const patience = 5 * time.Minute

// eventually waits until a condition holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("it never happened: %s", what)
		}
	}
}

func (r *rig) ran(s *acp.ClientSession, prompt string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[string(s.ID())+" "+prompt]
}

// A node that stops is replaced. Its prompt fails, and is not run again. When it returns, nothing that it or its agent
// still says reaches anyone.
func TestNodeReturns(t *testing.T) {
	r := newRig(t)
	r.opts.Lease = 2 * time.Second
	nc, network := r.network()
	r.nodeOf(nc, "n1", r.agent("n1"))
	_, url := r.gateway("g1")
	u := r.user(url)
	s := u.session()
	u.wantSaid(u.prompt(s, "node say=2"), "n1"+numbers(2))
	before := r.record(s)
	r.node("n2")

	failed := prompting(s, "say=1 wait=200 say=1000")
	u.await(s, "0;")
	u.said(s)
	if got := r.record(s); got.Node != "n1" || got.Turn.State != natsacp.TurnRunning || got.Turn.Number != 2 {
		t.Errorf("while the prompt runs, the record is %+v", got)
	}
	network.Hold(true)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "interrupted: node n1 has died") {
		t.Errorf("the prompt ended with %v", err)
	}
	u.wantSaid(u.said(s), "")
	u.wantSaid(u.prompt(s, "node say=3"), "n2"+numbers(3))
	network.Hold(false)
	eventually(r, "the old node has its lease again", func() bool {
		nodes, err := r.fleet(nc).Nodes(t.Context())
		return err == nil && len(nodes) == 2 && nodes[0].Sessions == 0
	})
	u.wantSaid(u.prompt(s, "node"), "n2")
	if n := r.ran(s, "say=1 wait=200 say=1000"); n != 1 {
		t.Errorf("the prompt ran %d times", n)
	}
	eventually(r, "the turn is done", func() bool { return r.record(s).Turn.State == natsacp.TurnDone })
	if after := r.record(s); after.Node != "n2" || after.Epoch != before.Epoch+1 || after.Turn.StopReason != "end_turn" {
		t.Errorf("the record is %+v, and was %+v", after, before)
	}
}

// A request of the agent that is too long fails, and the turn continues.
func TestLongQuestion(t *testing.T) {
	r := newRig(t)
	agent := r.agent("n1")
	r.nodeOf(dial(r, r.url), "n1", func(session string) rpc.Transport {
		return wrapped{agent(session), func(rpc.Stream) rpc.Wrapper {
			return rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
				line, err := next()
				if bytes.Contains(line, []byte(acp.MethodRequestPermission)) {
					err = &rpc.TooLongError{Limit: 10, Head: bytes.Clone(line)}
				}
				return line, err
			}}
		}}
	})
	_, url := r.gateway("g1")
	u := r.user(url)
	s := u.session()
	err := <-prompting(s, "ask")
	if !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("the prompt ended with %v", err)
	}
	u.wantSaid(u.prompt(s, "node"), "n1")
}

// A node listens to the frames of gateways before it takes sessions: whoever has an agent sends frames at once.
func TestSubscriptions(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		r.node(name)
		at := map[string]int{} // in the order of the connection
		for _, conn := range must.Get(r.server.Connz(&server.ConnzOptions{SubscriptionsDetail: true}))(t).Conns {
			for _, sub := range conn.SubsDetail {
				at[sub.Subject] = must.Get(strconv.Atoi(sub.Sid))(t)
			}
		}
		if frames, sessions := at["acp.up."+name+".*"], at["acp.open."+name]; frames == 0 || sessions < frames {
			t.Errorf("%s subscribes to frames as number %d, and to sessions as %d", name, frames, sessions)
		}
	}
}

// A gateway that loses its connection to NATS reads what it has missed.
func TestGap(t *testing.T) {
	r := newRig(t)
	r.node("n1")
	nc, network := r.network()
	_, front := r.gatewayOn(nc, "g1")
	u := r.user("ws://" + front.Addr())
	s := u.session()
	done := prompting(s, "say=10 wait=50 say=10 wait=50 say=10 wait=50 say=10 wait=300 say=10")
	u.await(s, "9;")
	for range 3 {
		network.Cut()
		time.Sleep(60 * time.Millisecond) // it is reconnected, and cut again
	}
	must.Do(r, <-done)
	u.wantSaid(u.said(s), strings.Repeat(numbers(10), 5))
}

// The agent of a client that does not read is slowed down.
func TestSlowClient(t *testing.T) {
	r := newRig(t)
	const window, size, total = 64 << 10, 200_000, 200
	r.node("n1", func(o *natsacp.NodeOptions) { o.Window = window })
	_, url := r.gateway("g1")
	var shut atomic.Bool
	gate := make(chan struct{})
	u := r.user("", func(u *user) {
		u.transport = wrapped{remote.Dial(url, nil), func(rpc.Stream) rpc.Wrapper {
			return rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
				line, err := next()
				if shut.Load() {
					<-gate
				}
				return line, err
			}}
		}}
	})
	s := u.session()
	shut.Store(true)
	done := prompting(s, "say=1 "+strings.Repeat(fmt.Sprintf("long=%d ", size), total))
	var last uint64
	eventually(r, "the agent is stopped", func() bool {
		size := r.log().CachedInfo().State.Bytes
		still := size == last && size > 0
		last = size
		if !still {
			time.Sleep(300 * time.Millisecond)
		}
		return still
	})
	// What the sockets and the WebSockets keep comes on top of the window.
	if most := uint64(16 << 20); last > most {
		t.Errorf("%d bytes were sent to a client that does not read, want %d at most", last, most)
	}
	close(gate)
	must.Do(r, <-done)
	u.wantSaid(u.said(s), numbers(1)+strings.Repeat("x", size*total))
}

// An agent that fails ends its prompt with an error, and the next prompt starts another.
func TestAgentFails(t *testing.T) {
	r := newRig(t)
	agent := r.agent("n1")
	var answer atomic.Pointer[string] // in place of the next answer to a prompt
	r.nodeOf(dial(r, r.url), "n1", func(principal string) rpc.Transport {
		return wrapped{agent(principal), func(rpc.Stream) rpc.Wrapper {
			return rpc.Wrapper{Read: func(read func() ([]byte, error), _ func()) ([]byte, error) {
				line, err := read()
				before, _, ended := bytes.Cut(line, []byte(`"result":{"stopReason"`))
				if end := answer.Load(); ended && end != nil {
					if answer.Store(nil); *end == "" {
						return nil, io.EOF // the agent crashes
					}
					line = append(bytes.Clone(before), *end...)
				}
				return line, err
			}}
		}}
	})
	_, url := r.gateway("g1")
	u := r.user(url)
	s := u.session()
	u.wantSaid(u.prompt(s, "say=2"), numbers(2))
	answer.Store(new(""))
	if _, err := s.Prompt(t.Context(), acp.TextBlock("say=1 ask")); err == nil || !strings.Contains(err.Error(), "interrupted: the agent has ended") {
		t.Errorf("the prompt ended with %v", err)
	}
	u.wantSaid(u.said(s), numbers(1)+"yes")
	if got := r.record(s); got.Turn.State != natsacp.TurnInterrupted || got.Node != "" {
		t.Errorf("the record is %+v", got)
	}
	u.wantSaid(u.prompt(s, "say=3"), numbers(3))
	if n := r.ran(s, "say=1 ask"); n != 1 {
		t.Errorf("the prompt ran %d times", n)
	}
	for _, end := range []string{`"_meta":{}}`, `"result":{`} { // an answer without a result, and one that is not JSON
		answer.Store(&end)
		if _, err := s.Prompt(t.Context(), acp.TextBlock("say=0")); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: the prompt ended with %v", end, err)
		}
		u.wantSaid(u.prompt(s, "say=3"), numbers(3))
	}
}

// as is a client with a token.
func (r *rig) as(url, token string) *user {
	return r.user("", func(u *user) {
		u.accept = map[string]string{"PRM-1": "the test prompts the session of another", "LST-9": "the test uses the cursor of another"}
		u.transport = remote.Dial(url, &remote.DialOptions{Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + token}}, nil
		}})
	})
}

func annAndBob(o *natsacp.GatewayOptions) {
	o.Server.Authenticate = remote.BearerToken(map[string]string{"ann": "a", "bob": "b"})
}

// A list has all sessions of a user and nothing of others: no cursor, and no empty pages.
func TestPages(t *testing.T) {
	r, url := newFleet(t, annAndBob)
	bob := r.as(url, "b")
	want := map[acp.SessionID]bool{bob.session().ID(): true, bob.session().ID(): true}
	store := must.Get(natsacp.OpenStore(t.Context(), dial(t, r.url), r.opts))(r)
	defer store.Close()
	for i := range 120 { // of somebody else, and newer
		now := time.Now().Add(time.Hour)
		must.Do(r, store.Create(t.Context(), sessionstore.Record{Info: sessionstore.Info{
			ID: acp.SessionID(fmt.Sprintf("of-ann-%d", i)), Cwd: "/w", Created: now, Updated: now,
		}}))
	}
	for range 2 {
		page := must.Get(bob.ListSessions(t.Context(), &acp.ListSessionsRequest{}))(r)
		if next, more := page.NextCursor.Get(); more || len(page.Sessions) != 2 || !want[page.Sessions[0].SessionID] || !want[page.Sessions[1].SessionID] {
			t.Errorf("the list is %+v, and more after %q", page.Sessions, next)
		}
	}
	page := must.Get(store.List(t.Context(), sessionstore.Query{}))(r)
	for _, cursor := range []string{page.Next, "x"} {
		_, err := bob.ListSessions(t.Context(), &acp.ListSessionsRequest{Cursor: acp.Some(cursor)})
		if !errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("a list after %q: %v", cursor, err)
		}
	}
}

// A user cannot have all seats of a node, over one connection or several. The node's hooks do not hear of an agent that
// is refused.
func TestSeats(t *testing.T) {
	r := newRig(t)
	var started, ended atomic.Int32
	node := r.node("n1", func(o *natsacp.NodeOptions) {
		o.MaxSessions = 5
		o.Hooks.Start = func(_ *rpc.Conn, hooks rpc.Hooks) rpc.Hooks {
			started.Add(1)
			return hooks
		}
		o.Hooks.End = func() { ended.Add(1) }
	})
	_, url := r.gateway("g1", annAndBob)
	_, url2 := r.gateway("g2", annAndBob)
	bob, again := r.as(url, "b"), r.as(url2, "b")
	first := bob.session()
	_, err := bob.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"})
	if err == nil || !strings.Contains(err.Error(), "too many sessions") {
		t.Errorf("a third agent of a user: %v", err)
	}
	ann := r.as(url, "a")
	ann.wantSaid(ann.prompt(ann.session(), "say=1"), numbers(1))
	bob.wantSaid(bob.prompt(first, "say=1"), numbers(1))
	again.ClientConn.Close()
	eventually(r, "another connection's agent has made room", func() bool {
		_, err := bob.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"})
		return err == nil
	})
	must.Do(r, node.Close())
	if n := ended.Load(); n < 4 || started.Load() != n { // more if a gateway has asked again
		t.Errorf("the hooks have heard of %d agents that started, and of %d that ended", started.Load(), n)
	}
}

// Users have only their own sessions, even if they know the ids of others.
func TestPrincipals(t *testing.T) {
	r, url := newFleet(t, annAndBob)
	ann, bob := r.as(url, "a"), r.as(url, "b")
	hers := ann.session()
	ann.wantSaid(ann.prompt(hers, "say=2"), numbers(2))
	his := bob.session()
	for _, test := range []struct {
		u    *user
		want acp.SessionID
	}{{ann, hers.ID()}, {bob, his.ID()}} {
		page := must.Get(test.u.ListSessions(t.Context(), &acp.ListSessionsRequest{}))(r)
		if len(page.Sessions) != 1 || page.Sessions[0].SessionID != test.want {
			t.Errorf("the list is %+v, want %s", page.Sessions, test.want)
		}
	}
	attempts := bob.tries(hers.ID())
	must.Do(r, attempts["delete"]) // as for a session that does not exist
	delete(attempts, "delete")
	_, attempts["prompt"] = bob.Session(hers.ID()).Prompt(t.Context(), acp.TextBlock("say=1"))
	_, attempts["close"] = rpc.Call[struct{}](t.Context(), bob, acp.MethodCloseSession, &acp.CloseSessionRequest{SessionID: hers.ID()})
	for name, err := range attempts {
		if !errors.Is(err, acp.ErrResourceNotFound) {
			t.Errorf("%s of another's session: %v", name, err)
		}
	}
	ann.wantSaid(ann.prompt(hers, "say=3"), numbers(3))
	must.Do(r, hers.Delete(t.Context()))
	if page, err := ann.ListSessions(t.Context(), &acp.ListSessionsRequest{}); err != nil || len(page.Sessions) != 0 {
		t.Errorf("after the deletion the list is %+v, %v", page, err)
	}
}

// A prompt that is longer than a message of NATS, with its cancellation behind it.
func TestLongPrompt(t *testing.T) {
	r, url := newFleet(t)
	u := r.user(url)
	s := u.session()
	long := strings.Repeat("z", 5<<20)
	u.wantSaid(u.prompt(s, "say=2 "+long), numbers(2))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		u.await(s, "0;")
		cancel()
	}()
	res, err := s.Prompt(ctx, acp.TextBlock("say=1 hang "+long))
	if err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Errorf("the turn ended with %+v, %v", res, err)
	}
}

// A session that was closed can be deleted, loaded again, and deleted by another connection.
func TestDelete(t *testing.T) {
	r, url := newFleet(t)
	u, other := r.user(url), r.user(url)
	list := func() int {
		page := must.Get(other.ListSessions(t.Context(), &acp.ListSessionsRequest{}))(r)
		return len(page.Sessions)
	}
	closed, open, loaded := u.session(), u.session(), u.session()
	for _, s := range []*acp.ClientSession{closed, open, loaded} {
		u.wantSaid(u.prompt(s, "say=2"), numbers(2))
	}
	must.Do(r, closed.Close(t.Context()))
	must.Get(u.DeleteSession(t.Context(), &acp.DeleteSessionRequest{SessionID: closed.ID()}))(r)
	must.Do(r, loaded.Close(t.Context()))
	again := must.Get(u.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: loaded.ID(), Cwd: "/w"}))(r)
	u.wantSaid(u.said(again), numbers(2))
	if n := list(); n != 2 {
		t.Errorf("%d sessions are left", n)
	}
	must.Get(other.DeleteSession(t.Context(), &acp.DeleteSessionRequest{SessionID: open.ID()}))(r)
	if n := list(); n != 1 {
		t.Errorf("%d sessions are left", n)
	}
}

// A node whose write to the bucket has arrived, although it did not hear so, keeps its lease and its agents.
func TestLateAnswer(t *testing.T) {
	r := newRig(t)
	r.opts.Lease = 2 * time.Second
	n := r.node("n1")
	_, url := r.gateway("g1")
	u := r.user(url)
	s := u.session()
	members := must.Get(r.js().KeyValue(t.Context(), "acp_members"))(r)
	done := prompting(s, "say=1 wait=2500 say=1")
	u.await(s, "0;")
	u.said(s)
	for range 3 {
		entry := must.Get(members.Get(t.Context(), "node.n1"))(r)
		revision := must.Get(members.Put(t.Context(), "node.n1", entry.Value()))(r)
		eventually(r, "the node has renewed its lease", func() bool {
			entry, err := members.Get(t.Context(), "node.n1")
			return err == nil && entry.Revision() > revision
		})
	}
	must.Do(r, <-done)
	u.wantSaid(u.said(s), numbers(1))
	if !n.Ready() {
		t.Error("the node is not ready")
	}
}

// Of two nodes with one name, the later one stays.
func TestOneName(t *testing.T) {
	r := newRig(t)
	r.opts.Lease = 2 * time.Second
	_, url := r.gateway("g1")
	first := r.node("n1")
	u := r.user(url)
	s := u.session()
	u.prompt(s, "say=1")
	second := r.node("n1")
	eventually(r, "the first node gives up", func() bool { return !first.Ready() })
	u.said(s)
	u.wantSaid(u.prompt(s, "say=1 wait=3000 say=1"), numbers(1)+numbers(1))
	if first.Ready() || !second.Ready() {
		t.Errorf("the first node is ready: %v; the second: %v", first.Ready(), second.Ready())
	}
}

// An agent that cannot restore a session, which it therefore does not get, ends with the attempt.
func TestCannotRestore(t *testing.T) {
	r := newRig(t)
	r.opts.Lease = 2 * time.Second
	var started, ended atomic.Int32
	agent := natsacp.InProcess(func(ctx context.Context, t rpc.Transport) error {
		started.Add(1)
		defer ended.Add(1)
		return fast(ctx, t)
	})
	first := r.nodeOf(dial(r, r.url), "n1", agent)
	_, url := r.gateway("g1")
	u := r.user(url)
	s := u.session()
	r.nodeOf(dial(r, r.url), "n2", agent)
	must.Do(r, first.Close())
	_, err := s.Prompt(t.Context(), acp.TextBlock("hello"))
	if err != nil && strings.Contains(err.Error(), "the node was stopped") { // the gateway had not heard of it
		_, err = s.Prompt(t.Context(), acp.TextBlock("hello"))
	}
	if err == nil || !strings.Contains(err.Error(), "cannot load sessions") {
		t.Errorf("the prompt ended with %v", err)
	}
	eventually(r, "both agents have ended", func() bool { return started.Load() == 2 && ended.Load() == 2 })
}
