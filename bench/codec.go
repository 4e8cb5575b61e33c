package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	coder "github.com/coder/acp-go-sdk"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// messages are parameters of session/update, as agents send them.
var messages = []struct{ name, text string }{
	{"chunk of 64 B", chunkOf(prose(64))},
	{"chunk of 1 KB", chunkOf(prose(1 << 10))},
	{"chunk of 1 MB", chunkOf(prose(1 << 20))},
	{"chunk of 1 MB of source", chunkOf(
		strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %q: %w\", name, err)\n\t}\n", 15500)[:1<<20])},
	{"tool call", `{"sessionId":"sess_0196f8c0a1b27c3d","update":{"sessionUpdate":"tool_call","toolCallId":"call_0196f8c0","title":"Edit decoder.go",` +
		`"kind":"edit","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"Making the fast path faster."}},` +
		`{"type":"diff","path":"/home/user/project/acp/codec/decoder.go","oldText":"func a() {\n\treturn 1\n}\n","newText":"func a() {\n\treturn 2\n}\n"}],` +
		`"locations":[{"path":"/home/user/project/acp/codec/decoder.go","line":42},{"path":"/home/user/project/acp/codec/encoder.go","line":7}],` +
		`"rawInput":{"path":"/home/user/project/acp/codec/decoder.go","edits":[{"old":"1","new":"2"}],"dryRun":false}}}`},
}

func chunkOf(text string) string {
	return `{"sessionId":"sess_0196f8c0a1b27c3d","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(asJSON(text)) + `}}}`
}

// marshaller reads and writes such messages. Encode may extend buf, which is the result of its last call.
type marshaller struct {
	name   string
	decode func(data []byte) (any, error)
	encode func(buf []byte, v any) ([]byte, error)
}

var marshallers = []marshaller{
	{
		nameACP,
		func(data []byte) (any, error) {
			v := new(acp.SessionNotification)
			return v, codec.Unmarshal(data, v)
		},
		func(buf []byte, v any) ([]byte, error) { return codec.Append(buf[:0], v.(*acp.SessionNotification)) },
	},
	{
		nameCoder,
		func(data []byte) (any, error) {
			v := new(coder.SessionNotification)
			return v, json.Unmarshal(data, v)
		},
		func(_ []byte, v any) ([]byte, error) { return json.Marshal(v) },
	},
}

// coding is the task to encode or decode one message.
type coding struct {
	Message int
	Decode  bool
	Time    time.Duration
}

func (c coding) command(b *bench, library string) []string {
	return []string{b.self, "-role", "codec", "-library", library, string(asJSON(c))}
}

func (c coding) measure(library string) (r result, err error) {
	for _, m := range marshallers {
		if m.name == library {
			return c.measureBy(m)
		}
	}
	return r, fmt.Errorf("no marshaller %q", library)
}

func (c coding) measureBy(m marshaller) (r result, err error) {
	data := []byte(messages[c.Message].text)
	v, err := m.decode(data)
	if err != nil {
		return r, err
	}
	var buf []byte
	do := func() error {
		if c.Decode {
			_, err = m.decode(data)
		} else {
			buf, err = m.encode(buf, v)
		}
		return err
	}
	if err := do(); err != nil {
		return r, err
	}
	before, start, took := readMemory(), time.Now(), time.Duration(0)
	for batch := 1; took < c.Time; batch *= 2 { // so that looking at the clock costs nothing
		for range batch {
			if err := do(); err != nil {
				return r, err
			}
		}
		r.Ops += batch
		took = time.Since(start)
	}
	r.Nanoseconds = float64(took) / float64(r.Ops)
	r.Client = readMemory().subtract(before, r.Ops)
	return r, nil
}
