package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// BenchmarkTransport measures both sides of a connection. An operation is an update that the agent sends alone, or a
// call with one in flight.
func BenchmarkTransport(b *testing.B) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}`
	for _, scheme := range []string{"ws", "http"} {
		for _, size := range []int{0, 64, 1 << 10} { // of an update; 0 is a call
			name := fmt.Sprintf("%s/update of %d", scheme, size)
			if size == 0 {
				name = scheme + "/call"
			}
			b.Run(name, func(b *testing.B) {
				update := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":`+
					`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, strings.Repeat("x", size))
				var updates atomic.Int64 // before the next answer
				server := remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error {
					stream, err := t.Connect(ctx)
					if err != nil {
						return err
					}
					for id := 0; ; id = 1 {
						if _, err := stream.Read(); err != nil {
							return nil
						}
						for range updates.Load() {
							err = errors.Join(err, stream.Write(update))
						}
						if err = errors.Join(err, stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, id))); err != nil {
							return err
						}
					}
				}, nil)
				web := httptest.NewServer(server)
				defer web.Close()
				stream := must.Get(remote.Dial(scheme+strings.TrimPrefix(web.URL, "http"), nil).Connect(b.Context()))(b)
				exchange := func(message string, reads int) {
					must.Do(b, stream.Write([]byte(message)))
					for range reads {
						must.Get(stream.Read())(b)
					}
				}
				exchange(initialize, 1)
				exchange(call, 1) // the session's stream is opened
				b.ReportAllocs()
				b.ResetTimer()
				if size > 0 {
					updates.Store(int64(b.N))
					exchange(call, b.N+1)
				} else {
					for range b.N {
						exchange(call, 1)
					}
				}
				b.StopTimer()
				must.Do(b, errors.Join(stream.Close(), server.Shutdown(context.Background())))
			})
		}
	}
}
