// Package ecma translates regular expressions of ECMA-262, which JSON Schema uses, to Go's.
//
// The two languages look alike but differ in details: which characters are white space, what a dot matches, which
// escapes exist. A pattern is therefore parsed as ECMA-262 specifies, with the flag u as JSON Schema requires, and
// rewritten in Go's syntax. Syntax that the flag forbids, but that all engines without the flag interpret in the same
// way, such as \- outside a class, is interpreted in that way. Patterns that Go cannot express, or that engines
// interpret differently, are errors.
package ecma

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Regexp translates a pattern of ECMA-262 to a regular expression of package regexp that matches the same strings. If
// the pattern itself is such an expression, it is returned unchanged. Patterns of more than 64 KiB are refused, because
// package regexp needs about 250 times their size in memory.
func Regexp(pattern string) (string, error) {
	if len(pattern) > maxLength {
		return "", fmt.Errorf("the pattern has %d bytes, more than %d", len(pattern), maxLength)
	}
	if !utf8.ValidString(pattern) {
		return "", fmt.Errorf("it is not UTF-8")
	}
	t := &translator{in: []rune(pattern)}
	if err := t.disjunction(0); err != nil {
		return "", err
	}
	if t.i < len(t.in) {
		return "", t.errorf("a group ends that did not begin")
	}
	if t.strict && t.loose {
		return "", fmt.Errorf("a part of the pattern needs the flag u, and another one must not have it")
	}
	out := t.out.String()
	if _, err := regexp.Compile(out); err != nil {
		return "", fmt.Errorf("the pattern is too much for Go: %w", err)
	}
	if same(pattern, out) {
		return pattern, nil
	}
	return out, nil
}

// same reports whether Go interprets both expressions in the same way.
func same(a, b string) bool {
	x, err := syntax.Parse(a, syntax.Perl)
	if err != nil {
		return false
	}
	y, err := syntax.Parse(b, syntax.Perl)
	return err == nil && x.Simplify().Equal(y.Simplify())
}

// The limits of a pattern: its length in bytes, how deeply groups are nested, which package regexp also limits, and how
// often a term can be repeated.
const (
	maxLength = 64 << 10
	maxDepth  = 200
	maxCount  = 1000
)

// translator reads a pattern from left to right, and writes what it has read.
type translator struct {
	in    []rune
	i     int
	out   strings.Builder
	names []string // of groups

	strict bool // something was read that has another meaning without the flag u
	loose  bool // something was read that the flag u forbids
}

func (t *translator) errorf(format string, args ...any) error {
	return fmt.Errorf("%s, at character %d of the pattern", fmt.Sprintf(format, args...), t.i)
}

// peek returns the next rune, or -1 at the end.
func (t *translator) peek() rune {
	if t.i < len(t.in) {
		return t.in[t.i]
	}
	return -1
}

// accept consumes text if it is next, and reports whether it is.
func (t *translator) accept(text string) bool {
	n := 0
	for _, r := range text {
		if t.i+n >= len(t.in) || t.in[t.i+n] != r {
			return false
		}
		n++
	}
	t.i += n
	return true
}

// disjunction reads up to the end, or to the parenthesis that closes a group.
func (t *translator) disjunction(depth int) error {
	if depth > maxDepth {
		return t.errorf("groups are nested too deeply")
	}
	for t.i < len(t.in) && t.peek() != ')' {
		if t.accept("|") {
			t.out.WriteByte('|')
			continue
		}
		repeatable, err := t.term(depth)
		if err != nil {
			return err
		}
		if err := t.quantifier(repeatable); err != nil {
			return err
		}
	}
	return nil
}

// term reads an assertion or an atom. Only atoms are repeatable.
func (t *translator) term(depth int) (repeatable bool, err error) {
	switch r := t.peek(); r {
	case '^', '$':
		t.i++
		t.out.WriteRune(r)
		return false, nil
	case '.':
		t.i++
		t.out.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		return true, nil
	case '(':
		return true, t.group(depth)
	case '[':
		return true, t.class()
	case '\\':
		return t.escape()
	case '*', '+', '?':
		return false, t.errorf("nothing to repeat")
	case '{':
		if _, _, ok := t.braces(); ok {
			return false, t.errorf("nothing to repeat")
		}
		t.loose = true
	case '}', ']':
		t.loose = true
	}
	t.out.WriteString(regexp.QuoteMeta(string(t.character())))
	return true, nil
}

// character reads the next rune as itself.
func (t *translator) character() rune {
	r := t.in[t.i]
	t.i++
	t.strict = t.strict || r > 0xffff // two characters without the flag
	return r
}

func (t *translator) group(depth int) error {
	switch {
	case t.accept("(?:"):
		t.out.WriteString("(?:")
	case t.accept("(?=") || t.accept("(?!") || t.accept("(?<=") || t.accept("(?<!"):
		return t.errorf("Go has no lookaround")
	case t.accept("(?<"):
		if err := t.name(); err != nil {
			return err
		}
		t.out.WriteByte('(') // the name matters only for access to the group's match
	case t.accept("(?"):
		return t.errorf("flags in the middle of a pattern are not supported")
	default:
		t.i++
		t.out.WriteByte('(')
	}
	if err := t.disjunction(depth + 1); err != nil {
		return err
	}
	if !t.accept(")") {
		return t.errorf("a group does not end")
	}
	t.out.WriteByte(')')
	return nil
}

// name reads the name of a group and the character that ends it.
func (t *translator) name() error {
	start := t.i
	for r := t.peek(); r == '$' || r == '_' || unicode.IsLetter(r) || t.i > start && unicode.IsDigit(r); r = t.peek() {
		t.i++
	}
	name := string(t.in[start:t.i])
	if name == "" || !t.accept(">") || slices.Contains(t.names, name) {
		return t.errorf("the name of a group is wrong, or not the only one")
	}
	t.names = append(t.names, name)
	return nil
}

// quantifier reads a quantifier after a term, if there is one. It is an error after a term that is not repeatable.
func (t *translator) quantifier(repeatable bool) error {
	start := t.i
	switch r := t.peek(); r {
	case '*', '+', '?':
		t.i++
		t.out.WriteRune(r)
	case '{':
		text, size, ok := t.braces()
		if !ok {
			return nil
		}
		least, most, ranged := strings.Cut(text, ",")
		if number(least) > maxCount || number(most) > maxCount {
			return t.errorf("Go repeats at most %d times", maxCount)
		}
		if ranged && most != "" && number(least) > number(most) {
			return t.errorf("the numbers of {%s} are out of order", text)
		}
		t.i += size
		t.out.WriteString("{" + text + "}")
	default:
		return nil
	}
	if !repeatable {
		t.i = start
		return t.errorf("nothing to repeat")
	}
	t.accept("?") // non-greedy, which matches the same strings
	return nil
}

// number returns the value of digits, or some number greater than maxCount if the value is greater than that.
func number(digits string) int {
	if strings.TrimLeft(digits, "0") == "" {
		return 0
	}
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return maxCount + 1
}

// braces returns the content of the quantifier that comes next, and its length with the braces. ok is false if it is
// not a quantifier; such braces are ordinary characters.
func (t *translator) braces() (text string, size int, ok bool) {
	i, commas := t.i+1, 0
	for ; i < len(t.in); i++ {
		switch r := t.in[i]; {
		case '0' <= r && r <= '9':
			continue
		case r == ',' && commas == 0 && i > t.i+1:
			commas++
			continue
		case r == '}' && i > t.i+1:
			return string(t.in[t.i+1 : i]), i + 1 - t.i, true
		}
		break
	}
	return "", 0, false
}

// escape reads an escape outside a class.
func (t *translator) escape() (repeatable bool, err error) {
	for _, assertion := range []string{`\b`, `\B`} {
		if t.accept(assertion) {
			t.out.WriteString(assertion)
			return false, nil
		}
	}
	if next := t.escapedRune(); '1' <= next && next <= '9' || next == 'k' {
		return false, t.errorf("Go has no backreferences")
	}
	set, r, err := t.setOrCharacter()
	if err != nil {
		return false, err
	}
	if set != "" {
		t.out.WriteString("[" + set + "]")
	} else {
		t.out.WriteString(quoted(r))
	}
	return true, nil
}

// escapedRune returns the rune after the backslash that comes next, or -1.
func (t *translator) escapedRune() rune {
	if t.i+1 < len(t.in) {
		return t.in[t.i+1]
	}
	return -1
}

// controls maps the letters of escapes to the control characters that they stand for.
var controls = map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}

// setOrCharacter reads an escape. If it stands for a set of characters, it returns the set in the notation of Go's
// classes; otherwise it returns the character.
func (t *translator) setOrCharacter() (set string, r rune, err error) {
	next := t.escapedRune()
	if c, ok := controls[next]; ok {
		t.i += 2
		return "", c, nil
	}
	switch {
	case next == -1:
		return "", 0, t.errorf("the pattern ends after a backslash")
	case sets[next] != "":
		t.i += 2
		return sets[next], 0, nil
	case next == 'p' || next == 'P':
		set, err = t.property(next == 'P')
		return set, 0, err
	case next == 'c':
		if t.i+2 < len(t.in) && isASCIILetter(t.in[t.i+2]) {
			t.i += 3
			return "", t.in[t.i-1] & 31, nil
		}
	case next == '0':
		if t.i+2 >= len(t.in) || !isDigit(t.in[t.i+2]) {
			t.i += 2
			return "", 0, nil
		}
	case next == 'x':
		if r, ok := t.hex(t.i+2, 2); ok {
			t.i += 4
			return "", r, nil
		}
	case next == 'u':
		r, err = t.unicodeEscape()
		return "", r, err
	case !unicode.IsLetter(next) && !unicode.IsDigit(next):
		t.i++
		t.loose = t.loose || !strings.ContainsRune(`^$\.*+?()[]{}|/`, next)
		return "", t.character(), nil
	}
	return "", 0, t.errorf("the escape \\%c has no certain meaning", next)
}

// unicodeEscape reads \uXXXX, two such escapes for a character beyond the first 65,536, or \u{X…}.
func (t *translator) unicodeEscape() (r rune, err error) {
	if t.i+2 < len(t.in) && t.in[t.i+2] == '{' {
		end := slices.Index(t.in[t.i:], '}')
		if end > 3 {
			v, err := strconv.ParseUint(string(t.in[t.i+3:t.i+end]), 16, 32)
			if err == nil && utf8.ValidRune(rune(v)) && v <= unicode.MaxRune {
				t.i += end + 1
				t.strict = true
				return rune(v), nil
			}
		}
		return 0, t.errorf("the escape \\u{…} is no character")
	}
	r, ok := t.hex(t.i+2, 4)
	if !ok {
		return 0, t.errorf("the escape \\u must have four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		t.i += 6
		return r, nil
	}
	if t.i+8 <= len(t.in) && t.in[t.i+6] == '\\' && t.in[t.i+7] == 'u' {
		if low, ok := t.hex(t.i+8, 4); ok {
			if both := utf16.DecodeRune(r, low); both != unicode.ReplacementChar {
				t.i += 12
				t.strict = true
				return both, nil
			}
		}
	}
	return 0, t.errorf("a surrogate without its other half is no character")
}

// hex returns the value of the given number of hexadecimal digits.
func (t *translator) hex(from, digits int) (rune, bool) {
	if from+digits > len(t.in) {
		return 0, false
	}
	text := string(t.in[from : from+digits])
	v, err := strconv.ParseUint(text, 16, 32)
	return rune(v), err == nil
}

func isDigit(r rune) bool       { return '0' <= r && r <= '9' }
func isASCIILetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }

// class reads a class in brackets.
func (t *translator) class() error {
	t.i++
	const all = `\x{0}-\x{10FFFF}`
	negate := t.accept("^")
	var items strings.Builder
	for !t.accept("]") {
		first, low, err := t.classAtom()
		if err != nil {
			return err
		}
		if t.peek() != '-' || t.i+1 >= len(t.in) || t.in[t.i+1] == ']' {
			items.WriteString(first)
			continue
		}
		t.i++
		second, high, err := t.classAtom()
		switch {
		case err != nil:
			return err
		case low < 0 || high < 0: // without the flag u, a hyphen next to a set is a character
			t.loose = true
			items.WriteString(first + quoted('-') + second)
		case low > high:
			return t.errorf("a range is out of order")
		default:
			items.WriteString(first + "-" + second)
		}
	}
	switch set := items.String(); {
	case set == "" && negate:
		t.out.WriteString("[" + all + "]")
	case set == "":
		t.out.WriteString("[^" + all + "]")
	case negate:
		t.out.WriteString("[^" + set + "]")
	default:
		t.out.WriteString("[" + set + "]")
	}
	return nil
}

// classAtom reads a character or a set within a class, and returns it in Go's syntax. For a character, r is its value;
// for a set, r is -1.
func (t *translator) classAtom() (text string, r rune, err error) {
	switch r = t.peek(); {
	case r == -1:
		return "", 0, t.errorf("a class does not end")
	case r != '\\':
		return quoted(t.character()), r, nil
	case t.accept(`\b`):
		return quoted('\b'), '\b', nil
	case t.accept(`\-`):
		return quoted('-'), '-', nil
	}
	set, r, err := t.setOrCharacter()
	if set != "" {
		return set, -1, err
	}
	return quoted(r), r, err
}

// sets maps the letters of escapes to the sets that they stand for. White space consists of the characters that
// ECMA-262 lists.
var sets = map[rune]string{
	'd': `\d`, 'D': `\D`, 'w': `\w`, 'W': `\W`,
	's': `\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}`,
	'S': `\x{0}-\x{8}\x{E}-\x{1F}!-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}` +
		`\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF}`,
}

// quoted returns a character in a notation that is valid anywhere in a Go pattern.
func quoted(r rune) string {
	switch {
	case isDigit(r) || isASCIILetter(r):
		return string(r)
	case r > ' ' && r < 0x7f:
		return `\` + string(r)
	}
	return fmt.Sprintf(`\x{%X}`, r)
}

// property reads \p{…}, or \P{…} for the complement. It supports general categories and scripts.
func (t *translator) property(negate bool) (set string, err error) {
	end := slices.Index(t.in[t.i:], '}')
	if end < 0 || t.in[t.i+2] != '{' {
		return "", t.errorf("the escape \\%c has no certain meaning", t.escapedRune())
	}
	text := string(t.in[t.i+3 : t.i+end])
	name, value, two := strings.Cut(text, "=")
	switch {
	case text == "ASCII" && negate:
		set = `\x{80}-\x{10FFFF}`
	case text == "ASCII":
		set = `\x{0}-\x{7F}`
	case text == "Any":
	case two && (name == "Script" || name == "sc"):
		if unicode.Scripts[value] != nil {
			text = value
			break
		}
		fallthrough
	default:
		if name == "General_Category" || name == "gc" {
			name, two = value, false
		}
		if short, ok := unicode.CategoryAliases[name]; ok {
			name = short
		}
		if two || unicode.Categories[name] == nil {
			return "", t.errorf("the property %q is not supported", text)
		}
		text = name
	}
	t.i += end + 1
	t.strict = true
	switch {
	case set != "":
	case negate:
		set = `\P{` + text + "}"
	default:
		set = `\p{` + text + "}"
	}
	return set, nil
}
