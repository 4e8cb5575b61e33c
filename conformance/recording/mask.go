package recording

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp/codec"
)

// Masker replaces secrets in messages and other lines with masks. Only the bytes of the secrets change, so a masked
// message has the same members and types, and can still be checked and replayed. A Masker always gives a secret the
// same mask, from which the secret cannot be derived. Ids, such as those of sessions, are never masked.
//
// The following are secrets: the values of environment variables and HTTP headers (members env and headers); the params
// of authentication except the method's id; the values of members, command-line flags and upper-case variables with
// telling names (token, apiKey, password, authorization, …); the user, password and secret parameters of URLs; tokens
// after "Bearer"; keys of known forms (sk-…, ghp_…, AKIA…, JSON Web Tokens and others); private keys in PEM; and the
// values of secret members wherever they occur again in a text. Other secrets are not found.
//
// Its methods are safe for concurrent use.
type Masker struct {
	key [32]byte

	mu      sync.Mutex
	decoder *codec.Decoder
	found   []span
	known   [][]byte // secrets that were members, which are also searched for in texts
}

// span is a part of a line to replace.
type span struct {
	from, to int
	mask     string
}

// NewMasker returns a Masker. Its masks differ from those of other Maskers.
func NewMasker() *Masker {
	m := &Masker{decoder: codec.NewDecoder(nil)}
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
	for i, arg := range args {
		m.found = m.found[:0]
		if i > 0 && secretFlag.MatchString(args[i-1]) {
			m.maskAll([]byte(arg), 0)
		} else {
			m.inText([]byte(arg), 0)
		}
		clean[i] = string(m.replace([]byte(arg)))
	}
	return clean
}

// replace returns the line with the found spans replaced.
func (m *Masker) replace(line []byte) []byte {
	if len(m.found) == 0 {
		return line
	}
	slices.SortStableFunc(m.found, func(a, b span) int { return a.from - b.from })
	clean := make([]byte, 0, len(line)+len(maskPrefix)*len(m.found))
	at := 0
	for _, s := range m.found {
		if s.from < at {
			continue // inside one that is already masked
		}
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
	case secretName(plain):
		return where{secret: true}
	}
	switch plain {
	case "env", "environment", "envvars", "headers", "httpheaders":
		return where{bag: true}
	case "args", "argv", "command", "cmd":
		return where{args: true}
	}
	return where{}
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
	return string(name) == "id" || bytes.HasSuffix(name, []byte("Id")) || bytes.HasSuffix(name, []byte("_id")) || bytes.HasSuffix(name, []byte("ID"))
}

// secretName reports whether a member holds a secret, by its normal name.
func secretName(name string) bool {
	switch name {
	case "authorization", "proxyauthorization", "cookie", "setcookie", "bearer", "passwd", "credential", "accesskeyid", "awsaccesskeyid":
		return true
	}
	for _, end := range []string{"token", "secret", "password", "passphrase", "apikey", "privatekey", "secretkey", "accesskey", "credentials"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// value checks the next value.
func (m *Masker) value(d *codec.Decoder, w where) {
	switch d.Kind() {
	case '{':
		for o := d.Object(); o.Next(); {
			m.value(d, w.member(o.Name()))
		}
	case '[':
		inner := where{secret: w.secret, item: w.bag, id: w.id}
		flag := false
		for a := d.Array(); a.Next(); {
			at := d.Offset()
			if flag && d.Kind() == '"' {
				m.value(d, where{secret: true})
			} else {
				m.value(d, inner)
			}
			flag = w.args && secretFlag.Match(d.Slice(at))
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
	case w.item: // "NAME=value"
		if i := bytes.IndexByte(content, '='); i >= 0 && i+1 < len(content) {
			m.maskAll(content[i+1:], at+i+1)
		}
	default:
		m.inText(content, at)
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

// shape is a pattern for secrets in texts. If it has a group, the group is the secret, otherwise the whole match is.
type shape struct {
	// some has texts of which one must occur for the pattern to be tried, because searching for them is much faster.
	some    []string
	pattern *regexp.Regexp
}

// A text may be JSON or source code that contains strings, so a secret ends before a quote or a backslash.
const (
	secretWords = `(?:api[_-]?key|access[_-]?key|private[_-]?key|key|token|secret|password|passwd|passphrase|pwd|credentials?|signature|sig|auth|code)`
)

// secretFlag matches a flag whose value is the next argument.
var secretFlag = regexp.MustCompile(`(?i)^"?--?(?:[\w-]*[_-])?(?:api-?key|access-?key|token|secret|password|passwd|passphrase|credentials?)"?$`)

var shapes = []shape{
	{[]string{"sk-", "sk_", "rk_", "pk_"}, regexp.MustCompile(`\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}`)},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{[]string{"glpat-", "npm_", "hf_", "pypi-", "dop_v1_", "shpat_", "lin_api_", "figd_", "xai-", "gsk_", "r8_", "tvly-", "pplx-"},
		regexp.MustCompile(`\b(?:glpat-|npm_|hf_|pypi-|dop_v1_|shpat_|lin_api_|figd_|xai-|gsk_|r8_|tvly-|pplx-)[A-Za-z0-9_-]{16,}`)},
	{[]string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{[]string{"AIza"}, regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`)},
	{[]string{"ya29."}, regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`)},
	{[]string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
	{[]string{"SG."}, regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)},
	{[]string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{[]string{"earer ", "EARER "}, regexp.MustCompile(`(?i)\bbearer +([A-Za-z0-9._~+/=-]{8,})`)},
	{[]string{"uthorization", "UTHORIZATION"}, regexp.MustCompile(`(?i)\bauthorization["'\\]*\s*[:=]\s*["'\\]*(?:(?:basic|token|digest|negotiate|apikey)\s+)([A-Za-z0-9._~+/=-]{4,})`)},
	{[]string{"://"}, regexp.MustCompile(`://([^\s/?#@"'\\<>]+)@`)},
	{[]string{"?", "&", "#"}, regexp.MustCompile(`(?i)[?&#](?:[\w.-]*[_.-])?` + secretWords + `=([^\s&#"'\\<>]+)`)},
	{[]string{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL"},
		regexp.MustCompile(`\b(?:[A-Z][A-Z0-9]*_)*(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)=["'\\]*([^\s"'\\$&;|<>]{6,})`)},
	{[]string{"--"}, regexp.MustCompile(`(?i)--(?:[\w-]*-)?(?:api-?key|access-?key|token|secret|password|passwd|passphrase|credentials?)(?:=| +)["'\\]*([^\s"'\\&;|<>-][^\s"'\\&;|<>]*)`)},
	{[]string{"oken", "ecret", "assw", "assphrase", "redential", "ey\"", "ey'", "ey\\"},
		regexp.MustCompile(`(?i)["'](?:[\w.-]*(?:token|secret|password|passwd|passphrase|api[_-]?key|private[_-]?key|access[_-]?key|secret[_-]?key|credentials?))\\?["']\s*:\s*\\?["']([^"'\s\\]{6,})`)},
	{[]string{"PRIVATE KEY-----"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----((?s:.*?))(?:-----END|$)`)},
}

// inText masks the secrets in a text that have a known form.
func (m *Masker) inText(content []byte, at int) {
	first := len(m.found)
	var plain []byte
	var offsets []offset
	hide := func(from, to int) {
		secret := plain[from:to]
		if len(secret) == 0 || masked.Match(secret) {
			return
		}
		m.found = append(m.found, span{at + escaped(offsets, from), at + escaped(offsets, to), m.mask(secret)})
	}
	plain, offsets = unescape(content)
	for i := range shapes {
		s := &shapes[i]
		if !slices.ContainsFunc(s.some, func(some string) bool { return bytes.Contains(plain, []byte(some)) }) {
			continue
		}
		for _, match := range s.pattern.FindAllSubmatchIndex(plain, -1) {
			hide(match[len(match)-2], match[len(match)-1]) // the group, or all of it
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
	if len(m.found)-first > 1 {
		m.found = append(m.found[:first], union(m.found[first:])...)
	}
}

// union removes spans that lie inside a longer one.
func union(found []span) []span {
	slices.SortFunc(found, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	kept := found[:1]
	for _, s := range found[1:] {
		if last := kept[len(kept)-1]; s.from >= last.to {
			kept = append(kept, s)
		}
	}
	return kept
}
