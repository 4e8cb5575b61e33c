package recording

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance"
)

// hint is the information about a message's direction in the text before it: the direction itself, or only whether the
// writer of the log sent or received it.
type hint struct {
	direction conformance.Direction
	way       way
}

type way int

const (
	out way = iota + 1
	in
)

// The signs that logs use to show the sender of a message.
var (
	colours = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	sides   = regexp.MustCompile(`\b(client|editor|zed|ide|agent|server)\b["'\])]*\s*(-+>|=+>|→|⇒|>+|<-+|<=+|←|⇐|<+|\bto\b)\s*["'\[(]*\b(client|editor|zed|ide|agent|server)\b`)
	ends    = regexp.MustCompile(`\b(to|from)[ _-]?(?:the[ _-])?(client|editor|zed|agent|server)\b|\b(stdin|stdout)\b`)
	names   = regexp.MustCompile(`^\W*(client|editor|agent|server)\W*$`)
	ways    = regexp.MustCompile(`(-+>|=+>|→|⇒|➡|▶|⟶|>>+|\b(?:send|sending|sent|out|outgoing|outbound|write|writing|wrote|tx)\b)|` +
		`(<-+|<=+|←|⇐|⬅|◀|⟵|<<+|\b(?:recv|receive|receiving|received|in|incoming|inbound|read|got|rx)\b)`)
	lone   = regexp.MustCompile(`(?:^|\s)([<>])\s*$`)
	levels = regexp.MustCompile(`\b(trace|debug|info|warn|warning|error|dbg|inf)\b`)
)

func sideOf(name string) conformance.Side {
	if name == "agent" || name == "server" {
		return conformance.Agent
	}
	return conformance.Client
}

// hintOf reads the text before a message.
func hintOf(before string) (h hint) {
	s := strings.ToLower(before)
	if m := sides.FindStringSubmatch(s); m != nil && sideOf(m[1]) != sideOf(m[3]) {
		receiver := sideOf(m[3])
		if strings.ContainsAny(m[2], "<←⇐") {
			receiver = sideOf(m[1])
		}
		return hint{direction: directionTo(receiver)}
	}
	if m := ends.FindStringSubmatch(s); m != nil {
		switch {
		case m[3] == "stdin":
			return hint{direction: conformance.ToAgent}
		case m[3] == "stdout":
			return hint{direction: conformance.ToClient}
		case m[1] == "to":
			return hint{direction: directionTo(sideOf(m[2]))}
		}
		return hint{direction: reverse(directionTo(sideOf(m[2])))}
	}
	if m := names.FindStringSubmatch(levels.ReplaceAllString(s, "")); m != nil {
		return hint{direction: reverse(directionTo(sideOf(m[1])))}
	}
	if m := lone.FindStringSubmatch(s); m != nil {
		if m[1] == ">" {
			return hint{way: out}
		}
		return hint{way: in}
	}
	if all := ways.FindAllStringSubmatch(s, -1); len(all) > 0 {
		// The sign closest to the message counts, because earlier ones may be part of a logger's name.
		if last := all[len(all)-1]; last[1] != "" {
			return hint{way: out}
		}
		return hint{way: in}
	}
	return hint{}
}

// epoch matches a time as a number of seconds or milliseconds.
var epoch = regexp.MustCompile(`^\d{10}(?:\.\d+)?$|^\d{13}(?:\.\d+)?$`)

// digits reports whether n digits begin at i.
func digits(s string, i, n int) bool {
	if i+n > len(s) {
		return false
	}
	for _, c := range []byte(s[i : i+n]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// clockEnd returns the end of the time of day at i, such as 12:34:56.789, or 0 if there is none.
func clockEnd(s string, i int) int {
	if i+8 > len(s) || !digits(s, i, 2) || s[i+2] != ':' || !digits(s, i+3, 2) || s[i+5] != ':' || !digits(s, i+6, 2) {
		return 0
	}
	end := i + 8
	if end < len(s) && (s[end] == '.' || s[end] == ',') && digits(s, end+1, 1) {
		for end++; digits(s, end, 1); end++ {
		}
	}
	return end
}

// stamp finds the first timestamp in a text, with or without a date. If there is none, to is 0.
func stamp(s string) (from, to int, date bool) {
	for i := range len(s) {
		if c := s[i]; c < '0' || c > '9' || i > 0 && digits(s, i-1, 1) {
			continue
		}
		if digits(s, i, 4) && i+11 < len(s) && s[i+4] == '-' && digits(s, i+5, 2) && s[i+7] == '-' && digits(s, i+8, 2) &&
			(s[i+10] == 'T' || s[i+10] == ' ') {
			if end := clockEnd(s, i+11); end > 0 {
				if end < len(s) && s[end] == 'Z' {
					return i, end + 1, true
				}
				if end < len(s) && (s[end] == '+' || s[end] == '-') && digits(s, end+1, 2) {
					switch {
					case end+3 < len(s) && s[end+3] == ':' && digits(s, end+4, 2):
						end += 6
					case digits(s, end+3, 2):
						end += 5
					}
				}
				return i, end, true
			}
		}
		if end := clockEnd(s, i); end > 0 {
			return i, end, false
		}
	}
	return 0, 0, false
}

// timeOf returns the first timestamp in a text, or the zero Time if there is none.
func timeOf(s string) time.Time {
	from, to, date := stamp(s)
	found := strings.Replace(s[from:to], ",", ".", 1)
	switch {
	case to == 0 && epoch.MatchString(s):
		whole, _, _ := strings.Cut(s, ".")
		if n, err := strconv.ParseFloat(s, 64); err == nil && len(whole) == 13 {
			return time.UnixMicro(int64(n * 1000)).UTC()
		} else if err == nil {
			return time.UnixMicro(int64(n * 1e6)).UTC()
		}
	case to == 0:
	case !date:
		if t, err := time.Parse("15:04:05", found); err == nil {
			return time.Unix(0, 0).UTC().Add(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
	default:
		found = found[:10] + "T" + found[11:]
		for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05"} {
			if t, err := time.Parse(layout, found); err == nil {
				return t
			}
		}
	}
	return time.Time{}
}

// maxTries bounds the number of places in a line where a message is searched for, and maxBefore the length of the text
// before it.
const (
	maxTries  = 8
	maxBefore = 1 << 10
)

// takeText reads a line that is not JSON as a whole.
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
		if at > 0 && line[at-1] == '"' && bytes.HasPrefix(body, []byte(`{\"`)) {
			// The message may be quoted in a string.
			end := bytes.LastIndexByte(line, '"')
			if quoted, ok := appendText(nil, line[at-1:end+1]); ok && end > at {
				body = quoted
			}
		}
		m, err := r.scan(body)
		if err == nil {
			before := string(line[:at])
			h, t := r.hint(before), timeOf(before)
			if m.isMessage() && (m.jsonrpc != nil || h != (hint{}) || m.method != nil) {
				r.log = true
				r.takeMessage(body, &m.envelope, h, t)
				return
			}
			if r.takeWrapped(&m, h, t) {
				return
			}
		} else if broken == nil && bytes.Contains(body, []byte(`"jsonrpc"`)) {
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

// maxHints bounds the number of texts before messages that are remembered.
const maxHints = 256

// hint returns the hint in the text before a message. Apart from timestamps, a log has few different such texts.
func (r *Reader) hint(before string) hint {
	for {
		from, to, _ := stamp(before)
		if to == 0 {
			break
		}
		before = before[:from] + before[to:]
	}
	h, known := r.hints[before]
	if !known {
		h = hintOf(colours.ReplaceAllString(before, ""))
		if r.hints == nil || len(r.hints) == maxHints {
			r.hints = map[string]hint{}
		}
		r.hints[before] = h
	}
	return h
}

// appendText appends the value of a JSON string.
func appendText(to, quoted []byte) ([]byte, bool) {
	n := len(quoted)
	if n < 2 || quoted[0] != '"' || quoted[n-1] != '"' {
		return to, false
	}
	s := quoted[1 : n-1]
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(to, s...), true
		}
		to = append(to, s[:i]...)
		if s = s[i+1:]; len(s) == 0 {
			return to, false
		}
		c := s[0]
		s = s[1:]
		switch c {
		case '"', '\\', '/':
			to = append(to, c)
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 't':
			to = append(to, '\t')
		case 'u':
			r, ok := hex4(s)
			if !ok {
				return to, false
			}
			s = s[4:]
			if utf16.IsSurrogate(r) {
				if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
					if low, ok := hex4(s[2:]); ok {
						if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
							to, s = utf8.AppendRune(to, whole), s[6:]
							continue
						}
					}
				}
				r = utf8.RuneError
			}
			to = utf8.AppendRune(to, r)
		default:
			return to, false
		}
	}
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 16)
	return rune(n), err == nil
}
