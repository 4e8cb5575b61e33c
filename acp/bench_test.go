package acp_test

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// chunks are updates of that much text, with an escape in each line; source code has many more.
var chunks = []struct{ name, text string }{
	{"64B", "000000" + prose(64)[6:]},
	{"1KB", prose(1 << 10)},
	{"1MB", prose(1 << 20)},
	{"Source", strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %q: %w\", name, err)\n\t}\n", 15500)[:1<<20]},
}

func prose(size int) string {
	const line = "The quick brown fox jumps over the lazy dog, and on.\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func eachChunk(b *testing.B, do func(b *testing.B, n *acp.SessionNotification, data []byte)) {
	for _, c := range chunks {
		n := &acp.SessionNotification{SessionID: "sess_0196f8c0a1000000", Update: acp.AgentMessageText(c.text)}
		data := must.Get(codec.Append(nil, n))(b)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			do(b, n, data)
		})
	}
}

func BenchmarkDecodeChunk(b *testing.B) {
	eachChunk(b, func(b *testing.B, _ *acp.SessionNotification, data []byte) {
		d := codec.NewDecoder(nil)
		for b.Loop() {
			d.Reset(data)
			n := new(acp.SessionNotification)
			codec.Decode(d, n)
			must.Do(b, d.End())
		}
	})
}

func BenchmarkEncodeChunk(b *testing.B) {
	eachChunk(b, func(b *testing.B, n *acp.SessionNotification, buf []byte) {
		for b.Loop() {
			var err error
			if buf, err = codec.Append(buf[:0], n); err != nil {
				b.Fatal(err)
			}
		}
	})
}
