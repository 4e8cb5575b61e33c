package faultpipe

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errReset = errors.New("reset")

// Text arrives unchanged whether it is written in one piece or in pieces of one byte.
func TestScript(t *testing.T) {
	const in = "one\ntwo\nthree\n"
	for _, test := range []struct {
		name   string
		faults []Fault
		want   string
		err    error // of reading
		writes bool  // all of it is written
	}{
		{"nothing", nil, in, io.EOF, true},
		{"cut at once", []Fault{{0, 0, Cut(nil)}}, "", io.EOF, false},
		{"cut at an offset", []Fault{{0, 6, Cut(nil)}}, "one\ntw", io.EOF, false},
		{"cut in a line", []Fault{{2, 1, Cut(errReset)}}, "one\ntwo\nt", errReset, false},
		{"cut behind a line", []Fault{{2, 0, Cut(errReset)}}, "one\ntwo\n", errReset, false},
		{"cut at the end", []Fault{{0, len(in), Cut(errReset)}}, in, errReset, true},
		{"half-close", []Fault{{1, 3, HalfClose(nil)}}, "one\ntwo", io.EOF, false},
		{"what comes later does not count", []Fault{{0, 4, Cut(nil)}, {0, 4, Insert("x")}}, "one\n", io.EOF, false},
		{"insert", []Fault{{1, 0, Insert("{\n")}, {2, 2, Insert("\x00")}}, "one\n{\ntwo\nth\x00ree\n", io.EOF, true},
		{"drop", []Fault{{0, 1, Drop(4)}}, "owo\nthree\n", io.EOF, true},
		{"truncate", []Fault{{1, 1, Truncate()}}, "one\nt\nthree\n", io.EOF, true},
		{"truncate everything", []Fault{{1, 0, Truncate()}}, "one\n\nthree\n", io.EOF, true},
		{"repeat", []Fault{{1, 0, Repeat()}}, "one\ntwo\ntwo\nthree\n", io.EOF, true},
		{"repeat the last", []Fault{{2, 0, Repeat()}}, in + "three\n", io.EOF, true},
		{"two at one place", []Fault{{1, 0, Insert("a")}, {1, 0, Repeat()}}, "one\natwo\ntwo\nthree\n", io.EOF, true},
		{"past the line", []Fault{{0, 4, Insert("a")}, {1, 6, Insert("b")}}, "one\natwo\nthbree\n", io.EOF, true},
		{"never", []Fault{{9, 0, Cut(nil)}, {0, 0, Cut(nil)}}, in, io.EOF, true},
	} {
		for _, piece := range []int{1, 5, len(in)} {
			got, err, werr := transfer(Script{Faults: test.faults, Chunks: RandomChunks(1, 4)}, in, piece)
			if got != test.want || err != test.err || (werr == nil) != test.writes {
				t.Errorf("%s, pieces of %d: got %q, %v, %v", test.name, piece, got, err, werr)
			}
		}
	}
}

// transfer writes text in pieces and returns what is read.
func transfer(script Script, text string, piece int) (got string, readErr, writeErr error) {
	a, b := Pipe(Script{}, script)
	var wg sync.WaitGroup
	wg.Go(func() {
		for rest := text; rest != "" && writeErr == nil; {
			var n int
			n, writeErr = a.W.Write([]byte(rest[:min(piece, len(rest))]))
			rest = rest[n:]
		}
		a.W.Close()
	})
	var out strings.Builder
	for buf := make([]byte, 8); ; {
		n, err := b.R.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			wg.Wait()
			return out.String(), err, writeErr
		}
	}
}

// Cut ends both directions, and what was written before arrives.
func TestCutEndsBothDirections(t *testing.T) {
	a, b := Pipe(Script{}, Script{Faults: []Fault{{0, 3, Cut(errReset)}}})
	write := func(w io.Writer, text string, n int, want error) {
		t.Helper()
		if got, err := io.WriteString(w, text); got != n || err != want {
			t.Errorf("wrote %d, %v", got, err)
		}
	}
	write(b.W, "on its way", 10, nil)
	write(a.W, "abcde", 3, io.ErrClosedPipe)
	write(b.W, "x", 0, io.ErrClosedPipe)
	for end, want := range map[io.Reader]string{a.R: "on its way", b.R: "abc"} {
		if got, err := io.ReadAll(end); string(got) != want || err != errReset {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// What is delayed comes in time; what is held up for ever blocks its writer, until nobody reads any more.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(Script{}, Script{Faults: []Fault{{1, 0, Delay(time.Minute)}, {2, 0, Stall()}}})
		start := time.Now()
		writing := make(chan error, 1)
		go func() {
			_, err := io.WriteString(a.W, "1\n2\n"+strings.Repeat("x", capacity+1))
			writing <- err
		}()
		for i, want := range []string{"1\n", "2\n"} {
			buf, after := make([]byte, 100), time.Duration(i)*time.Minute
			if n, err := b.R.Read(buf); string(buf[:n]) != want || err != nil || time.Since(start) != after {
				t.Errorf("got %q, %v after %v", buf[:n], err, time.Since(start))
			}
		}
		synctest.Wait()
		if len(writing) > 0 {
			t.Error("nothing is read, but everything was written")
		}
		if err := b.R.Close(); err != nil {
			t.Error(err)
		}
		if err := <-writing; err != io.ErrClosedPipe {
			t.Error("writing:", err)
		}
	})
}
