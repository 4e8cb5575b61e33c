package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bridged is a bridge whose two ends the test controls.
type bridged struct {
	*bridge
	client, agent rpc.Stream // the ends of the client and the agent
	ended         chan ended
}

type ended struct {
	who string
	err error
}

// connect creates a bridge over pipes in memory. limit is the maximum length of messages; 0 means the default.
func connect(t *testing.T, ctx context.Context, limit int) *bridged {
	t.Helper()
	return connectWrapped(t, ctx, limit, func(s rpc.Stream) rpc.Stream { return s })
}

// connectWrapped is connect with another stream to the agent.
func connectWrapped(t *testing.T, ctx context.Context, limit int, wrap func(rpc.Stream) rpc.Stream) *bridged {
	t.Helper()
	open := func(r io.ReadCloser, w io.WriteCloser, limit int) rpc.Stream {
		s := must.Get(rpc.IO(r, w, limit).Connect(ctx))(t)
		return s
	}
	pair := func() (outside, inside rpc.Stream) {
		r1, w1 := io.Pipe()
		r2, w2 := io.Pipe()
		return open(r1, w2, 0), open(r2, w1, limit)
	}
	b := &bridged{ended: make(chan ended, 1)}
	var forClient, forAgent rpc.Stream
	b.client, forClient = pair()
	b.agent, forAgent = pair()
	b.bridge = newBridge(forClient, wrap(forAgent))
	go func() {
		end, err := b.run(ctx)
		name := ""
		if end != nil {
			name = end.name
		}
		b.ended <- ended{name, err}
	}()
	t.Cleanup(func() {
		for _, s := range []rpc.Stream{forClient, forAgent, b.client, b.agent} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		<-b.up
		<-b.down
	})
	return b
}

// want reads the expected messages of a stream.
func want(t *testing.T, s rpc.Stream, messages ...string) {
	t.Helper()
	for _, message := range messages {
		if got, err := s.Read(); string(got) != message || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, message)
		}
	}
}

func write(t *testing.T, s rpc.Stream, messages ...string) {
	t.Helper()
	for _, message := range messages {
		if err := s.Write([]byte(message)); err != nil {
			t.Error(err)
		}
	}
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"hello"}`

// Messages pass in order, in both directions, including long ones.
func TestBridge(t *testing.T) {
	b := connect(t, t.Context(), 0)
	var messages []string
	for i := range 1000 {
		messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"n":%d}}`, i))
	}
	messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","method":"long","params":%q}`, strings.Repeat("x", 3*hop.Batch)), hello)
	for _, way := range []struct{ from, to rpc.Stream }{{b.client, b.agent}, {b.agent, b.client}} {
		go write(t, way.from, messages...)
		want(t, way.to, messages...)
	}
}

// Output of an agent that is not a message is not passed on.
func TestBridgeNoise(t *testing.T) {
	b := connect(t, t.Context(), 0)
	noise := make(chan string, 10)
	b.noise = func(line []byte) { noise <- string(line) }
	go write(t, b.agent, "Loading models", hello, "[1]", hello)
	want(t, b.client, hello, hello)
	for _, text := range []string{"Loading models", "[1]"} {
		if got := <-noise; got != text {
			t.Errorf("got noise %q, want %q", got, text)
		}
	}
	go write(t, b.client, "no message", hello) // the agent responds to it
	want(t, b.agent, "no message", hello)
}

// A peer that waits for a message that is too long gets an error, and the other messages pass.
func TestBridgeTooLong(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, test := range []struct{ name, message, back, forth string }{
		{"request", fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":"m","params":%q}`, long),
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"message longer than 1000 bytes"}}`, ""},
		{"answer", fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":%q}`, long),
			"", `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"message longer than 1000 bytes"}}`},
		{"notification", fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":%q}`, long), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := connect(t, t.Context(), 1000)
			for _, way := range []struct{ from, to rpc.Stream }{{b.client, b.agent}, {b.agent, b.client}} {
				go write(t, way.from, test.message, hello)
				if test.back != "" {
					want(t, way.from, test.back)
				}
				if test.forth != "" {
					want(t, way.to, test.forth)
				}
				want(t, way.to, hello)
			}
		})
	}
}

// A request whose response the stream knows to be lost gets an error response.
func TestBridgeCallLost(t *testing.T) {
	lost := []error{&rpc.CallLostError{ID: rpc.IntID(3), Err: errors.New("the server is busy")}}
	wrap := func(s rpc.Stream) rpc.Stream {
		return rpc.Wrap(s, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			if len(lost) > 0 {
				err := lost[0]
				lost = lost[1:]
				return nil, err
			}
			return next()
		}})
	}
	b := connectWrapped(t, t.Context(), 0, wrap)
	go write(t, b.agent, hello)
	want(t, b.client, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the server is busy"}}`, hello)
}

func TestBridgeEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(b *bridged)
		want string
	}{
		{"client", func(b *bridged) { b.client.Close() }, "client"},
		{"agent", func(b *bridged) { b.agent.Close() }, "agent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := connect(t, t.Context(), 0)
			test.end(b)
			if got := <-b.ended; got.who != test.want || !orderly(got.err) {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("context", func(t *testing.T) {
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		b := connect(t, ctx, 0)
		cancel(reason)
		if got := <-b.ended; got.who != "" || !errors.Is(got.err, reason) {
			t.Errorf("got %v", got)
		}
	})
}

// When the client has ended, the agent's remaining output is passed on for a limited time.
func TestBridgeFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := connect(t, t.Context(), 0)
		half, ok := b.client.(rpc.HalfCloser)
		if !ok {
			t.Fatal("the stream cannot end one side")
		}
		must.Do(t, half.CloseWrite())
		if got := <-b.ended; got.who != "client" {
			t.Fatalf("got %v", got)
		}
		finished := make(chan time.Duration)
		finish := func() {
			begun := time.Now()
			b.finish(t.Context(), time.Minute)
			finished <- time.Since(begun)
		}
		go finish()
		if _, err := b.agent.Read(); err != io.EOF {
			t.Errorf("the agent reads %v, want the end", err)
		}
		write(t, b.agent, hello)
		want(t, b.client, hello)
		if took := <-finished; took != time.Minute {
			t.Errorf("it took %v", took)
		}
		go finish()
		synctest.Wait()
		if err := b.agent.Close(); err != nil {
			t.Error(err)
		}
		if took := <-finished; took != 0 {
			t.Errorf("it took %v after the agent had ended", took)
		}
	})
}

// What arrives without a pause is passed on in batches.
func TestBridgeBatches(t *testing.T) {
	b := connect(t, t.Context(), 0)
	from, to := &burst{left: 4 * 16}, &burst{}
	if ended, err := b.pass(newEnd("from", from), newEnd("to", to)); ended.name != "from" || err != io.EOF {
		t.Errorf("got %s, %v", ended.name, err)
	}
	if to.written != 4*hop.Batch || to.writes != 4 {
		t.Errorf("%d bytes in %d writes", to.written, to.writes)
	}
}

// burst is a stream that never has to wait for what it reads: lines of a 16th of a batch.
type burst struct{ left, written, writes int }

func (s *burst) Close() error          { return nil }
func (s *burst) Read() ([]byte, error) { return s.ReadLine(nil) }
func (s *burst) Write([]byte) error    { return errors.ErrUnsupported }

func (s *burst) ReadLine(func()) ([]byte, error) {
	if s.left--; s.left < 0 {
		return nil, io.EOF
	}
	return bytes.Repeat([]byte("x"), hop.Batch/16-1), nil
}

func (s *burst) WriteLines(lines []byte) error {
	s.written += len(lines)
	s.writes++
	return nil
}

// A side that does not read blocks the other one.
func TestBridgeBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := connect(t, t.Context(), 0)
		line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":%q}`, strings.Repeat("x", 1000))
		written := 0
		go func() {
			for b.agent.Write([]byte(line)) == nil {
				written++
			}
		}()
		synctest.Wait()
		if most := 3 * hop.Batch / len(line); written == 0 || written > most {
			t.Errorf("%d messages were taken of an agent whose client does not read, want %d at most", written, most)
		}
		want(t, b.client, line, line)
	})
}
