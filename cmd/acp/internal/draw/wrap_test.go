package draw

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// TestLongWord: a word that is too long for a line continues on full lines, also after an indentation.
func TestLongWord(t *testing.T) {
	for _, before := range []string{"", "x ", "link name  "} {
		lines := line{{before + strings.Repeat("a", 300) + " and more", style{}}}.wrap(40, line{{"  ", style{}}})
		var text strings.Builder
		for i, l := range lines {
			text.WriteString(strings.TrimPrefix(l.text(), "  "))
			if whole := i > 0 || before == ""; whole && i < len(lines)-2 && l.width() != 40 {
				t.Errorf("behind %q, line %d is %d wide: %q", before, i, l.width(), l.text())
			}
		}
		if got := strings.ReplaceAll(text.String(), " ", ""); got != strings.ReplaceAll(before, " ", "")+strings.Repeat("a", 300)+"andmore" {
			t.Errorf("something is lost: %q", got)
		}
	}
}

// TestStrangeCost: a cost of any size has few characters.
func TestStrangeCost(t *testing.T) {
	for _, amount := range []float64{-1e300, 1e300, 5e9, 1e-300} {
		u := acp.UsageUpdate{Used: 1, Size: 2, Cost: acp.Some(acp.Cost{Amount: amount, Currency: "USD"})}
		if text := Usage(nil, u); len(text) > 40 {
			t.Errorf("%v: %q", amount, text)
		}
	}
}
