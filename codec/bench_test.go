package codec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// workloads are messages as agents send them.
func workloads() map[string]*notification {
	text := func(s string) *notification {
		return &notification{
			SessionID: "sess_0196f8c0a1b27c3d",
			Update:    update{&messageChunk{Content: content{&contentText{Text: s}}}},
		}
	}
	source := strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %q: %w\", name, err)\n\t}\n", 1<<20/70)
	call := &toolCall{
		ID: "call_0196f8c0a1b27c3d", Title: "Reading acp/codec/decoder.go", Status: "in_progress", Args: []string{},
		RawInput:  json.RawMessage(`{"path":"acp/codec/decoder.go","offset":12,"limit":[1,2,3],"follow":false,"filter":null}`),
		Locations: []location{{Path: "/home/user/project/acp/codec/decoder.go", Line: codec.Some(uint32(42))}},
	}
	for i := range 4 {
		call.Content = append(call.Content, content{&contentText{Text: fmt.Sprintf("Line %d: nothing of interest was found there.\n", i), Priority: 0.5}})
	}
	return map[string]*notification{
		"chunk64":  text(strings.Repeat("The quick brown fox jumps. ", 3)[:64]),
		"chunk1K":  text(strings.Repeat("The quick brown fox jumps over the lazy dog, and on.\n", 20)[:1024]),
		"plain1M":  text(strings.Repeat("The quick brown fox jumps over the lazy dog, and on ", 20000)),
		"source1M": text(source),
		"chinese":  text(strings.Repeat("敏捷的棕色狐狸跳过了懒狗。", 100)),
		"toolcall": {SessionID: "sess_0196f8c0a1b27c3d", Update: update{call}},
	}
}

var workloadNames = []string{"chunk64", "chunk1K", "plain1M", "source1M", "chinese", "toolcall"}

// eachWorkload runs one benchmark for each message.
func eachWorkload(b *testing.B, do func(b *testing.B, data []byte)) {
	all := workloads()
	for _, name := range workloadNames {
		data := must.Get(codec.Append(nil, all[name]))(b)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			do(b, data)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	eachWorkload(b, func(b *testing.B, data []byte) {
		d := codec.NewDecoder(nil)
		for b.Loop() {
			d.Reset(data)
			n := new(notification)
			codec.Decode(d, n)
			must.Do(b, d.End())
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	eachWorkload(b, func(b *testing.B, data []byte) {
		d := codec.NewDecoder(nil)
		for b.Loop() {
			d.Reset(data)
			d.Skip()
			must.Do(b, d.End())
		}
	})
}

// BenchmarkValid is what the time of BenchmarkDecode is held against.
func BenchmarkValid(b *testing.B) {
	eachWorkload(b, func(b *testing.B, data []byte) {
		for b.Loop() {
			if !json.Valid(data) {
				b.Fatal("invalid")
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	all := workloads()
	for _, name := range workloadNames {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = codec.Append(buf[:0], all[name]); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

// BenchmarkTagLast is what it costs that the peer writes the tags after the payload.
func BenchmarkTagLast(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps. ", 3)[:64]
	data := []byte(`{"sessionId":"sess_0196f8c0a1b27c3d","update":{"content":{"text":"` + text + `","type":"text"},"sessionUpdate":"agent_message_chunk"}}`)
	d := codec.NewDecoder(nil)
	for b.Loop() {
		d.Reset(data)
		n := new(notification)
		codec.Decode(d, n)
		must.Do(b, d.End())
	}
}

func BenchmarkRaw(b *testing.B) {
	compact := json.RawMessage(`[` + strings.Repeat(`{"path":"acp/codec/decoder.go","offset":12,"limit":[1,2,3],"follow":false},`, 100) + `null]`)
	var indented bytes.Buffer
	must.Do(b, json.Indent(&indented, compact, "", "  "))
	for name, raw := range map[string]json.RawMessage{"compact": compact, "indented": indented.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			n := &notification{SessionID: "s", Update: update{&toolCall{Status: "new", RawInput: raw}}}
			var buf []byte
			for b.Loop() {
				buf, _ = codec.Append(buf[:0], n)
			}
		})
	}
}
