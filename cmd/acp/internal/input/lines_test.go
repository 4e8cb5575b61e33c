package input

import (
	"slices"
	"testing"

	"mvdan.cc/sh/v3/shell"

	"github.com/acpgo/sdk/internal/test/must"
)

// TestLiteralBackslashes: the paths of Windows keep their backslashes, with quotes and without.
func TestLiteralBackslashes(t *testing.T) {
	line := `C:\a.exe 'C:\b c.exe' "C:\d e.exe" "it's \f" 'a "b\c"' "C:\d\"`
	want := []string{`C:\a.exe`, `C:\b c.exe`, `C:\d e.exe`, `it's \f`, `a "b\c"`, `C:\d\`}
	if got := must.Get(shell.Fields(literalBackslashes(line), nil))(t); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
