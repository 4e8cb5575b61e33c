package recording

import (
	"bytes"

	"github.com/acpgo/sdk/codec"
)

// maxTries bounds the number of places in a line where a message is searched for, and maxBefore the length of the text
// before it.
const (
	maxTries  = 8
	maxBefore = 1 << 10
)

// takeText reads a line that is not JSON as a whole: of a log, in which a message may follow other text.
func (r *Reader) takeText(line []byte, last bool) {
	if bytes.HasPrefix(line, []byte("Content-Length:")) {
		r.skipProtocol("LSP or DAP")
		return
	}
	var broken error
	cut := false
	for tries, at := 0, 0; tries < maxTries; tries++ {
		next := bytes.IndexByte(line[at:min(len(line), maxBefore)], '{')
		if next < 0 {
			break
		}
		at += next
		body := bytes.TrimRight(line[at:], " \t\r'\",;)`")
		m, err := r.scan(body)
		if err == nil && (m.isMessage() && (m.jsonrpc != nil || m.method != nil) || m.body != nil) {
			r.log = true
			r.takeObject(body, &m)
			return
		}
		if err != nil && broken == nil && bytes.Contains(body, []byte(`"jsonrpc"`)) {
			broken, cut = err, last
		}
		at++
	}
	switch {
	case broken != nil && cut:
		r.bad(ErrTruncated, broken.Error())
	case broken != nil:
		r.bad(ErrNotJSON, broken.Error())
	case r.ours, r.messages > 0 && !r.log:
		problem := ErrNotJSON
		if bytes.IndexByte(line, 0) >= 0 {
			problem = ErrBinary
		} else if last {
			problem = ErrTruncated
		}
		r.bad(problem, "")
	default:
		r.skip("text without a message")
	}
}

// appendText appends the value of a JSON string.
func appendText(to, quoted []byte) ([]byte, bool) {
	d := codec.NewDecoder(quoted)
	s := d.Str()
	return append(to, s...), d.End() == nil
}
