// JSON text to the values that the schema library validates: exact numbers, bounded size, and a note
// of members that occur twice, which a Go map would hide.

package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxValues bounds the number of JSON values in one message, and so the memory that validation takes.
const maxValues = 1 << 20

var errTooManyValues = fmt.Errorf("more than %d values in one message: not validated", maxValues)

// document is a message as a tree.
type document struct {
	root any
	// twice are the pointers of the members that occurred again; the last occurrence counts.
	twice []string
}

// parse reads exactly one JSON text.
func parse(text []byte) (document, error) {
	if !json.Valid(text) {
		return document{}, syntaxError(text)
	}
	b := builder{text: text, left: maxValues}
	root, err := b.value()
	if err != nil {
		return document{}, err
	}
	return document{root: root, twice: b.twice}, nil
}

// syntaxError says where a text stops being JSON.
func syntaxError(text []byte) error {
	var raw json.RawMessage
	err := json.Unmarshal(text, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON: %w (byte %d)", syntax, syntax.Offset)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// builder turns a text into a tree. The text is known to be valid JSON, so it looks only for where
// each value begins and ends.
type builder struct {
	text  []byte
	next  int // offset of what is read next
	left  int // how many values may still come
	path  []string
	twice []string
}

// peek skips white space, commas and colons, and returns the byte that follows.
func (b *builder) peek() byte {
	for {
		switch c := b.text[b.next]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			b.next++
		default:
			return c
		}
	}
}

func (b *builder) value() (any, error) {
	if b.left--; b.left < 0 {
		return nil, errTooManyValues
	}
	switch b.peek() {
	case '{':
		return b.object()
	case '[':
		return b.array()
	case '"':
		return b.string()
	case 't':
		b.next += len("true")
		return true, nil
	case 'f':
		b.next += len("false")
		return false, nil
	case 'n':
		b.next += len("null")
		return nil, nil
	}
	start := b.next
	for b.next < len(b.text) && strings.IndexByte("+-.0123456789eE", b.text[b.next]) >= 0 {
		b.next++
	}
	return exact(json.Number(b.text[start:b.next])), nil
}

func (b *builder) object() (any, error) {
	members := map[string]any{}
	for b.next++; b.peek() != '}'; {
		name, err := b.string()
		if err != nil {
			return nil, err
		}
		b.path = append(b.path, name)
		if _, again := members[name]; again && len(b.twice) < maxFindings {
			b.twice = append(b.twice, pointer("", b.path...))
		}
		if members[name], err = b.value(); err != nil {
			return nil, err
		}
		b.path = b.path[:len(b.path)-1]
	}
	b.next++
	return members, nil
}

func (b *builder) array() (any, error) {
	items := []any{}
	for b.next++; b.peek() != ']'; {
		b.path = append(b.path, strconv.Itoa(len(items)))
		item, err := b.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		b.path = b.path[:len(b.path)-1]
	}
	b.next++
	return items, nil
}

func (b *builder) string() (string, error) {
	start, escaped := b.next, false
	for b.next++; b.text[b.next] != '"'; b.next++ {
		if b.text[b.next] == '\\' {
			escaped = true
			b.next++
		}
	}
	b.next++
	quoted := b.text[start:b.next]
	if !escaped {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err
}

// pointer appends reference tokens to a JSON pointer. Beyond a few times maxText it grows no more,
// so that a deep message does not cost the square of its depth.
func pointer(at string, tokens ...string) string {
	for _, token := range tokens {
		if len(at) > 4*maxText {
			break
		}
		at += "/" + clip(escape.Replace(token))
	}
	return at
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// maxMagnitude bounds the decimal exponent of the numbers that the library gets. The library computes with
// rational numbers and has no limit: 1e999999 would take megabytes, and a longer exponent makes it panic.
const maxMagnitude = 400

// exact returns the number in a form that is cheap to compute with: integers in plain digits (1.0
// and 1e2 are integers), short fractions as they came, other fractions with .5 behind the whole part.
// Numbers beyond every bound that a schema states are replaced by a smaller one that is beyond them
// too. No schema can tell the difference.
func exact(n json.Number) json.Number {
	const short = 32
	text := string(n)
	if len(text) <= short && !strings.ContainsAny(text, ".eE") && text != "-0" {
		return n
	}
	sign, rest := "", text
	if r, ok := strings.CutPrefix(rest, "-"); ok {
		sign, rest = "-", r
	}
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	significant := strings.TrimRight(digits, "0")
	// The value is 0.significant × 10^order.
	order := saturate(exponent) - len(fraction) + len(digits)
	integral := order >= len(significant)
	switch {
	case order > maxMagnitude:
		return json.Number(sign + "1" + strings.Repeat("0", maxMagnitude))
	case integral:
		return json.Number(sign + significant + strings.Repeat("0", order-len(significant)))
	case len(text) <= short && exponent == "":
		return n
	case order <= 0:
		return json.Number(sign + "0.5")
	}
	return json.Number(sign + significant[:order] + ".5")
}

// saturate reads an exponent, keeping it far from overflow.
func saturate(exponent string) int {
	const most = 1 << 30
	if exponent == "" {
		return 0
	}
	e, err := strconv.Atoi(exponent)
	if err != nil || e > most || e < -most {
		if strings.HasPrefix(exponent, "-") {
			return -most
		}
		return most
	}
	return e
}
