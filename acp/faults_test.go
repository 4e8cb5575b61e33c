// The faults of the wire: a recorded turn that is cut at every byte, and turns whose bytes are lost, repeated and mixed
// with others. The connections are in memory and run in bubbles of testing/synctest, where a hang and a goroutine that
// is left are deadlocks, which the bubble reports.

package acp_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/ledger"
	"github.com/acpgo/sdk/internal/test/faultpipe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The recorded turn: an agent and a client that use everything, one thing after the other, so that the
// order of the messages is always the same.

// calls are how many calls each side makes.
const (
	callsOfClient = 3
	callsOfAgent  = 8
)

// witness is one side of the turn, and what it saw.
type witness struct {
	mu       sync.Mutex
	read     bytes.Buffer // what its transport was given
	handled  []string     // what its handlers were called with, in order
	returned int          // calls that returned without an error
	err      error        // of the first call or notification that failed
	invalid  []string     // what Hooks.Invalid was notified of
	ended    error        // what Wait returned
}

// transport is the end of a pipe, observed.
func (w *witness) transport(end faultpipe.End) acp.Transport {
	return rpc.IO(witnessed{end.R, w}, end.W, 0)
}

type witnessed struct {
	io.ReadCloser
	w *witness
}

func (r witnessed) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.read.Write(b[:n])
	return n, err
}

// options have the witness note what reaches its handlers, and how its calls end.
func (w *witness) options() acp.ConnOptions {
	return acp.ConnOptions{Hooks: acp.Hooks{
		Invalid: func(line []byte, reason error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.invalid = append(w.invalid, fmt.Sprintf("%v: %s", reason, line))
		},
		Serve: func(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
			params, err := json.Marshal(call.Params)
			if err != nil {
				return err
			}
			w.mu.Lock()
			w.handled = append(w.handled, handling(call.Method, params))
			w.mu.Unlock()
			return next(ctx)
		},
		Call: func(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
			err := next(ctx)
			w.mu.Lock()
			defer w.mu.Unlock()
			if err == nil && !call.Notification {
				w.returned++
			}
			w.err = cmp.Or(w.err, err)
			return err
		},
	}}
}

// handling is a method and its parameters, with their members in order.
func handling(method string, params []byte) string {
	var v any
	err := json.Unmarshal(params, &v)
	ordered, err2 := json.Marshal(v)
	return fmt.Sprint(method, " ", string(ordered), errors.Join(err, err2))
}

// serveTurn is the agent's side, until the client or the wire ends the connection.
func (w *witness) serveTurn(ctx context.Context, transport acp.Transport) error {
	conn, err := acp.StartAgent(ctx, transport, acp.AgentHandlers{
		NewSession: newSession,
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			if turn(ctx, s) != nil {
				return nil, errors.New("the turn has failed")
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, &acp.AgentOptions{Conn: w.options()})
	if err != nil {
		return err
	}
	w.ended = conn.Wait()
	return conn.Close()
}

// turn is what the agent does in a turn, until something fails.
func turn(ctx context.Context, s *acp.AgentSession) error {
	var terminal *acp.TerminalHandle
	for _, step := range []func() error{
		func() error {
			return say(ctx, s, acp.AgentThoughtText("é\n\u2028"),
				acp.UpdatePlan(acp.PlanEntry{Content: "Look", Priority: "high", Status: "in_progress"}),
				acp.AgentMessageText("I look."), acp.AgentMessageText("\x00\"\\"),
				acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: "call_1", Title: "Edit", Kind: acp.ToolKindEdit}))
		},
		func() error {
			_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "call_1"}, options("Yes", "No")...)
			return err
		},
		func() error { _, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/x"}); return err },
		func() error { return say(ctx, s, status(acp.ToolCallStatusInProgress)) },
		func() error {
			_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: "/x", Content: "y"})
			return err
		},
		func() (err error) {
			terminal, err = s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
			return err
		},
		func() error { _, err := terminal.Wait(ctx); return err },
		func() error { _, err := terminal.Output(ctx); return err },
		func() error { return terminal.Kill(ctx) },
		func() error { return terminal.Close(ctx) },
		func() error { return say(ctx, s, status(acp.ToolCallStatusCompleted)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// turnHandlers are the client's.
func turnHandlers() acp.ClientHandlers {
	h := acp.ClientHandlers{
		RequestPermission: choose("yes"),
		CreateTerminal: func(context.Context, *acp.ClientSession, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			return &acp.CreateTerminalResponse{TerminalID: "t"}, nil
		},
	}
	serveAll(&h)
	return h
}

// runTurn is the client's side. It ends the connection, or waits until the wire has.
func (w *witness) runTurn(ctx context.Context, transport acp.Transport, end bool) error {
	conn, err := acp.Connect(ctx, transport, turnHandlers(), &acp.ClientOptions{Conn: w.options()})
	if err != nil {
		w.ended = err
		return nil
	}
	if session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada"}); err == nil {
		_, _ = session.Prompt(ctx, acp.TextBlock("go")) // noted
	}
	if !end {
		w.ended = conn.Wait()
	}
	return conn.Close()
}

// record runs the turn without a fault, every message validated.
func record(t *testing.T) *conformance.Recording {
	t.Helper()
	a, c := acp.Pipe()
	all := &conformance.Recording{}
	tap := conformance.Tap(t, conformance.Client, c, &conformance.TapOptions{OnMessage: all.Add})
	agent, client := &witness{}, &witness{}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := agent.serveTurn(t.Context(), a); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, client.runTurn(t.Context(), tap, true))
	wg.Wait()
	if client.err != nil || agent.err != nil || client.returned != callsOfClient || agent.returned != callsOfAgent {
		t.Fatalf("the turn has failed: %v, %v, %d and %d calls", client.err, agent.err, client.returned, agent.returned)
	}
	return all
}

// replay is a raw peer that speaks one side of a recording, waiting for each line of the other side. When
// it can speak no more it still reads; when nothing more comes it ends.
func (w *witness) replay(side conformance.Side, end faultpipe.End, all *conformance.Recording) error {
	in := bufio.NewReader(witnessed{end.R, w})
	var err error
	for _, m := range all.Messages() {
		if m.Direction.Sender() != side {
			_, err = in.ReadString('\n')
		} else {
			_, err = end.W.Write(append(slices.Clone(m.Line), '\n'))
		}
		if err != nil {
			break
		}
	}
	_, _ = io.Copy(io.Discard, in) // how the pipe ends is the script's
	return errors.Join(end.W.Close(), end.R.Close())
}

// cut is a way to end a connection in the middle.
type cut struct {
	name   string
	action faultpipe.Action
	err    error // what both sides read then
	half   bool  // only one direction ends
}

var errBroken = errors.New("the cable is broken")

var waysToCut = []cut{
	{"the peer dies", faultpipe.Cut(nil), io.EOF, false},
	{"the wire breaks", faultpipe.Cut(errBroken), errBroken, false},
	{"one direction ends", faultpipe.HalfClose(nil), io.EOF, true},
}

// whole returns the messages that were read, and whether the last one was cut. It needs no newline.
func whole(read []byte) (lines []string, broken bool) {
	for line := range strings.Lines(string(read)) {
		if !json.Valid([]byte(line)) {
			return lines, true
		}
		lines = append(lines, line)
	}
	return lines, false
}

// account is what a side must have made of the messages that it has read.
type account struct {
	handled  []string // the calls of its handlers
	returned int      // its own calls that have returned a result
	failed   int      // and those that the peer has answered with an error
	requests []string // ids of the peer's
	answered []string // ids of its own
}

func accountFor(lines []string) (a account, err error) {
	for _, line := range lines {
		m, err := ledger.Read([]byte(line))
		if err != nil {
			return a, err
		}
		switch {
		case m.IsAnswer():
			a.answered = append(a.answered, string(m.ID))
			if m.Error == nil {
				a.returned++
			} else {
				a.failed++
			}
		case m.IsRequest():
			a.requests = append(a.requests, string(m.ID))
		}
		if !m.IsAnswer() {
			a.handled = append(a.handled, handling(m.Method, m.Params))
		}
	}
	return a, nil
}

// check compares what a side saw, which had so many calls to make, with what it has read. peerRead is what
// came of its own messages, and open says that nothing kept them from coming.
func (w *witness) check(c cut, calls int, peerRead []byte, open bool) error {
	lines, broken := whole(w.read.Bytes())
	want, err := accountFor(lines)
	if err != nil {
		return err
	}
	cause := c.err
	if broken && cause == io.EOF {
		cause = io.ErrUnexpectedEOF
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !slices.Equal(w.handled, want.handled) {
		bad("handled %q\nread    %q", w.handled, want.handled)
	}
	if w.returned != want.returned {
		bad("%d calls have returned, and %d results were read", w.returned, want.returned)
	}
	if len(w.invalid) > 0 {
		bad("found invalid: %q", w.invalid)
	}
	// What was sent into the void is as good a reason.
	says := func(err error) bool {
		return errors.Is(err, acp.ErrClosed) && (errors.Is(err, cause) || errors.Is(err, io.ErrClosedPipe))
	}
	_, answered := errors.AsType[*acp.Error](w.err)
	switch {
	case w.err == nil && w.returned < calls:
		bad("%d of %d calls have returned, and none has failed", w.returned, calls)
	case w.err != nil && !says(w.err) && !(answered && want.failed == 1):
		bad("a call failed with %v, want %v", w.err, cause)
	}
	if orderly := cause == io.EOF; w.ended == nil && !orderly || w.ended != nil && !says(w.ended) {
		bad("the connection ended with %v, want %v", w.ended, cause)
	}
	lines, _ = whole(peerRead)
	sent, err := accountFor(lines)
	if err != nil {
		return err
	}
	var owed ledger.Requests[struct{}]
	for _, id := range want.requests {
		owed.Ask(id, struct{}{})
	}
	for _, id := range sent.answered {
		owed.Answer(id)
	}
	for id, e := range owed.All() {
		if e.Unasked > 0 || e.Open() > 0 && open {
			bad("%d requests %s were answered %d times", e.Asked, id, e.Answered+e.Unasked)
		}
	}
	return errors.Join(errs...)
}

// TestCutAtEveryByte cuts the recorded turn at every byte of either direction, with our client facing a
// recorded agent, our agent facing a recorded client, and both facing each other. The tiers below Nightly try
// a sample of the bytes.
func TestCutAtEveryByte(t *testing.T) {
	step := tier.Pick(2003, 211, 41, 1)
	var all *conformance.Recording
	synctest.Test(t, func(t *testing.T) { all = record(t) })
	for _, direction := range []conformance.Side{conformance.Client, conformance.Agent} {
		text := all.Sent(direction)
		t.Run("written by the "+direction.String(), func(t *testing.T) {
			var results cutResults
			for _, way := range waysToCut {
				for _, ours := range [][]conformance.Side{{conformance.Client}, {conformance.Agent}, {conformance.Client, conformance.Agent}} {
					for offset := 0; offset <= len(text); offset += step {
						results.try(t, fmt.Sprintf("%s at byte %d of %d, %v ours", way.name, offset, len(text), ours), func(t *testing.T) error {
							return cutTurn(t.Context(), all, ours, direction, offset, way)
						})
					}
				}
			}
			t.Logf("%d bytes: %v", len(text), results)
		})
	}
}

// cutResults counts what became of cuts.
type cutResults struct{ tried, wrong, hangs, leaks int }

func (r cutResults) String() string {
	return fmt.Sprintf("%d cuts, %d hangs, %d leaks, %d otherwise wrong", r.tried, r.hangs, r.leaks, r.wrong)
}

// tooManyCuts is how many failures are shown.
const tooManyCuts = 5

// try runs one cut in a bubble. A bubble that does not end is a hang before f has returned, and a leak
// after that.
func (r *cutResults) try(t *testing.T, name string, f func(t *testing.T) error) {
	t.Helper()
	r.tried++
	returned := false
	var err error
	defer func() {
		v := recover()
		switch {
		case v == nil && err == nil:
			return
		case v == nil:
			r.wrong++
		case returned:
			r.leaks++
			err = fmt.Errorf("something is left: %v", v)
		default:
			r.hangs++
			err = fmt.Errorf("nothing goes on: %v", v)
		}
		t.Errorf("%s: %v", name, err)
		if r.wrong+r.hangs+r.leaks >= tooManyCuts {
			t.Fatalf("%v, and no more are tried", r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		err = f(t)
		returned = true
	})
}

// cutTurn runs the turn once.
func cutTurn(ctx context.Context, all *conformance.Recording, ours []conformance.Side, direction conformance.Side, offset int, way cut) error {
	start := time.Now()
	script := faultpipe.Script{Faults: []faultpipe.Fault{{Byte: offset, Do: way.action}}}
	toAgent, toClient := script, faultpipe.Script{}
	if direction == conformance.Agent {
		toAgent, toClient = toClient, toAgent
	}
	agentEnd, clientEnd := faultpipe.Pipe(toAgent, toClient)
	agent, client := &witness{}, &witness{}
	oursIs := func(side conformance.Side) bool { return slices.Contains(ours, side) }
	var agentErr, clientErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		if oursIs(conformance.Agent) {
			agentErr = agent.serveTurn(ctx, agent.transport(agentEnd))
		} else {
			agentErr = agent.replay(conformance.Agent, agentEnd, all)
		}
	})
	wg.Go(func() {
		if oursIs(conformance.Client) {
			clientErr = client.runTurn(ctx, client.transport(clientEnd), false)
		} else {
			clientErr = client.replay(conformance.Client, clientEnd, all)
		}
	})
	wg.Wait()
	errs := []error{agentErr, clientErr}
	if oursIs(conformance.Agent) {
		calls := 0
		if slices.ContainsFunc(agent.handled, func(s string) bool { return strings.HasPrefix(s, acp.MethodPrompt) }) {
			calls = callsOfAgent
		}
		open := way.half && direction == conformance.Client
		if err := agent.check(way, calls, client.read.Bytes(), open); err != nil {
			errs = append(errs, fmt.Errorf("agent: %w", err))
		}
	}
	if oursIs(conformance.Client) {
		open := way.half && direction == conformance.Agent
		if err := client.check(way, callsOfClient, agent.read.Bytes(), open); err != nil {
			errs = append(errs, fmt.Errorf("client: %w", err))
		}
	}
	if d := time.Since(start); d > 0 {
		errs = append(errs, fmt.Errorf("it took %v", d))
	}
	return errors.Join(errs...)
}

// Faults that lose, repeat, mix and delay bytes, but end nothing, end nothing: whatever became of the
// calls that they hit, the same connection works again behind them, and it ends in an orderly way.
func TestConnectionSurvivesFaults(t *testing.T) {
	const faults, lines, attempts, timeout = 12, 40, 40, time.Minute
	seeds := tier.Pick(10, 30, 100, 3000)
	failed, refused := 0, 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			// The first line of either side is initialize and its answer.
			script := func(side uint64) faultpipe.Script {
				return faultpipe.Script{
					Faults: faultpipe.Random(2*seed+side, faults, 1, lines),
					Chunks: faultpipe.RandomChunks(seed, 1+int(seed)*7%300),
				}
			}
			agentEnd, clientEnd := faultpipe.Pipe(script(0), script(1))
			agent, client := &witness{}, &witness{}
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() {
				if err := agent.serveTurn(t.Context(), agent.transport(agentEnd)); err != nil || agent.ended != nil {
					t.Errorf("seed %d: the agent's connection ended with %v, %v", seed, agent.ended, err)
				}
			})
			opts := &acp.ClientOptions{Conn: client.options()}
			opts.Conn.Hooks.Panic = func(method string, v any, _ []byte) { t.Errorf("seed %d: %s panicked: %v", seed, method, v) }
			conn, err := acp.Connect(t.Context(), client.transport(clientEnd), turnHandlers(), opts)
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
			defer func() {
				if err := conn.Close(); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}()
			for n, well := 0, 0; well < 3; n++ {
				if n == attempts {
					t.Errorf("seed %d: the connection does not recover: %v", seed, err)
					return
				}
				start := time.Now()
				if err = attempt(t.Context(), conn, timeout); err == nil {
					well++
				} else {
					well = 0
					failed++
				}
				if d := time.Since(start); d > 3*timeout {
					t.Errorf("seed %d: it took %v: %v", seed, d, err)
				}
				time.Sleep(time.Second) // as a user would
			}
			client.mu.Lock() // its connection continues until the deferred Close
			defer client.mu.Unlock()
			refused += len(client.invalid)
		})
	}
	t.Logf("%d connections: %d lines were refused or ignored by the clients, and %d turns failed", seeds, refused, failed)
	if failed == 0 || refused == 0 {
		t.Error("the faults do no harm")
	}
}

// attempt runs a turn from the beginning, each call with a timeout.
func attempt(ctx context.Context, conn *acp.ClientConn, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		return err
	}
	if err := session.Cancel(ctx); err != nil { // a turn that waits for an answer that was lost
		return err
	}
	_, err = session.Prompt(ctx, acp.TextBlock("go"))
	return err
}
