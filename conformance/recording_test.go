package conformance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/conformance"
)

func recorded(direction conformance.Direction, line string) conformance.Message {
	return conformance.Message{Direction: direction, Line: []byte(line)}
}

// Sent returns the bytes that one side has written.
func TestSent(t *testing.T) {
	var r conformance.Recording
	r.Add(recorded(conformance.ToAgent, "a"))
	r.Add(recorded(conformance.ToClient, "b"))
	r.Add(recorded(conformance.ToAgent, ""))
	if got := string(r.Sent(conformance.Client)); got != "a\n\n" {
		t.Errorf("the client sent %q", got)
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r conformance.Recording
		line := []byte("a")
		r.Add(conformance.Message{Direction: conformance.ToAgent, Line: line})
		line[0] = 'x' // the recording has a copy
		is := func(text string) func(conformance.Message) bool {
			return func(m conformance.Message) bool { return string(m.Line) == text }
		}
		if at, err := r.Await(t.Context(), 0, is("a")); at != 0 || err != nil {
			t.Errorf("got %d, %v", at, err)
		}
		found := make(chan int)
		go func() {
			at, err := r.Await(t.Context(), 1, is("a"))
			if err != nil {
				t.Error(err)
			}
			found <- at
		}()
		synctest.Wait() // it waits
		r.Add(recorded(conformance.ToClient, "b"))
		synctest.Wait()
		r.Add(recorded(conformance.ToClient, "a"))
		if at := <-found; at != 2 {
			t.Errorf("got %d", at)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if _, err := r.Await(ctx, 9, is("a")); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
}
