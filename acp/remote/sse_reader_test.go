package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/tier"
)

// slowEvent is an event, and what the reader knows after it.
type slowEvent struct {
	name, data, id string
	retry          time.Duration
	long           bool
}

// slowEvents reads a stream as the HTML standard says it, in the plainest way.
func slowEvents(stream string, max int) (events []slowEvent) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	lines = lines[:len(lines)-1] // the last has no end
	var name, id, lastID string
	var data []string
	var retry time.Duration
	for _, line := range lines {
		if line == "" {
			lastID = id
			if data != nil {
				e := slowEvent{name: name, data: strings.Join(data, "\n"), id: lastID, retry: retry}
				if len(e.data) > max {
					e.data, e.long = "", true
				}
				events = append(events, e)
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		if len(line) > longField && field != "data" {
			continue
		}
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if n, err := strconv.ParseUint(value, 10, 63); err == nil && value[0] != '+' {
				retry = time.Duration(min(n, (1<<63-1)/uint64(time.Millisecond))) * time.Millisecond
			}
		}
	}
	return events
}

// fastEvents reads a stream by the reader.
func fastEvents(t testing.TB, r *eventReader) (events []slowEvent) {
	for {
		err := r.fill()
		for {
			ev, ok := r.next()
			if !ok {
				break
			}
			_, long := errors.AsType[*rpc.TooLongError](ev.err)
			if ev.err != nil && !long {
				t.Fatal(ev.err)
			}
			if long {
				ev.data = nil
			}
			events = append(events, slowEvent{string(ev.name), string(ev.data), string(r.lastID), r.retry, long})
		}
		if err == io.EOF {
			return events
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// pieces reads in pieces of n bytes.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

func compareEvents(t *testing.T, stream string, limit, piece int) {
	t.Helper()
	want := slowEvents(stream, limit)
	got := fastEvents(t, newEventReader(pieces{strings.NewReader(stream), piece}, limit))
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("stream %.300q in pieces of %d, limit %d:\ngot  %.500q\nwant %.500q", stream, piece, limit, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// TestREM54_Events reads what servers send, and what the standard's examples are, whole and byte by byte.
func TestREM54_Events(t *testing.T) {
	size := tier.Pick(10_000, 10_000, 20_000, 100_000)
	big := strings.Repeat("x", size)
	for name, stream := range map[string]string{
		"LF":              "data: {}\n\ndata: 1\n\n",
		"CRLF":            "data: {}\r\n\r\ndata: 1\r\n\r\n",
		"CR":              "data: {}\r\rdata: 1\r\r",
		"mixed":           "data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\r",
		"BOM":             "\ufeffdata: 1\n\n\ufeffdata: 2\n\n",
		"half a BOM":      "\xef\xbbdata: 1\n\ndata: 2\n\n",
		"comments":        ":\n\n: keep-alive\n\n:data: 1\n\ndata: 2\n:\n\n",
		"several lines":   "data: {\ndata:  \"a\": 1\ndata: }\n\n",
		"empty lines":     "data\ndata\ndata:\n\n",
		"one empty":       "data\n\n",
		"no space":        "data:1\n\n",
		"two spaces":      "data:  1\n\n",
		"fields":          "event: message\nid: 7\nretry: 3000\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n",
		"id without data": "id: 7\n\ndata: 1\n\n",
		"bad fields":      "id: a\x00b\nretry: 3s\nretry: -1\nretry:\ndatax: 1\nData: 2\n data: 3\ndata: 4\n\n",
		"large retry":     "retry: 9223372036854775807\ndata: 1\n\n",
		"huge retry":      "retry: 99999999999999999999\ndata: 1\n\n",
		"not ended":       "data: 1\n\ndata: 2\n",
		"not ended line":  "data: 1\n\ndata: 2",
		"name only":       "event: x\n\ndata: 1\n\n",
		"long":            "data: " + big + "\n\ndata: 1\n\n",
		"long comment":    "data: 1\n:" + big + "\ndata: 2\n\n",
		"long field":      "id: " + big + "\nevent: " + big + "\ndata: 2\n\n",
		"long name":       big + ": 1\ndata: 2\n\n",
		"long in lines":   strings.Repeat("data: "+big[:1000]+"\n", size/1000) + "\ndata: 1\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{1 << 20, size - 1000, 0} {
				for _, piece := range []int{1, 2, 3, 4096, 1 << 20} {
					compareEvents(t, stream, limit, piece)
				}
			}
		})
	}
}

// TestREM54_Bounded sends events, comments and fields without end: the reader keeps its buffer small, and of an event
// that is too long its ends.
func TestREM54_Bounded(t *testing.T) {
	tier.Need(t, tier.Normal)
	const limit = 100_000
	size := tier.Pick(0, 1_000_000, 2_000_000, 10_000_000)
	many := strings.Repeat("y", size)
	for name, stream := range map[string]string{
		"data":               `data: {"id":7,` + many + `"result":1}`,
		"lines of data":      strings.Repeat(`data: {"id":7,"result":1}`+"\n", size/10),
		"comment":            "data: 1\n:" + many,
		"comments":           "data: 1\n" + strings.Repeat(": "+many[:100]+"\n", size/100),
		"field":              "data: 1\nid: " + many,
		"line without colon": many,
	} {
		t.Run(name, func(t *testing.T) {
			r := newEventReader(strings.NewReader(stream+"\n\ndata: 2\n\n"), limit)
			events := fastEvents(t, r)
			if last := events[len(events)-1]; last.data != "2" {
				t.Errorf("the last event is %v", last)
			}
			if size := len(r.buf) + cap(r.line) + cap(r.data); size > 6*limit {
				t.Errorf("the buffers have %d bytes", size)
			}
		})
	}
	r := newEventReader(strings.NewReader(`data: {"id":7,`+many+`"result":1}`+"\n\n"), limit)
	for r.fill() == nil {
		ev, ok := r.next()
		if !ok {
			continue
		}
		long, ok := errors.AsType[*rpc.TooLongError](ev.err)
		if !ok || long.Limit != limit || len(long.Head) != longEnds || len(long.Tail) != longEnds ||
			!bytes.HasPrefix(long.Head, []byte(`{"id":7,yyy`)) || !bytes.HasSuffix(long.Tail, []byte(`yyy"result":1}`)) {
			t.Errorf("got %v", ev.err)
		}
		return
	}
	t.Error("no event")
}

func FuzzEvents(f *testing.F) {
	f.Add("data: 1\n\n", 3, 100)
	f.Add("\ufeffid: 7\r\ndata: {\r\ndata: }\r\n\r\nretry: 5\r\r:x\n\n", 1, 2)
	f.Add("data: 0123456789\ndata: 0123456789\n\n", 7, 15)
	f.Add(strings.Repeat("data: 0123456789\n:\nevent\n", 400)+"\n", 4096, 5000)
	f.Fuzz(func(t *testing.T, stream string, piece, limit int) {
		if piece < 1 || limit < 0 {
			return
		}
		compareEvents(t, stream, limit, piece)
	})
}
