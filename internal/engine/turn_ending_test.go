package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/internal/engine"
)

// Middleware that calls next a second time gets an error; the call is not sent again.
func TestMiddlewareThatCallsNextTwice(t *testing.T) {
	var second error
	p, c := newPeer(t, clientRoutes(nil, nil), &Options{Hooks: Hooks{
		Call: func(ctx context.Context, _ *CallInfo, next func(context.Context) error) error {
			err := next(ctx)
			second = next(ctx)
			return err
		},
	}})
	go func() {
		for line := range p.lines {
			var m struct{ ID int }
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Error(err)
			}
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"no"}}`, m.ID))
		}
	}()
	for what, run := range map[string]func() error{
		"turn": func() error {
			_, err := engine.RunTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS)
			return err
		},
		"call": func() error { _, err := echoMethod.Call(t.Context(), c, nil); return err },
	} {
		second = nil
		if err := run(); err == nil || second == nil || !strings.Contains(second.Error(), "next") {
			t.Errorf("%s: %v, and the second time: %v", what, err, second)
		}
	}
}

// cancelling is a logger that cancels a session whenever a warning comes.
type cancelling struct {
	slog.Handler
	cancel func()
	once   *sync.Once
}

func (h cancelling) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		h.once.Do(h.cancel)
	}
	return nil
}

func (h cancelling) Enabled(context.Context, slog.Level) bool { return true }

// A logger that reports a failed handler may use the connection.
func TestLoggerUsesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Conn
		var once sync.Once
		logger := slog.New(cancelling{Handler: slog.DiscardHandler, once: &once, cancel: func() {
			if err := c.CancelSession(context.Background(), inS); err != nil {
				t.Error(err)
			}
		}})
		p, c := newPeer(t, clientRoutes(nil, func(context.Context, *sessionParams) (*askResult, error) { return nil, errPlain }), &Options{Logger: logger})
		p.send(request(1, "ask", `{"sessionId":"s"}`))
		synctest.Wait()
		if len(p.lines) != 2 {
			t.Fatalf("%d lines were sent", len(p.lines))
		}
	})
}
