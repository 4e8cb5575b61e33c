package bench

// This file owns the messages and the measuring.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	coder "github.com/coder/acp-go-sdk"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/codec"
)

// messages are parameters of session/update, as agents send them.
var messages = []struct{ name, text string }{
	{"chunk64B", chunk(strings.Repeat("The quick brown fox jumps. ", 3)[:64])},
	{"chunk1KB", chunk(strings.Repeat("The quick brown fox jumps over the lazy dog, and on.\n", 20)[:1024])},
	{"chunk1MB", chunk(strings.Repeat("The quick brown fox jumps over the lazy dog, and on.\n", 20200)[:1<<20])},
	{"source1MB", chunk(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %q: %w\", name, err)\n\t}\n", 15500)[:1<<20])},
	{"toolcall", `{"sessionId":"sess_0196f8c0a1b27c3d","update":{"sessionUpdate":"tool_call","toolCallId":"call_0196f8c0","title":"Edit decoder.go",` +
		`"kind":"edit","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"Making the fast path faster."}},` +
		`{"type":"diff","path":"/home/user/project/acp/codec/decoder.go","oldText":"func a() {\n\treturn 1\n}\n","newText":"func a() {\n\treturn 2\n}\n"}],` +
		`"locations":[{"path":"/home/user/project/acp/codec/decoder.go","line":42},{"path":"/home/user/project/acp/codec/encoder.go","line":7}],` +
		`"rawInput":{"path":"/home/user/project/acp/codec/decoder.go","edits":[{"old":"1","new":"2"}],"dryRun":false}}}`},
}

func chunk(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return `{"sessionId":"sess_0196f8c0a1b27c3d","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}}}`
}

// A library reads and writes such messages. Encode may extend buf, which is the result of its last call.
type library struct {
	name   string
	decode func(data []byte) (any, error)
	encode func(buf []byte, v any) ([]byte, error)
}

var libraries = []library{
	{
		"acp",
		func(data []byte) (any, error) {
			v := new(acp.SessionNotification)
			return v, codec.Unmarshal(data, v)
		},
		func(buf []byte, v any) ([]byte, error) { return v.(*acp.SessionNotification).AppendJSON(buf[:0]) },
	},
	{
		"coder",
		func(data []byte) (any, error) {
			v := new(coder.SessionNotification)
			return v, json.Unmarshal(data, v)
		},
		func(_ []byte, v any) ([]byte, error) { return json.Marshal(v) },
	},
	{
		"encodingjson",
		func(data []byte) (any, error) {
			v := new(notification)
			return v, json.Unmarshal(data, v)
		},
		func(_ []byte, v any) ([]byte, error) { return json.Marshal(v) },
	},
	{"jsontext", decodeTokens, encodeTokens},
}

// Every library writes what it has read.
func TestSame(t *testing.T) {
	for _, m := range messages {
		want := parse(t, []byte(m.text))
		for _, l := range libraries {
			v, err := l.decode([]byte(m.text))
			if err != nil {
				t.Errorf("%s %s: %v", l.name, m.name, err)
				continue
			}
			out, err := l.encode(nil, v)
			if err != nil {
				t.Errorf("%s %s: %v", l.name, m.name, err)
				continue
			}
			if got := parse(t, out); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: got %.1000s", l.name, m.name, out)
			}
		}
	}
}

func parse(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// What is promised of allocations: none to encode into a buffer that is large enough, three to decode a
// chunk: the notification, the chunk with its content, the text.
func TestAllocations(t *testing.T) {
	own := libraries[0]
	for _, m := range messages[:2] {
		data := []byte(m.text)
		v, err := own.decode(data)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 0, 2*len(data))
		if got := testing.AllocsPerRun(1000, func() { buf, _ = own.encode(buf, v) }); got > 0 {
			t.Errorf("%s: %v allocations to encode, want 0", m.name, got)
		}
		if got := testing.AllocsPerRun(1000, func() { v, _ = own.decode(data) }); got > 3 {
			t.Errorf("%s: %v allocations to decode, want at most 3", m.name, got)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	each(b, func(b *testing.B, l library, data []byte) {
		v, err := l.decode(data)
		if err != nil {
			b.Fatal(err)
		}
		var buf []byte
		for b.Loop() {
			if buf, err = l.encode(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	each(b, func(b *testing.B, l library, data []byte) {
		for b.Loop() {
			if _, err := l.decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, m := range messages { // what decoding is held against
		b.Run(name(m.name, "valid"), func(b *testing.B) {
			data := []byte(m.text)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(data) {
					b.Fatal("invalid")
				}
			}
		})
	}
}

func each(b *testing.B, measure func(b *testing.B, l library, data []byte)) {
	for _, m := range messages {
		for _, l := range libraries {
			b.Run(name(m.name, l.name), func(b *testing.B) {
				data := []byte(m.text)
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				measure(b, l, data)
			})
		}
	}
}

// name is a benchmark's name in which benchstat finds what to compare.
func name(message, library string) string {
	return fmt.Sprintf("message=%s/library=%s", message, library)
}
