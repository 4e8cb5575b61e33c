package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/badlines"
)

// pieces is a Reader that gives its text in pieces, whose sizes come round and round; 0 is a Read that
// gives nothing.
type pieces struct {
	text  []byte
	sizes []byte // in units, so that a long text does not take a million pieces
	unit  int
	next  int
	last  bool // the end comes together with the last piece
}

func (p *pieces) Read(b []byte) (int, error) {
	size := len(p.text)
	if len(p.sizes) > 0 {
		size = int(p.sizes[p.next%len(p.sizes)]) * p.unit
		p.next++
		if size == 0 && p.next%2 == 0 {
			size = p.unit // or all of them could be 0
		}
	}
	n := copy(b, p.text[:min(size, len(p.text))])
	p.text = p.text[n:]
	if len(p.text) == 0 && (p.last || n == 0) {
		return n, io.EOF
	}
	return n, nil
}

// inflate replaces each x by n of them, so that lines become longer than buffers.
func inflate(text []byte, n int) []byte {
	return bytes.ReplaceAll(text, []byte("x"), bytes.Repeat([]byte("x"), n))
}

// FuzzLineReader compares the lines that are read with those that bytes.Split finds.
func FuzzLineReader(f *testing.F) {
	for _, text := range []string{
		"", "\n", "a\nb", "a\r\nb\r\n", "\r\n \n\t\r\n", "a\x00b\n\xff\xfe\n", "\ufeffa\n", "x\nx", "xx\naaa\nx\n", "ab\nabc\nabcd\n", "\ufeff", "\ufeff\ufeff\n", "\ufeff\n\ufeffa\n", "\xef\xbb", "\xef\xbba", "\xef",
		"{\"a\":", "{}\n{", "{\"x\":1}", "{,", "   ", "x\n\n\nx\r\n", "\r", "\na\n",
	} {
		f.Add([]byte(text), []byte{}, uint16(1), uint32(3), false)
		f.Add([]byte(text), []byte{1}, uint16(1000), uint32(1000), true)
		f.Add([]byte(text), []byte{7, 0, 255, 3}, uint16(40_000), uint32(70_000), false)
	}
	f.Fuzz(func(t *testing.T, text, sizes []byte, scale uint16, max uint32, last bool) {
		if bytes.Count(text, []byte("x"))*int(scale) > 1<<18 || len(text) > 1<<16 {
			t.Skip()
		}
		text = inflate(text, int(scale))
		limit := int(max % (1 << 18))
		r := NewLineReader(&pieces{text: text, sizes: sizes, unit: 1 + len(text)>>12, last: last}, limit)
		lines := bytes.Split(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\n"))
		for i, want := range lines {
			final := i == len(lines)-1
			if len(want) <= limit && strings.Trim(string(want), " \t\r") == "" {
				continue
			}
			got, err := r.Next(nil)
			if long, ok := errors.AsType[*LongLine](err); ok || len(want) > limit {
				checkTooLong(t, long, want, limit)
				continue
			}
			if final && errors.Is(err, io.ErrUnexpectedEOF) {
				if begun := bytes.TrimLeft(want, " \t\r"); begun[0] != '{' || json.Valid(want) {
					t.Fatalf("%.100q was thrown away", want)
				}
				break
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("line %d: got %.100q, %v, want %.100q", i, got, err, want)
			}
		}
		first := r.err
		for range 3 { // the end is final
			line, err := r.Next(nil)
			if line != nil || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || first != nil && err.Error() != first.Error() {
				t.Fatalf("after the end: %.100q, %v, was %v", line, err, first)
			}
		}
		if n := 2*(limit+readChunk) + readChunk; len(r.buf) > n {
			t.Fatalf("the buffer has %d bytes for lines of %d", len(r.buf), limit)
		}
	})
}

func checkTooLong(t *testing.T, long *LongLine, line []byte, limit int) {
	t.Helper()
	switch {
	case long == nil || len(line) <= limit || long.Limit != limit:
		t.Fatalf("a line of %d bytes: got %+v with a limit of %d", len(line), long, limit)
	case !bytes.HasPrefix(line, long.Head) || len(long.Head) < min(limit+1, keepEnds) || len(long.Head) > keepEnds:
		t.Fatalf("the head of %.100q is %.100q", line, long.Head)
	case !bytes.Equal(long.Tail, line[max(0, len(line)-keepEnds):]):
		t.Fatalf("the tail of %.100q is %.100q", line, long.Tail)
	}
}

// FuzzEnvelope sends one line, and compares what the handler is told and what comes back with what
// encoding/json makes of the line.
func FuzzEnvelope(f *testing.F) {
	for _, line := range badlines.Lines("m", `"a":[1]`) {
		if len(line.Text) < 1<<16 {
			f.Add([]byte(line.Text), false)
			f.Add([]byte(line.Text), true)
		}
	}
	// Messages as peers write them, which are read in one pass, and lines that are so nearly.
	for _, params := range []string{`{}`, ` [1] `, `null`, `"x"`, `-0`, ``, `{`, `{"a":1,}`, `"\ud800"`, "\"\xff\"", strings.Repeat("[", 255) + strings.Repeat("]", 255), strings.Repeat("[", 256) + strings.Repeat("]", 256)} {
		for _, end := range []string{`}`, ` } `, "}\r", `,"id":1}`, `,"params":1}`, `,"result":1}`, `}}`, `]`, `}{}`, `,}`, ``} {
			f.Add([]byte(`{"jsonrpc":"2.0","method":"m","params":`+params+end), false)
			f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"m","params":`+params+end), false)
			f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":`+params+end), false)
		}
	}
	for _, id := range []string{`0`, `00`, `01`, `-0`, `-1`, `1.0`, `1e2`, ``, `null`, `"7"`, `999999999999999999`, `9223372036854775807`, `9223372036854775808`} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"m","params":{}}`), false)
		f.Add([]byte(`{"jsonrpc":"2.0","id":`+id+`,"result":1}`), false)
	}
	f.Fuzz(func(t *testing.T, line []byte, noise bool) {
		if bytes.ContainsRune(line, '\n') || blank(line) {
			t.Skip()
		}
		want := badlines.Read(line, codec.MaxDepth)
		h, answers := play(t, append(bytes.Clone(line), '\n'), 1<<24, noise)
		switch want.Kind {
		case badlines.Request, badlines.Notification:
			if !slices.Equal(h.methods, []string{want.Method}) || h.params[0] != string(want.Params) || len(h.invalid) > 0 {
				t.Fatalf("%q: handled as %q with %q, %v", line, h.methods, h.params, h.invalid)
			}
		default:
			if len(h.methods) > 0 || len(h.invalid) != 1 {
				t.Fatalf("%q: handled as %q, and reported as %v", line, h.methods, h.invalid)
			}
			if errors.Is(h.invalid[0], ErrPeerComplains) && !bytes.Contains(line, []byte("error")) && !bytes.Contains(line, []byte(`\u`)) {
				t.Fatalf("%q: reported as %v", line, h.invalid)
			}
		}
		switch want.Kind {
		case badlines.Request:
			checkEcho(t, line, want, answers)
		case badlines.Refused, badlines.Unread:
			checkRefusal(t, line, want, answers, noise)
		default:
			if len(answers) > 0 {
				t.Fatalf("%q: answered with %+v", line, answers)
			}
		}
	})
}

func checkEcho(t *testing.T, line []byte, want badlines.Message, answers []*badlines.Answer) {
	t.Helper()
	var params bytes.Buffer
	if want.Params == nil {
		params.WriteString("null")
	} else if err := json.Compact(&params, want.Params); err != nil {
		t.Fatal(err)
	}
	if len(answers) != 1 || string(answers[0].Result) != params.String() || badlines.Key(answers[0].ID) != badlines.Key(want.ID) {
		t.Fatalf("%q: answered with %+v", line, answers)
	}
}

func checkRefusal(t *testing.T, line []byte, want badlines.Message, answers []*badlines.Answer, noise bool) {
	t.Helper()
	if len(answers) == 0 {
		skipped := noise && (line[0] != '{' || slices.Contains(want.Codes, badlines.ParseError))
		if !want.Silent && !skipped {
			t.Fatalf("%q: not answered", line)
		}
		return
	}
	got := answers[0]
	if len(answers) > 1 || !slices.Contains(want.Codes, got.Code) ||
		want.ID != nil && badlines.Key(got.ID) != badlines.Key(want.ID) {
		t.Fatalf("%q: answered with %+v, want id %s and one of %d", line, answers, want.ID, want.Codes)
	}
	if n := len(got.Message); n > 500+2*len(line) {
		t.Fatalf("%q: a message of %d bytes", line, n)
	}
}

// FuzzTooLong sends one line that is over the limit: it is answered at most once, under its own id if
// under any, never when it is a response, and what follows is served.
func FuzzTooLong(f *testing.F) {
	for _, line := range badlines.Lines("m", `"a":[1]`) {
		if len(line.Text) < keepEnds {
			f.Add([]byte(line.Text))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		const limit = 49
		if bytes.ContainsRune(line, '\n') || len(line) <= limit || len(line) > keepEnds {
			t.Skip()
		}
		alive := `{"jsonrpc":"2.0","id":"alive","method":"m"}`
		h, answers := play(t, slices.Concat(line, []byte("\n"+alive)), limit, false)
		n := len(answers) - 1
		if n < 0 || n > 1 || string(answers[n].ID) != `"alive"` || len(h.methods) != 1 || len(h.invalid) != 1 {
			t.Fatalf("%q: answers %+v, handled %q, reported %v", line, answers, h.methods, h.invalid)
		}
		whole := badlines.Read(line, codec.MaxDepth)
		if n == 0 {
			if whole.Kind != badlines.Response && !badlines.MayBeResponse(line) {
				t.Fatalf("%q: not answered", line)
			}
			return
		}
		switch got := answers[0]; {
		case got.Code != badlines.InvalidRequest:
			t.Fatalf("%q: answered with %+v", line, got)
		case whole.Kind == badlines.Response:
			t.Fatalf("%q: a response was answered with %+v", line, got)
		case whole.Kind == badlines.Request && string(got.ID) != "null" && badlines.Key(got.ID) != badlines.Key(whole.ID):
			t.Fatalf("%q: answered under %s", line, got.ID)
		}
	})
}
