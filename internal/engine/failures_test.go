package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
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
				must.Do(t, c.Close())
				lines := strings.Count(log.String(), "\n")
				if want := test.want != ""; want != (lines == 1) || !want && lines != 0 || !strings.Contains(log.String(), test.want) {
					t.Errorf("logged %s", log.String())
				}
			})
		}
	}
}

// marshaler is a value whose encoding does something.
type marshaler struct{ do func() }

func (m marshaler) MarshalJSON() ([]byte, error) {
	m.do()
	return json.Marshal(map[string]int{"n": 1})
}
