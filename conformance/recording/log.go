package recording

// This file owns lines of text that may have a message in them: logs.

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

// hint is what the text before a message says about its direction: the direction itself, or only whether the writer of
// the log sent it or received it.
type hint struct {
	direction conformance.Direction
	way       way
}

type way int

const (
	out way = iota + 1
	in
)

// The signs by which logs tell who has sent a message.
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
		return hint{direction: to(receiver)}
	}
	if m := ends.FindStringSubmatch(s); m != nil {
		switch {
		case m[3] == "stdin":
			return hint{direction: conformance.ToAgent}
		case m[3] == "stdout":
			return hint{direction: conformance.ToClient}
		case m[1] == "to":
			return hint{direction: to(sideOf(m[2]))}
		}
		return hint{direction: reverse(to(sideOf(m[2])))}
	}
	if m := names.FindStringSubmatch(levels.ReplaceAllString(s, "")); m != nil {
		return hint{direction: reverse(to(sideOf(m[1])))}
	}
	if m := lone.FindStringSubmatch(s); m != nil {
		if m[1] == ">" {
			return hint{way: out}
		}
		return hint{way: in}
	}
	if all := ways.FindAllStringSubmatch(s, -1); len(all) > 0 {
		// The one that stands next to the message: those before may be part of a logger's name.
		if last := all[len(all)-1]; last[1] != "" {
			return hint{way: out}
		}
		return hint{way: in}
	}
	return hint{}
}

// The timestamps of logs.
var (
	dated = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?`)
	clock = regexp.MustCompile(`\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?`)
	epoch = regexp.MustCompile(`^\d{10}(?:\.\d+)?$|^\d{13}(?:\.\d+)?$`)
)

// timeOf reads the first timestamp in a text; the zero Time if there is none.
func timeOf(s string) time.Time {
	if found := dated.FindString(s); found != "" {
		found = strings.Replace(strings.Replace(found, ",", ".", 1), " ", "T", 1)
		for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05"} {
			if t, err := time.Parse(layout, found); err == nil {
				return t
			}
		}
	}
	if found := clock.FindString(s); found != "" {
		if t, err := time.Parse("15:04:05", strings.Replace(found, ",", ".", 1)); err == nil {
			return time.Unix(0, 0).UTC().Add(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
	}
	if epoch.MatchString(s) {
		whole, _, _ := strings.Cut(s, ".")
		if n, err := strconv.ParseFloat(s, 64); err == nil && len(whole) == 13 {
			return time.UnixMicro(int64(n * 1000)).UTC()
		} else if err == nil {
			return time.UnixMicro(int64(n * 1e6)).UTC()
		}
	}
	return time.Time{}
}

// maxTries bounds at how many places of a line a message is looked for, and maxBefore how much text may be before it.
const (
	maxTries  = 8
	maxBefore = 1 << 10
)

// takeText reads a line that is not JSON as a whole.
func (r *Reader) takeText(line []byte, last bool) {
	if bytes.HasPrefix(line, []byte("Content-Length:")) {
		r.other("LSP or DAP")
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
			// A string in which the message is quoted.
			end := bytes.LastIndexByte(line, '"')
			if quoted, ok := appendText(nil, line[at-1:end+1]); ok && end > at {
				body = quoted
			}
		}
		m, err := r.scan(body)
		if err == nil {
			before := string(line[:at])
			h, t := hintOf(colours.ReplaceAllString(dateless(before), "")), timeOf(before)
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

// dateless is a text without its timestamps, whose digits and dashes are no arrows.
func dateless(s string) string {
	return clock.ReplaceAllString(dated.ReplaceAllString(s, ""), "")
}

// appendText appends the value of a JSON string that is known to be one.
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
