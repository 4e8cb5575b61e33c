// Package ecma translates regular expressions of ECMA-262, which JSON Schema uses, to Go's.
//
// The two languages look alike and differ in details: which characters are white space, what a dot matches,
// which escapes there are. A pattern is therefore read as ECMA-262 says, with the flag u as JSON Schema wants
// it, and written anew in Go's syntax. What the flag forbids but engines without it read in one way only, such
// as \- outside of a class, is read in that way. What Go cannot do, or what engines read in different ways, is
// an error.
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

// Regexp returns a pattern of ECMA-262 as a regular expression of package regexp that matches the same strings:
// the pattern itself where that is one.
func Regexp(pattern string) (string, error) {
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
	out := t.out.String()
	if _, err := regexp.Compile(out); err != nil {
		return "", fmt.Errorf("the pattern is too much for Go: %w", err)
	}
	if same(pattern, out) {
		return pattern, nil
	}
	return out, nil
}

// same reports whether Go reads both expressions in the same way.
func same(a, b string) bool {
	x, err := syntax.Parse(a, syntax.Perl)
	if err != nil {
		return false
	}
	y, err := syntax.Parse(b, syntax.Perl)
	return err == nil && x.Simplify().Equal(y.Simplify())
}

// maxDepth bounds how deep groups are nested, as package regexp does, and maxCount how often a term may be
// repeated.
const (
	maxDepth = 200
	maxCount = 1000
)

// translator reads a pattern from left to right, and writes what it has read.
type translator struct {
	in  []rune
	i   int
	out strings.Builder
}

func (t *translator) errorf(format string, args ...any) error {
	return fmt.Errorf("%s, at character %d of the pattern", fmt.Sprintf(format, args...), t.i)
}

// peek returns the rune that comes next, or -1 at the end.
func (t *translator) peek() rune {
	if t.i < len(t.in) {
		return t.in[t.i]
	}
	return -1
}

// accept reads text if that comes next, and reports whether it did.
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

// term reads an assertion or an atom, which is repeatable.
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
	}
	t.out.WriteString(regexp.QuoteMeta(string(t.peek())))
	t.i++
	return true, nil
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
		t.out.WriteByte('(') // the name matters only to who looks at what the group has matched
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

// name reads the name of a group, and what ends it.
func (t *translator) name() error {
	start := t.i
	for r := t.peek(); r == '$' || r == '_' || unicode.IsLetter(r) || t.i > start && unicode.IsDigit(r); r = t.peek() {
		t.i++
	}
	if t.i == start || !t.accept(">") {
		return t.errorf("the name of a group is wrong")
	}
	return nil
}

// quantifier reads what may follow a term, and refuses it after one that is not repeatable.
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
	t.accept("?") // fewest first, which matches the same strings
	return nil
}

// number returns the value of digits, or more than maxCount if it is that much.
func number(digits string) int {
	if strings.TrimLeft(digits, "0") == "" {
		return 0
	}
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return maxCount + 1
}

// braces returns the content of the quantifier in braces that comes next, and how long it is with them, if it is
// one: other braces are characters.
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

// escape reads an escape outside of a class.
func (t *translator) escape() (repeatable bool, err error) {
	for _, assertion := range []string{`\b`, `\B`} {
		if t.accept(assertion) {
			t.out.WriteString(assertion)
			return false, nil
		}
	}
	if next := t.after(); '1' <= next && next <= '9' || next == 'k' {
		return false, t.errorf("Go has no backreferences")
	}
	set, r, err := t.classEscape()
	if err != nil {
		return false, err
	}
	if set != nil {
		writeClass(&t.out, set)
	} else {
		t.out.WriteString(quoted(r))
	}
	return true, nil
}

// after returns the rune after the backslash that comes next, or -1.
func (t *translator) after() rune {
	if t.i+1 < len(t.in) {
		return t.in[t.i+1]
	}
	return -1
}

// controls are the escapes of single letters.
var controls = map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}

// classEscape reads an escape that stands for a character or, if set is not nil, for a set of them.
func (t *translator) classEscape() (set ranges, r rune, err error) {
	next := t.after()
	if c, ok := controls[next]; ok {
		t.i += 2
		return nil, c, nil
	}
	switch {
	case next == -1:
		return nil, 0, t.errorf("the pattern ends after a backslash")
	case next == 'd' || next == 's' || next == 'w':
		t.i += 2
		return shorthand[next], 0, nil
	case next == 'D' || next == 'S' || next == 'W':
		t.i += 2
		return shorthand[unicode.ToLower(next)].negated(), 0, nil
	case next == 'p' || next == 'P':
		set, err := t.property()
		if err == nil && next == 'P' {
			set = set.negated()
		}
		return set, 0, err
	case next == 'c':
		if t.i+2 < len(t.in) && isASCIILetter(t.in[t.i+2]) {
			t.i += 3
			return nil, t.in[t.i-1] & 31, nil
		}
	case next == '0':
		if t.i+2 >= len(t.in) || !isDigit(t.in[t.i+2]) {
			t.i += 2
			return nil, 0, nil
		}
	case next == 'x':
		if r, ok := t.hex(t.i+2, 2); ok {
			t.i += 4
			return nil, r, nil
		}
	case next == 'u':
		return t.unicodeEscape()
	case !unicode.IsLetter(next) && !unicode.IsDigit(next):
		t.i += 2
		return nil, next, nil
	}
	return nil, 0, t.errorf("the escape \\%c has no certain meaning", next)
}

// unicodeEscape reads \uXXXX, two of them for a character beyond the first 65,536, or \u{X…}.
func (t *translator) unicodeEscape() (set ranges, r rune, err error) {
	if t.i+2 < len(t.in) && t.in[t.i+2] == '{' {
		end := slices.Index(t.in[t.i:], '}')
		if end > 3 {
			v, err := strconv.ParseUint(string(t.in[t.i+3:t.i+end]), 16, 32)
			if err == nil && utf8.ValidRune(rune(v)) && v <= unicode.MaxRune {
				t.i += end + 1
				return nil, rune(v), nil
			}
		}
		return nil, 0, t.errorf("the escape \\u{…} is no character")
	}
	r, ok := t.hex(t.i+2, 4)
	if !ok {
		return nil, 0, t.errorf("the escape \\u must have four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		t.i += 6
		return nil, r, nil
	}
	if t.i+8 <= len(t.in) && t.in[t.i+6] == '\\' && t.in[t.i+7] == 'u' {
		if low, ok := t.hex(t.i+8, 4); ok {
			if both := utf16.DecodeRune(r, low); both != unicode.ReplacementChar {
				t.i += 12
				return nil, both, nil
			}
		}
	}
	return nil, 0, t.errorf("a surrogate without its other half is no character")
}

// hex reads so many hexadecimal digits.
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
	negate := t.accept("^")
	set := ranges{}
	for !t.accept("]") {
		if t.i >= len(t.in) {
			return t.errorf("a class does not end")
		}
		first, low, err := t.classAtom()
		if err != nil {
			return err
		}
		if t.peek() != '-' || t.i+1 >= len(t.in) || t.in[t.i+1] == ']' {
			set = append(set, first...)
			continue
		}
		t.i++
		second, high, err := t.classAtom()
		if err != nil {
			return err
		}
		switch {
		case len(first) == 1 && first[0].low == low && len(second) == 1 && second[0].low == high && single(first) && single(second):
			if low > high {
				return t.errorf("a range is out of order")
			}
			set = append(set, span{low, high})
		default: // engines that read a hyphen beside a set at all read it as a character
			set = append(append(append(set, first...), span{'-', '-'}), second...)
		}
	}
	if negate {
		set = set.negated()
	}
	writeClass(&t.out, set)
	return nil
}

func single(s ranges) bool { return s[0].low == s[0].high }

// classAtom reads a character or a set within a class. Of a character r is the value; of a set it is -1.
func (t *translator) classAtom() (set ranges, r rune, err error) {
	r = t.peek()
	switch {
	case r == -1:
		return nil, 0, t.errorf("a class does not end")
	case r != '\\':
		t.i++
	case t.accept(`\b`):
		r = '\b'
	default:
		if set, r, err = t.classEscape(); err != nil {
			return nil, 0, err
		}
		if set != nil {
			return set, -1, nil
		}
	}
	return ranges{{r, r}}, r, nil
}

// span is a range of characters, with both ends; ranges are a set of them in any order.
type (
	span   struct{ low, high rune }
	ranges []span
)

// shorthand are the sets that have an escape of one letter. White space is what ECMA-262 lists.
var shorthand = map[rune]ranges{
	'd': {{'0', '9'}},
	'w': {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
	's': {{'\t', '\r'}, {' ', ' '}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
		{0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}},
}

// negated returns the characters that are not in s.
func (s ranges) negated() ranges {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b span) int { return int(a.low - b.low) })
	out := ranges{}
	next := rune(0)
	for _, r := range s {
		if r.low > next {
			out = append(out, span{next, r.low - 1})
		}
		next = max(next, r.high+1)
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}

// writeClass writes a set as a class of Go's.
func writeClass(b *strings.Builder, set ranges) {
	if len(set) == 0 {
		b.WriteString(`[^\x{0}-\x{10FFFF}]`)
		return
	}
	b.WriteByte('[')
	for _, r := range set {
		b.WriteString(quoted(r.low))
		if r.high > r.low {
			b.WriteString("-" + quoted(r.high))
		}
	}
	b.WriteByte(']')
}

// quoted returns a character as it may stand anywhere in a pattern of Go's.
func quoted(r rune) string {
	if isDigit(r) || isASCIILetter(r) {
		return string(r)
	}
	if r > ' ' && r < 0x7f {
		return `\` + string(r)
	}
	return fmt.Sprintf(`\x{%X}`, r)
}

// property reads \p{…}: a general category or a script.
func (t *translator) property() (ranges, error) {
	start := t.i
	if t.i+2 >= len(t.in) || t.in[t.i+2] != '{' {
		return nil, t.errorf("the escape \\%c has no certain meaning", t.after())
	}
	end := slices.Index(t.in[t.i:], '}')
	if end < 0 {
		return nil, t.errorf("a property does not end")
	}
	text := string(t.in[t.i+3 : t.i+end])
	t.i += end + 1
	name, value, two := strings.Cut(text, "=")
	switch {
	case !two && name == "Any":
		return ranges{{0, unicode.MaxRune}}, nil
	case !two && name == "ASCII":
		return ranges{{0, unicode.MaxASCII}}, nil
	case !two:
		if set := category(name); set != nil {
			return set, nil
		}
	case name == "General_Category" || name == "gc":
		if set := category(value); set != nil {
			return set, nil
		}
	case name == "Script" || name == "sc":
		if table := unicode.Scripts[value]; table != nil {
			return tableRanges(table), nil
		}
	}
	t.i = start
	return nil, t.errorf("the property %q is not supported", text)
}

// category returns the characters of a general category, by its short or its long name, or nil.
func category(name string) ranges {
	if short, ok := unicode.CategoryAliases[name]; ok {
		name = short
	}
	if table := unicode.Categories[name]; table != nil {
		return tableRanges(table)
	}
	return nil
}

func tableRanges(table *unicode.RangeTable) ranges {
	out := ranges{}
	add := func(low, high, stride rune) {
		if stride == 1 {
			out = append(out, span{low, high})
			return
		}
		for r := low; r <= high; r += stride {
			out = append(out, span{r, r})
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out
}
