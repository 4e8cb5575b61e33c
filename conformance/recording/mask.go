package recording

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/acpgo/sdk/codec"
)

// Masker replaces secrets in messages and other lines with masks. Only the bytes of the secrets change, so a masked
// message has the same members and types, and can still be checked and replayed. A Masker always gives a secret the
// same mask, from which the secret cannot be derived. Ids, such as those of sessions, are never masked.
//
// The following are secrets: the values of environment variables and HTTP headers (members env and headers); the params
// of authentication except the method's id; the values of members, variables, settings, headers and command-line flags
// with telling names (token, apiKey, password, authorization, …), in any of the usual notations; the passwords of
// commands such as curl -u and docker login -p; the user, password and secret parameters of URLs; tokens after
// "Bearer"; keys of known forms (sk-…, ghp_…, AKIA…, JSON Web Tokens and others); private keys in PEM; and the values
// of secret members wherever they occur again in a text. A text may be JSON, and a secret in several chunks of a
// message. What is plainly a path, a variable, code or prose is left. Other secrets are not found.
//
// Its methods are safe for concurrent use.
type Masker struct {
	key [32]byte

	mu      sync.Mutex
	decoder *codec.Decoder
	found   []span
	chunk   int    // the place of the text of the line's chunk, or -1
	message string // to which the chunk belongs
	// ends has the ends of messages that come in chunks.
	ends  map[string][]byte
	known [][]byte // secrets that were members, which are also searched for in texts
}

// span is a part of a line to replace.
type span struct {
	from, to int
	mask     string
}

// NewMasker returns a Masker. Its masks differ from those of other Maskers.
func NewMasker() *Masker {
	m := &Masker{decoder: codec.NewDecoder(nil), ends: map[string][]byte{}}
	m.decoder.SetMaxDepth(maxMaskDepth)
	_, _ = rand.Read(m.key[:]) // never fails
	return m
}

const (
	// maxMaskDepth is the maximum depth at which secrets are searched for by the names of members.
	maxMaskDepth = 1000
	// maxKnown bounds the number of secrets that are searched for in texts, and minKnown is the length of the shortest
	// one.
	maxKnown, minKnown = 256, 12
	// maxEnds bounds the number of messages whose ends are remembered.
	maxEnds = 64
)

// mask returns the mask of a secret.
func (m *Masker) mask(secret []byte) string {
	h := hmac.New(sha256.New, m.key[:])
	h.Write(secret)
	return maskPrefix + hex.EncodeToString(h.Sum(nil)[:5])
}

const maskPrefix = "masked-"

var masked = regexp.MustCompile(`^` + maskPrefix + `[0-9a-f]{10}$`)

// Mask returns a copy of a line with its secrets masked, or the line itself if it has none. It does not modify the
// line.
func (m *Masker) Mask(line []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = m.found[:0]
	d := m.decoder
	d.Reset(line)
	if kind := d.Kind(); kind == '{' || kind == '[' {
		m.chunk, m.message = chunkOf(line)
		m.value(d, ofMessage(line))
		if d.End() != nil {
			m.found = m.found[:0]
			m.inText(line, 0)
		}
	} else {
		m.inText(line, 0)
	}
	return m.replace(line)
}

// Args returns a command line with its secrets masked.
func (m *Masker) Args(args []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	clean := make([]string, len(args))
	var words commandLine
	for _, arg := range args {
		words.add([]byte(arg), len(words.text))
	}
	m.found = m.found[:0]
	m.inCommand(words)
	all := slices.Clone(m.found)
	for i, arg := range args {
		m.found = m.found[:0]
		if i > 0 && secretFlag([]byte(args[i-1])) {
			m.maskAll([]byte(arg), 0)
		} else {
			m.inText([]byte(arg), 0)
			for _, s := range all {
				if from := words.words[i].from; s.from >= from && s.to <= from+len(arg) {
					m.found = append(m.found, span{s.from - from, s.to - from, s.mask})
				}
			}
		}
		clean[i] = string(m.replace([]byte(arg)))
	}
	return clean
}

// commandLine is a command as a shell would show it.
type commandLine struct {
	text  []byte
	words []word
}

// word is a word of a command line: its place there and in the line of JSON.
type word struct {
	from, to, at int
	offsets      []offset
}

// add adds a word, which is part of a line of JSON.
func (c *commandLine) add(content []byte, at int) {
	plain, offsets := unescape(content)
	from := len(c.text)
	c.text = append(append(c.text, plain...), ' ')
	c.words = append(c.words, word{from, from + len(plain), at, offsets})
}

// inCommand masks the secrets that only the words before them tell, such as that of curl -u.
func (m *Masker) inCommand(c commandLine) {
	m.search(c.text, false, func(from, to int) {
		for _, w := range c.words {
			if from >= w.from && to <= w.to {
				m.hide(c.text[from:to], w.at+escaped(w.offsets, from-w.from), w.at+escaped(w.offsets, to-w.from))
			}
		}
	})
}

// hide masks a secret at a place of the line.
func (m *Masker) hide(secret []byte, from, to int) {
	if from < to && !masked.Match(secret) {
		m.found = append(m.found, span{from, to, m.mask(secret)})
	}
}

// replace returns the line with the found spans replaced.
func (m *Masker) replace(line []byte) []byte {
	if len(m.found) == 0 {
		return line
	}
	m.found = union(m.found)
	clean := make([]byte, 0, len(line)+len(maskPrefix)*len(m.found))
	at := 0
	for _, s := range m.found {
		clean = append(append(clean, line[at:s.from]...), s.mask...)
		at = s.to
	}
	return append(clean, line[at:]...)
}

// where is what the names of the surrounding members say about a value.
type where struct {
	secret bool // it is one, with all strings in it
	bag    bool // it is a list or map of variables or headers
	item   bool // it is an element of such a list
	args   bool // it is a command line
	id     bool // it is an id, or another name that must stay
	top    bool // it is the message
	auth   bool // the message authenticates
	maybe  bool // it is a secret if it looks like one
	nested int  // the texts that it is in
	// command is the command before it, if it is a list of arguments.
	command commandLine
}

// ofMessage returns the where of a whole message.
func ofMessage(line []byte) where {
	switch method := text(find(line, "method")); method {
	case "authenticate", "auth/login":
		return where{top: true, auth: true}
	}
	return where{top: true}
}

// member returns the where of a member's value.
func (w where) member(name []byte) where {
	if w.top {
		switch string(name) {
		case "id", "method", "jsonrpc":
			return where{id: true}
		case "params":
			return where{secret: w.auth}
		}
	}
	plain := normal(name)
	switch {
	case w.bag:
		return where{secret: true} // the names are arbitrary
	case isID(name) && !secretName(plain):
		return where{id: true}
	case w.secret:
		return where{secret: true}
	case w.item:
		return where{secret: plain == "value"}
	case secretName(plain), isPass(name, false):
		return where{secret: true}
	case strings.HasSuffix(plain, "headers"):
		return where{bag: true}
	}
	switch plain {
	case "env", "envs", "environ", "environment", "envvars", "environmentvariables", "header", "cookies":
		return where{bag: true}
	case "args", "argv", "arguments", "command", "cmd":
		return where{args: true}
	}
	return where{maybe: kindOfName(name) == maybeSecret}
}

// normal returns a name in lower case without word separators.
func normal(name []byte) string {
	var b [32]byte
	n := b[:0]
	for _, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.':
		case c >= 'A' && c <= 'Z':
			n = append(n, c+'a'-'A')
		default:
			n = append(n, c)
		}
	}
	return string(n)
}

// isID reports whether a member is an id, by its name.
func isID(name []byte) bool {
	return string(name) == "id" || bytes.HasSuffix(name, []byte("Id")) || bytes.HasSuffix(name, []byte("_id")) ||
		bytes.HasSuffix(name, []byte("ID"))
}

// secretName reports whether a member holds a secret, by its normal name.
func secretName(name string) bool {
	switch name {
	case "authorization", "proxyauthorization", "cookie", "setcookie", "bearer":
		return true
	case "secrets", "passwords", "apikeys", "pass", "secretstring", "privatekeypem":
		return true
	case "pwd":
		return false // mostly the working directory
	}
	return slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// value checks the next value.
func (m *Masker) value(d *codec.Decoder, w where) {
	switch d.Kind() {
	case '{':
		var command commandLine
		var name, paired []byte // {"name": …, "value": …}
		pairedAt := 0
		for o := d.Object(); o.Next(); {
			inner := w.member(o.Name())
			inner.nested = w.nested
			inner.command = command
			kind := normal(o.Name())
			at := d.Offset()
			m.value(d, inner)
			switch kind {
			case "name", "key", "field", "variable":
				name = d.Slice(at)
			case "value":
				paired, pairedAt = d.Slice(at), at
			}
			if s := d.Slice(at); inner.args && len(s) > 2 && s[0] == '"' {
				command = commandLine{}
				command.add(s[1:len(s)-1], at+1)
			}
		}
		if len(paired) > 2 && paired[0] == '"' && !w.item && kindOfName(bytes.Trim(name, `"`)) == nameSecret {
			m.maskAll(paired[1:len(paired)-1], pairedAt+1)
		}
	case '[':
		inner := where{secret: w.secret, item: w.bag, id: w.id, nested: w.nested}
		flag := false
		for a := d.Array(); a.Next(); {
			at := d.Offset()
			if flag && d.Kind() == '"' {
				m.value(d, where{secret: true})
			} else {
				m.value(d, inner)
				inner.secret = inner.secret || w.item // ["name", "value"]
			}
			if s := d.Slice(at); w.args && len(s) > 2 && s[0] == '"' {
				flag = secretFlag(s)
				w.command.add(s[1:len(s)-1], at+1)
			}
		}
		if w.args {
			m.inCommand(w.command)
		}
	case '"':
		at := d.Offset()
		d.Skip()
		if s := d.Slice(at); !w.id && len(s) > 2 {
			m.text(s[1:len(s)-1], at+1, w)
		}
	default:
		d.Skip()
	}
}

// text checks the content of a string, with its escape sequences.
func (m *Masker) text(content []byte, at int, w where) {
	switch {
	case w.secret:
		m.maskAll(content, at)
	case w.item: // "NAME=value" or "Name: value"
		if i := bytes.IndexAny(content, "=:"); i >= 0 {
			value := bytes.TrimLeft(content[i+1:], " ")
			m.maskAll(value, at+len(content)-len(value))
		}
	case w.maybe && value{text: string(content), kind: maybeSecret}.isSecret():
		m.maskAll(content, at)
	case at == m.chunk:
		m.piece(content, at, m.message)
	default:
		m.inText(content, at)
		m.inJSON(content, at, w.nested)
	}
}

// inJSON masks the secrets that the names of members tell in a text that is JSON.
func (m *Masker) inJSON(content []byte, at, nested int) {
	const deepest = 3
	plain, offsets := unescape(content)
	if nested == deepest || len(plain) < 2 || plain[0] != '{' && plain[0] != '[' {
		return
	}
	d := codec.NewDecoder(plain)
	d.SetMaxDepth(maxMaskDepth)
	outer, chunk := m.found, m.chunk
	m.found, m.chunk = nil, -1
	m.value(d, where{nested: nested + 1})
	found := m.found
	m.found, m.chunk = outer, chunk
	if d.End() != nil {
		return
	}
	for _, s := range found {
		m.found = append(m.found, span{at + escaped(offsets, s.from), at + escaped(offsets, s.to), s.mask})
	}
}

// maskAll masks a whole text, which is part of a line of JSON.
func (m *Masker) maskAll(content []byte, at int) {
	if len(content) == 0 || masked.Match(content) {
		return
	}
	secret, _ := unescape(content)
	m.found = append(m.found, span{at, at + len(content), m.mask(secret)})
	if len(secret) >= minKnown && len(m.known) < maxKnown && bytes.ContainsAny(secret, "0123456789") && !bytes.ContainsAny(secret, `/\ `) &&
		!slices.ContainsFunc(m.known, func(k []byte) bool { return bytes.Equal(k, secret) }) {
		m.known = append(m.known, bytes.Clone(secret))
	}
}

// offset maps a position in an unescaped text to the position in the escaped one.
type offset struct{ plain, escaped int }

// unescape returns the plain text of a string's content and the offsets of its parts. If nothing is escaped, it returns
// the content itself and no offsets.
func unescape(content []byte) (plain []byte, at []offset) {
	i := bytes.IndexByte(content, '\\')
	if i < 0 {
		return content, nil
	}
	plain = make([]byte, 0, len(content))
	for from := 0; ; {
		plain = append(plain, content[from:from+i]...)
		end := from + i + 2
		if end > len(content) {
			return append(plain, content[from+i:]...), at
		}
		if content[end-1] == 'u' {
			if end += 4; end+6 <= len(content) && content[end] == '\\' && content[end+1] == 'u' {
				if high, ok := hex4(content[end-4:]); ok && utf16.IsSurrogate(high) {
					if low, ok := hex4(content[end+2:]); ok && utf16.DecodeRune(high, low) != utf8.RuneError {
						end += 6
					}
				}
			}
		}
		end = min(end, len(content))
		before := len(plain)
		if more, ok := appendText(plain, slices.Concat([]byte{'"'}, content[from+i:end], []byte{'"'})); ok {
			plain = more
		} else {
			plain = append(plain[:before], content[from+i:end]...) // not a JSON escape sequence, so it is kept
		}
		at = append(at, offset{len(plain), end})
		from = end
		if i = bytes.IndexByte(content[from:], '\\'); i < 0 {
			return append(plain, content[from:]...), at
		}
	}
}

// escaped returns the position in the escaped text of a position in the plain text.
func escaped(at []offset, plain int) int {
	i, found := slices.BinarySearchFunc(at, plain, func(o offset, plain int) int { return o.plain - plain })
	if found {
		return at[i].escaped
	}
	if i == 0 {
		return plain
	}
	return at[i-1].escaped + plain - at[i-1].plain
}

// inText masks the secrets in a text that have a known form.
func (m *Masker) inText(content []byte, at int) { m.inPiece(content, at, nil) }

// inPiece is like inText for a piece of a message that follows other text, of which before is the end. Nothing is
// masked there. If before is nil, the text is whole.
func (m *Masker) inPiece(content []byte, at int, before []byte) {
	plain, offsets := unescape(content)
	if len(before) > 0 {
		plain = slices.Concat(before, plain)
	}
	m.search(plain, before != nil, func(from, to int) {
		if to > len(before) {
			m.hide(plain[from:to], at+escaped(offsets, max(from-len(before), 0)), at+escaped(offsets, to-len(before)))
		}
	})
}

// search calls hide for the secrets in a text. If it continues, its end may be in the middle of one.
func (m *Masker) search(plain []byte, goesOn bool, hide func(from, to int)) {
	for i := range shapes {
		if !shapes[i].mayMatch(plain) {
			continue
		}
		for _, match := range shapes[i].pattern.FindAllSubmatchIndex(plain, -1) {
			from, to := match[len(match)-2], match[len(match)-1] // the last group, or all of it
			if len(match) < 6 || tells(plain[match[2]:match[3]], plain[from:to]) {
				hide(from, to)
			}
		}
	}
	assigned(plain, goesOn, hide)
	if run := len(bytes.TrimRightFunc(plain, isNotSpace)); goesOn && run < len(plain) {
		for _, s := range begun {
			if from := max(run-100, 0); s.mayMatch(plain[from:]) {
				if match := s.pattern.FindSubmatchIndex(plain[from:]); match != nil {
					hide(from+match[len(match)-2], from+match[len(match)-1])
				}
			}
		}
	}
	for _, secret := range m.known {
		for from := 0; ; {
			i := bytes.Index(plain[from:], secret)
			if i < 0 {
				break
			}
			hide(from+i, from+i+len(secret))
			from += i + len(secret)
		}
	}
}

// piece masks the text of a chunk, in which a secret may continue that has begun in the chunk before it.
func (m *Masker) piece(content []byte, at int, message string) {
	const some, longest = 64, 512 // of the end of a message that is remembered: more than some if it has no space
	before := m.ends[message]
	if before == nil {
		before = []byte{}
	}
	m.inPiece(content, at, before)
	plain, _ := unescape(content)
	text := slices.Concat(before, plain)
	const marker = len("-----BEGIN ENCRYPTED PRIVATE KEY-----")
	if i := bytes.LastIndex(text, []byte("-----BEGIN ")); i >= 0 && len(text) > i+marker &&
		!bytes.Contains(text[i:], []byte("-----END")) {
		// A private key takes many chunks: remember that it has begun.
		text = slices.Concat(text[i:i+marker], text[max(i+marker, len(text)-len("-----END")):])
	} else {
		run := len(bytes.TrimRightFunc(text, isNotSpace))
		text = bytes.Clone(text[max(min(run, len(text)-some), len(text)-longest, 0):])
	}
	if len(m.ends) >= maxEnds {
		clear(m.ends)
	}
	m.ends[message] = text
}

func isNotSpace(r rune) bool { return !unicode.IsSpace(r) }

// chunkOf returns the place of the text of a message that is a chunk, and the name of the message to which it belongs.
// The place is -1 for other lines.
func chunkOf(line []byte) (at int, message string) {
	if !bytes.Contains(line, []byte(`_chunk"`)) || text(find(line, "method")) != "session/update" {
		return -1, ""
	}
	params := find(line, "params")
	update := find(params, "update")
	content := find(update, "content")
	if text(find(content, "type")) == "content" { // of a tool call
		content = find(content, "content")
	}
	inner := find(content, "text")
	if len(inner) < 2 || inner[0] != '"' {
		return -1, ""
	}
	// The values are parts of the line.
	return cap(line) - cap(inner) + 1, text(find(params, "sessionId")) + "\x00" + text(find(update, "sessionUpdate")) +
		"\x00" + text(find(update, "messageId")) + text(find(update, "toolCallId"))
}

// union joins spans that overlap. The first of them has the mask.
func union(found []span) []span {
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	kept := found[:1]
	for _, s := range found[1:] {
		if last := &kept[len(kept)-1]; s.from >= last.to {
			kept = append(kept, s)
		} else {
			last.to = max(last.to, s.to)
		}
	}
	return kept
}

func hex4(s []byte) (rune, bool) {
	n, err := strconv.ParseUint(string(s[:min(len(s), 4)]), 16, 16)
	return rune(n), err == nil && len(s) >= 4
}
