package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/tools/txtar"

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
	update     = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`
)

// The recordings of testdata/reader.txtar, which are formats that the reader recognizes by their content, and bad input:
// it causes a clear error with the number of the line, and reading continues.
func TestRead(t *testing.T) {
	var text string
	for _, file := range must.Get(txtar.ParseFile("testdata/reader.txtar"))(t).Files {
		t.Run(file.Name, func(t *testing.T) {
			in, want, _ := strings.Cut(string(file.Data), "---\n")
			if in != "" {
				text = strings.TrimSuffix(in, "\n")
			}
			_, hop, _ := strings.Cut(file.Name, ", hop ")
			check(t, read(t, text, &recording.ReaderOptions{Hop: hop}), strings.Split(strings.TrimSuffix(want, "\n"), "\n")...)
		})
	}
}

// A reader reads bytes that a text does not show.
func TestReadBytes(t *testing.T) {
	const begin = `{"recording":1,"tool":"a","date":"2026-01-02T03:04:05Z"}` + "\n"
	const end = `{"t":2,"exit":{"code":0,"signal":null}}` + "\n"
	const none = "1 ! line 1: not a recording: no line contains an ACP message"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":           {"", []string{"1 ! line 1: the file is empty"}},
		"blank":           {"\n\n \n", []string{none}},
		"empty lines":     {"\n" + update + "\r\n\n", []string{"2 ← " + update}},
		"byte order mark": {"\ufeff" + update, []string{"1 ← " + update}},
		"gzip":            {"\x1f\x8b\x08\x00\n\n", []string{"1 ! line 1: not text: compressed with gzip"}},
		"binary":          {"\x7fELF\x00\x00\n\x00", []string{"1 ! line 1: not text: contains NUL bytes"}},
		"UTF-16":          {"\xff\xfe{\x00", []string{"1 ! line 1: not text: UTF-16: convert it to UTF-8"}},
		"zeros":           {begin + "\x00\x00\x00\n" + end, []string{`1 header a  []`, "2 ! line 2: not text: contains NUL bytes", "3 end 0"}},
		"ours": {`{"recording":1,"tool":"acp","version":"1.2","command":["a","b"],"date":"2026-01-02T03:04:05Z"}
{"t":2.5,"from":"agent","raw":"{\"id\":1}"}
{"t":3,"from":"agent","stderr":"hello \u001b"}
{"t":3,"from":"agent","bytes":"//5h"}
{"t":3,"from":"client","raw":"not JSON","partial":true}
{"t":4,"exit":{"code":null,"signal":"SIGTERM"}}
`, []string{
			`1 header acp 1.2 ["a" "b"]`, `2 ← {"id":1}`, "3 stderr hello \x1b", "4 ← \xff\xfea", "5 → not JSON partial", "6 end SIGTERM",
		}},
	} {
		t.Run(name, func(t *testing.T) { check(t, read(t, test.text, nil), test.want...) })
	}
}

// The reader knows the receiver of every method of the schemas that only one side has.
func TestEveryMethodTellsItsReceiver(t *testing.T) {
	for _, schema := range []string{sdk.SchemaV1(), sdk.SchemaV1Unstable(), sdk.SchemaV2(), sdk.SchemaV2Unstable()} {
		sides, count := map[string]string{}, 0
		for _, d := range gentest.DefinitionsOf(t, schema) {
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
