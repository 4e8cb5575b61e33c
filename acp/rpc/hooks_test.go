package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// One Hooks may serve several connections. Start makes those of each, and may wrap the others, every one of them.
func TestHooksForEachConnection(t *testing.T) {
	type told struct {
		conn *Conn
		what string
	}
	notes := make(chan told, 100)
	given := Hooks{
		Repair: nil, // what Start puts in the place of nil counts too
		Start: func(conn *Conn, hooks Hooks) Hooks {
			if hooks.Start != nil || hooks.Call == nil || hooks.Invalid == nil {
				t.Error("Start was not given the other hooks")
			}
			note := func(what string) { notes <- told{conn, what} }
			call := hooks.Call
			hooks.Call = func(ctx context.Context, info *CallInfo, next func(context.Context) error) error {
				note("call")
				return call(ctx, info, next)
			}
			hooks.Serve = func(ctx context.Context, _ *CallInfo, next func(context.Context) error) error {
				note("serve")
				return next(ctx)
			}
			hooks.Message = func(sent bool, _ []byte) { note(fmt.Sprint("message ", sent)) }
			hooks.Invalid = func([]byte, error) { note("invalid") }
			hooks.End = func() {
				note("end")
				select {
				case <-conn.Done():
					t.Error("Done is closed before the end was told")
				default:
				}
			}
			hooks.Start = func(*Conn, Hooks) Hooks { t.Error("Start was called for what it has returned"); return Hooks{} }
			return hooks
		},
		Call: func(ctx context.Context, _ *CallInfo, next func(context.Context) error) error {
			notes <- told{what: "inner call"}
			return next(ctx)
		},
		Invalid: func([]byte, error) { t.Error("a hook that Start has replaced was called") },
	}
	opts := &Options{Hooks: given}
	var conns []*Conn
	for range 2 {
		near, far := Pipe()
		ext := &Extensions[Conn]{}
		HandleNotificationMethod(ext, NotificationMethod[echoParams]{Name: "note"}, func(context.Context, *Conn, *echoParams) error { return nil })
		c := must.Get(Connect(t.Context(), near, ext, opts))(t)
		stream := must.Get(far.Connect(t.Context()))(t)
		conns = append(conns, c)
		must.Do(t, Notify(t.Context(), c, "x", nil))
		if line, err := stream.Read(); err != nil || !strings.Contains(string(line), `"x"`) {
			t.Errorf("got %s, %v", line, err)
		}
		must.Do(t, errors.Join(stream.Write([]byte(`{"jsonrpc":"2.0","method":"note","params":{}}`)), stream.Write([]byte(`{"jsonrpc":"2.0","method":"note","params":[]}`)), stream.Close()))
		<-c.Done()
	}
	close(notes)
	got := map[*Conn][]string{}
	for n := range notes {
		got[n.conn] = append(got[n.conn], n.what)
	}
	if len(got[nil]) != 2 {
		t.Errorf("the hook that was wrapped was called %d times", len(got[nil]))
	}
	for i, c := range conns {
		slices.Sort(got[c])
		if want := []string{"call", "end", "invalid", "message false", "message false", "message true", "serve"}; !slices.Equal(got[c], want) {
			t.Errorf("connection %d: got %q, want %q", i, got[c], want)
		}
	}
}

// Without a connection Start is not called.
func TestNoHooksWithoutAConnection(t *testing.T) {
	opts := &Options{Hooks: Hooks{Start: func(_ *Conn, hooks Hooks) Hooks { t.Error("called"); return hooks }}}
	near, _ := Pipe()
	ext := &Extensions[Conn]{}
	Handle[Conn, int, int](ext, "x", nil)
	if _, err := Connect(t.Context(), near, ext, opts); err == nil {
		t.Error("connected with a nil handler")
	}
}

// A null error beside a result is a repair, and the framing of other protocols is named.
func TestOtherPeers(t *testing.T) {
	for _, skip := range []bool{false, true} {
		told := make(chan string, 2)
		near, far := Pipe()
		c := must.Get(Connect(t.Context(), near, nil, &Options{SkipNoise: skip, Hooks: Hooks{
			Repair:  func(method string, r codec.Repair) { told <- method + r.Pointer },
			Invalid: func(_ []byte, reason error) { told <- reason.Error() },
		}}))(t)
		stream := must.Get(far.Connect(t.Context()))(t)
		must.Do(t, stream.Write([]byte("Content-Length: 12\r")))
		if reason := <-told; !strings.Contains(reason, "Language Server Protocol") {
			t.Errorf("told %q", reason)
		}
		if !skip {
			if line, err := stream.Read(); err != nil || !strings.Contains(string(line), "Language Server Protocol") {
				t.Errorf("answered %s, %v", line, err)
			}
		}
		go func() {
			_, _ = stream.Read() // the call
			_ = stream.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`))
		}()
		must.Get(Call[struct{}](t.Context(), c, "x", nil))(t)
		if repair := <-told; repair != "x/error" {
			t.Errorf("told %q", repair)
		}
		must.Do(t, c.Close())
	}
}
