package stress

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// link is one connection, from its start to its end.
type link struct {
	soak      *soak
	ending    ending
	name      string
	rand      *rand.Rand // of the goroutine that runs the link
	books     books
	faults    faults
	transport *acp.CommandTransport
	stderr    *stderr
	conn      *acp.ClientConn
	stop      chan struct{} // closed when the traffic must end
	traffic   sync.WaitGroup

	mu    sync.Mutex
	heard map[acp.SessionID]*heard
}

// heard records the updates that a session's handler and loops have seen.
type heard struct {
	n    atomic.Int64 // handled
	rand *rand.Rand   // the handler's
}

// run runs the nth link.
func (s *soak) run(n int) {
	l := &link{soak: s, ending: endings[n%len(endings)], stop: make(chan struct{}), heard: map[acp.SessionID]*heard{}}
	l.name = fmt.Sprintf("connection %d (%s)", n, l.ending.name)
	l.rand = l.random("link", n)
	l.books.wrong = l.wrong
	ok := l.bounded("connecting", l.connect)
	if ok {
		time.Sleep(l.upTo(min(soaking()/5, 2*time.Second))) // the traffic continues until then
		ok = l.bounded("the end", l.finish)
	}
	if !ok && l.transport.Cmd.Process != nil {
		l.wrong("the agent is killed: %v", l.transport.Cmd.Process.Kill())
	}
}

func (l *link) wrong(format string, args ...any) {
	l.soak.t.Errorf(l.name+": "+format, args...)
}

// random returns a source of randomness for one part of the link.
func (l *link) random(part ...any) *rand.Rand {
	h := fnv.New64()
	fmt.Fprint(h, l.name, part)
	return rand.New(rand.NewPCG(l.soak.seed, h.Sum64()))
}

func (l *link) upTo(d time.Duration) time.Duration { return upTo(l.rand, d) }

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// bounded runs f, which must not hang.
func (l *link) bounded(what string, f func() error) bool {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(2 * patience)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			l.wrong("%s: %v", what, err)
		}
		return err == nil
	case <-timer.C:
		l.wrong("%s: it hangs", what)
		if err := pprof.Lookup("goroutine").WriteTo(os.Stderr, 1); err != nil {
			l.wrong("%v", err)
		}
		return false
	}
}

func (l *link) connect() error {
	l.transport, l.stderr = command("faulty")
	l.transport.StopTime, l.transport.KillTime = 3*time.Second, time.Second
	queues := []int{2 << 10, 64 << 10, 0}
	var err error
	l.conn, err = acp.Connect(context.Background(), wrapped{l.transport, l.faults.stream}, l.handlers(), &acp.ClientOptions{
		Conn: acp.ConnOptions{Hooks: l.books.hooks(), QueueBytes: queues[l.rand.IntN(len(queues))], DrainTime: patience, CloseTime: time.Second,
			CancelGrace: time.Hour, // an unanswered turn must be noticed
		},
	})
	l.books.note(err)
	if err != nil {
		return err
	}
	l.faults.set(&fault{Kind: faultNoise, Seed: l.rand.Uint64()})
	if err := fails(faultNoise)(l); err != nil {
		return err
	}
	for range 1 + l.rand.IntN(5) {
		session, err := l.conn.NewSession(context.Background(), &acp.NewSessionRequest{Cwd: "/home/ada"})
		l.books.note(err)
		if err != nil {
			return err
		}
		l.traffic.Go(func() { l.talk(session, l.random("talk", session.ID())) })
	}
	for i := range 2 {
		l.traffic.Go(func() { l.call(l.random("call", i)) })
	}
	return nil
}

// finish ends the link and checks the result.
func (l *link) finish() error {
	if l.ending.idle {
		close(l.stop)
		l.traffic.Wait()
		if err := l.balance(); err != nil {
			return err
		}
	}
	l.books.mu.Lock()
	l.books.ending = true
	l.books.mu.Unlock()
	if err := l.ending.end(l); err != nil {
		return err
	}
	wait := l.conn.Wait()
	if !l.ending.idle {
		close(l.stop)
		l.traffic.Wait()
	}
	if err := l.conn.Close(); err != nil {
		return err
	}
	l.verify(wait)
	return nil
}

func (l *link) close() error { return l.conn.Close() }

// ask calls an extension method and records how it ended.
func (l *link) ask(ctx context.Context, method string, params *echo) (*echo, bool) {
	got, err := rpc.Call[echo](ctx, l.conn.RPC(), method, params)
	return got, l.books.note(err)
}

// balance compares this side's accounts with the agent's when nothing is in progress: each side has received everything
// that the other has sent.
func (l *link) balance() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.faults.set(&fault{Kind: faultNone})
	if _, ok := l.ask(ctx, methodQuiet, &echo{}); !ok {
		return errors.New("the connection ended")
	}
	// The answer to the first call shows that everything before it was written.
	var theirs *report
	for range 2 {
		var err error
		theirs, err = rpc.Call[report](ctx, l.conn.RPC(), methodReport, &echo{})
		l.books.note(err)
		if err != nil {
			return err
		}
	}
	if err := l.books.settled(ctx, 0); err != nil {
		return err
	}
	ours := l.books.report(&l.faults)
	// The last answer was not sent when the agent wrote its report.
	theirs.Sent.Messages++
	theirs.Sent.Answers++
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"messages to the agent", theirs.Received.Messages, ours.Sent.Messages + ours.Noise},
		{"messages to the client", ours.Received.Messages, theirs.Sent.Messages + theirs.Noise},
		{"calls of the agent's", theirs.Received.Requests, ours.Sent.Requests},
		{"answers to them", ours.Received.Answers, ours.Sent.Requests},
		{"calls of the client's", ours.Received.Requests, theirs.Sent.Requests},
		{"answers to them", theirs.Received.Answers, theirs.Sent.Requests},
		{"bad lines and complaints at the agent", theirs.Invalid, ours.Noise + theirs.Noise},
		{"bad lines and complaints at the client", ours.Invalid, ours.Noise + theirs.Noise},
		{"calls that the agent saw closed", theirs.Calls.Closed, 0},
		{"calls that the client saw closed", ours.Calls.Closed, 0},
	} {
		if c.got != c.want {
			l.wrong("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	return nil
}

// verify checks the accounts of a link that is over.
func (l *link) verify(wait error) {
	b := &l.books
	b.mu.Lock()
	defer b.mu.Unlock()
	sent, received := b.flowsLocked()
	n := &total{links: 1, sessions: len(l.heard), sent: sent, received: received, calls: b.calls, invalid: b.invalid}
	for session, heard := range l.heard {
		read, handled := b.updates[string(session)], int(heard.n.Load())
		n.updates += read
		n.handled += handled
		if handled > read || handled < read && !l.ending.own {
			l.wrong("%s: %d updates were read and %d handled", session, read, handled)
			n.lost += read - handled
		}
	}
	late := received.Answers - b.calls.Answered
	if late < 0 || late > b.calls.GivenUp && !l.ending.own {
		l.wrong("%d answers were read and %d delivered, and %d calls given up", received.Answers, b.calls.Answered, b.calls.GivenUp)
		n.lost += late
	}
	if open := sent.Open; open > b.calls.Closed+b.calls.GivenUp {
		l.wrong("%d calls are without an answer, and only %d failed", open, b.calls.Closed+b.calls.GivenUp)
	}
	said := l.stderr.String()
	if exit := l.ending.exit; exit != nil && !exit(l.transport.Cmd.ProcessState, wait) {
		l.wrong("the agent ended with %v: %v: %s", l.transport.Cmd.ProcessState, wait, said)
	}
	for _, bad := range []string{wrongPrefix, "DATA RACE", "panic"} {
		if strings.Contains(said, bad) {
			l.wrong("the agent said: %s", said)
		}
	}
	var written int
	if _, err := fmt.Sscanf(said, linesWritten, &written); err == nil && !l.ending.own && written > received.Messages {
		l.wrong("the agent wrote %d lines, and %d were read", written, received.Messages)
		n.lost += written - received.Messages
	}
	s := l.soak
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.totals[l.ending.name] == nil {
		s.totals[l.ending.name] = &total{}
	}
	s.totals[l.ending.name].add(n)
}

func (l *link) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// call makes calls, some of which are abandoned.
func (l *link) call(r *rand.Rand) {
	for ok := true; ok && !l.stopped(); {
		method, patient := methodEcho, upTo(r, time.Second)
		if r.IntN(4) == 0 {
			method, patient = methodHang, upTo(r, 20*time.Millisecond)
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), patient, errGivenUp)
		want := echo{N: r.Int(), Text: strings.Repeat("y", r.IntN(3000))}
		var got *echo
		if got, ok = l.ask(ctx, method, &want); got != nil && *got != want {
			l.wrong("another answer came to call %d", want.N)
		}
		cancel()
	}
}

// talk runs one turn after the other in a session.
func (l *link) talk(session *acp.ClientSession, r *rand.Rand) {
	h := l.heardOf(session.ID())
	for ok := true; ok && !l.stopped(); {
		ok = l.turn(session, r, h)
	}
}

// somePlan returns a random plan; one turn in 20 has long messages.
func somePlan(r *rand.Rand) plan {
	p := plan{
		Updates: r.IntN(100), Size: r.IntN(2000), AskEvery: r.IntN(30), Reads: r.IntN(8), Flight: 1 + r.IntN(4),
		Linger: r.IntN(6) == 0, Fail: r.IntN(2) == 0,
	}
	if r.IntN(20) == 0 {
		p.BigEvery, p.Big = 30, 1<<20+r.IntN(3<<20)
	}
	return p
}

// turn runs a turn, which may be cancelled in one of three ways, and whose updates are read in a loop or handled.
func (l *link) turn(session *acp.ClientSession, r *rand.Rand, h *heard) bool {
	p := somePlan(r)
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	ways := []func() error{
		func() error { end(errGivenUp); return nil },
		func() error { return session.Cancel(ctx) },
	}
	var turn *acp.Turn
	if r.IntN(2) == 0 {
		turn = session.Stream(ctx, p.block())
		ways = append(ways, func() error { turn.Cancel(); return nil })
	}
	over := make(chan struct{})
	var cancelling sync.WaitGroup
	if p.Linger || r.IntN(4) == 0 {
		after, cancel := upTo(r, 50*time.Millisecond), ways[r.IntN(len(ways))]
		cancelling.Go(func() {
			select {
			case <-time.After(after):
			case <-over:
				return
			}
			if err := cancel(); err != nil && !errors.Is(err, acp.ErrClosed) {
				l.wrong("cancelling a turn: %v", err)
			}
		})
	}
	var res *acp.PromptResponse
	var err error
	if turn == nil {
		res, err = session.Prompt(ctx, p.block())
	} else {
		whole := l.loop(ctx, turn, r, h)
		res, err = turn.Result()
		if !whole { // unread updates were discarded
			h.n.Store(l.books.read(session.ID()))
		}
	}
	close(over)
	cancelling.Wait()
	if err == nil {
		var sent int64
		told, err := res.Meta.Get(metaSent, &sent)
		if now := h.n.Load(); err != nil || told && sent != now && !l.ending.own {
			l.wrong("%s: the answer came after %d of %d updates, %v", session.ID(), now, sent, err)
		}
	}
	return l.books.note(err)
}

// loop reads the updates of a turn, and sometimes calls the agent in between, or leaves early. It reports whether it
// read all updates.
func (l *link) loop(ctx context.Context, turn *acp.Turn, r *rand.Rand, h *heard) (whole bool) {
	leave := -1
	if r.IntN(5) == 0 {
		leave = r.IntN(50)
	}
	open, n := true, 0
	for update := range turn.Updates() {
		if n == leave {
			return false
		}
		if got, want := numberOf(&update), int(h.n.Load()); got != want {
			l.wrong("the loop got update %d where %d was due", got, want)
		}
		h.n.Add(1)
		n++
		switch k := r.IntN(500); {
		case k < 10:
			time.Sleep(upTo(r, 2*time.Millisecond))
		case k < 12 && open:
			_, open = l.ask(ctx, methodEcho, &echo{})
		case k < 14 && open:
			_, open = l.ask(turn.Context(), methodEcho, &echo{})
		}
	}
	return true
}

func (l *link) heardOf(id acp.SessionID) *heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard[id] == nil {
		l.heard[id] = &heard{rand: l.random("update", id)}
	}
	return l.heard[id]
}

func (l *link) handlers() acp.ClientHandlers {
	return acp.ClientHandlers{
		SessionUpdate: l.update,
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			r := l.random("permission", req.SessionID, req.ToolCall.ToolCallID)
			select { // a user
			case <-time.After(upTo(r, 5*time.Millisecond)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
		},
		ReadTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			r := l.random("read", req.SessionID, req.Path)
			size := r.IntN(8 << 10)
			if r.IntN(50) == 0 {
				size = 1 << 20
			}
			return &acp.ReadTextFileResponse{Content: req.Path + "\n" + strings.Repeat("z", size)}, nil
		},
	}
}

// update handles an update, sometimes slowly, and sometimes with a call to the agent.
func (l *link) update(ctx context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	h := l.heardOf(n.SessionID)
	if got, want := numberOf(&n.Update), int(h.n.Load()); got != want {
		l.wrong("%s: update %d came where %d was due", n.SessionID, got, want)
	}
	switch k := h.rand.IntN(2000); {
	case k == 0:
		time.Sleep(upTo(h.rand, 200*time.Millisecond))
	case k < 20:
		time.Sleep(upTo(h.rand, 2*time.Millisecond))
	case k < 40:
		l.ask(ctx, methodEcho, &echo{N: k})
	}
	h.n.Add(1)
	return nil
}
