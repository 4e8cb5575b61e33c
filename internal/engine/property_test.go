package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/ledger"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	schedules = flag.Int("schedules", 0, "how many random schedules the property tests try; 0 is a few seconds' worth")
	firstSeed = flag.Uint64("seed", 0, "the first schedule's seed: -seed 17 -schedules 1 runs schedule 17 again")
)

// eachSeed runs n schedules, a tenth of them under the race detector, or as many as the flag says.
func eachSeed(t *testing.T, n int, run func(t *testing.T, seed uint64)) {
	t.Helper()
	if gentest.Race {
		n /= 10
	}
	if *schedules > 0 {
		n = *schedules
	}
	for i := range uint64(n) {
		seed := *firstSeed + i
		// The name says which seed it was, also when the bubble finds a deadlock and panics.
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { run(t, seed) })
		if t.Failed() {
			t.Fatalf("to run it again: -seed %d -schedules 1", seed)
		}
	}
	t.Logf("%d schedules", n)
}

// A schedule whose waiting is virtual is always the same, and a deadlock or a goroutine that is left is
// found at once.
func TestScheduleProperties(t *testing.T) {
	eachSeed(t, tier.Pick(30, 300, 1000, 20_000), func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			near, far := rpc.Pipe()
			newWorld(t, seed, time.Millisecond).run(near, far)
		})
	})
}

// move is the parameters, and the result, of every message of a schedule.
type move struct {
	SessionID string `json:"sessionId,omitempty"`
	N         int    `json:"n"`               // different for each
	Turn      int    `json:"turn,omitempty"`  // the number of the prompt that it belongs to
	After     bool   `json:"after,omitempty"` // it is sent after that prompt's answer
	Depth     int    `json:"depth,omitempty"` // how many calls its handler makes, each inside the other
	Outcome   string `json:"outcome,omitempty"`
}

var (
	doPrompt = RequestMethod[move, move]{Name: "prompt"}
	doClose  = RequestMethod[move, move]{Name: "close"}
	doEcho   = RequestMethod[move, move]{Name: "echo"}
	doAsk    = RequestMethod[move, move]{Name: "ask"}
	doUpdate = NotificationMethod[move]{Name: "update"} // the agent's
	doNote   = NotificationMethod[move]{Name: "note"}   // the client's
	doCancel = NotificationMethod[move]{Name: "cancel"}
)

// line is one message of the trace.
type line struct {
	byAgent bool
	ID      json.RawMessage
	Method  string
	Params  move
	Result  *move
	Error   *Error
}

func (l *line) request() bool  { return l.Method != "" && l.ID != nil }
func (l *line) response() bool { return l.Method == "" }
func (l *line) outcome() string {
	if l.Result == nil {
		return ""
	}
	return l.Result.Outcome
}
func (l *line) is(m, s string) bool { return l.Method == m && l.Params.SessionID == s }

// world is an agent and a client that do what a seed says, and what was seen of them.
type world struct {
	t    *testing.T
	seed uint64
	unit time.Duration // of waiting

	deep       bool          // handlers of notifications call the peer
	grace      time.Duration // CancelGrace: ages, or short
	closeAfter time.Duration // when one side closes the connection, or 0

	agent, client *Conn
	number        atomic.Int64
	closed        atomic.Bool

	mu      sync.Mutex
	trace   []*line
	handled map[string][]int // numbers of the notifications handled, by method and session
	entries []entry
	returns []returned
	served  map[int]served // by the number of the prompt
}

// entry says how many notifications of its session were handled when a request's handler began.
type entry struct {
	params  move
	byAgent bool // it serves a request of the agent's
	handled int
}

// returned says what a caller got, and how many notifications of the session were handled by then.
type returned struct {
	params  move
	prompt  bool
	err     error
	ended   bool // its context has
	handled int
	yielded []int // by a loop over the turn's updates
	whole   bool  // which ran to their end
}

// served says how the handler of a prompt ended.
type served struct {
	err       error
	cancelled bool // its context was, because of the turn
	after     bool // something is to be sent after the answer
}

const ages = 10 * time.Hour

func newWorld(t *testing.T, seed uint64, unit time.Duration) *world {
	w := &world{t: t, seed: seed, unit: unit, grace: ages, handled: map[string][]int{}, served: map[int]served{}}
	r := w.random(0)
	w.deep = r.IntN(2) == 0
	if r.IntN(5) == 0 {
		w.grace = time.Duration(1 + r.Int64N(int64(10*unit)))
	}
	if r.IntN(3) == 0 {
		w.closeAfter = time.Duration(1 + r.Int64N(int64(200*unit)))
	}
	return w
}

// random is what a message's handler, or a user, decides by. It depends on nothing that runs beside it.
func (w *world) random(n int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(n))) }

func (w *world) next() int { return int(w.number.Add(1)) }

// pause waits for a while, or until ctx ends.
func (w *world) pause(ctx context.Context, r *rand.Rand) error {
	select {
	case <-time.After(time.Duration(1 + r.Int64N(int64(20*w.unit)))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run runs the schedule and checks what came of it.
func (w *world) run(near, far Transport) {
	r := w.random(1)
	options := func(agent bool) *Options {
		return &Options{
			QueueBytes:  []int{1, 100, 1000, 0}[r.IntN(4)],
			CancelGrace: w.grace,
			Hooks: Hooks{
				Message: func(sent bool, message []byte) {
					if sent {
						w.record(agent, message)
					}
				},
				Invalid: func(line []byte, reason error) { w.t.Errorf("refused: %s: %v", line, reason) },
				// Both ends see the schedule's own panics only.
				Panic: func(_ string, v any, stack []byte) {
					if v != errPlain {
						w.t.Errorf("panic: %v\n%s", v, stack)
					}
				},
			},
		}
	}
	w.agent = must.Get(Connect(w.t.Context(), far, w.agentRoutes, options(true)))(w.t)
	w.client = must.Get(Connect(w.t.Context(), near, w.clientRoutes, options(false)))(w.t)
	var tasks sync.WaitGroup
	for i := range 1 + r.IntN(4) {
		tasks.Go(func() { w.use(string(rune('a'+i)), w.random(-1-i)) })
	}
	if w.closeAfter > 0 {
		tasks.Go(func() {
			time.Sleep(w.closeAfter)
			w.closed.Store(true)
			w.end([]*Conn{w.agent, w.client}[r.IntN(2)])
		})
	}
	tasks.Wait()
	if !w.closed.Load() {
		w.settle()
	}
	w.end(w.client)
	w.end(w.agent)
	w.refuses(w.client)
	w.refuses(w.agent)
	w.check()
}

func (w *world) end(c *Conn) {
	if err := c.Close(); err != nil {
		w.t.Error(err)
	}
}

// settle waits until every request was answered and every notification sent and handled.
func (w *world) settle() {
	for range 1000 {
		// What was sent before is written down when these are answered.
		w.call(w.t.Context(), w.client, &move{N: w.next()})
		w.call(w.t.Context(), w.agent, &move{N: w.next()})
		if w.settled() {
			return
		}
		time.Sleep(10 * w.unit)
	}
	w.t.Error("some request is not answered, or some notification not handled")
}

func (w *world) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	open, unhandled, after := 0, 0, 0
	for _, l := range w.trace {
		switch {
		case l.request():
			open++
		case l.response():
			open--
		case l.Method == "update" || l.Method == "note":
			unhandled++
		}
		if l.Params.After {
			after--
		}
	}
	for _, numbers := range w.handled {
		unhandled -= len(numbers)
	}
	for _, s := range w.served {
		if s.after {
			after++
		}
	}
	return open == 0 && unhandled == 0 && after == 0
}

// refuses checks that a connection that is over says so, whatever is asked of it, and holds nothing.
func (w *world) refuses(c *Conn) {
	p, spec := &move{SessionID: "a"}, TurnSpec{Session: "a", CancelMethod: "cancel"}
	_, called := doEcho.Call(w.t.Context(), c, p)
	_, ran := engine.RunTurn(w.t.Context(), c, doPrompt, p, spec)
	_, started := engine.StartTurn(w.t.Context(), c, doPrompt, p, spec, w.pick).Result()
	for _, err := range []error{
		called, ran, started, doUpdate.Notify(w.t.Context(), c, p), c.CancelSession(w.t.Context(), spec),
	} {
		if !errors.Is(err, rpc.ErrClosed) {
			w.t.Errorf("after the end: %v", err)
		}
	}
	if left := engine.Left(c); left != "" {
		w.t.Errorf("left: %s", left)
	}
	for id, left := range engine.Sessions(c) {
		// One that is named after the end is not forgotten any more.
		if left != 0 || !w.closed.Load() {
			w.t.Errorf("session %q is left, and %d things in it", id, left)
		}
	}
}

// The two sides.

func (w *world) agentRoutes(c *Conn) []Route {
	prompt := doPrompt.Handle(w.prompt)
	prompt.Turn = true
	prompt.Cancelled = func(any) any { return &move{Outcome: "cancelled"} }
	cancel := doCancel.Handle(nil)
	cancel.CancelsTurn = true
	closing := doClose.Handle(func(_ context.Context, p *move) (*move, error) { return p, nil })
	closing.EndsTurn = true
	return []Route{prompt, cancel, closing, doEcho.Handle(w.echo(c, true)), doNote.Handle(w.notification(c, "note"))}
}

func (w *world) clientRoutes(c *Conn) []Route {
	update := doUpdate.Handle(w.notification(c, "update"))
	update.Feeds = true
	ask := doAsk.Handle(w.ask)
	ask.Cancelled = func(any) any { return &move{Outcome: "cancelled"} }
	return []Route{update, ask, doEcho.Handle(w.echo(c, false))}
}

// pick takes an update for a loop; that counts as handled.
func (w *world) pick(params any) (int, bool) {
	p := params.(*move)
	w.mu.Lock()
	defer w.mu.Unlock()
	key := "update " + p.SessionID
	w.handled[key] = append(w.handled[key], p.N)
	return p.N, true
}

// notification handles one, and sometimes calls the peer meanwhile.
func (w *world) notification(c *Conn, method string) func(context.Context, *move) error {
	return func(ctx context.Context, p *move) error {
		r := w.random(p.N)
		if r.IntN(4) == 0 {
			_ = w.pause(ctx, r) // ends with the connection
		}
		if w.deep && r.IntN(3) == 0 {
			w.call(ctx, c, &move{SessionID: p.SessionID, N: w.next(), Depth: r.IntN(4)})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		key := method + " " + p.SessionID
		w.handled[key] = append(w.handled[key], p.N)
		return nil
	}
}

// call makes a call whose answer must be its parameters.
func (w *world) call(ctx context.Context, c *Conn, p *move) {
	res, err := doEcho.Call(ctx, c, p)
	if err == nil && res.N != p.N {
		w.t.Errorf("call %d was given the answer to %d", p.N, res.N)
	}
	if err != nil && ctx.Err() == nil && !w.closed.Load() {
		w.t.Errorf("call %d: %v", p.N, err)
	}
}

// echo serves a call, inside which it may notify and call the caller.
func (w *world) echo(c *Conn, ofAgent bool) func(context.Context, *move) (*move, error) {
	return func(ctx context.Context, p *move) (*move, error) {
		w.enter(p, !ofAgent)
		r := w.random(p.N)
		switch r.IntN(4) {
		case 0: // whoever waits may be gone by then
			_ = w.pause(context.Background(), r)
		case 1:
			if err := w.pause(ctx, r); err != nil {
				return nil, err
			}
		}
		if p.Depth > 0 {
			tell := doNote
			if ofAgent {
				tell = doUpdate
			}
			if err := tell.Notify(ctx, c, &move{SessionID: p.SessionID, N: w.next()}); err != nil {
				return nil, err
			}
			w.call(ctx, c, &move{SessionID: p.SessionID, N: w.next(), Depth: p.Depth - 1})
		}
		return p, nil
	}
}

func (w *world) enter(p *move, byAgent bool) {
	method := "note "
	if byAgent {
		method = "update "
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = append(w.entries, entry{*p, byAgent, len(w.handled[method+p.SessionID])})
}

// ask is the user who is asked for a permission. Some do not notice that the question is moot.
func (w *world) ask(ctx context.Context, p *move) (*move, error) {
	w.enter(p, true)
	r := w.random(p.N)
	switch r.IntN(3) {
	case 0:
		_ = w.pause(context.Background(), r)
	case 1:
		if err := w.pause(ctx, r); err != nil {
			return nil, err
		}
	}
	return &move{Outcome: "selected"}, nil
}

// prompt is the agent at work.
func (w *world) prompt(ctx context.Context, p *move) (*move, error) {
	w.enter(p, false)
	r := w.random(p.N)
	after := r.IntN(2) == 0 && rpc.AfterResponse(ctx, func(ctx context.Context) {
		_ = w.update(ctx, p, true) // fails when the connection is over
	})
	err := w.work(ctx, p, r)
	w.mu.Lock()
	w.served[p.N] = served{err, errors.Is(context.Cause(ctx), rpc.ErrTurnCancelled), after}
	w.mu.Unlock()
	if err == errPlain && p.N%2 == 0 {
		panic(err)
	}
	if err != nil {
		return nil, err
	}
	return &move{Outcome: "done"}, nil
}

func (w *world) update(ctx context.Context, p *move, after bool) error {
	return doUpdate.Notify(ctx, w.agent, &move{SessionID: p.SessionID, N: w.next(), Turn: p.N, After: after})
}

func (w *world) work(ctx context.Context, p *move, r *rand.Rand) error {
	for range r.IntN(10) {
		var err error
		switch r.IntN(7) {
		case 0:
			err = w.pause(ctx, r)
		case 1:
			_, err = doAsk.Call(ctx, w.agent, &move{SessionID: p.SessionID, N: w.next(), Turn: p.N})
		case 2:
			w.call(ctx, w.agent, &move{SessionID: p.SessionID, N: w.next()})
		default:
			err = w.update(ctx, p, false)
		}
		if err != nil {
			return err
		}
	}
	switch r.IntN(6) {
	case 0:
		return errPlain
	case 1, 2:
		<-ctx.Done()
		if r.IntN(2) == 0 { // what belongs to the turn is still sent
			if err := w.update(ctx, p, false); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	return nil
}

// use is the user of one session, and what runs beside it.
func (w *world) use(session string, r *rand.Rand) {
	var beside sync.WaitGroup
	defer beside.Wait()
	spec := TurnSpec{Session: session, CancelMethod: "cancel", CancelParams: &move{SessionID: session}}
	for range 1 + r.IntN(6) {
		p := &move{SessionID: session, N: w.next()}
		switch r.IntN(8) {
		case 0:
			w.send(doNote.Notify(w.t.Context(), w.client, p))
		case 1:
			w.send(w.client.CancelSession(w.t.Context(), spec))
		case 2, 3:
			w.echoes(p, r)
		default:
			if r.IntN(4) == 0 {
				mine := w.random(p.N)
				beside.Go(func() {
					_ = w.pause(context.Background(), mine)
					if mine.IntN(2) == 0 {
						w.send(w.client.CancelSession(w.t.Context(), spec))
						return
					}
					_, err := doClose.Call(w.t.Context(), w.client, &move{SessionID: session, N: w.next()})
					w.send(err)
				})
			}
			w.turn(p, r, spec)
		}
		if r.IntN(3) == 0 {
			_ = w.pause(context.Background(), r)
		}
	}
}

// send checks what must succeed unless the connection is over.
func (w *world) send(err error) {
	if err != nil && !w.closed.Load() {
		w.t.Error(err)
	}
}

// echoes makes a call, whose context may end.
func (w *world) echoes(p *move, r *rand.Rand) {
	ctx := w.t.Context()
	if r.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(20*w.unit))))
		defer cancel()
	}
	p.Depth = r.IntN(4)
	res, err := doEcho.Call(ctx, w.client, p)
	if err == nil && res.N != p.N {
		w.t.Errorf("call %d was given the answer to %d", p.N, res.N)
	}
	w.ret(returned{params: *p, err: err, ended: ctx.Err() != nil})
}

// turn runs one turn, which is cancelled after a while if it still runs.
func (w *world) turn(p *move, r *rand.Rand, spec TurnSpec) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(r.Int64N(int64(60*w.unit))))
	defer cancel()
	ret := returned{params: *p, prompt: true}
	if r.IntN(2) == 0 {
		_, ret.err = engine.RunTurn(ctx, w.client, doPrompt, p, spec)
		ret.ended = ctx.Err() != nil
		w.ret(ret)
		return
	}
	turn := engine.StartTurn(ctx, w.client, doPrompt, p, spec, w.pick)
	if r.IntN(5) == 0 {
		ret.ended = true
		turn.Cancel()
	}
	leave := r.IntN(12)
	ret.whole = true
	for n := range turn.Updates() {
		if ret.yielded = append(ret.yielded, n); len(ret.yielded) == leave {
			ret.whole = false
			break
		}
		switch r.IntN(8) {
		case 0:
			w.call(w.t.Context(), w.client, &move{SessionID: p.SessionID, N: w.next()})
		case 1:
			w.call(turn.Context(), w.client, &move{SessionID: p.SessionID, N: w.next()})
		}
	}
	_, ret.err = turn.Result()
	ret.ended = ret.ended || ctx.Err() != nil
	w.ret(ret)
}

func (w *world) ret(r returned) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.handled = len(w.handled["update "+r.params.SessionID])
	w.returns = append(w.returns, r)
}

func (w *world) record(byAgent bool, message []byte) {
	l := &line{byAgent: byAgent}
	if err := json.Unmarshal(message, l); err != nil {
		w.t.Errorf("sent %s: %v", message, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, l)
}

// What must hold. Positions are those of the trace, which has the messages of each side in the order of
// the wire; between the sides, what stands first was sent first.

func (w *world) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkAnswers()
	w.checkOrder()
	for _, e := range w.entries {
		w.checkEntry(e)
	}
	for _, r := range w.returns {
		w.checkReturn(r)
	}
	for at, l := range w.trace {
		switch {
		case l.Method == "prompt":
			w.checkPrompt(at, l)
		case l.Method == "close":
			w.checkClose(at, l)
		case l.Method == "cancel":
			w.checkCancel(at, l)
		}
	}
	if w.t.Failed() {
		w.print()
	}
}

func (w *world) print() {
	var b strings.Builder
	for at, l := range w.trace {
		side := "client"
		if l.byAgent {
			side = " agent"
		}
		fmt.Fprintf(&b, "%3d %s %s %s %+v", at, side, l.ID, l.Method, l.Params)
		if l.response() {
			fmt.Fprintf(&b, " -> %+v %v", l.Result, l.Error)
		}
		b.WriteByte('\n')
	}
	w.t.Logf("seed %d, deep %t, grace %v, closed after %v\n%s", w.seed, w.deep, w.grace, w.closeAfter, &b)
}

// find returns where the first line stands for which f is true, from a position on; or the trace's length.
func (w *world) find(from int, f func(l *line) bool) int {
	for at := from; at < len(w.trace); at++ {
		if f(w.trace[at]) {
			return at
		}
	}
	return len(w.trace)
}

// answer returns where the answer to the request at a position stands.
func (w *world) answer(at int) int {
	req := w.trace[at]
	return w.find(at, func(l *line) bool {
		return l.response() && l.byAgent != req.byAgent && string(l.ID) == string(req.ID)
	})
}

func (w *world) numbered(n int) int {
	return w.find(0, func(l *line) bool { return l.Params.N == n && l.request() })
}

// numbers are those of a session's notifications of one kind before a position.
func (w *world) numbers(method, session string, before int) (numbers []int) {
	for _, l := range w.trace[:before] {
		if l.is(method, session) {
			numbers = append(numbers, l.Params.N)
		}
	}
	return numbers
}

// Every request is answered exactly once; when the connection was closed, at most once.
func (w *world) checkAnswers() {
	var l ledger.Ledger[struct{}] // sent are those of the agent
	for _, m := range w.trace {
		switch {
		case m.request():
			l.Request(m.byAgent, string(m.ID), struct{}{})
		case m.response():
			l.Answer(m.byAgent, string(m.ID))
		}
	}
	for _, agent := range []bool{true, false} {
		for id, e := range l.Of(agent).All() {
			if e.Unasked > 0 || e.Open() > 0 && !w.closed.Load() {
				w.t.Errorf("request %s, of the agent's: %t, was answered %d times", id, agent, e.Answered+e.Unasked)
			}
		}
	}
}

// The notifications of a session are handled in the order of the wire.
func (w *world) checkOrder() {
	for key, handled := range w.handled {
		method, session, _ := strings.Cut(key, " ")
		sent := w.numbers(method, session, len(w.trace))
		if len(handled) > len(sent) || !slices.Equal(handled, sent[:len(handled)]) {
			w.t.Errorf("%ss of session %s: handled %v, sent %v", method, session, handled, sent)
		}
	}
}

// A request is handled after the notifications of its session before it, unless their handlers call.
func (w *world) checkEntry(e entry) {
	method := "note"
	if e.byAgent {
		method = "update"
	}
	before := len(w.numbers(method, e.params.SessionID, w.numbered(e.params.N)))
	if !w.deep && !w.closed.Load() && e.handled < before {
		w.t.Errorf("request %d was handled after %d of %d %ss", e.params.N, e.handled, before, method)
	}
}

// A caller gets the answer after the updates of the session before it were handled.
func (w *world) checkReturn(r returned) {
	at := w.numbered(r.params.N)
	if r.err != nil {
		w.checkFailure(r, at)
		return
	}
	answer := w.answer(at)
	if answer == len(w.trace) {
		w.t.Errorf("call %d has returned without an answer", r.params.N)
		return
	}
	// Whoever does not want to wait any more does not, except a turn, for the grace.
	if w.closed.Load() || r.ended && (!r.prompt || w.grace != ages) {
		return
	}
	sent := w.numbers("update", r.params.SessionID, answer)
	if r.handled < len(sent) {
		w.t.Errorf("call %d has returned after %d of %d updates", r.params.N, r.handled, len(sent))
	}
	if r.prompt && r.whole {
		w.checkYielded(r, sent)
	}
}

// A loop over a turn's updates gets all of them, in order, and none behind the answer; perhaps more before.
func (w *world) checkYielded(r returned, sent []int) {
	all := w.numbers("update", r.params.SessionID, len(w.trace))
	if len(r.yielded) == 0 {
		if i := w.find(0, func(l *line) bool { return l.Params.Turn == r.params.N && l.Method == "update" && !l.Params.After }); i < len(w.trace) {
			w.t.Errorf("the loop of turn %d got nothing", r.params.N)
		}
		return
	}
	from := slices.Index(all, r.yielded[0])
	to := from + len(r.yielded)
	if from < 0 || to != len(sent) || !slices.Equal(r.yielded, all[from:to]) {
		w.t.Errorf("the loop of turn %d got %v of %v, %d of them before the answer", r.params.N, r.yielded, all, len(sent))
		return
	}
	for _, l := range w.trace {
		if l.Method == "update" && l.Params.Turn == r.params.N && !l.Params.After && !slices.Contains(r.yielded, l.Params.N) {
			w.t.Errorf("the loop of turn %d did not get %d", r.params.N, l.Params.N)
		}
	}
}

// A call fails because its context ended, the connection is over, or the peer says so. A turn whose
// context ended is answered all the same, if it was sent and the grace is long enough.
func (w *world) checkFailure(r returned, at int) {
	_, answered := errors.AsType[*CallError](r.err)
	ended := errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, context.Canceled) ||
		r.prompt && errors.Is(r.err, rpc.ErrTurnCancelled)
	switch {
	case answered || w.closed.Load() && errors.Is(r.err, rpc.ErrClosed):
	case !ended:
		w.t.Errorf("call %d: %v", r.params.N, r.err)
	case r.prompt && at < len(w.trace) && w.grace == ages && !w.closed.Load():
		w.t.Errorf("turn %d was sent and given up: %v", r.params.N, r.err)
	}
}

// A prompt is answered as its handler ended; all that this sent comes before the answer, except what was
// meant for after it.
func (w *world) checkPrompt(at int, p *line) {
	answer := w.answer(at)
	if answer == len(w.trace) {
		return // checkAnswers
	}
	n, session := p.Params.N, p.Params.SessionID
	got := w.trace[answer]
	s, ran := w.served[n]
	if !ran {
		busy := got.Error != nil && got.Error.Code == rpc.ErrInvalidRequest && w.grace != ages
		// One that waits behind a cancelled turn may be cancelled before it begins.
		cancelled := got.Error != nil && got.Error.Code == rpc.ErrRequestCancelled || got.Result != nil && got.Result.Outcome == "cancelled"
		by := w.find(at, func(l *line) bool {
			return l.is("cancel", session) || l.is("close", session) || l.Method == "$/cancel_request"
		})
		if !busy && !(cancelled && by < answer) && !w.closed.Load() {
			w.t.Errorf("prompt %d was never handled, and answered %+v, %v", n, got.Result, got.Error)
		}
		return
	}
	// A cancellation counts from its prompt to its answer, and for no other prompt.
	next := w.find(at+1, func(l *line) bool { return l.is("prompt", session) })
	cancel := len(w.trace) // none
	if i := w.find(at, func(l *line) bool { return l.is("cancel", session) || l.is("close", session) }); i < next {
		cancel = i
	}
	if s.cancelled && cancel > answer {
		w.t.Errorf("prompt %d was cancelled by nobody", n)
	}
	if !w.closed.Load() {
		w.checkOutcome(n, s, got, cancel < answer)
	}
	w.checkSent(n, s, answer)
}

func (w *world) checkOutcome(n int, s served, got *line, cancelled bool) {
	switch {
	case s.err == nil:
		if got.outcome() == "cancelled" && cancelled {
			return // perhaps after the handler has looked
		}
		if got.outcome() != "done" || s.cancelled {
			w.t.Errorf("prompt %d is done, and answered %+v, %v", n, got.Result, got.Error)
		}
	case s.cancelled || got.Error == nil:
		if got.outcome() != "cancelled" || !cancelled {
			w.t.Errorf("prompt %d was cancelled (%t), and answered %+v, %v", n, cancelled, got.Result, got.Error)
		}
	case got.Error.Code != rpc.ErrInternal && got.Error.Code != rpc.ErrRequestCancelled:
		w.t.Errorf("prompt %d has failed, and was answered %v", n, got.Error)
	}
}

func (w *world) checkSent(n int, s served, answer int) {
	last, after := 0, 0
	for at, l := range w.trace {
		if !l.byAgent || l.Params.Turn != n || l.Method != "update" {
			continue
		}
		if l.Params.After != (at > answer) {
			w.t.Errorf("update %d is on the wrong side of the answer to %d", l.Params.N, n)
		}
		if l.Params.N < last {
			w.t.Errorf("update %d was sent after %d", l.Params.N, last)
		}
		last = l.Params.N
		if l.Params.After {
			after++
		}
	}
	if want := 0; !w.closed.Load() {
		if s.after {
			want = 1
		}
		if after != want {
			w.t.Errorf("%d updates after the answer to %d, want %d", after, n, want)
		}
	}
}

// What ends a session's turn is answered after that turn.
func (w *world) checkClose(at int, l *line) {
	answer := w.answer(at)
	if w.closed.Load() {
		return // the turn may not be answered any more
	}
	for i, p := range w.trace[:at] {
		if p.is("prompt", l.Params.SessionID) && w.answer(i) > answer {
			w.t.Errorf("close %d was answered before prompt %d", l.Params.N, p.Params.N)
		}
	}
}

// Once a turn's cancellation was sent, every question of the session is answered as cancelled, until the
// turn has been answered.
func (w *world) checkCancel(at int, c *line) {
	if w.grace != ages || w.closed.Load() {
		return // the turn may be given up before
	}
	for i, p := range w.trace[:at] {
		if !p.is("prompt", c.Params.SessionID) || w.answer(i) < at {
			continue
		}
		for j, q := range w.trace[:min(w.answer(i), len(w.trace))] {
			if !q.is("ask", c.Params.SessionID) {
				continue
			}
			if a := w.answer(j); a > at && a < len(w.trace) && w.trace[a].outcome() != "cancelled" {
				w.t.Errorf("question %d was answered %+v, %v at %d, after the cancellation at %d",
					q.Params.N, w.trace[a].Result, w.trace[a].Error, a, at)
			}
		}
	}
}

// What is called from inside a notification handler never waits for that handler, to any depth, over several sessions,
// while every queue is full.
func TestCallsInsideNotificationHandlers(t *testing.T) {
	for _, sessions := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("%d sessions", sessions), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const depth, width = 12, 8
				opts := &Options{QueueBytes: 1}
				session := func(n int) string { return fmt.Sprintf("s%d", n%sessions) }
				var calls, handled atomic.Int32
				routes := func(c *Conn) []Route {
					down := func(ctx context.Context, p *move) error {
						if p.Depth == 0 {
							return nil
						}
						calls.Add(1)
						_, err := doEcho.Call(ctx, c, &move{SessionID: session(p.Depth), N: p.N, Depth: p.Depth - 1})
						if err != nil {
							t.Errorf("at depth %d: %v", p.Depth, err)
						}
						return err
					}
					return []Route{
						doNote.Handle(func(ctx context.Context, p *move) error {
							defer handled.Add(1)
							return down(ctx, p)
						}),
						// In between the session's queue is filled with what goes deeper by itself.
						doEcho.Handle(func(ctx context.Context, p *move) (*move, error) {
							for i := range 3 {
								note := &move{SessionID: session(p.Depth + i), N: p.N, Depth: min(p.Depth, i)}
								if err := doNote.Notify(ctx, c, note); err != nil {
									return nil, err
								}
							}
							return p, down(ctx, p)
						}),
					}
				}
				near, far := rpc.Pipe()
				a := must.Get(Connect(t.Context(), near, routes, opts))(t)
				b := must.Get(Connect(t.Context(), far, routes, opts))(t)
				var both sync.WaitGroup
				for _, c := range []*Conn{a, b} {
					both.Go(func() {
						for i := range width {
							if err := doNote.Notify(t.Context(), c, &move{SessionID: session(i), Depth: depth}); err != nil {
								t.Error(err)
							}
						}
					})
				}
				both.Wait()
				synctest.Wait()
				if handled.Load() < 2*width || calls.Load() < 2*width*depth {
					t.Errorf("%d notifications handled, %d calls", handled.Load(), calls.Load())
				}
				t.Logf("%d notifications handled, %d calls, to depth %d", handled.Load(), calls.Load(), depth)
				must.Do(t, errors.Join(a.Close(), b.Close()))
			})
		})
	}
}
