package draw

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Every line of a diff has its line number in the file, equal lines are marked as equal, and lines that are not drawn
// are the same in both files.
func TestCompare(t *testing.T) {
	for seed := range 5000 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		file := func(end string) string {
			var b strings.Builder
			for range r.IntN(20) {
				b.WriteString(string(rune('a'+r.IntN(4))) + end)
			}
			if r.IntN(3) == 0 {
				b.WriteString("last")
			}
			return b.String()
		}
		end := []string{"\n", "\r\n"}[r.IntN(2)]
		old := file(end)
		new := old
		switch r.IntN(3) {
		case 0:
			new = file(end)
		case 1:
			lines := strings.SplitAfter(old, "\n")
			at := r.IntN(len(lines))
			new = strings.Join(lines[:at], "") + "x" + end + strings.Join(lines[at:], "")
		}
		h := compare(old, new, true)
		if (old == new) != (len(h.hunks) == 0) {
			t.Fatalf("%q %q: %d hunks", old, new, len(h.hunks))
		}
		clean := func(text string) []string {
			if h.crlf {
				text = strings.ReplaceAll(text, "\r\n", "\n")
			}
			lines := strings.SplitAfter(text, "\n")
			if lines[len(lines)-1] == "" {
				lines = lines[:len(lines)-1]
			}
			return lines
		}
		was, is := clean(old), clean(new)
		o, n := 1, 1
		same := func(upToOld int) {
			for ; o < upToOld; o, n = o+1, n+1 {
				if was[o-1] != is[n-1] {
					t.Fatalf("%q %q: line %d is not drawn and has changed", old, new, o)
				}
			}
		}
		line := func(d diffLine) string {
			if d.noEnd {
				return d.text
			}
			return d.text + "\n"
		}
		added, removed := 0, 0
		for _, hunk := range h.hunks {
			same(hunk[0].old)
			for _, d := range hunk {
				if d.old != o && d.kind != udiff.Insert || d.new != n && d.kind != udiff.Delete {
					t.Fatalf("%q %q: %+v at %d, %d", old, new, d, o, n)
				}
				if d.kind != udiff.Insert {
					if was[o-1] != line(d) {
						t.Fatalf("%q %q: %+v, the old line is %q", old, new, d, was[o-1])
					}
					o++
				}
				if d.kind != udiff.Delete {
					if is[n-1] != line(d) {
						t.Fatalf("%q %q: %+v, the new line is %q", old, new, d, is[n-1])
					}
					n++
				}
				switch d.kind {
				case udiff.Insert:
					added++
				case udiff.Delete:
					removed++
				}
			}
		}
		if len(was)-o != len(is)-n {
			t.Fatalf("%q %q: %d and %d lines at the end", old, new, len(was)-o, len(is)-n)
		}
		same(len(was) + 1)
		if added != h.added || removed != h.removed {
			t.Fatalf("%q %q: +%d -%d, counted +%d -%d", old, new, added, removed, h.added, h.removed)
		}
	}
}

// diffText returns a whole diff.
func diffText(d *acp.Diff) string {
	p := newPainter(Plain())
	return strings.Join(p.strings(p.diff(d, maxDiffAll, 80), 80), "\n")
}

func TestDiffKinds(t *testing.T) {
	for name, test := range map[string]struct {
		diff acp.Diff
		want string
	}{
		"new":       {acp.Diff{Path: "/a", NewText: "x\n"}, "/a  new file, 1 line\n1 + x"},
		"empty new": {acp.Diff{Path: "/a", NewText: ""}, "/a  new file, 0 lines"},
		"emptied":   {acp.Diff{Path: "/a", OldText: acp.Some("x\ny\n"), NewText: ""}, "/a  emptied, 2 lines removed\n1 - x\n2 - y"},
		"same":      {acp.Diff{Path: "/a", OldText: acp.Some("x\n"), NewText: "x\n"}, "/a  no change"},
		"crlf":      {acp.Diff{Path: "/a", OldText: acp.Some("x\r\ny\r\n"), NewText: "x\r\nz\r\n"}, "/a  +1 -1, CRLF\n1   x\n2 - y\n2 + z"},
		"to crlf":   {acp.Diff{Path: "/a", OldText: acp.Some("x\n"), NewText: "x\r\n"}, "/a  +1 -1\n1 - x\n1 + x\\r"},
		"end":       {acp.Diff{Path: "/a", OldText: acp.Some("x"), NewText: "x\n"}, "/a  +1 -1\n1 - x\n\\ no newline at the end\n1 + x"},
		"part":      {acp.Diff{Path: "/a", OldText: acp.Some("x\ny"), NewText: "x\nz"}, "/a  +1 -1\n1   x\n2 - y\n2 + z"},
		"tabs":      {acp.Diff{Path: "/a", OldText: acp.Some("\tx\n"), NewText: "a\tx\n"}, "/a  +1 -1\n1 -     x\n1 + a   x"},
		"controls":  {acp.Diff{Path: "/\x1b[31m", OldText: acp.Some("\x1b[2J\n"), NewText: "\u202e\n"}, "/\\x1b[31m  +1 -1\n1 - \\x1b[2J\n1 + \\u202e"},
	} {
		if got := diffText(&test.diff); got != test.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// A huge diff is bounded, says what it leaves out, and does not take long.
func TestDiffHuge(t *testing.T) {
	tier.Need(t, tier.Normal)
	var old, new strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&old, "line %d\n", i)
		fmt.Fprintf(&new, "line %d\n", i*7%200_000)
	}
	began := time.Now()
	lines := strings.Split(diffText(&acp.Diff{Path: "/a", OldText: acp.Some(old.String()), NewText: new.String()}), "\n")
	t.Logf("%d lines in %v", len(lines), time.Since(began))
	if len(lines) > maxDiffAll+1000 || !strings.Contains(lines[len(lines)-1], " more not shown)") {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	p := newPainter(Plain())
	few := p.diff(&acp.Diff{Path: "/a", NewText: new.String()}, maxDiffLines, 80)
	if len(few) != maxDiffLines+2 || few[len(few)-1].text() != "(199600 lines more not shown)" {
		t.Errorf("%d lines, the last is %q", len(few), few[len(few)-1].text())
	}
	long := diffText(&acp.Diff{Path: "/a", NewText: strings.Repeat("x", 1<<20)})
	if n := strings.Count(long, "x"); n != 1<<20 {
		t.Errorf("%d characters of a long line where everything is shown", n)
	}
}
