package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/transcript"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTranscripts plays each of the project's transcripts from both sides at once. They are readable and consistent,
// and every message in them that is not deliberately wrong follows the schema.
func TestTranscripts(t *testing.T) {
	files := cleantest.Files(t, "../testdata/*-*.txtar")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			script := must.Get(transcript.Load(file))(t)
			a, b := rpc.Pipe()
			const open = `what is "..." in a script is not played`
			accept := map[string]string{"INI-2": open, "INI-3": open, "INI-4": open, "INI-5": open}
			tapped := conformance.Tap(t, conformance.Client, a, &conformance.TapOptions{Accept: accept, Ignore: func(f conformance.Finding) bool {
				switch {
				case strings.HasPrefix(filepath.Base(file), "bad-input-agent"):
					return f.Direction == conformance.ToAgent || strings.HasSuffix(f.Message, "no unanswered request has this id")
				case strings.HasPrefix(filepath.Base(file), "bad-input-client"):
					return f.Direction == conformance.ToClient || strings.HasSuffix(f.Message, "no unanswered request has this id")
				}
				return false
			}})
			var wg sync.WaitGroup
			wg.Go(func() { transcript.Run(t, script, conformance.Agent, b) })
			transcript.Run(t, script, conformance.Client, tapped)
			wg.Wait()
		})
	}
	t.Logf("%d transcripts", len(files))
}

// play runs a script against a peer that writes fixed lines.
func play(t *testing.T, ctx context.Context, script string, lines ...string) error {
	t.Helper()
	s, err := transcript.Parse("x.txtar", []byte("-- transcript --\n"+script+"\n-- values --\n{\"n\": 7}\n"))
	if err != nil {
		return err
	}
	a, b := rpc.Pipe()
	peer := must.Get(b.Connect(context.Background()))(t)
	var wg sync.WaitGroup
	wg.Go(func() { // reads everything
		for {
			if _, err := peer.Read(); err != nil {
				return
			}
		}
	})
	wg.Go(func() {
		for _, line := range lines {
			if line == "EOF" {
				_ = peer.Close()
			} else if peer.Write([]byte(line)) != nil {
				return // the player has stopped
			}
		}
	})
	err = s.Play(ctx, conformance.Client, a)
	_ = peer.Close()
	wg.Wait()
	return err
}

func TestPlay(t *testing.T) {
	for _, test := range []struct {
		name, script string
		lines        []string
		want         string // a part of the error, "" for none
	}{
		{"same", `<- {"a": [1, {"b": null}], "c": 1e2}`, []string{`{"c":100,"a":[1.0,{"b":null}]}`}, ""},
		{"two", "<- 1\n<- 2", []string{"1", "2"}, ""},
		{"order", "<- 1\n<- 2", []string{"2"}, "x.txtar:2: agent: the message: got 2, want 1"},
		{"value", `<- {"a": {"b/c": [1, 2]}}`, []string{`{"a":{"b/c":[1,3]}}`}, "/a/b~1c/1: got 3, want 2"},
		{"length", `<- {"a": [1]}`, []string{`{"a":[1,2]}`}, "/a: got [1,2], want [1]"},
		{"type", `<- {"a": {}}`, []string{`{"a":"x"}`}, `/a: got "x", want {}`},
		{"exact number", `<- 9007199254740993`, []string{`9007199254740992`}, "got 9007199254740992"},
		{"missing", `<- {"a": 1}`, []string{`{}`}, `the message: missing "a"`},
		{"more", `<- {"a": 1}`, []string{`{"a":1,"b":2}`}, `the message: unexpected "b"`},
		{"open", `<- {"a": 1, "...": "..."}`, []string{`{"a":1,"b":2}`}, ""},
		{"any", `<- ["$any", "$any"]`, []string{`[1,"x"]`}, ""},
		{"name", "<- \"$x\"\n<- [\"$x\"]", []string{`{"y":1}`, `[{"y":1.0}]`}, ""},
		{"name differs", "<- \"$x\"\n<- [\"$x\"]", []string{`1`, `[2]`}, "/0: got 2, want 1 (the value of $x)"},
		{"value given", "-> \"$n\"\n<- \"$n\"", []string{`7`}, ""},
		{"value differs", "-> \"$n\"\n<- \"$n\"", []string{`8`}, "got 8, want 7 (the value of $n)"},
		{"no value", "-> \"$z\"", nil, "$z has no value"},
		{"method is not a name", `<- "$/cancel_request"`, []string{`1`}, `got 1, want "$/cancel_request"`},
		{"repeated", "<-* 1\n<- 2", []string{"1", "1", "1", "2"}, ""},
		{"repeated, none", "<-* 1\n<- 2", []string{"2"}, ""},
		{"repeated, other", "<-* 1\n<- 2", []string{"1", "3"}, "got 3, want 2"},
		{"repeated after a write", "<- 0\n-> 0\n<-* 1\n<- 2", []string{"0", "1", "2"}, ""},
		{"any order", "<-& 1\n<-& 2\n<-& 3\n<- 4", []string{"3", "1", "2", "4"}, ""},
		{"any order, twice", "<-& 1\n<-& 2\n<- 4", []string{"1", "1"}, "got 1, want 2"},
		{"raw", `<-! "\xff{"`, []string{"\xff{"}, ""},
		{"raw differs", `<-! "{"`, []string{"}"}, `got "}"`},
		{"not JSON", `<- {}`, []string{"}"}, `got "}"`},
		{"end", "<- 1\n<- 2", []string{"1", "EOF"}, "x.txtar:3: agent: unexpected EOF"},
		{"continued", "<- {\"a\":\n    [1,\n\t2]}", []string{`{"a":[1,2]}`}, ""},
		{"comment", "# c\n\n<- 1\n# d", []string{`1`}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := play(t, t.Context(), test.script, test.lines...)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPlayTimeout(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer cancel()
	if err := play(t, ctx, "<- 1"); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestPlayConnectError(t *testing.T) {
	s := must.Get(transcript.Parse("x", []byte("-- transcript --\n-> 1\n")))(t)
	a, _ := rpc.Pipe()
	stream := must.Get(a.Connect(t.Context()))(t)
	must.Do(t, stream.Close())
	if s.Play(t.Context(), conformance.Client, a) == nil {
		t.Error("played over a used pipe")
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       `no file "transcript"`,
		"-- transcript --\n=> 1\n":               "line 2: the line neither begins with an arrow",
		"c\n-- transcript --\n\n-> {\n":          "line 4: unexpected EOF",
		"-- transcript --\n-> 1 2\n":             "line 2: more than one JSON value",
		"-- transcript --\n->! x\n":              "line 2: expected a string literal",
		"-- transcript --\n->! \"a\\nb\"\n":      "line 2: expected a string literal on one line",
		"-- transcript --\n-- values --\n[]\n":   "cannot unmarshal",
		"-- transcript --\n-- other --\nwhat?\n": `unknown file "other"`,
	} {
		if _, err := transcript.Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := transcript.Load("nowhere"); err == nil {
		t.Error("loaded nothing")
	}
}

// failing records that a test would have failed.
type failing struct{ errors []string }

func (f *failing) Helper() {}
func (f *failing) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *failing) Logf(string, ...any) {}
func (f *failing) Cleanup(func())      {}

func TestRunFails(t *testing.T) {
	s := must.Get(transcript.Parse("x", []byte("-- transcript --\n<- 1\n")))(t)
	a, b := rpc.Pipe()
	peer := must.Get(b.Connect(t.Context()))(t)
	must.Do(t, peer.Close())
	f := &failing{}
	transcript.Run(f, s, conformance.Client, a)
	if len(f.errors) != 1 || !strings.Contains(f.errors[0], "unexpected EOF") {
		t.Errorf("got %q", f.errors)
	}
}
