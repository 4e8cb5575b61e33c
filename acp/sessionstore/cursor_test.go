package sessionstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// TestCursorOfLongID: a cursor names any session that a store can have, also one whose id grows when it is written.
func TestCursorOfLongID(t *testing.T) {
	for _, c := range []string{"a", "<", "\x01", "é", "\u2028"} {
		id := acp.SessionID(strings.Repeat(c, sessionstore.MaxID/len(c)))
		for _, updated := range []time.Time{time.UnixMicro(0), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
			want := sessionstore.Position{Updated: updated.UTC(), ID: id}
			got, err := sessionstore.ParseCursor(want.Cursor())
			if err != nil || got.Compare(want) != 0 {
				t.Errorf("%q of %v: %.40q, %v", c, updated, got.ID, err)
			}
		}
	}
}
