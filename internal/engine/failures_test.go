package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
)

// What a handler does wrong, and the peer does not see, is a warning of the default logger where no other is set: once,
// and with what went wrong. What the peer sees is none.
func TestHiddenFailuresAreLogged(t *testing.T) {
	for name, test := range map[string]struct {
		handler func(context.Context, *echoParams) (*marshaler, error)
		want    string
	}{
		"plain": {func(context.Context, *echoParams) (*marshaler, error) { return nil, errors.New("disk full") }, "disk full"},
		"panic": {func(context.Context, *echoParams) (*marshaler, error) { panic("boom") }, "boom"},
		"nil":   {func(context.Context, *echoParams) (*marshaler, error) { return nil, nil }, "neither a result nor an error"},
		"unencodable": {func(context.Context, *echoParams) (*marshaler, error) {
			return &marshaler{func() { panic("torn") }}, nil
		}, "torn"},
		"own":    {func(context.Context, *echoParams) (*marshaler, error) { return nil, rpc.ErrAuthRequired }, ""},
		"public": {func(context.Context, *echoParams) (*marshaler, error) { return nil, rpc.Public(errPlain) }, ""},
		"fine":   {func(context.Context, *echoParams) (*marshaler, error) { return &marshaler{func() {}}, nil }, ""},
	} {
		for _, hooked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var log bytes.Buffer
				before := slog.Default()
				slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
				defer slog.SetDefault(before)
				opts := &Options{}
				if hooked {
					opts.Hooks.Serve = func(ctx context.Context, _ *CallInfo, next func(context.Context) error) error { return next(ctx) }
				}
				p, c := newPeer(t, []Route{RequestMethod[echoParams, marshaler]{Name: "echo"}.Handle(test.handler)}, opts)
				p.send(request(1, "echo", `{}`))
				p.read()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				lines := strings.Count(log.String(), "\n")
				if want := test.want != ""; want != (lines == 1) || !want && lines != 0 || !strings.Contains(log.String(), test.want) {
					t.Errorf("logged %s", log.String())
				}
			})
		}
	}
}

// The same of notifications, whose failures no peer sees.
func TestFailuresOfNotificationsAreLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	p, c := newPeer(t, []Route{
		updateMethod.Handle(func(_ context.Context, u *updateParams) error {
			if u.N == 1 {
				panic("boom")
			}
			return rpc.ErrInvalidParams.WithMessagef("no such thing")
		}),
		echoMethod.Handle(echo),
	}, nil)
	p.send(note("update", `{"n":1}`), note("update", `{"n":2}`), request(1, "echo", `{}`))
	p.read()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "boom") || !strings.Contains(got, "no such thing") {
		t.Errorf("logged %s", got)
	}
}

// original is the default logger of programs that set none.
var original = slog.Default()

// The default logger writes the stack of a panic on lines of its own.
func TestStackIsReadable(t *testing.T) {
	var logged bytes.Buffer
	before := log.Writer()
	log.SetOutput(&logged)
	defer log.SetOutput(before)
	p, c := newPeer(t, []Route{echoMethod.Handle(func(context.Context, *echoParams) (*echoParams, error) { panic("boom") })}, &Options{Logger: original})
	p.send(request(1, "echo", `{}`))
	p.read()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if text := logged.String(); !strings.Contains(text, "handler panicked: boom\n") || !strings.Contains(text, "failures_test.go:") || strings.Contains(text, `\n`) {
		t.Errorf("logged %s", text)
	}
}
