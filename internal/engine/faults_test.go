package engine_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/faultpipe"
)

var errCable = errors.New("the cable is broken")

// A message without its newline is one all the same, and the beginning of one is none: the error says that
// it was cut.
func TestHowAStreamEnds(t *testing.T) {
	const message = `{"jsonrpc":"2.0","method":"m","params":{"s":"\u00e9}"}}`
	for _, test := range []struct {
		in    string
		lines []string
		err   error // where the stream just ends
	}{
		{"", nil, io.EOF},
		{message + "\n", []string{message}, io.EOF},
		{message, []string{message}, io.EOF},
		{message + " \t", []string{message + " \t"}, io.EOF},
		{message + "\n" + message[:20], []string{message}, io.ErrUnexpectedEOF},
		{message + "\n \t" + message[:20], []string{message}, io.ErrUnexpectedEOF},
		{message + "\n{", []string{message}, io.ErrUnexpectedEOF},
		{message + "\n \t", []string{message}, io.EOF},
		{message[:20] + "\n", []string{message[:20]}, io.EOF}, // the line is whole, which is another fault
		{`{"a" 1`, []string{`{"a" 1`}, io.EOF},                // not the beginning of anything
		{"bye", []string{"bye"}, io.EOF},
		{"[INFO] bye", []string{"[INFO] bye"}, io.EOF},
		{`["bye`, []string{`["bye`}, io.EOF}, // no message begins like this
		{`{"s":"` + strings.Repeat("x", 100_000), nil, io.ErrUnexpectedEOF},
	} {
		for _, end := range []error{io.EOF, errCable} {
			for name, chunks := range map[string]func() int{"whole": nil, "bytes": faultpipe.OneByte} {
				cut := faultpipe.Script{Chunks: chunks, Capacity: 1 << 20, Faults: []faultpipe.Fault{{Byte: len(test.in), Do: faultpipe.Cut(end)}}}
				near, far := faultpipe.Pipe(cut, faultpipe.Script{})
				if _, err := io.WriteString(far.W, test.in); err != nil && test.in != "" {
					t.Fatal(err)
				}
				stream, err := rpc.IO(near.R, near.W, 0).Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := end
				if end == io.EOF {
					want = test.err
				}
				var lines []string
				line, err := stream.Read()
				for ; err == nil; line, err = stream.Read() {
					lines = append(lines, string(line))
				}
				_, again := stream.Read()
				if !slices.Equal(lines, test.lines) || !errors.Is(err, want) || !errors.Is(again, want) {
					t.Errorf("%.60q in %s, ended by %v: %.60q, %v, %v", test.in, name, end, lines, err, again)
				}
			}
		}
	}
}

// slowStream takes its time to close, as a subprocess does, and fails to.
type slowStream struct {
	Stream
	closing time.Duration
}

var errClose = errors.New("cannot be closed")

func (s slowStream) Connect(context.Context) (Stream, error) { return s, nil }

func (s slowStream) Close() error {
	time.Sleep(s.closing)
	return errors.Join(s.Stream.Close(), errClose)
}

// Rules 1 and 13: also when the peer has ended the stream, the connection is not over before the stream
// is closed, because the program may exit then.
func TestWaitOutlastsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := faultpipe.Pipe(faultpipe.Script{}, faultpipe.Script{})
		inner, err := rpc.IO(near.R, near.W, 0).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := Connect(t.Context(), slowStream{inner, time.Minute}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := far.W.Close(); err != nil {
			t.Error(err)
		}
		if err := wait(c); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Wait returned after %v", d)
		}
		if err := c.Close(); !errors.Is(err, errClose) {
			t.Errorf("Close: %v", err)
		}
	})
}

// Rule 12: whatever is tried on a connection that is over fails with the reason for that, and not with what
// became of writing.
func TestAfterTheEndEverythingSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := faultpipe.Script{Faults: []faultpipe.Fault{{Byte: 10, Do: faultpipe.Cut(errCable)}}}
		near, _ := faultpipe.Pipe(faultpipe.Script{}, cut)
		c, err := Connect(t.Context(), rpc.IO(near.R, near.W, 0), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		tries := map[string]func() error{
			"call":   func() error { _, err := echoMethod.Call(t.Context(), c, &echoParams{}); return err },
			"notify": func() error { return updateMethod.Notify(t.Context(), c, &updateParams{}) },
			"turn": func() error {
				_, err := engine.RunTurn(t.Context(), c, promptMethod, &promptParams{}, inS)
				return err
			},
			"turn in the background": func() error {
				_, err := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{}, inS, pickUpdate).Result()
				return err
			},
		}
		if err := tries["call"](); !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, errCable) {
			t.Errorf("the call that was cut: %v", err)
		}
		if err := wait(c); !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, errCable) {
			t.Errorf("Wait: %v", err)
		}
		for name, try := range tries {
			if err := try(); !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, errCable) || errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A turn that was cancelled and waits for its answer ends with the connection, and says so. What tells it
// of that, its call and the end of its context, is there at the same time here.
func TestCancelledTurnWhoseConnectionEnds(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			var c *Conn
			asked := make(chan struct{})
			routes := clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
				close(asked)
				<-ctx.Done()
				return nil, ctx.Err()
			})
			for i := range routes {
				if routes[i].Cancelled != nil {
					routes[i].Cancelled = func(any) any {
						<-engine.Ending(c)
						return &askResult{"cancelled"}
					}
				}
			}
			p, conn := newPeer(t, routes, nil)
			c = conn
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := engine.RunTurn(ctx, c, promptMethod, &promptParams{SessionID: "s"}, inS)
				ended <- err
			}()
			p.read()
			p.send(request("q", "ask", `{"sessionId":"s"}`))
			<-asked
			cancel()
			p.read()
			p.w.Close()
			if err := <-ended; !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, io.EOF) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A peer that reads no more, so that the pipe is full: what is sent waits as long as its context, and
// Close as long as it may.
func TestPeerThatReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := faultpipe.Pipe(faultpipe.Script{}, faultpipe.Script{Faults: []faultpipe.Fault{{Byte: 100, Do: faultpipe.Stall()}}})
		c, err := Connect(t.Context(), rpc.IO(near.R, near.W, 0), nil, &Options{CloseTime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		timed := func(want time.Duration) {
			t.Helper()
			if d := time.Since(start); d != want {
				t.Errorf("it took %v, want %v", d, want)
			}
			start = time.Now()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sent := 0
		for ; err == nil && sent < 10_000; sent++ {
			err = updateMethod.Notify(ctx, c, &updateParams{SessionID: "s", Text: strings.Repeat("x", 1000)})
		}
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, rpc.ErrClosed) || sent < 100 {
			t.Errorf("update %d: %v", sent, err)
		}
		timed(time.Second)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := echoMethod.Call(ctx, c, &echoParams{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		timed(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		timed(time.Minute)
		if err := wait(c); err != nil {
			t.Error(err)
		}
		if got, err := io.ReadAll(io.LimitReader(far.R, 100)); len(got) != 100 || err != nil {
			t.Errorf("%d bytes arrived, %v", len(got), err)
		}
	})
}

// A wire that is slow delays, and changes nothing.
func TestSlowWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := faultpipe.Script{Chunks: faultpipe.OneByte, Faults: []faultpipe.Fault{{Byte: 20, Do: faultpipe.Delay(time.Hour)}}}
		a, b := faultpipe.Pipe(slow, slow)
		server, err := Connect(t.Context(), rpc.IO(a.R, a.W, 0), func(*Conn) []Route { return []Route{echoMethod.Handle(echo)} }, nil)
		if err != nil {
			t.Fatal(err)
		}
		client, err := Connect(t.Context(), rpc.IO(b.R, b.W, 0), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for n := range 3 {
			if res, err := echoMethod.Call(t.Context(), client, &echoParams{N: n}); err != nil || res.N != n {
				t.Errorf("got %v, %v", res, err)
			}
		}
		if d := time.Since(start); d != 2*time.Hour {
			t.Errorf("it took %v", d)
		}
		if err := errors.Join(client.Close(), wait(server), server.Close()); err != nil {
			t.Error(err)
		}
	})
}
