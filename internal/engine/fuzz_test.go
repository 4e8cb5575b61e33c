package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/badlines"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// anyRoutes are routes of each kind. What waits does so until release is closed, or its context ends.
func anyRoutes(c *Conn, release <-chan struct{}) []Route {
	wait := func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	callBack := func(ctx context.Context, p *echoParams) (*echoParams, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return echoMethod.Call(ctx, c, p)
	}
	update := updateMethod.Handle(func(ctx context.Context, p *updateParams) error {
		switch p.N {
		case 7:
			_, err := callBack(ctx, &echoParams{SessionID: p.SessionID})
			return err
		case 8:
			return updateMethod.Notify(ctx, c, p)
		case 9:
			panic(errPlain)
		}
		return nil
	})
	update.Feeds = true
	ask := askMethod.Handle(func(ctx context.Context, _ *sessionParams) (*askResult, error) {
		return &askResult{"selected"}, wait(ctx)
	})
	ask.Cancelled = func(any) any { return &askResult{"cancelled"} }
	prompt := promptMethod.Handle(func(ctx context.Context, p *promptParams) (*promptResult, error) {
		rpc.AfterResponse(ctx, func(ctx context.Context) { updateMethod.Notify(ctx, c, &updateParams{SessionID: p.SessionID}) })
		if err := updateMethod.Notify(ctx, c, &updateParams{SessionID: p.SessionID}); err != nil {
			return nil, err
		}
		return &promptResult{"end_turn"}, wait(ctx)
	})
	prompt.Turn = true
	prompt.Cancelled = func(any) any { return &promptResult{"cancelled"} }
	cancel := cancelMethod.Handle(nil)
	cancel.CancelsTurn = true
	end := RequestMethod[sessionParams, echoParams]{Name: "end"}.Handle(
		func(context.Context, *sessionParams) (*echoParams, error) { return &echoParams{}, nil })
	end.EndsTurn = true
	block := func(ctx context.Context, p *echoParams) (*echoParams, error) { return p, wait(ctx) }
	inline := RequestMethod[echoParams, echoParams]{Name: "inline"}.Handle(echo)
	inline.Inline = true
	ext := Extensions{
		Fallback: func(_ context.Context, _ *rpc.Conn, method string, params json.RawMessage) (any, error) {
			if method == "_raw" {
				return params, nil
			}
			return nil, engine.MethodNotFound(method)
		},
		FallbackNotification: func(context.Context, *rpc.Conn, string, json.RawMessage) error { return errPlain },
	}
	return append(extensions(&ext), update, ask, prompt, cancel, end, inline, echoMethod.Handle(echo),
		RequestMethod[echoParams, echoParams]{Name: "block"}.Handle(block),
		RequestMethod[echoParams, echoParams]{Name: "call"}.Handle(callBack),
		RequestMethod[echoParams, echoParams]{Name: "panic"}.Handle(
			func(context.Context, *echoParams) (*echoParams, error) { panic(errPlain) }),
	)
}

// FuzzConn has any bytes as the peer of a connection with a call and a turn in flight. Whatever they
// are, each request is answered once, what is sent is well formed, what comes behind is served, and the
// connection ends with nothing left behind; in a bubble anything that hangs is an error.
func FuzzConn(f *testing.F) {
	for _, line := range badlines.Lines("echo", `"n":1`) {
		if len(line.Text) < 1<<12 {
			f.Add([]byte(line.Text), []byte{}, uint8(0))
		}
	}
	for knobs := 0; knobs < 256; knobs += tier.Pick(17, 5, 1, 1) {
		f.Add(anySeed, []byte{byte(knobs), 3}, uint8(knobs))
	}
	f.Fuzz(func(t *testing.T, lines, sizes []byte, knobs uint8) {
		if len(lines) > 1<<14 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) { playAny(t, append(lines, '\n'), sizes, knobs) })
	})
}

var anySeed = []byte(request(1, "prompt", `{"sessionId":"s"}`) + "\n" +
	request(2, "ask", `{"sessionId":"s"}`) + "\n" +
	note("update", `{"sessionId":"s","n":7}`) + "\n" +
	note("update", `{"sessionId":"s","n":8}`) + "\n" +
	note("update", `{"sessionId":"t","n":9}`) + "\n" +
	request("a", "call", `{"sessionId":"s"}`) + "\n" +
	`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}` + "\n" +
	`{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}` + "\n" +
	note("$/cancel_request", `{"requestId":2}`) + "\n" +
	note("cancel", `{"sessionId":"s"}`) + "\n" +
	request(1, "end", `{"sessionId":"s"}`) + "\n" +
	request(1, "block", `{}`) + "\n" +
	request(1, "panic", `{}`) + "\n" +
	request(nil, "inline", `{}`) + "\n" +
	`{"jsonrpc":"2.0","id":2,"result":{"n":1}}` + "\n" +
	request("x", "_raw", `[1]`) + "\n" + note("_note", `[]`))

// playAny runs one connection. The bits of knobs make limits small, and what happens at the end rude.
func playAny(t *testing.T, lines, sizes []byte, knobs uint8) {
	knob := func(i int) bool { return knobs>>i&1 == 1 }
	opts := &Options{SkipNoise: knob(0), ConcurrentTurns: knob(1)}
	maxMessage := rpc.DefaultMaxMessage
	if knob(2) {
		opts.QueueBytes, opts.QueueLimit = 100, 400
	}
	if knob(3) {
		opts.MaxRequests = 2
	}
	if knob(4) {
		maxMessage = 80
	}
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	p := badlines.NewPeer(r2, w1, badlines.Ledger{MaxDepth: codec.MaxDepth, MaxLine: maxMessage, SkipNoise: opts.SkipNoise, Calls: 10}, nil)
	write := func(lines, sizes []byte) {
		if err := p.Write(lines, sizes); err != nil {
			t.Error(err)
		}
	}
	release := make(chan struct{})
	c := must.Get(Connect(t.Context(), rpc.IO(r1, w2, maxMessage), func(c *Conn) []Route { return anyRoutes(c, release) }, opts))(t)
	turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
	ranged, called := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ranged)
		for range turn.Updates() {
		}
	}()
	go func() {
		defer close(called)
		echoMethod.Call(t.Context(), c, &echoParams{SessionID: "s"}) // whatever comes of it
	}()
	synctest.Wait()

	write(lines, sizes)
	abrupt := knob(5)
	if !abrupt {
		if knob(6) {
			turn.Cancel()
		}
		time.Sleep(time.Minute) // longer than any grace
		write([]byte(request("alive!", "echo", "{}")+"\n"), nil)
		synctest.Wait()
		if len(p.Answers(`"alive!"`)) == 0 {
			t.Error("the connection does not serve any more")
		}
		close(release)
		time.Sleep(time.Minute)
	}
	must.Do(t, p.End())
	must.Do(t, wait(c))
	<-ranged
	<-called
	turn.Result() // whatever came of it
	must.Do(t, c.Close())
	must.Do(t, p.Verdict(!abrupt))
}
