package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/conformance"
)

func recorded(direction conformance.Direction, line string) conformance.Message {
	return conformance.Message{Direction: direction, Line: []byte(line)}
}

// What is written is read again, byte for byte, whatever the lines hold.
func TestRecordingIsReadAsItWasWritten(t *testing.T) {
	var r conformance.Recording
	want := []conformance.Message{
		recorded(conformance.ToAgent, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`),
		recorded(conformance.ToClient, "no \"JSON\" \u2028 \x00 <>&"),
		recorded(conformance.ToClient, "\xff\xfe not UTF-8"),
		recorded(conformance.ToAgent, ""),
	}
	for _, m := range want {
		r.Add(m)
	}
	var file bytes.Buffer
	if n, err := r.WriteTo(&file); err != nil || n != int64(file.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, file.Len(), err)
	}
	if lines := strings.Count(file.String(), "\n"); lines != len(want) {
		t.Errorf("%d lines", lines)
	}
	again, err := conformance.ReadRecording(&file)
	if err != nil {
		t.Fatal(err)
	}
	got := again.Messages()
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i, m := range got {
		if m.Direction != want[i].Direction || !bytes.Equal(m.Line, want[i].Line) {
			t.Errorf("got %v %q, want %v %q", m.Direction, m.Line, want[i].Direction, want[i].Line)
		}
	}
	if got := string(r.Sent(conformance.Client)); got != string(want[0].Line)+"\n\n" {
		t.Errorf("the client sent %q", got)
	}
}

func TestReadRecording(t *testing.T) {
	r, err := conformance.ReadRecording(strings.NewReader(`{"meta":{"agent":"x"}}

{"t":5,"from":"client","raw":"{}"}
{"exit":{"code":0}}
{"t":7,"from":"agent","raw":"[]"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Messages(); len(got) != 2 || string(got[0].Line) != "{}" || got[1].Direction != conformance.ToClient {
		t.Errorf("got %v", got)
	}
	for text, want := range map[string]string{
		`{"from":"nobody","raw":""}`: `line 1 of the recording: from "nobody"`,
		"{}\n{":                      "line 2 of the recording: unexpected end",
	} {
		if _, err := conformance.ReadRecording(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r conformance.Recording
		line := []byte("a")
		r.Add(conformance.Message{Direction: conformance.ToAgent, Line: line})
		line[0] = 'x' // the recording has a copy
		is := func(text string) func(conformance.Message) bool {
			return func(m conformance.Message) bool { return string(m.Line) == text }
		}
		if at, err := r.Await(t.Context(), 0, is("a")); at != 0 || err != nil {
			t.Errorf("got %d, %v", at, err)
		}
		found := make(chan int)
		go func() {
			at, err := r.Await(t.Context(), 1, is("a"))
			if err != nil {
				t.Error(err)
			}
			found <- at
		}()
		synctest.Wait() // it waits
		r.Add(recorded(conformance.ToClient, "b"))
		synctest.Wait()
		r.Add(recorded(conformance.ToClient, "a"))
		if at := <-found; at != 2 {
			t.Errorf("got %d", at)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if _, err := r.Await(ctx, 9, is("a")); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
}
