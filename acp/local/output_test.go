package local

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// wantTail is what output promises, in the plainest way: the longest end of the text that starts at a
// character and has at most limit bytes.
func wantTail(raw string, limit int) (tail string, truncated bool) {
	runes := []rune(raw) // an invalid byte is one U+FFFD
	for i := range len(runes) + 1 {
		if tail = string(runes[i:]); len(tail) <= limit {
			return tail, i > 0
		}
	}
	panic("unreachable")
}

func TestOutputTail(t *testing.T) {
	texts := map[string]string{
		"empty":         "",
		"ascii":         "hello, world",
		"two bytes":     "äöüßéè",
		"three bytes":   "€✓日本語",
		"four bytes":    "😀🎉𝄞",
		"mixed":         "a€b😀cä",
		"ends in emoji": "ok 😀",
		"lone bytes":    "a\xffb\x80c",
		"only garbage":  "\xff\xfe\xfd\x80\x81",
		"surrogate":     "a\xed\xa0\x80b",
		"overlong":      "\xc0\xafx\xe0\x80\xaf",
		"broken off":    "x\xe2\x82",
		"broken inside": "\xf0\x9f\x98z\xe2\x82\xe2\x82\xac",
		"too large":     "\xf5\x80\x80\x80\xf4\x90\x80\x80",
		"NUL":           "a\x00b",
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			for limit := range 20 {
				for size := 1; size <= len(text)+1; size++ {
					compareTails(t, text, limit, size, 1+(limit+size)%7)
				}
			}
		})
	}
}

// compareTails adds a text in chunks. A character that has begun is held back until the next chunk or the end.
func compareTails(t *testing.T, text string, limit, size, piece int) {
	t.Helper()
	o := newOutputPool(1<<20, piece).output(limit)
	check := func(so string) {
		t.Helper()
		got, cut := o.tail()
		if want, wantCut := wantTail(so, limit); got != want || cut != wantCut {
			t.Fatalf("limit %d, chunks of %d: after %q: got %q, %t, want %q, %t", limit, size, so, got, cut, want, wantCut)
		}
	}
	added := 0
	for chunk := range slices.Chunk([]byte(text), size) {
		o.add(bytes.Clone(chunk))
		added += len(chunk)
		whole := text[:added]
		for back := min(utf8.UTFMax-1, added); back > 0; back-- {
			if begun := text[added-back : added]; !utf8.FullRuneInString(begun) {
				whole = text[:added-back]
				break
			}
		}
		check(whole)
	}
	o.end()
	check(text)
}

func checkTail(t *testing.T, o *output) {
	t.Helper()
	if got, _ := o.tail(); len(got) > o.limit || !utf8.ValidString(got) {
		t.Errorf("limit %d: got %q", o.limit, got)
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := newOutputPool(1<<20, pieceSize).output(1000)
	line := []byte(strings.Repeat("ü", 500) + "\n")
	for range 1000 {
		o.add(line)
	}
	if held, max := o.held.Load(), int64(o.limit+2*pieceSize); held > max || held != o.pool.held.Load() {
		t.Errorf("holds %d bytes for a limit of %d, want at most %d; the pool has %d", held, o.limit, max, o.pool.held.Load())
	}
	got, cut := o.tail()
	if want := strings.Repeat("ü", 499) + "\n"; got != want || !cut {
		t.Errorf("got %d bytes, %t, want %d, true", len(got), cut, len(want))
	}
	small := newOutputPool(1<<20, pieceSize).output(1000)
	for range 3 {
		small.add([]byte("few"))
	}
	if held := small.held.Load(); held > 100 {
		t.Errorf("a small output holds %d bytes", held)
	}
}

// What all outputs hold has one bound. The largest gives, and the end of each is right.
func TestOutputsAreBoundedTogether(t *testing.T) {
	const piece, most = 1 << 10, 64 << 10
	pool := newOutputPool(most, piece)
	small := pool.output(8 * piece)
	text := strings.Repeat("small €\n", 500)
	small.add([]byte(text))
	var large []*output
	for range 8 {
		large = append(large, pool.output(32*piece))
	}
	line := []byte(strings.Repeat("€", 100) + "\n")
	whole := strings.Repeat(string(line), 500)
	for range 500 {
		for _, o := range large {
			o.add(line)
			if held := pool.held.Load(); held > most {
				t.Fatalf("%d bytes are held, want at most %d", held, most)
			}
		}
	}
	if got, cut := small.tail(); got != text || cut {
		t.Errorf("the small one has %d bytes, %t, want %d, false", len(got), cut, len(text))
	}
	for i, o := range large {
		got, cut := o.tail()
		if !cut || !strings.HasSuffix(whole, got) || len(got) < 4*piece {
			t.Errorf("%d has %d bytes, %t, want the end of what it got, at least %d", i, len(got), cut, 4*piece)
		}
		o.free()
		o.add(line)
	}
	if held := pool.held.Load(); held != small.held.Load() {
		t.Errorf("%d bytes are held after the large ones are freed, want %d", held, small.held.Load())
	}
	again := pool.output(32 * piece)
	again.add([]byte(strings.Repeat("x", 32*piece)))
	if got, cut := again.tail(); len(got) != 32*piece || cut {
		t.Errorf("got %d bytes, %t although there is room for %d", len(got), cut, 32*piece)
	}
}

// Many commands write at once, and some are freed meanwhile.
func TestOutputsConcurrently(t *testing.T) {
	const piece, most = 1 << 10, 64 << 10
	pool := newOutputPool(most, piece)
	var wg sync.WaitGroup
	var left atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			o := pool.output(32 * piece)
			for range 1000 {
				o.add([]byte(strings.Repeat("€", 50)))
				checkTail(t, o)
			}
			if i%2 == 0 {
				o.free()
				return
			}
			left.Add(o.held.Load())
		})
	}
	wg.Wait()
	if held := pool.held.Load(); held > most || held > left.Load() {
		t.Errorf("%d bytes are held, want at most %d and %d", held, most, left.Load())
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("a€b\xff😀"), 5, 2, 4)
	f.Fuzz(func(t *testing.T, raw []byte, limit, size, piece int) {
		if len(raw) > 1<<10 {
			t.Skip("tells nothing more")
		}
		compareTails(t, string(raw), limit&0xff, max(1, size&0xf), 1+piece&0x1f)
	})
}

func BenchmarkOutput(b *testing.B) {
	line := []byte(strings.Repeat("0123456789abcde\n", 64))
	o := newOutputPool(DefaultMaxTotalOutput, pieceSize).output(DefaultOutputLimit)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		o.add(line)
	}
}
