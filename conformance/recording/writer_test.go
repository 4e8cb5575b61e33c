package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Written lines are read back byte for byte, whatever they contain.
func TestRecordingIsReadAsItWasWritten(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	code := 3
	want := []recording.Entry{
		{Kind: recording.KindMessage, Direction: conformance.ToAgent, Line: []byte(initialize), Time: began},
		{Kind: recording.KindMessage, Direction: conformance.ToClient, Line: []byte("no \"JSON\" \u2028 \x00\x1f\x7f <>&\\ \r"), Time: began.Add(1234 * time.Microsecond)},
		{Kind: recording.KindMessage, Direction: conformance.ToClient, Line: []byte("\xff\xfe not UTF-8")},
		{Kind: recording.KindStderr, Direction: conformance.ToClient, Line: []byte("warning: \x1b[1m"), Time: began.Add(time.Hour)},
		{Kind: recording.KindStderr, Direction: conformance.ToClient, Line: []byte("\xff"), Time: began.Add(time.Hour)},
		{Kind: recording.KindMessage, Direction: conformance.ToAgent, Line: []byte{}, Partial: true, Time: began.Add(time.Hour)},
		{Kind: recording.KindEnd, End: &recording.End{Code: &code, Closed: conformance.Agent}, Time: began.Add(48 * time.Hour)},
	}
	var file bytes.Buffer
	w := must.Get(recording.NewWriter(&file, recording.Header{Tool: "x", Version: "1", Command: []string{"a", "b c"}, Versions: []int{1, 2}, Date: began}, nil))(t)
	for i := range want {
		must.Do(t, w.Write(&want[i]))
	}
	if err := w.Write(&want[0]); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if lines := strings.Count(file.String(), "\n"); lines != len(want)+1 {
		t.Errorf("%d lines", lines)
	}
	got := cleantest.Entries(t, &file)
	h := got[0].Header
	if h == nil || fmt.Sprint(*h) != fmt.Sprint(recording.Header{Tool: "x", Version: "1", Command: []string{"a", "b c"}, Versions: []int{1, 2}, Date: began}) {
		t.Errorf("got header %+v", h)
	}
	for i, e := range got[1:] {
		w := want[i]
		if e.Kind != w.Kind || e.Direction != w.Direction || !bytes.Equal(e.Line, w.Line) || !e.Time.Equal(w.Time) || e.Partial != w.Partial || e.Number != i+2 {
			t.Errorf("got  %+v\nwant %+v", e, w)
		}
	}
	if end := got[len(got)-1].End; *end.Code != 3 || end.Signal != "" || end.Closed != conformance.Agent {
		t.Errorf("got end %+v", end)
	}
}

// Every byte value is read back, alone and next to others.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("{}"), true)
	f.Add([]byte("\xf0\x9f\x98\x80\\ud83d\x00"), false)
	f.Fuzz(func(t *testing.T, line []byte, stderr bool) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		e := recording.Entry{Kind: recording.KindMessage, Direction: conformance.ToClient, Line: line}
		if stderr {
			e.Kind = recording.KindStderr
		}
		var file bytes.Buffer
		w, err := recording.NewWriter(&file, recording.Header{}, nil)
		must.Do(t, errors.Join(err, w.Write(&e), w.Write(&recording.Entry{Kind: recording.KindEnd})))
		if got := cleantest.Entries(t, &file); len(got) != 3 || !bytes.Equal(got[1].Line, line) || got[1].Kind != e.Kind {
			t.Errorf("got %+v", got)
		}
	})
}

// Concurrent writers do not mix their lines, and the clock never goes back.
func TestWriterIsConcurrent(t *testing.T) {
	var file bytes.Buffer // not safe for concurrent use: the Writer must be
	w := must.Get(recording.NewWriter(&file, recording.Header{}, recording.NewMasker()))(t)
	const each = 200
	var wg sync.WaitGroup
	for side, d := range []conformance.Direction{conformance.ToAgent, conformance.ToClient} {
		for part := range 2 {
			wg.Go(func() {
				for i := range each {
					line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"_%d/%d","params":{"n":%d,"token":"abc%s"}}`, side, part, i, strings.Repeat("x", i))
					if err := w.Message(conformance.Message{Direction: d, Line: []byte(line)}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	must.Do(t, w.Write(&recording.Entry{Kind: recording.KindEnd}))
	if got := cleantest.Entries(t, &file); len(got) != 4*each+2 || !got[0].Header.Masked {
		t.Errorf("%d entries", len(got))
	}
}

// A masked recording has the same messages, except for the secrets.
func TestMaskedRecording(t *testing.T) {
	const secret = "0123456789-not-to-be-seen"
	var r conformance.Recording
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"m","command":"c","args":[],"env":[{"name":"K","value":"` + secret + `"}]}]}}`,
		`not JSON, ` + secret,
	} {
		r.Add(conformance.Message{Direction: conformance.ToAgent, Line: []byte(line), Time: time.Unix(1, 0)})
	}
	var file bytes.Buffer
	must.Do(t, recording.WriteAll(&file, recording.Header{Command: []string{"a", "--token", secret}}, &r, recording.NewMasker()))
	if strings.Contains(file.String(), secret) {
		t.Errorf("the secret is in\n%s", &file)
	}
	again := must.Get(recording.ReadAll(bytes.NewReader(file.Bytes())))(t)
	for i, m := range again.Messages() {
		was := r.Messages()[i]
		before, after, _ := strings.Cut(string(was.Line), secret)
		if got := string(m.Line); !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || !m.Time.Equal(was.Time) {
			t.Errorf("got %s", got)
		}
		if f := conformance.NewValidator(conformance.V1()).Message(m.Direction, m.Line); i == 0 && len(f) > 0 {
			t.Errorf("got %v", f)
		}
	}
}

// Each later call returns the error of the file.
func TestWriteFails(t *testing.T) {
	w, err := recording.NewWriter(failing{}, recording.Header{}, nil)
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	if err := w.Message(conformance.Message{Direction: conformance.ToAgent}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A masked recording has the same findings as before.
func TestMaskedRecordingIsJudgedAlike(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Run("clean", func(t *testing.T) { maskedAlike(t, "../testdata/clean/*.jsonl") })
	t.Run("traces", func(t *testing.T) { maskedAlike(t, filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl")) })
}

func maskedAlike(t *testing.T, pattern string) {
	files := cleantest.Files(t, pattern)
	masks := 0
	for _, file := range files {
		all := cleantest.Recording(t, file)
		var masked bytes.Buffer
		must.Do(t, recording.WriteAll(&masked, recording.Header{}, all, recording.NewMasker()))
		masks += strings.Count(masked.String(), "masked-")
		again := must.Get(recording.ReadAll(&masked))(t)
		if got, want := judged(again), judged(all); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
	if masks == 0 {
		t.Error("nothing was masked")
	}
	t.Logf("%d recordings, %d masks", len(files), masks)
}

// judged returns the findings of a recording, without the recording's texts.
func judged(all *conformance.Recording) string {
	var b strings.Builder
	for _, f := range cleantest.Judge(nil, all.Messages(), conformance.Client) {
		fmt.Fprintln(&b, f.Number, f.Rule, f.Pointer)
	}
	return b.String()
}
