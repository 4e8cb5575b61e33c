package wire

import (
	"bytes"
	"regexp"

	"github.com/acpgo/sdk/acp/codec"
)

// IsNoise reports whether a line is certainly no message.
func IsNoise(line []byte) bool {
	if bytes.HasPrefix(line, []byte(`{"jsonrpc"`)) {
		return false
	}
	line = bytes.TrimLeft(line, " \t\r")
	return !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"jsonrpc"`))
}

// messageBegins is how messages begin.
var messageBegins = regexp.MustCompile(`\{\s*"(jsonrpc|id|method|params|result|error)"\s*:`)

// maxBegins bounds how many beginnings are looked at in one line.
const maxBegins = 8

// MessageBehind finds a message behind text that has no newline, such as "Loading...{…}", and says where it
// begins. It stands to the end of the line, and right behind the text: where there is space between, the line
// is more likely a log that quotes a message. A response that may be the first message of all is taken anyhow,
// since its call waits for no other.
func MessageBehind(line []byte, first bool) (at int, ok bool) {
	d := codec.NewDecoder(nil)
	for _, m := range messageBegins.FindAllIndex(line, maxBegins) {
		at := m[0]
		if at == 0 {
			continue
		}
		space := line[at-1] <= ' '
		if space && !first {
			continue
		}
		if env := parse(d, line[at:]); env.kind == kindResponse && env.broken == nil || env.kind != kindInvalid && !space {
			return at, true
		}
	}
	return 0, false
}
