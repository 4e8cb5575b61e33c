package sessionstore

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/acpgo/sdk/acp"
)

// Position is the position of a session in a list. Implementations of Store use it for cursors: a cursor that names the
// last session of its page neither repeats nor skips sessions when others are added, removed or updated.
type Position struct {
	Updated time.Time
	ID      acp.SessionID
}

// Position returns the session's position in a list.
func (i *Info) Position() Position { return Position{i.Updated.UTC().Truncate(time.Microsecond), i.ID} }

// Compare returns a negative number if p comes before other in a list, and a positive number if it comes after it.
func (p Position) Compare(other Position) int {
	return cmp.Or(other.Updated.Compare(p.Updated), cmp.Compare(other.ID, p.ID))
}

// cursor is the encoded form of a Position.
type cursor struct {
	Updated int64         `json:"t"` // microseconds since 1970
	ID      acp.SessionID `json:"id"`
}

// Cursor returns the cursor of the page that begins after p.
func (p Position) Cursor() string {
	text, _ := json.Marshal(cursor{p.Updated.UnixMicro(), p.ID}) // a number and a string cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseCursor returns the position after which the page of a cursor begins. It fails with ErrCursor if the cursor is
// not valid.
func ParseCursor(text string) (Position, error) {
	const longest = (6*MaxID + 64) * 4 / 3 // base64 of an id in which each byte is escaped, and a number
	if len(text) > longest {
		return Position{}, ErrCursor
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Position{}, fmt.Errorf("%w: %w", ErrCursor, err)
	}
	var c cursor
	if err := json.Unmarshal(data, &c); err != nil {
		return Position{}, fmt.Errorf("%w: %w", ErrCursor, err)
	}
	if !ValidID(c.ID) {
		return Position{}, ErrCursor
	}
	return Position{time.UnixMicro(c.Updated).UTC(), c.ID}, nil
}
