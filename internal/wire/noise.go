package wire

import (
	"bytes"

	"github.com/acpgo/sdk/codec"
)

// IsNoise reports whether a line is certainly not a message.
func IsNoise(line []byte) bool {
	if bytes.HasPrefix(line, []byte(`{"jsonrpc"`)) {
		return false
	}
	line = bytes.TrimLeft(line, " \t\r")
	return !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"jsonrpc"`))
}

// maxBegins bounds how many possible beginnings are examined in one line.
const maxBegins = 8

// MessageBehind finds a message after text that has no newline, such as "Loading...{…}", and returns where it begins.
// The message must extend to the end of the line and follow the text directly: if there is space in between, the line
// is more likely a log that quotes a message. A response that may be the very first message is always accepted, since
// its call would otherwise wait forever.
func MessageBehind(line []byte, first bool) (at int, ok bool) {
	d := codec.NewDecoder(nil)
	begins := 0
	for at := range line {
		if begins == maxBegins {
			break
		}
		if line[at] != '{' || !beginsMessage(d, line[at:]) {
			continue
		}
		begins++
		if at == 0 {
			continue
		}
		space := line[at-1] <= ' ' && line[at-1] != '\r' // which a spinner writes
		if space && !first {
			continue
		}
		if env := parse(d, line[at:]); env.kind == kindResponse && env.broken == nil || env.kind != kindInvalid && !space {
			return at, true
		}
	}
	return 0, false
}

// beginsMessage reports whether text is an object, and its first member one of those of messages.
func beginsMessage(d *codec.Decoder, text []byte) bool {
	d.Reset(text)
	o := d.Object()
	if !o.Next() {
		return false
	}
	switch string(o.Name()) {
	case "jsonrpc", "id", "method", "params", "result", "error":
		return true
	}
	return false
}
