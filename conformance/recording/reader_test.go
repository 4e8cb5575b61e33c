package recording_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// read returns all entries as lines such as
//
//	3 → {"jsonrpc":…}
//
// with the number of the line, and "! " and the error where there is one.
func read(t *testing.T, text string, options *recording.ReaderOptions) []string {
	t.Helper()
	var got []string
	r := recording.NewReader(strings.NewReader(text), options)
	for {
		e, err := r.Read()
		if err == io.EOF {
			for _, s := range r.Skipped() {
				got = append(got, s.String())
			}
			return got
		}
		if err != nil {
			return append(got, "final: "+err.Error())
		}
		got = append(got, show(e))
	}
}

func show(e *recording.Entry) string {
	line := fmt.Sprint(e.Number)
	if e.Connection != 1 {
		line += fmt.Sprintf(" (%d)", e.Connection)
	}
	switch e.Kind {
	case recording.KindHeader:
		line += fmt.Sprintf(" header %s %s %q", e.Header.Tool, e.Header.Version, e.Header.Command)
	case recording.KindMessage:
		line += map[conformance.Direction]string{conformance.ToAgent: " →", conformance.ToClient: " ←"}[e.Direction]
		line += " " + string(e.Line)
		if e.Partial {
			line += " partial"
		}
	case recording.KindStderr:
		line += " stderr " + string(e.Line)
	case recording.KindEnd:
		line += " end " + e.End.Signal
		if e.End.Code != nil {
			line += fmt.Sprint(*e.End.Code)
		}
	}
	if e.Err != nil {
		var problem *recording.Error
		if !errors.As(e.Err, &problem) || problem.Number == 0 {
			line += " untyped"
		}
		line += " ! " + e.Err.Error()
	}
	return line
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("also %s", got[i])
		case i >= len(got):
			t.Errorf("missing %s", want[i])
		case got[i] != want[i]:
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	answered   = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
	prompt     = `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`
	update     = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`
	permission = `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}`
	permitted  = `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}`
	prompted   = `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`
)

// Each format is recognized by its content.
func TestForms(t *testing.T) {
	quoted := func(s string) string {
		b := must.Get(json.Marshal(s))(t)
		return string(b)
	}
	turn := []string{"→ " + initialize, "← " + answered, "→ " + prompt, "← " + permission, "→ " + permitted, "← " + update, "← " + prompted}
	for name, test := range map[string]struct {
		text  string
		want  []string
		first int // line of the first message
	}{
		"ours": {first: 2, text: `{"recording":1,"tool":"acp","version":"1.2","command":["a","b"],"date":"2026-01-02T03:04:05Z"}
{"t":1,"from":"client","raw":` + quoted(initialize) + `}
{"t":2.5,"from":"agent","raw":` + quoted(answered) + `}
{"t":3,"from":"agent","stderr":"hello \u001b"}
{"t":3,"from":"agent","bytes":"//5h"}
{"t":3,"from":"client","raw":"not JSON","partial":true}
{"t":4,"exit":{"code":null,"signal":"SIGTERM"}}
`, want: []string{
			`1 header acp 1.2 ["a" "b"]`, "2 → " + initialize, "3 ← " + answered, "4 stderr hello \x1b", "5 ← \xff\xfea", "6 → not JSON partial", "7 end SIGTERM",
		}},
		"traces": {text: `{"meta":{"agent":"x","cmd":["x","y"]}}
{"t":1,"from":"client","raw":` + quoted(initialize) + `}
{"t":2,"from":"agent","raw":` + quoted(answered) + `}
{"t":4,"exit":{"code":3,"signal":null}}`, want: []string{
			`1 header   ["x" "y"]`, "2 → " + initialize, "3 ← " + answered, "4 end 3",
		}},
		"lines":           {first: 1, text: strings.Join([]string{initialize, answered, prompt, permission, permitted, update, prompted}, "\n"), want: turn},
		"empty lines":     {text: "\n" + update + "\r\n\n", want: []string{"2 ← " + update}},
		"byte order mark": {text: "\ufeff" + update, want: []string{"1 ← " + update}},
		"after a banner": {first: 2, text: "starting\n" + strings.Join([]string{initialize, answered, prompt, permission, permitted, update, prompted}, "\n"),
			want: append(slices.Clone(turn), "1 line skipped, from line 1: text without a message")},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if test.first > 0 && !strings.HasPrefix(name, "ours") {
				want = nil
				for i, w := range test.want {
					if strings.HasPrefix(w, "→") || strings.HasPrefix(w, "←") {
						w = fmt.Sprintf("%d %s", test.first+i, w)
					}
					want = append(want, w)
				}
			}
			check(t, read(t, test.text, nil), want...)
		})
	}
}

// A request that initializes a proxy is an ordinary request to the sender. The successor of a chain is its end. A message
// that the conductor refused belongs to no hop.
func TestConductorInChain(t *testing.T) {
	const trace = `{"type":"request","ts":0.5,"protocol":"acp","from":"proxy:0","to":"proxy:1","id":1,"method":"proxy/initialize","params":{}}
{"type":"notification","ts":0.6,"protocol":"acp","from":"successor","to":"proxy:1","method":"x","params":{}}
{"type":"notification","ts":0.7,"protocol":"acp","from":"proxy:1","to":"successor","method":"y","params":{}}
{"type":"request","ts":0.8,"protocol":"acp","from":"proxy:1","to":"conductor","id":2,"method":"proxy/initialize","params":{}}
{"type":"response","ts":0.8,"from":"conductor","to":"proxy:1","id":2,"is_error":true,"payload":{"code":-32601,"message":"no"}}
`
	check(t, read(t, trace, &recording.ReaderOptions{Hop: "proxy:0"}),
		`1 → {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `2 lines skipped, from line 2: messages of other hops`, `2 lines skipped, from line 4: messages that the conductor refused`)
	check(t, read(t, trace, &recording.ReaderOptions{Hop: "proxy:1"}),
		`2 ← {"jsonrpc":"2.0","method":"x","params":{}}`, `3 → {"jsonrpc":"2.0","method":"y","params":{}}`, `1 line skipped, from line 1: messages of other hops`,
		`2 lines skipped, from line 4: messages that the conductor refused`)
}

// One hop of a conductor's trace is read.
func TestConductor(t *testing.T) {
	const trace = `{"type":"request","ts":0.5,"protocol":"acp","from":"client","to":"proxy:0","id":1,"method":"proxy/initialize","session":null,"params":{"a":1}}
{"type":"request","ts":0.6,"protocol":"acp","from":"proxy:0","to":"agent","id":"x","method":"initialize","session":null,"params":{"a": 1}}
{"type":"request","ts":0.61,"protocol":"mcp","from":"agent","to":"proxy:0","id":5,"method":"tools/list","params":{}}
{"type":"response","ts":0.62,"from":"proxy:0","to":"agent","id":5,"is_error":false,"payload":{"tools":[]}}
{"type":"trace","ts":0.63,"component":"agent","level":"info","message":"ready"}
{"type":"trace","ts":0.63,"component":"proxy:0","level":"info","message":"ready"}
{"type":"response","ts":0.7,"from":"agent","to":"proxy:0","id":"x","is_error":false,"payload":{"protocolVersion":1}}
{"type":"response","ts":0.8,"from":"proxy:0","to":"client","id":1,"is_error":true,"payload":{"code":-1,"message":"m"}}
{"type":"notification","ts":0.9,"protocol":"acp","from":"agent","to":"proxy:0","method":"session/update","session":"s","params":{}}
{"type":"notification","ts":0.9,"protocol":"acp","from":"agent","to":"me","method":"session/update","session":"s","params":{}}
`
	check(t, read(t, trace, nil),
		`1 → {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"a":1}}`,
		`5 stderr ready`,
		`8 ← {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}`,
		`10 ! line 10: not a line of a recording: from and to do not name two components of a proxy chain`,
		`5 lines skipped, from line 2: messages of other hops`,
		`1 line skipped, from line 6: log lines of the proxy chain`)
	check(t, read(t, trace, &recording.ReaderOptions{Hop: "proxy:0"}),
		`2 → {"jsonrpc":"2.0","id":"x","method":"initialize","params":{"a": 1}}`,
		`5 stderr ready`,
		`7 ← {"jsonrpc":"2.0","id":"x","result":{"protocolVersion":1}}`,
		`9 ← {"jsonrpc":"2.0","method":"session/update","params":{}}`,
		`10 ! line 10: not a line of a recording: from and to do not name two components of a proxy chain`,
		`2 lines skipped, from line 1: messages of other hops`,
		`2 lines skipped, from line 3: messages of MCP`,
		`1 line skipped, from line 6: log lines of the proxy chain`)
	r := recording.NewReader(strings.NewReader(trace), nil)
	if e, err := r.Read(); err != nil || e.Time != time.Unix(0, 5e8).UTC() {
		t.Errorf("got %v, %v", e, err)
	}
}

// A message whose direction is unknown is an entry with an error, and reading continues.
func TestDirections(t *testing.T) {
	check(t, read(t, strings.Join([]string{
		`{"jsonrpc":"2.0","id":9,"result":{}}`,
		prompt, permission,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","method":"_x/y","params":{}}`,
		`{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`,
		permitted, prompted,
		`words`,
	}, "\n"), nil),
		"1 ! line 1: unknown sender: no open request has this id: lines are out of order, or earlier ones are missing",
		"2 → "+prompt, "3 ← "+permission,
		"4 ! line 4: unknown sender: both sides have an open request with this id",
		"5 ! line 5: unknown sender: both sides have an open request with this id",
		"6 ! line 6: unknown sender: both sides can have the method _x/y",
		"7 ! line 7: unknown sender: not a request, a notification or a response",
		"8 ! line 8: unknown sender: no open request has this id: lines are out of order, or earlier ones are missing",
		`9 ← {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}`,
		`10 ← {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`,
		"11 → "+permitted, "12 ← "+prompted,
		"13 ! line 13: truncated",
	)
}

// The reader knows the receiver of every method of the schemas that only one side has.
func TestEveryMethodTellsItsReceiver(t *testing.T) {
	for _, schema := range []string{sdk.SchemaV1(), sdk.SchemaV1Unstable(), sdk.SchemaV2(), sdk.SchemaV2Unstable()} {
		var doc struct {
			Defs map[string]struct {
				Method string `json:"x-method"`
				Side   string `json:"x-side"`
			} `json:"$defs"`
		}
		must.Do(t, json.Unmarshal([]byte(schema), &doc))
		sides, count := map[string]string{}, 0
		for _, d := range doc.Defs {
			if side := sides[d.Method]; side != "" && side != d.Side {
				d.Side = "both"
			}
			sides[d.Method] = d.Side
		}
		for method, side := range sides {
			arrow := map[string]string{"client": "←", "agent": "→"}[side]
			if method == "" || arrow == "" {
				continue
			}
			count++
			line := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{}}`, method)
			check(t, read(t, line, nil), "1 "+arrow+" "+line)
		}
		if count < 15 {
			t.Errorf("%d methods", count)
		}
	}
}

// Bad input causes a clear error with the line number, and all readable lines are read.
func TestBadInput(t *testing.T) {
	const begin = `{"recording":1,"tool":"a","date":"2026-01-02T03:04:05Z"}` + "\n"
	const one = `{"t":1,"from":"agent","raw":"x"}` + "\n"
	const end = `{"t":2,"exit":{"code":0,"signal":null}}` + "\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":      {"", []string{"1 ! line 1: the file is empty"}},
		"blank":      {"\n\n \n", []string{"1 ! line 1: not a recording: no line contains an ACP message"}},
		"prose":      {"Dear all,\nhow are you?\n", []string{"1 ! line 1: not a recording: no line contains an ACP message", "2 lines skipped, from line 1: text without a message"}},
		"other JSON": {"{\"a\":1}\n[1,2]\n3\n", []string{"1 ! line 1: not a recording: no line contains an ACP message", "1 line skipped, from line 1: JSON without a message", "2 lines skipped, from line 2: text without a message"}},
		"gzip":       {"\x1f\x8b\x08\x00\n\n", []string{"1 ! line 1: not text: compressed with gzip"}},
		"binary":     {"\x7fELF\x00\x00\n\x00", []string{"1 ! line 1: not text: contains NUL bytes"}},
		"UTF-16":     {"\xff\xfe{\x00", []string{"1 ! line 1: not text: UTF-16: convert it to UTF-8"}},
		"cut off":    {begin + one + `{"t":1,"from":"ag`, []string{`1 header a  []`, "2 ← x", "3 ! line 3: truncated: /from: invalid JSON: unexpected end, expected end of string", "3 ! line 3: the end is not recorded: the recording is truncated or still in progress"}},
		"no end":     {begin + one, []string{`1 header a  []`, "2 ← x", "2 ! line 2: the end is not recorded: the recording is truncated or still in progress"}},
		"zeros":      {begin + one + "\x00\x00\x00\n" + end, []string{`1 header a  []`, "2 ← x", "3 ! line 3: not text: contains NUL bytes", "4 end 0"}},
		"broken line": {begin + one + "{\"t\":1,,}\n" + "what\n" + one + end, []string{`1 header a  []`, "2 ← x",
			"3 ! line 3: not JSON: invalid JSON: offset 7: ',', expected member name", "4 ! line 4: not JSON", "5 ← x", "6 end 0"}},
		"nobody":  {begin + `{"from":"nobody","raw":"x"}` + "\n" + `{"from":"agent","raw":3}` + "\n" + `{"from":"agent","bytes":"*"}` + "\n" + end, []string{`1 header a  []`, `2 ! line 2: not a line of a recording: from is "nobody", expected client or agent`, "3 ! line 3: not a line of a recording: the recorded line is not text", "4 ! line 4: not a line of a recording: the recorded line is not text", "5 end 0"}},
		"unknown": {begin + `{"a":1}` + "\n" + end, []string{`1 header a  []`, "2 ! line 2: not a line of a recording: none of the members raw, bytes, stderr, lost and exit is present", "3 end 0"}},
		"lost":    {begin + `{"t":1,"from":"agent","lost":17}` + "\n" + end, []string{`1 header a  []`, "2 ! line 2: not recorded because the recorder could not keep up: 17 bytes from the agent", "3 end 0"}},
		"newer":   {`{"recording":2}` + "\n" + end, []string{"1 header   [] ! line 1: a later version of the format: 2, but this program supports 1", "2 end 0"}},
		"clock":   {begin + `{"t":9,"from":"agent","raw":"x"}` + "\n" + one + end, []string{`1 header a  []`, "2 ← x", "3 ← x ! line 3: time goes backwards: lines are out of order, or the clock was set: by 8ms", "4 end 0"}},
		"two":     {begin + one + end + begin + one + end, []string{`1 header a  []`, "2 ← x", "3 end 0", `4 (2) header a  [] ! line 4: another recording begins in the same file`, "5 (2) ← x", "6 (2) end 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, read(t, test.text, nil), test.want...)
		})
	}
}

// A line that is too long is skipped in bounded memory, and reported; a long line is read.
func TestLongLines(t *testing.T) {
	const long = 60 << 20
	if testing.Short() {
		t.Skip("60 MB")
	}
	reader := func(limit int) *recording.Reader {
		return recording.NewReader(io.MultiReader(
			strings.NewReader(initialize+"\n"+`{"jsonrpc":"2.0","method":"session/update","params":{"x":"`),
			io.LimitReader(endless{}, long), strings.NewReader("\"}}\n"+answered+"\n")), &recording.ReaderOptions{MaxLine: limit})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := reader(1 << 20)
	var got []string
	for {
		e, err := r.Read()
		if err != nil {
			break
		}
		got = append(got, show(e))
	}
	runtime.ReadMemStats(&after)
	check(t, got, "1 → "+initialize, "2 ! line 2: line too long: more than 1048576 bytes", "3 ← "+answered)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	r = reader(0)
	for _, want := range []int{len(initialize), long + 62, len(answered)} {
		e, err := r.Read()
		if err != nil || e.Err != nil || len(e.Line)/16 != want/16 {
			t.Fatalf("got %d bytes, %v, %v, want %d", len(e.Line), e.Err, err, want)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// If the rest of a file cannot be read, there is an error with the line after the entries that were read.
func TestReadFails(t *testing.T) {
	r := recording.NewReader(io.MultiReader(strings.NewReader(update+"\n"), iotest.ErrReader(io.ErrClosedPipe)), nil)
	if e, err := r.Read(); err != nil || e.Kind != recording.KindMessage {
		t.Fatalf("got %v, %v", e, err)
	}
	for range 2 {
		_, err := r.Read()
		var problem *recording.Error
		if !errors.Is(err, io.ErrClosedPipe) || !errors.As(err, &problem) || problem.Number != 2 {
			t.Errorf("got %v", err)
		}
	}
}

// Lines are returned as they arrive: the reader does not wait for more than it needs.
func TestStreaming(t *testing.T) {
	in, out := io.Pipe()
	r := recording.NewReader(in, nil)
	var wg sync.WaitGroup
	next := make(chan struct{})
	wg.Go(func() {
		for range 3 {
			<-next
			if _, err := io.WriteString(out, update+"\n"); err != nil {
				t.Error(err)
			}
		}
		<-next
		if err := out.CloseWithError(io.ErrUnexpectedEOF); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		next <- struct{}{}
		if e, err := r.Read(); err != nil || string(e.Line) != update {
			t.Errorf("got %v, %v", e, err)
		}
	}
	next <- struct{}{}
	if _, err := r.Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	wg.Wait()
}

// All recordings of real agents are read completely and without an error.
func TestTraces(t *testing.T) {
	files := cleantest.Files(t, gentest.Shared(t, "traces"), "*", "*.jsonl")
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		r, messages, ends := recording.NewReader(bytes.NewReader(text), nil), 0, 0
		lines := bytes.Split(text, []byte("\n"))
		for {
			e, err := r.Read()
			if err == io.EOF {
				break
			}
			if err != nil || e.Err != nil {
				t.Fatalf("%s: %v, %v", file, err, e.Err)
			}
			switch e.Kind {
			case recording.KindMessage:
				var want struct{ From, Raw string }
				must.Do(t, json.Unmarshal(lines[e.Number-1], &want))
				if want.From != e.Direction.Sender().String() || want.Raw != string(e.Line) || e.Time.IsZero() {
					t.Errorf("%s:%d: got %v %s", file, e.Number, e.Direction, e.Line)
				}
				messages++
			case recording.KindEnd:
				ends++
			}
		}
		if messages+ends+1 != bytes.Count(text, []byte("\n")) || ends != 1 || len(r.Skipped()) > 0 {
			t.Errorf("%s: %d messages, %d ends, %v", file, messages, ends, r.Skipped())
		}
	}
}

// The directions of the messages in the traces are found again after they are removed.
func TestTracesWithoutDirections(t *testing.T) {
	files := cleantest.Files(t, gentest.Shared(t, "traces"), "*", "*.jsonl")
	total, untold := 0, 0
	for _, file := range files {
		all := cleantest.Recording(t, file)
		var lines bytes.Buffer
		messages := all.Messages()
		for _, m := range messages {
			lines.Write(append(m.Line, '\n'))
		}
		r := recording.NewReader(&lines, nil)
		for i := range messages {
			e := must.Get(r.Read())(t)
			total++
			if e.Kind != recording.KindMessage {
				untold++
				t.Logf("%s: %.200s: %v", file, messages[i].Line, e.Err)
			} else if e.Direction != messages[i].Direction || e.Number != i+1 {
				t.Errorf("%s: line %d: %.200s: got %v", file, e.Number, e.Line, e.Direction)
			}
		}
	}
	t.Logf("%d of %d directions are not found", untold, total)
	if untold*100 > total {
		t.Errorf("the directions of %d of %d messages are not found", untold, total)
	}
}

// For any input, the reader ends, and each problem has a type.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{initialize + "\n" + answered, `{"recording":1}` + "\n" + `{"t":1,"from":"agent","raw":"x\ud83d\ude00"}` + "\n" + `{"exit":{}}`,
		`[{}]`,
		`{"type":"response","ts":0.7,"from":"agent","to":"client","id":"x","is_error":false}`, "{\n}\n{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := recording.NewReader(bytes.NewReader(text), &recording.ReaderOptions{MaxLine: 4096})
		entries, lines := 0, bytes.Count(text, []byte("\n"))+1
		for {
			e, err := r.Read()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if entries++; entries > 10*len(text)+10 {
				t.Fatal("the reader does not end")
			}
			var problem *recording.Error
			if e.Err != nil && (!errors.As(e.Err, &problem) || problem.Number < 1 || problem.Number > lines) || e.Number < 1 || e.Number > lines {
				t.Fatalf("%d lines: %+v", lines, e)
			}
			if e.Kind == recording.KindMessage && e.Direction == 0 || e.Kind == recording.KindNone && e.Err == nil {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// Times are milliseconds since the recording's beginning.
func TestTimes(t *testing.T) {
	for number, want := range map[string]time.Time{`1500`: time.Unix(1, 5e8).UTC(), `-1`: {}, `"1"`: {}} {
		line := `{"from":"agent","raw":"x","t":` + number + `}`
		e, err := recording.NewReader(strings.NewReader(line), nil).Read()
		if err != nil || e.Kind != recording.KindMessage || !e.Time.Equal(want) || e.Direction != conformance.ToClient {
			t.Errorf("%s: got %v %v, want %v (%v)", line, e.Kind, e.Time, want, err)
		}
	}
}
