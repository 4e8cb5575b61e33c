package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Rule 3: notifications without parameters fill a queue too.
func TestQueueOfEmptyNotifications(t *testing.T) {
	for name, line := range map[string]string{
		"no parameters": `{"jsonrpc":"2.0","method":"_x"}` + "\n",
		"null":          note("_x", "null") + "\n",
		"empty":         note("_x", "{}") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				ext := Extensions{FallbackNotification: func(context.Context, *rpc.Conn, string, json.RawMessage) error {
					<-release
					return nil
				}}
				p, _ := newPeer(t, extensions(&ext), &Options{QueueBytes: 10_000})
				var taken atomic.Int32
				go func() {
					for range 10_000 {
						if _, err := io.WriteString(p.w, line); err != nil {
							return
						}
						taken.Add(1)
					}
				}()
				synctest.Wait()
				if n := taken.Load(); n < 10 || n > 5000 {
					t.Errorf("%d notifications were read while none was handled", n)
				}
				must.Do(t, p.w.Close())
				close(release)
			})
		})
	}
}

// A long message is let go of when it was handled, also when no other comes.
func TestLongMessagesAreLetGo(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	const size = 8 << 20
	for name, line := range map[string]string{
		"request":      request(1, "echo", `{"sessionId":"`+strings.Repeat("x", size)+`"}`),
		"notification": note("update", `{"text":"`+strings.Repeat("x", size)+`"}`),
		"response":     `{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", size) + `"}`,
		"no message":   strings.Repeat("x", size),
		"refused":      `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", size) + `"}`,
		"wrong":        request(1, "echo", `{"n":"`+strings.Repeat("x", size)+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			synctest.Test(t, func(t *testing.T) {
				p, _ := newPeer(t, []Route{echoMethod.Handle(echo), updateMethod.Handle(func(context.Context, *updateParams) error { return nil })}, nil)
				synctest.Wait()
				runtime.GC()
				runtime.ReadMemStats(&before)
				p.send(line)
				synctest.Wait()
				for len(p.lines) > 0 {
					<-p.lines
				}
				time.Sleep(time.Minute) // the next one does not come
				runtime.GC()
				runtime.GC() // for what pools hold
				runtime.ReadMemStats(&after)
				if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > size/8 {
					t.Errorf("%d KiB are kept", kept>>10)
				}
			})
		})
	}
}
