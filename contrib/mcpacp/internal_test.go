package mcpacp

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// A server may send a thousand messages at once, and after that a thousand in a second.
func TestPace(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	var p pace
	p.wait(900, stopped)
	if left := time.Until(p.next); left > 0 {
		t.Errorf("after 900 messages the next one is read in %v", left)
	}
	p.wait(60_100, stopped)
	if left := time.Until(p.next); left < 30*time.Second || left > time.Minute {
		t.Errorf("after a minute's messages more the next one is read in %v", left)
	}
}

// The messages of a stream of events are counted however it is divided into reads.
func TestPaceOfEvents(t *testing.T) {
	text := strings.Repeat("data:1\n\nevent: x\ndata: 2\n\n", 500)
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			b := &body{ReadCloser: io.NopCloser(r), events: true, tail: []byte("\n")}
			if got, err := io.ReadAll(b); string(got) != text || err != nil {
				t.Errorf("%s: read %q, %v", name, got, err)
			}
			if got := b.pace.next.Sub(start); got != 0 { // a second's messages, from a second ago
				t.Errorf("%s: the next message is due %v after the start", name, got)
			}
		})
	}
}

// Tools waits for two seconds for lists that have changed, also if two servers change theirs by turns.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &server{state: ready}, &server{state: ready}
		s := &Set{servers: []*server{a, b}, ctx: t.Context(), changed: make(chan struct{})}
		s.change(func() { a.stale = time.Now() })
		done := make(chan time.Time, 1)
		go func() {
			if err := s.settle(t.Context()); err != nil {
				t.Error(err)
			}
			done <- time.Now()
		}()
		start := time.Now()
		for range 10 {
			time.Sleep(pauseTime)
			s.change(func() { a.stale, b.stale = time.Time{}, time.Now() })
			a, b = b, a
		}
		if got := (<-done).Sub(start); got != 2*pauseTime {
			t.Errorf("Tools waited %v", got)
		}
	})
}

// Names are what models accept, and no two names of a server become one.
func TestNames(t *testing.T) {
	taken := map[string]bool{}
	for _, test := range [][2]string{
		{"files", "files"}, {"files", "files_2"}, {"files", "files_3"}, {"files_2", "files_2_2"}, {"My Files!", "My_Files"}, {"__a__b__", "a_b"},
		{"", "mcp"}, {"é", "mcp_2"}, {strings.Repeat("long-", 9), "long-long-long-long-"},
	} {
		if got := uniqueName(test[0], taken); got != test[1] {
			t.Errorf("the server %q is %q, want %q", test[0], got, test[1])
		}
	}
	long := strings.Repeat("x", 80)
	seen := map[string]string{}
	for _, tool := range []string{"read", "read.file", "read/file", "read_file", "é", "ü", long, long + "y", strings.Repeat("x", 56), ""} {
		name := toolName("files", tool)
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || !strings.HasPrefix(name, "files__") {
			t.Errorf("%q is %q", tool, name)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %q", tool, other, name)
		}
		seen[name] = tool
	}
	if got := toolName("files", "read_file"); got != "files__read_file" {
		t.Errorf("read_file is %q", got)
	}
}
