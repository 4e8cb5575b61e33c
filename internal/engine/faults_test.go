package engine_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/faultpipe"
	"github.com/acpgo/sdk/internal/test/must"
)

// A peer that reads no more, so that the pipe is full: what is sent waits as long as its context, and
// Close as long as it may.
func TestPeerThatReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := faultpipe.Pipe(faultpipe.Script{}, faultpipe.Script{Faults: []faultpipe.Fault{{Byte: 100, Do: faultpipe.Stall()}}})
		c := must.Get(Connect(t.Context(), rpc.IO(near.R, near.W, 0), nil, &Options{CloseTime: time.Minute}))(t)
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
		var err error
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
		must.Do(t, c.Close())
		timed(time.Minute)
		must.Do(t, wait(c))
		if got, err := io.ReadAll(io.LimitReader(far.R, 100)); len(got) != 100 || err != nil {
			t.Errorf("%d bytes arrived, %v", len(got), err)
		}
	})
}
