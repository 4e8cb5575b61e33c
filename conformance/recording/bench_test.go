package recording_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
)

// chunk is a message of 200 bytes.
var chunk = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("x", 46) + `"}}}}`

func recorded(tb testing.TB, n int) []byte {
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, recording.Header{}, nil)
	for range n {
		if err != nil {
			tb.Fatal(err)
		}
		err = w.Message(conformance.Message{Direction: conformance.ToClient, Line: []byte(chunk)})
	}
	must.Do(tb, w.Write(&recording.Entry{Kind: recording.KindEnd}))
	return file.Bytes()
}

func BenchmarkReader(b *testing.B) {
	text := recorded(b, b.N)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	b.ResetTimer()
	r := recording.NewReader(bytes.NewReader(text), nil)
	for {
		if _, err := r.Read(); err == io.EOF {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReaderOfOthers(b *testing.B) {
	for name, before := range map[string]string{"lines": "", "log": "2026-01-02T03:04:05.678Z DEBUG acp.connection: <<< "} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(before+chunk+"\n", b.N)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			b.ResetTimer()
			r := recording.NewReader(strings.NewReader(text), nil)
			for {
				if _, err := r.Read(); err == io.EOF {
					return
				} else if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for name, masker := range map[string]*recording.Masker{"plain": nil, "masked": recording.NewMasker()} {
		b.Run(name, func(b *testing.B) {
			w := must.Get(recording.NewWriter(io.Discard, recording.Header{}, masker))(b)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			line := []byte(chunk)
			now := time.Now()
			for b.Loop() {
				must.Do(b, w.Message(conformance.Message{Direction: conformance.ToClient, Line: line, Time: now}))
			}
		})
	}
}
