package turns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The end of a turn closes texts and then calls, says why, and lets nothing more begin.
func TestTurnEnd(t *testing.T) {
	for name, cancelled := range map[string]bool{"done": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			base, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx, turn := turns.With(base)
			if turns.Of(ctx) != turn || turns.Of(base) != nil {
				t.Error("the turn is not that of its context")
			}
			var mu sync.Mutex
			var said []string
			say := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, what)
			}
			broken := errors.New("broken")
			for i, err := range []error{nil, broken, nil} {
				key := new(int)
				if err := turn.AddCall(key, func(why error) error {
					say(fmt.Sprint("call ", i, " ", why))
					turn.RemoveCall(key) // as a call does that ends
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if i == 2 {
					turn.RemoveCall(key)
				}
			}
			text := turns.NewText(ctx, func(_ context.Context, piece string) error {
				say("text " + piece)
				return nil
			})
			must.Get(text.WriteString("hello\xc3"))(t)
			turn.Flush()
			if cancelled {
				cancel()
			}
			if err := turn.End(ctx); !errors.Is(err, broken) {
				t.Error(err)
			}
			why := map[bool]string{false: "this did not end", true: "cancelled"}[cancelled]
			if want := []string{"text hello", "text \uFFFD", "call 0 " + why, "call 1 " + why}; !slices.Equal(said, want) {
				t.Errorf("got %q, want %q", said, want)
			}
			if err := turn.AddCall(turn, nil); !errors.Is(err, turns.ErrEnded) {
				t.Errorf("a call after the end: %v", err)
			}
			late := turns.NewText(ctx, func(context.Context, string) error {
				t.Error("text was sent after the end")
				return nil
			})
			if _, err := late.WriteString("x"); err == nil {
				t.Error("a text was written after the end")
			}
			if err := late.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	var none *turns.Turn
	none.Flush()
	none.RemoveCall(none)
	if err := none.AddCall(none, nil); err != nil {
		t.Error(err)
	}
}

// What a text sends does not wait for the texts of its turn: it is one of them.
func TestTextInTurn(t *testing.T) {
	ctx, turn := turns.With(t.Context())
	text := turns.NewText(ctx, func(ctx context.Context, _ string) error {
		if turns.Of(ctx) != nil {
			t.Error("a piece is sent as if it were of the turn")
		}
		turns.Of(ctx).Flush()
		return nil
	})
	_, err := text.WriteString("x")
	if err := errors.Join(err, turn.End(ctx)); err != nil {
		t.Error(err)
	}
}

// A context outlives another one by ten seconds.
func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		told := false
		lasting, release := turns.Outlive(ctx, func() { told = true })
		defer release()
		time.Sleep(time.Hour)
		cancel(why)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if !told || lasting.Err() != nil {
			t.Errorf("told: %v, and it ended with %v", told, context.Cause(lasting))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(lasting), why) {
			t.Errorf("it ended with %v", context.Cause(lasting))
		}
	})
}

// The client sees of an error what was written for it.
func TestVisible(t *testing.T) {
	for want, err := range map[string]error{
		"The tool failed.":          errors.New("disk sda1 is broken"),
		"no such city":              fmt.Errorf("looking: %w", acp.Public(errors.New("no such city"))),
		"cancelled":                 fmt.Errorf("running: %w", context.Canceled),
		"the user did not allow it": turns.ErrRejected,
		"no such file":              fmt.Errorf("reading: %w", &acp.CallError{Method: acp.MethodReadTextFile, Err: rpc.ErrInternal.WithMessagef("no such file")}),
	} {
		if got := turns.Visible(err); got != want {
			t.Errorf("of %v the client sees %q", err, got)
		}
	}
	if !turns.Cancelled(acp.ErrTurnCancelled) || turns.Cancelled(context.DeadlineExceeded) {
		t.Error("which errors say that work was cancelled?")
	}
}
