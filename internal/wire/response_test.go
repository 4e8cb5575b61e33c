package wire

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// A response that cannot be read ends its call, also where lines that are not a message are passed over.
func TestMalformedResponses(t *testing.T) {
	for _, test := range []struct {
		response, want string
		noise          bool
	}{
		{response: `{"jsonrpc":"2.0","id":1,"result":1,"result":2}`, want: errTwice.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"id":1,"result":1}`, want: errTwice.Error()},
		{response: `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":1}`, want: errTwice.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a"},"error":{"code":2,"message":"b"}}`, want: errTwice.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2,"message":"a"}}`, want: errTwiceIn.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a","message":"b"}}`, want: errTwiceIn.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a","data":1,"data":2}}`, want: errTwiceIn.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a","x":1,"x":2}}`, want: "a"},
		{response: `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"a"}}`, want: errBoth.Error()},
		{response: `{"id":1,"result":1}`, want: errVersion.Error()},
		{response: `{"jsonrpc":"2.0","id":1}`, want: errNeither.Error()},
		{response: `{"jsonrpc":"2.0","id":1.0,"method":null}`, want: errNeither.Error()},
		{response: `{"id":1,"params":{}}`, want: errNeither.Error()},
		{response: `{"jsonrpc":"2.0","id":1,"error":null}`, want: "malformed error object"},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":}}`, "malformed response", true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a"}`, "malformed response", true},
		{` {"jsonrpc":"2.0","id":1,"result":nil}`, "malformed response", true},
		{` {"jsonrpc":"2.0","id":1}`, "malformed response", true},
	} {
		r, w := io.Pipe()
		s := &tape{in: NewLineReader(r, 1000)}
		c, h := run(s, Config{SkipNoise: test.noise})
		var call Call
		var got keeper
		must.Do(t, c.Start(t.Context(), &call, "m", nil, &got))
		if test.noise {
			must.Get(io.WriteString(w, "starting\n"+test.response+"\n"))(t)
		} else {
			for range 2 { // the second is late
				must.Get(io.WriteString(w, test.response+"\n"))(t)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := call.Wait(ctx); err != nil || got.err == nil || !strings.Contains(got.err.Error(), test.want) {
			t.Errorf("%s: %v, %v, want %s", test.response, err, got.err, test.want)
		}
		cancel()
		must.Do(t, errors.Join(w.Close(), c.Close(t.Context())))
		if sent := s.out.String(); strings.Count(sent, "\n") != 1 || !test.noise && len(h.invalid) > 0 {
			t.Errorf("%s: sent %q, reported %v", test.response, sent, h.invalid)
		}
	}
}

// A member result or error with null beside another one, or in a request, is as good as absent, and reported.
func TestNullsInTheEnvelope(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}`:                  "response {\"a\":1} error",
		`{"jsonrpc":"2.0","id":1,"error":null,"result":null}`:                     "response null error",
		`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"a"}}`: "failure a result",
		`{"jsonrpc":"2.0","id":1,"method":null,"result":1,"error":null}`:          "response 1 error",
		`{"jsonrpc":"2.0","id":1,"method":"m","result":null,"error":null}`:        "request m result",
		`{"jsonrpc":"2.0","method":"m","error":null}`:                             "notification m error",
		`{"jsonrpc":"2.0","id":1,"result":null}`:                                  "response null ",
		`{"jsonrpc":"2.0","id":1,"method":"m","result":1,"error":null}`:           "invalid",
		`{"jsonrpc":"2.0","id":1,"error":null}`:                                   "failure malformed error object ",
	} {
		env := parse(codec.NewDecoder(nil), []byte(line))
		var got string
		switch {
		case env.kind == kindInvalid || env.broken != nil:
			got = "invalid"
		case env.kind == kindRequest:
			got = "request " + string(env.method) + " " + env.null
		case env.kind == kindNotification:
			got = "notification " + string(env.method) + " " + env.null
		case env.failure != nil:
			got = "failure " + env.failure.Message + " " + env.null
		default:
			got = "response " + string(env.result) + " " + env.null
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		want, got = "", "" // what is reported of a message that no call waits for
		if env.method != nil && env.null != "" {
			want = string(env.method) + " " + env.null
		}
		repair := func(method, member string) { got = method + " " + member }
		c, _ := run(&tape{in: NewLineReader(strings.NewReader(line), 1000)}, Config{Repair: repair})
		<-c.Done()
		must.Do(t, c.Close(t.Context()))
		if got != want {
			t.Errorf("%s: reported %q, want %q", line, got, want)
		}
	}
}
