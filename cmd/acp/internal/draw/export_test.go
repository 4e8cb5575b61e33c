package draw

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

type brokenWriter struct{ n int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// An error of the writer is returned, wherever it occurs.
func TestExportError(t *testing.T) {
	s := story(t).Snapshot()
	for _, n := range []int{0, 1000, 4096} {
		if err := Export(&brokenWriter{n}, s, &ExportOptions{}); !errors.Is(err, errBroken) && n < 4096 {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// The number of items that a State has dropped is reported, and nothing else is missing.
func TestExportWhole(t *testing.T) {
	s := view.New(&view.Options{MaxItems: 10})
	for i := range 20 {
		s.Update(acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: acp.TextBlock(fmt.Sprintf("message %d", i)), MessageID: acp.Some(acp.MessageID(fmt.Sprint(i)))}))
	}
	var b strings.Builder
	must.Do(t, Export(&b, s.Snapshot(), &ExportOptions{}))
	if got := b.String(); !strings.Contains(got, "(10 older items are not stored)") || strings.Count(got, "message ") != 10 {
		t.Error(got)
	}
}
