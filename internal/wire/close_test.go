package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// stuckStream takes nothing, and gives nothing, until it is closed.
type stuckStream chan struct{}

func (s stuckStream) Read() ([]byte, error) {
	<-s
	return nil, io.EOF
}

func (s stuckStream) Write([]byte) error {
	<-s
	return errors.New("closed")
}

func (s stuckStream) Close() error {
	close(s)
	return nil
}

// What closing the stream makes fail does not outlive Close.
func TestNothingRunsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c, _ := run(make(stuckStream), Config{
			Drain: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		must.Do(t, c.Post("m", nil))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must.Do(t, c.Close(ctx))
		before := log.String()
		time.Sleep(time.Hour)
		if after := log.String(); after != before {
			t.Errorf("logged after Close: %s", after[len(before):])
		}
	})
}

// mute is a caller that nobody answers.
type mute struct{}

func (mute) Sent([]byte)             {}
func (mute) Answered(Response)       {}
func (mute) TryAnswered([]byte) bool { return false }

// quiet is a stream that takes everything, and gives nothing before it is closed.
type quiet struct{ stuckStream }

func (quiet) Write([]byte) error { return nil }

// Calls that were given up do not pile up although the peer says nothing: the next ones take their places.
func TestAbandonedCallsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := run(quiet{make(stuckStream)}, Config{})
		synctest.Wait() // it reads, or it would take those that are given up
		listed := func() int { return reflect.ValueOf(c.lib.conn).Elem().FieldByName("pending").Len() + len(c.calls) }
		var first Call
		must.Do(t, c.Start(t.Context(), &first, "m", nil, mute{}))
		for range 100 {
			var call Call
			must.Do(t, c.Start(t.Context(), &call, "m", nil, mute{}))
			call.Abandon()
			call.Abandon() // does no more
			if err := c.Start(t.Context(), &call, "m", failing{}, mute{}); err == nil {
				t.Fatal("sent what cannot be encoded")
			}
		}
		if n := listed(); n > 3 {
			t.Errorf("%d calls are listed", n)
		}
		must.Do(t, c.Close(t.Context()))
		if err := first.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("the call that was not given up ended with %v", err)
		}
	})
}

// failing is a value that cannot be encoded.
type failing struct{}

func (failing) EncodeJSON(e *codec.Encoder) { e.Failf("it cannot be encoded") }

// keeper is a caller that keeps what it receives.
type keeper struct {
	tries  bool // it reads responses that have nothing unusual in one pass
	result string
	err    error
}

func (*keeper) Sent([]byte)           {}
func (k *keeper) Answered(r Response) { k.result, k.err = string(r.Result), r.Err }
func (k *keeper) TryAnswered(rest []byte) bool {
	if k.tries {
		k.result = strings.TrimSuffix(string(rest), "}")
	}
	return k.tries
}

// A call that took the place of one that was given up gets its own answer, and the late one is dropped.
func TestAnswersAfterAbandonedCalls(t *testing.T) {
	r, w := io.Pipe()
	c, h := run(&tape{in: NewLineReader(r, 1000)}, Config{})
	for n := 1; n < 100; n += 3 {
		var calls [3]Call
		var got [3]keeper
		for i := range calls {
			got[i].tries = n%2 == 0
			must.Do(t, c.Start(t.Context(), &calls[i], "m", nil, &got[i]))
		}
		calls[1].Abandon()
		for i := range calls {
			must.Get(fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%d}`+"\n", n+i, n+i))(t)
		}
		for _, i := range []int{0, 2} {
			if err := calls[i].Wait(t.Context()); err != nil || got[i].result != fmt.Sprint(n+i) {
				t.Errorf("call %d: %q, %v", n+i, got[i].result, err)
			}
		}
		if got[1].result != "" {
			t.Errorf("call %d was given up and answered with %q", n+1, got[1].result)
		}
		c.mu.Lock()
		if len(c.calls) > 0 {
			t.Errorf("calls %v are listed", c.calls)
		}
		c.mu.Unlock()
	}
	must.Do(t, w.Close())
	<-c.Done()
	if n := reflect.ValueOf(c.lib.conn).Elem().FieldByName("pending").Len(); n != 0 {
		t.Errorf("%d calls are listed", n)
	}
	must.Do(t, c.Close(t.Context()))
	if len(h.invalid) > 0 {
		t.Errorf("reported: %v", h.invalid)
	}
}
