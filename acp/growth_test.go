package acp

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// shape is a text of any size of one kind that might cost more than its size.
type shape struct {
	name  string
	value func() any
	text  func(size int) string
	fails bool // it is refused
}

func around(before, item, after string) func(int) string {
	return func(size int) string { return before + gentest.Many(item, size) + after }
}

func aroundMembers(before, item, after string) func(int) string {
	return func(size int) string { return before + gentest.ManyMembers(item, size) + after }
}

func aroundText(before, text, after string) func(int) string {
	return func(size int) string { return before + strings.Repeat(text, 1+size/len(text)) + after }
}

const (
	inPrompt  = `{"sessionId":"s","prompt":[`
	inText    = `{"sessionId":"s","prompt":[{"type":"text","text":"`
	inSession = `{"cwd":"/","mcpServers":[]`
	inPlan    = `{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[`
	inForm    = `{"mode":"form","message":"","sessionId":"s","requestedSchema":{"type":"object","properties":{`
)

var shapes = []shape{
	{"one long string", func() any { return new(PromptRequest) }, aroundText(inText, "x", `"}]}`), false},
	{"not ASCII", func() any { return new(PromptRequest) }, aroundText(inText, "é", `"}]}`), false},
	{"escapes", func() any { return new(PromptRequest) }, aroundText(inText, `\n`, `"}]}`), false},
	{"long escapes", func() any { return new(PromptRequest) }, aroundText(inText, `\u00e9`, `"}]}`), false},
	{"lone surrogates", func() any { return new(PromptRequest) }, aroundText(inText, `\ud800`, `"}]}`), false},
	{"strings with lone surrogates", func() any { return new(NewSessionRequest) }, around(inSession+`,"additionalDirectories":[`, `"\ud800"`, `]}`), false},
	{"empty strings", func() any { return new(NewSessionRequest) }, around(inSession+`,"additionalDirectories":[`, `""`, `]}`), false},
	{"a long number", func() any { return new(NewSessionRequest) }, aroundText(inSession+`,"x":`, "9", "}"), false},
	{"a long integer", func() any { return new(InitializeRequest) }, aroundText(`{"protocolVersion":`, "9", "}"), true},
	{"a long fraction", func() any { return new(SessionNotification) },
		aroundText(`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"","annotations":{"priority":0.`, "9", "}}}}"), false},
	{"spaces", func() any { return new(NewSessionRequest) }, aroundText(inSession, " ", "}"), false},
	{"unknown members", func() any { return new(NewSessionRequest) }, around(inSession+",", `"":0`, "}"), false},
	{"a long unknown name", func() any { return new(NewSessionRequest) }, aroundText(inSession+`,"`, "x", `":0}`), false},
	{"a long name with escapes", func() any { return new(NewSessionRequest) }, aroundText(inSession+`,"`, `\n`, `":0}`), false},
	{"members of _meta", func() any { return new(NewSessionRequest) }, aroundMembers(inSession+`,"_meta":{`, "0", "}}"), false},
	{"members of _meta, the last twice", func() any { return new(NewSessionRequest) }, aroundMembers(inSession+`,"_meta":{"":0,`, "0", `,"":0}}`), false},
	{"deep arrays", func() any { return new(NewSessionRequest) }, around(inSession+`,"x":[`, strings.Repeat("[", 250)+strings.Repeat("]", 250), "]}"), false},
	{"deep objects", func() any { return new(NewSessionRequest) }, around(inSession+`,"x":[`, strings.Repeat(`{"":`, 250)+"0"+strings.Repeat("}", 250), "]}"), false},
	{"deep _meta", func() any { return new(NewSessionRequest) }, around(inSession+`,"_meta":{"x":[`, strings.Repeat("[", 250)+strings.Repeat("]", 250), "]}}"), false},
	{"empty objects for blocks", func() any { return new(PromptRequest) }, around(inPrompt, "{}", "]}"), true},
	{"unknown blocks", func() any { return new(PromptRequest) }, around(inPrompt, `{"type":""}`, "]}"), false},
	{"blocks", func() any { return new(PromptRequest) }, around(inPrompt, `{"type":"text","text":""}`, "]}"), false},
	{"blocks with the tag last", func() any { return new(PromptRequest) }, around(inPrompt, `{"text":"","type":"text"}`, "]}"), false},
	{"a block with the tag last", func() any { return new(PromptRequest) }, aroundText(inPrompt+`{"text":"`, "x", `","type":"text"}]}`), false},
	{"a block with the tag behind many members", func() any { return new(PromptRequest) }, around(inPrompt+`{"text":"",`, `"":0`, `,"type":"text"}]}`), false},
	{"a mistake at the end", func() any { return new(PromptRequest) }, around(inPrompt, `{"type":"text","text":""}`, `,{"type":"text"}]}`), true},
	{"bad entries", func() any { return new(SessionNotification) }, around(inPlan, "0", `]}}`), false},
	{"empty entries", func() any { return new(SessionNotification) }, around(inPlan, "{}", `]}}`), false},
	{"nearly good entries", func() any { return new(SessionNotification) }, around(inPlan, `{"content":"","priority":"","status":0}`, `]}}`), false},
	{"properties of a form", func() any { return new(CreateElicitationRequest) }, aroundMembers(inForm, `{"type":"string"}`, "}}}"), false},
	{"a long property with many mistakes", func() any { return new(CreateElicitationRequest) }, func(size int) string {
		return inForm + `"` + strings.Repeat("x", size) + `":{"type":"array","items":{"type":"string","enum":[]},"default":[` + gentest.Many("0", 1000) + `]}}}}`
	}, false},
	{"a session id", func() any { return new(PromptRequest) }, aroundText(`{"prompt":[],"sessionId":"`, "s", `"}`), false},
}

// What reading takes is bounded by the size of the text, whatever that is.
func TestMemoryOfShapes(t *testing.T) {
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	for _, shape := range shapes {
		c, err := gentest.Measure(shape.name, shape.value, []byte(shape.text(tier.Pick(32<<10, 64<<10, 256<<10, 256<<10))))
		if (err != nil) != shape.fails {
			t.Errorf("%s: %v", shape.name, err)
		}
		if c.Excessive() {
			t.Errorf("%s", c)
		}
	}
	t.Logf("%d shapes", len(shapes))
}

// What is allocated grows as the text does: eight times the text takes at most ten times the memory, for
// all that it is rounded to.
func TestAllocationIsLinear(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	for i, shape := range shapes {
		if i%tier.Pick(8, 6, 1, 1) != 0 {
			continue
		}
		small, _ := gentest.Measure(shape.name, shape.value, []byte(shape.text(128<<10)))
		big, _ := gentest.Measure(shape.name, shape.value, []byte(shape.text(1<<20)))
		if big.Alloc > 1.25*small.Alloc+1 {
			t.Errorf("%s: %.1f bytes for each byte of 128 KiB, and %.1f of 1 MiB", shape.name, small.Alloc, big.Alloc)
		}
	}
}

// stream is what a client sends to an agent, of any size.
type stream struct {
	name string
	text func(size int) string
}

// lines repeats a line.
func lines(line string) func(int) string {
	return func(size int) string { return strings.Repeat(line+"\n", 1+size/(len(line)+1)) }
}

var streams = []stream{
	{"blank lines", lines("")},
	{"CRLF", lines("\r")},
	{"tiny lines that are not messages", lines("0")},
	{"tiny lines that are no JSON", lines("x")},
	{"tiny batches", lines("[]")},
	{"tiny objects", lines("{}")},
	{"notifications", lines(`{"jsonrpc":"2.0","method":"x"}`)},
	{"cancellations", lines(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":""}}`)},
	{"cancellations of requests", lines(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)},
	{"requests for nothing", lines(`{"jsonrpc":"2.0","id":1,"method":""}`)},
	{"requests", lines(`{"jsonrpc":"2.0","id":1,"method":"session/set_mode","params":{"sessionId":"","modeId":""}}`)},
	{"results to nothing", lines(`{"id":1,"result":0}`)},
	{"errors to nothing", lines(`{"id":1,"error":0}`)},
	{"no newline", aroundText("", "x", "")},
	{"no newline and no end", aroundText(`{"jsonrpc":"2.0","id":1,"method":"`, "x", "")},
	{"a line of spaces", aroundText("", " ", "\n")},
	{"a depth bomb", aroundText("", "[", "\n")},
	{"a depth bomb of objects", aroundText("", `{"":`, "\n")},
	{"a long id", aroundText(`{"jsonrpc":"2.0","method":"","id":"`, "x", "\"}\n")},
	{"a long id with escapes", aroundText(`{"jsonrpc":"2.0","method":"","id":"`, `\u0001`, "\"}\n")},
	{"a long id with lone surrogates", aroundText(`{"jsonrpc":"2.0","method":"","id":"`, `\ud800`, "\"}\n")},
	{"a long number for an id", aroundText(`{"jsonrpc":"2.0","method":"","id":`, "9", "}\n")},
	{"a long method", aroundText(`{"jsonrpc":"2.0","id":1,"method":"`, "<", "\"}\n")},
	{"a long method with escapes", aroundText(`{"jsonrpc":"2.0","id":1,"method":"`, `\u0001`, "\"}\n")},
	{"a long name that stands twice", aroundText(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":{"":0,"":0,"`, "x", "\":0}}}\n")},
	{"a long session id", aroundText(`{"jsonrpc":"2.0","id":1,"method":"session/set_mode","params":{"modeId":"","sessionId":"`, "<", "\"}}\n")},
	{"a long prompt", aroundText(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"","prompt":[{"type":"text","text":"`, "x", "\"}]}}\n")},
	{"lines over the limit", lines(strings.Repeat("x", 200_000))},
	{"requests over the limit", lines(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 200_000) + `"}`)},
}

// play has an agent serve a stream to its end. Lines of the size of a whole stream are within the limit.
func (s *stream) play(t testing.TB, text string) {
	t.Helper()
	limit := rpc.DefaultMaxMessage
	if strings.Contains(s.name, "over the limit") {
		limit = 100_000
	}
	handlers := AgentHandlers{
		NewSession: func(context.Context, *AgentConn, *NewSessionRequest) (*NewSessionResponse, error) {
			return &NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(context.Context, *AgentSession, *PromptRequest) (*PromptResponse, error) {
			return &PromptResponse{StopReason: StopReasonEndTurn}, nil
		},
		SetSessionMode: func(context.Context, *AgentSession, *SetSessionModeRequest) (*SetSessionModeResponse, error) {
			return nil, nil
		},
	}
	in := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
	transport := rpc.IO(io.NopCloser(io.MultiReader(in, strings.NewReader(text))), nowhere{}, limit)
	err := ServeAgent(t.Context(), transport, handlers, nil)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
}

// nowhere takes what is written.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }

// What a connection allocates for what it reads, beside the values of parameters.
const (
	byteFactor = 12      // bytes for each byte
	lineCost   = 2 << 10 // bytes for each line
)

// What a connection allocates is bounded by the size of what it reads, whatever that is.
func TestConnectionAllocationIsLinear(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	for _, s := range streams {
		for _, size := range []int{64 << 10, 512 << 10, 4 << 20}[:tier.Pick(1, 2, 3, 3)] {
			text := s.text(size)
			if size > 1<<20 && strings.Count(text, "\n") > 1000 {
				continue // each line costs the same
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.play(t, text)
			runtime.ReadMemStats(&after)
			got, n := after.TotalAlloc-before.TotalAlloc, strings.Count(text, "\n")
			if limit := uint64(256<<10 + byteFactor*len(text) + lineCost*n); got > limit {
				t.Errorf("%s: %d bytes for %d in %d lines; the limit is %d", s.name, got, len(text), n, limit)
			}
		}
	}
	t.Logf("%d streams", len(streams))
}
