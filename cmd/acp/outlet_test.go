package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// Output is written in order, and an error ends only standard output.
func TestOutlet(t *testing.T) {
	var both bytes.Buffer
	o := newOutlet(&both, &both, func(err error) { t.Error(err) })
	for i := range 1000 {
		o.write(i%3 == 0, []byte{byte('a' + i%26)})
	}
	o.finish(t.Context())
	for i, c := range both.Bytes() {
		if c != byte('a'+i%26) {
			t.Fatalf("byte %d is %c", i, c)
		}
	}
	if both.Len() != 1000 || o.failure() != nil {
		t.Errorf("%d bytes, %v", both.Len(), o.failure())
	}

	var stderr bytes.Buffer
	failures := 0
	o = newOutlet(failingWriter{}, &stderr, func(error) { failures++ })
	for range 10 {
		o.write(false, []byte("lost"))
		o.write(true, []byte("kept"))
	}
	if o.finish(t.Context()); failures != 1 || !errors.Is(o.failure(), io.ErrShortWrite) || stderr.String() != strings.Repeat("kept", 10) {
		t.Errorf("%d failures, %v, %q", failures, o.failure(), stderr.String())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// write blocks while the output is not read, and no longer after release.
func TestOutletStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		o := newOutlet(w, io.Discard, func(error) {})
		written := false
		go func() {
			for range 3 {
				o.write(false, make([]byte, maxQueued))
			}
			written = true
		}()
		if synctest.Wait(); written {
			t.Error("too much is kept")
		}
		o.release()
		if synctest.Wait(); !written {
			t.Error("it waits for ever")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.finish(ctx)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		<-o.done
	})
}

// What a terminal would interpret is escaped in JSON, and keeps its meaning.
func TestVisible(t *testing.T) {
	for _, text := range []string{"plain", "a\u009b31mb\u202ec\u007f", "\U000e0041\U0001f600é", "\u2028"} {
		in := []byte(`{"t":"` + text + `"}`)
		out := visible(in)
		var got struct{ T string }
		if err := json.Unmarshal(out, &got); err != nil || got.T != text {
			t.Errorf("%q: %s, %v", text, out, err)
		}
		if strings.ContainsAny(string(out), "\u009b\u202e\u007f\u2028\U000e0041") {
			t.Errorf("%q: %q", text, out)
		}
	}
}
