package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// marshaler is a value whose encoding does something.
type marshaler struct{ do func() }

func (m marshaler) MarshalJSON() ([]byte, error) {
	m.do()
	return json.Marshal(map[string]int{"n": 1})
}

// connected returns the two sides of a connection in memory.
func connected(t *testing.T, near, far []Route) (a, b *Conn) {
	t.Helper()
	one, other := rpc.Pipe()
	b, err := Connect(t.Context(), other, func(*Conn) []Route { return far }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = Connect(t.Context(), one, func(*Conn) []Route { return near }, nil); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// A MarshalJSON may use the connection that it is encoded for.
func TestMarshalerUsesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var far *Conn
		useFar := func() {
			if res, err := echoMethod.Call(t.Context(), far, &echoParams{N: 2}); err != nil || res.N != 2 {
				t.Errorf("within the result: %v, %v", res, err)
			}
		}
		result := RequestMethod[echoParams, marshaler]{Name: "result"}.Handle(
			func(context.Context, *echoParams) (*marshaler, error) { return &marshaler{useFar}, nil })
		echoRoute := echoMethod.Handle(echo)
		near, b := connected(t, []Route{echoRoute}, []Route{echoRoute, result})
		far = b
		use := func() {
			if res, err := echoMethod.Call(t.Context(), near, &echoParams{N: 3}); err != nil || res.N != 3 {
				t.Errorf("within the parameters: %v, %v", res, err)
			}
			if err := engine.NotifyRaw(t.Context(), near, "_nested", marshaler{func() {}}); err != nil {
				t.Error(err)
			}
		}
		if res, err := engine.CallRaw[echoParams](t.Context(), near, "echo", marshaler{use}); err != nil || res.N != 1 {
			t.Errorf("call: %v, %v", res, err)
		}
		if err := engine.NotifyRaw(t.Context(), near, "_note", marshaler{use}); err != nil {
			t.Errorf("notification: %v", err)
		}
		if res, err := engine.CallRaw[echoParams](t.Context(), near, "result", &echoParams{}); err != nil || res.N != 1 {
			t.Errorf("result: %v, %v", res, err)
		}
		if err := errors.Join(near.Close(), far.Close()); err != nil {
			t.Error(err)
		}
	})
}

// While a MarshalJSON waits, others send, and Close ends the connection.
func TestMarshalerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := connected(t, nil, []Route{echoMethod.Handle(echo)})
		release, sent := make(chan struct{}), make(chan error, 2)
		wait := marshaler{func() { <-release }}
		go func() { sent <- engine.NotifyRaw(t.Context(), near, "_note", wait) }()
		go func() {
			_, err := engine.CallRaw[echoParams](t.Context(), near, "echo", wait)
			sent <- err
		}()
		synctest.Wait()
		if res, err := echoMethod.Call(t.Context(), near, &echoParams{N: 1}); err != nil || res.N != 1 {
			t.Errorf("meanwhile: %v, %v", res, err)
		}
		start := time.Now()
		if err := errors.Join(near.Close(), far.Close()); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("Close took %v", d)
		}
		close(release)
		for range 2 {
			if err := <-sent; !errors.Is(err, rpc.ErrClosed) {
				t.Errorf("what waited ends with %v", err)
			}
		}
	})
}

// While the MarshalJSON of a turn's result waits, the turn can be cancelled, and others are served.
func TestMarshalerOfATurnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		turn := RequestMethod[echoParams, marshaler]{Name: "turn"}.Handle(
			func(context.Context, *echoParams) (*marshaler, error) {
				return &marshaler{func() { <-release }}, nil
			})
		turn.Turn = true
		cancel := NotificationMethod[echoParams]{Name: "cancel"}.Handle(nil)
		cancel.CancelsTurn = true
		near, far := connected(t, nil, []Route{turn, cancel, echoMethod.Handle(echo)})
		answered := make(chan error, 1)
		go func() {
			_, err := engine.CallRaw[echoParams](t.Context(), near, "turn", &echoParams{SessionID: "s"})
			answered <- err
		}()
		synctest.Wait()
		if err := engine.NotifyRaw(t.Context(), near, "cancel", &echoParams{SessionID: "s"}); err != nil {
			t.Error(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if res, err := echoMethod.Call(ctx, near, &echoParams{N: 1}); err != nil || res.N != 1 {
			t.Errorf("meanwhile: %v, %v", res, err)
		}
		close(release)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if err := errors.Join(near.Close(), far.Close()); err != nil {
			t.Error(err)
		}
	})
}
