package remote_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp/remote"
)

// flood is an agent's stream of which somebody takes everything, unread but counted.
type flood struct {
	lines func([]byte) error
	taken *atomic.Int64
}

// discard takes what a connection of TCP brings.
func discard(t testing.TB, conn net.Conn) *atomic.Int64 {
	var taken atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 256<<10)
		for {
			n, err := conn.Read(buf)
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return &taken
}

// newFlood opens a connection whose client reads no message: what is measured is the server.
func newFlood(t testing.TB, transport string) flood {
	f := serve(t, nil)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(f.url, "http://"), remote.DefaultPath))
	if err != nil {
		t.Fatal(err)
	}
	header := ""
	if transport == remote.WebSocket {
		header = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	} else {
		r, err := http.NewRequestWithContext(t.Context(), "POST", f.url, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		header = "Accept: text/event-stream\r\nAcp-Session-Id: s1\r\nAcp-Connection-Id: " + resp.Header.Get("Acp-Connection-Id") + "\r\n"
	}
	if _, err := io.WriteString(conn, "GET /acp HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n"); err != nil {
		t.Fatal(err)
	}
	if transport == remote.WebSocket {
		frame := []byte{0x81, 0x80 | 126, 0, byte(len(initialize)), 0, 0, 0, 0} // the mask is 0
		if _, err := conn.Write(append(frame, initialize...)); err != nil {
			t.Fatal(err)
		}
	}
	taken := discard(t, conn)
	agent := <-f.agents
	return flood{agent.stream.(interface{ WriteLines([]byte) error }).WriteLines, taken}
}

// updates are n lines of a session's updates, 64 bytes of text each.
func updates(n int) []byte {
	line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk",` +
		`"content":{"type":"text","text":"` + strings.Repeat("x", 64) + `"}}}}` + "\n"
	return bytes.Repeat([]byte(line), n)
}

// TestFramingAllocations: neither transport allocates for a message.
func TestFramingAllocations(t *testing.T) {
	const lines = 1000
	for _, transport := range []string{remote.WebSocket, remote.HTTP} {
		t.Run(transport, func(t *testing.T) {
			f := newFlood(t, transport)
			batch := updates(lines)
			for range 20 { // buffers grow
				if err := f.lines(batch); err != nil {
					t.Fatal(err)
				}
			}
			allocs := testing.AllocsPerRun(20, func() {
				if err := f.lines(batch); err != nil {
					t.Error(err)
				}
			})
			if each := allocs / lines; each > 0.05 {
				t.Errorf("%.2f allocations a message", each)
			}
		})
	}
}

// BenchmarkServerUpdates sends updates in batches of 100 to a client that takes them as they come.
func BenchmarkServerUpdates(b *testing.B) {
	for _, transport := range []string{remote.WebSocket, remote.HTTP} {
		for _, size := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/%d", transport, size), func(b *testing.B) {
				f := newFlood(b, transport)
				batch := updates(size)
				before := f.taken.Load()
				b.SetBytes(int64(len(batch) / size))
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; i < b.N; i += size {
					if err := f.lines(batch); err != nil {
						b.Fatal(err)
					}
				}
				for f.taken.Load()-before < int64(b.N/size*len(batch)) {
					// The rest is on its way.
					runtime.Gosched()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
			})
		}
	}
}
