package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Decoder reads one JSON text. Each method that reads consumes the whole next value.
//
// After the first failure the Decoder is at the end of the text, where there is nothing to read: all methods return
// zero values and loops end.
//
// A Decoder must not be used concurrently.
type Decoder struct {
	data     []byte
	i        int
	left     int // levels of nesting that may still be entered
	maxDepth int
	items    int // elements and members of maps read so far
	maxItems int // 0 means no bound
	off      uint64
	err      *Error
	failure  Error // space for err to point to, so that a failure that is undone leaves no garbage
	repairs  []repair
	omitted  int // repairs for which there was no room
	again    int // bytes that RetryFitting caused to be read again
	interned *interned
	room     any // a pointer that New may use, see NewWith

	name []byte // name of the current member of the innermost object being read
	lone bool   // whether it had an unpaired surrogate

	tag    string // the tag that Tag found last,
	tagAt  int    // the start of its object,
	tagEnd int    // and the end of the member if it is the first, or 0
}

// NewDecoder returns a Decoder of data; see [Decoder.Reset].
func NewDecoder(data []byte) *Decoder {
	d := &Decoder{maxDepth: MaxDepth}
	d.Reset(data)
	return d
}

// Reset makes the Decoder read data, which must not change until errors and repairs have been retrieved.
func (d *Decoder) Reset(data []byte) {
	clear(d.repairs)
	d.data, d.i, d.left, d.items = data, 0, d.maxDepth, 0
	d.err, d.repairs, d.omitted, d.again = nil, d.repairs[:0], 0, 0
	d.name, d.lone = nil, false
	d.tag, d.tagAt, d.tagEnd = "", 0, 0
	d.room = nil
}

// ResetLast is Reset for the value of an object's last member and the brace that closes the object.
func (d *Decoder) ResetLast(data []byte) {
	d.Reset(data)
	d.left--
}

// EndLast replaces End after ResetLast. It returns the value read, and false if there was a failure or anything but the
// brace is left.
func (d *Decoder) EndLast() (value []byte, ok bool) {
	n := d.i
	if d.err != nil || d.space() != '}' {
		return nil, false
	}
	d.i++
	d.space()
	return d.data[:n], d.i == len(d.data)
}

// SetMaxDepth sets how many levels of arrays and objects a text may have, instead of [MaxDepth]. It must be called
// before anything is read. Reading takes stack for each level.
func (d *Decoder) SetMaxDepth(n int) { d.left, d.maxDepth = n, n }

// SetMaxItems sets how many elements of arrays and members of maps of a text may be read; without it, or with 0, there
// is no bound. Values take more memory than their text, especially short values in long lists.
func (d *Decoder) SetMaxItems(n int) { d.maxItems = n }

// SetOff sets the experimental features that are off, by bit. What a text has of them and cannot be read is left out,
// as a repair: a program that does not use a feature must not fail because of it. Without SetOff, it is a failure.
func (d *Decoder) SetOff(features uint64) { d.off = features }

// Items returns how many elements and members were read since Reset.
func (d *Decoder) Items() int { return d.items }

// AddItems adds n to the count, for items that are read in another way, such as from a text that Raw has returned.
func (d *Decoder) AddItems(n int) {
	if d.items += n; d.items > d.maxItems && d.maxItems > 0 {
		d.Fail(ErrItems)
	}
}

var decoders = sync.Pool{New: func() any { return NewDecoder(nil) }}

// Unmarshal reads v, as [Decode] does, from data, which must hold nothing else but white space. Its error is an
// [*Error]. Repairs are not reported.
func Unmarshal(data []byte, v any) error {
	d := decoders.Get().(*Decoder)
	d.Reset(data)
	Decode(d, v)
	err := d.End()
	d.Reset(nil)
	decoders.Put(d)
	return err
}

// Fail records a failure about the value read last or, after [Decoder.Mark] or in a loop over members or elements,
// about the next value. Only the first failure counts.
func (d *Decoder) Fail(err error) { d.fail(d.i, err) }

// Failf is Fail with a formatted error.
func (d *Decoder) Failf(format string, args ...any) {
	if d.err == nil {
		d.Fail(fmt.Errorf(format, args...))
	}
}

// Missing records the failure that the next object lacks a member.
func (d *Decoder) Missing(name string) { d.failText(d.i, "missing member "+strconv.Quote(name)) }

func (d *Decoder) fail(at int, err error) {
	if d.err == nil {
		d.err = newError(at, err)
	}
	d.i = len(d.data)
}

// failText is fail without a cause. It is for failures that a peer can cause over and over where the schema is lenient,
// every few bytes of a message, and is therefore cheap.
func (d *Decoder) failText(at int, msg string) {
	if d.err == nil {
		d.failure = Error{Msg: msg, Offset: at}
		d.err = &d.failure
	}
	d.i = len(d.data)
}

// syntax fails because want does not start at the cursor.
func (d *Decoder) syntax(want string) {
	if d.i >= len(d.data) {
		d.Failf("%w: unexpected end, expected %s", ErrSyntax, want)
		return
	}
	r, size := utf8.DecodeRune(d.data[d.i:])
	if r == utf8.RuneError && size == 1 {
		d.Failf("%w: offset %d: byte %#02x, expected %s", ErrSyntax, d.i, d.data[d.i], want)
		return
	}
	d.Failf("%w: offset %d: %q, expected %s", ErrSyntax, d.i, r, want)
}

// mismatch fails because a value of another kind comes next.
func (d *Decoder) mismatch(want string) {
	var got string
	switch d.Kind() {
	case '{':
		got = "object"
	case '[':
		got = "array"
	case '"':
		got = "string"
	case '0':
		got = "number"
	case 't', 'f':
		got = "boolean"
	case 'n':
		got = "null"
	default:
		d.syntax(want)
		return
	}
	d.failText(d.i, "expected "+want+", got "+got)
}

// Err returns the first failure as an [*Error], or nil.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err.locate(d.data)
}

// End fails if anything but white space is left. It returns Err.
func (d *Decoder) End() error {
	if d.space(); d.i < len(d.data) {
		d.syntax("end")
	}
	return d.Err()
}

// space skips white space and returns the byte that follows, 0 at the end.
func (d *Decoder) space() byte {
	if d.i < len(d.data) && d.data[d.i] > ' ' {
		return d.data[d.i]
	}
	return d.skipSpace()
}

func (d *Decoder) skipSpace() byte {
	for ; d.i < len(d.data); d.i++ {
		switch c := d.data[d.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Kind returns the kind of the next value: one of { [ " 0 t f n, where 0 is any number, or the byte 0 if no value
// starts here.
func (d *Decoder) Kind() byte {
	switch c := d.space(); c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	}
	return 0
}

// Offset returns the offset in the text at which the next value starts.
func (d *Decoder) Offset() int {
	d.space()
	return d.i
}

// Slice returns the text since an earlier Offset. It is part of the input: copy it to keep it.
func (d *Decoder) Slice(from int) []byte { return d.data[from:d.i] }

// literal reads null, true or false.
func (d *Decoder) literal(want string) {
	if !bytes.HasPrefix(d.data[d.i:], []byte(want)) {
		d.syntax(want)
		return
	}
	d.i += len(want)
}

// Null reads null if it is the next value, and reports whether it was.
func (d *Decoder) Null() bool {
	if d.space() != 'n' {
		return false
	}
	d.literal("null")
	return d.err == nil
}

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	switch d.space() {
	case 't':
		d.literal("true")
		return d.err == nil
	case 'f':
		d.literal("false")
	default:
		d.mismatch("boolean")
	}
	return false
}

// Str reads a string and copies it. An escaped surrogate without its other half becomes U+FFFD, which is a repair.
func (d *Decoder) Str() string {
	if d.space() != '"' {
		d.mismatch("string")
		return ""
	}
	start := d.i
	content, size := d.str()
	if size == len(content) {
		return string(content)
	}
	return d.unescape(start, content, size)
}

// str reads the string that starts at the cursor. It returns the text between the quotes, and its length in bytes when
// unescaped, which equals len(content) only if nothing is escaped.
func (d *Decoder) str() (content []byte, size int) {
	start := d.i + 1
	end, ascii := plain(d.data, start)
	if ascii && end < len(d.data) && d.data[end] == '"' {
		d.i = end + 1
		content = d.data[start:end]
		return content, len(content)
	}
	return d.strFrom(start, end, ascii)
}

// strFrom continues str at i, where something other than plain ASCII was found.
func (d *Decoder) strFrom(start, i int, ascii bool) (content []byte, size int) {
	saved := 0
	for i < len(d.data) && d.data[i] == '\\' {
		n := 2
		if short(d.data[i:]) != 0 {
			saved++
		} else {
			var r rune
			if r, n, _ = escape(d.data[i:]); n == 0 {
				d.i = i
				d.syntax("escape sequence")
				return nil, 0
			}
			saved += n - utf8.RuneLen(r)
		}
		end, more := plain(d.data, i+n)
		i, ascii = end, ascii && more
	}
	d.i = i
	if i == len(d.data) || d.data[i] != '"' {
		d.syntax("end of string")
		return nil, 0
	}
	content = d.data[start:i]
	if !ascii && !utf8.Valid(content) {
		d.Failf("%w: string is not UTF-8", ErrSyntax)
		return nil, 0
	}
	d.i++
	return content, len(content) - saved
}

// unescape returns the text of the string that starts at start, and records a repair if it makes one.
func (d *Decoder) unescape(start int, content []byte, size int) string {
	text, lone := unescape(content, size)
	if lone {
		d.repair(repair{at: start, cause: start, msg: loneSurrogate})
	}
	return text
}

const loneSurrogate = "surrogate without its other half became U+FFFD"

// number reads the number that starts at the cursor, and returns its text.
func (d *Decoder) number() []byte {
	s, i := d.data, d.i
	if s[i] == '-' {
		i++
	}
	from := i
	if i < len(s) && s[i] == '0' {
		i++
	} else {
		i = digits(s, i)
	}
	ok := i > from
	if ok && i < len(s) && s[i] == '.' {
		from = i + 1
		i = digits(s, from)
		ok = i > from
	}
	if ok && i < len(s) && s[i]|0x20 == 'e' {
		from = i + 1
		if from < len(s) && (s[from] == '+' || s[from] == '-') {
			from++
		}
		i = digits(s, from)
		ok = i > from
	}
	start := d.i
	d.i = i
	if !ok {
		d.syntax("digit")
		return nil
	}
	return s[start:i]
}

// digits returns the offset of the first byte of s, from i on, that is not a digit.
func digits(s []byte, i int) int {
	for i < len(s) && s[i]-'0' < 10 {
		i++
	}
	return i
}

// Float reads a number. A number too large for a float64 is an error.
func (d *Decoder) Float() float64 {
	if d.Kind() != '0' {
		d.mismatch("number")
		return 0
	}
	start := d.i
	text := d.number()
	if d.err != nil {
		return 0
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		d.fail(start, fmt.Errorf("%.40s is out of range", text))
		return 0
	}
	return v
}

// Int reads an integer that fits in a signed integer with the given number of bits, 1 to 64.
func (d *Decoder) Int(bits int) int64 {
	start := d.Offset()
	negative, v := d.integer()
	limit := uint64(1) << (bits - 1)
	switch {
	case negative && v <= limit:
		return -int64(v)
	case !negative && v < limit:
		return int64(v)
	}
	d.outOfRange(start, bits)
	return 0
}

// Uint reads an integer that fits in an unsigned integer with the given number of bits, 1 to 64.
func (d *Decoder) Uint(bits int) uint64 {
	start := d.Offset()
	negative, v := d.integer()
	if negative && v > 0 || bits < 64 && v>>bits > 0 {
		d.outOfRange(start, bits)
		return 0
	}
	return v
}

func (d *Decoder) outOfRange(start, bits int) {
	d.fail(start, fmt.Errorf("%.40s is out of range for %d bits", d.data[start:d.i], bits))
}

// integer reads a number that is an integer, in any notation: 100, 100.0 and 1e2 are the same.
func (d *Decoder) integer() (negative bool, v uint64) {
	if d.Kind() != '0' {
		d.mismatch("integer")
		return false, 0
	}
	start := d.i
	text := d.number()
	if d.err != nil {
		return false, 0
	}
	if text[0] == '-' {
		negative = true
		text = text[1:]
	}
	v, err := parseInteger(text)
	if err != nil {
		d.fail(start, fmt.Errorf("%.40s %w", d.data[start:d.i], err))
		return false, 0
	}
	return negative, v
}

var (
	errFraction = errors.New("is not an integer")
	errRange    = errors.New("is out of range")
)

// parseInteger returns the value of a JSON number without sign.
func parseInteger(text []byte) (uint64, error) {
	if len(text) < 20 { // cannot overflow
		var v uint64
		for i, c := range text {
			if c-'0' > 9 {
				break
			}
			v = v*10 + uint64(c-'0')
			if i == len(text)-1 {
				return v, nil
			}
		}
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(text)), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, nil
	}
	zeros := 0 // zeros to append to digits
	if exponent != "" {
		// If out of range, Atoi returns the nearest int.
		zeros, _ = strconv.Atoi(exponent)
		zeros = max(min(zeros, 1<<30), -1<<30)
	}
	zeros -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	zeros += len(digits) - len(trimmed)
	if zeros < 0 {
		return 0, errFraction
	}
	if len(trimmed)+zeros > 20 {
		return 0, errRange
	}
	v, err := strconv.ParseUint(trimmed+strings.Repeat("0", zeros), 10, 64)
	if err != nil {
		return 0, errRange
	}
	return v, nil
}

// Raw reads any value and returns a copy of its text.
func (d *Decoder) Raw() json.RawMessage {
	start := d.Offset()
	d.Skip()
	if d.err != nil {
		return nil
	}
	return bytes.Clone(d.Slice(start))
}

// Skip reads any value and discards it, but checks it as strictly as if it were kept.
func (d *Decoder) Skip() {
	switch d.space() {
	case '{':
		d.enter()
		for more := false; d.member(more); more = true {
			if d.str(); d.colon() {
				d.Skip()
			}
		}
	case '[':
		d.enter()
		for more := false; d.element(more); more = true {
			d.Skip()
		}
	case '"':
		d.str()
	case 't':
		d.literal("true")
	case 'f':
		d.literal("false")
	case 'n':
		d.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		d.number()
	default:
		d.syntax("value")
	}
}

// enter reads the bracket that starts an array or object.
func (d *Decoder) enter() {
	if d.left <= 0 {
		d.Fail(ErrDepth)
		return
	}
	d.left--
	d.i++
}

// member moves to the name of the next member of an object, after another one if more is set, or
// past the object's end.
func (d *Decoder) member(more bool) bool {
	c := d.space()
	if c == '}' {
		d.left++
		d.i++
		return false
	}
	if more {
		if c != ',' {
			d.syntax("comma or }")
			return false
		}
		d.i++
		c = d.space()
	}
	if c != '"' {
		d.syntax("member name")
		return false
	}
	return true
}

// colon reads the text between a member's name and value.
func (d *Decoder) colon() bool {
	if d.i < len(d.data) && d.data[d.i] == ':' {
		d.i++
		return true
	}
	return d.spacedColon()
}

func (d *Decoder) spacedColon() bool {
	if d.space() != ':' {
		d.syntax("colon")
		return false
	}
	d.i++
	return true
}

// element moves to the next element of an array, after another one if more is set, or past the
// array's end.
func (d *Decoder) element(more bool) bool {
	c := d.space()
	if c == ']' {
		d.left++
		d.i++
		return false
	}
	if more {
		if c != ',' {
			d.syntax("comma or ]")
			return false
		}
		d.i++
	}
	if d.Kind() == 0 {
		d.syntax("value")
		return false
	}
	return true
}

// Object is an object being read, member by member.
type Object struct {
	d      *Decoder
	start  int
	seen   uint64 // bit set of the known members
	tag    string // the name of the member that determined the object's type, if any
	more   bool   // a member has been read
	tagged bool   // tag has been read
}

// Object starts reading an object:
//
//	for o := d.Object(); o.Next(); {
//		switch string(o.Name()) { … read the value …; default: d.Skip() }
//	}
func (d *Decoder) Object() (o Object) {
	o.d = d
	if d.space() != '{' {
		d.mismatch("object")
		return o
	}
	o.start = d.i
	if d.tagAt == d.i {
		o.tag = d.tag
	}
	d.enter()
	if o.tag != "" && d.tagEnd > 0 && d.err == nil {
		d.i, o.more, o.tagged = d.tagEnd, true, true
	}
	return o
}

// Next reads the name of the next member, and reports whether there was one. The member's value must be read before
// Next is called again.
func (o *Object) Next() bool {
	// The fast path: nearly all names are plain ASCII, without white space around them. It saves a tenth of the time
	// for a small update.
	d := o.d
	s, i := d.data, d.i
	if i < len(s) && s[i] == '}' {
		d.left++
		d.i++
		return false
	}
	if o.more {
		if i >= len(s) || s[i] != ',' {
			return o.next()
		}
		i++
	}
	if i >= len(s) || s[i] != '"' {
		return o.next()
	}
	i++
	end, ascii := plain(s, i)
	if !ascii || end+1 >= len(s) || s[end] != '"' || s[end+1] != ':' {
		return o.next()
	}
	d.name, d.lone = s[i:end], false
	d.i = end + 2
	o.more = true
	return o.tag == "" || o.checkTag()
}

func (o *Object) next() bool {
	d := o.d
	if !d.member(o.more) {
		return false
	}
	name, size := d.str()
	if d.lone = false; size != len(name) {
		var text string
		text, d.lone = unescape(name, size)
		name = []byte(text)
	}
	d.name = name
	o.more = true
	return d.colon() && o.checkTag()
}

func (o *Object) checkTag() bool {
	if o.tag != "" && string(o.d.name) == o.tag {
		if o.tagged {
			o.duplicate()
			return false
		}
		o.tagged = true
	}
	return true
}

// Name returns the name of the current member. It is valid until the member's value is read.
func (o *Object) Name() []byte { return o.d.name }

// key returns the name of the current member as a string that may be kept.
func (o *Object) key() string {
	o.d.AddItems(1)
	if o.d.lone {
		o.d.Repair(o.d.Mark(), loneSurrogate)
	}
	return string(o.d.name)
}

// Once records that the current member is number i, 0 to 63, of the known members, and fails if it was seen before.
func (o *Object) Once(i int) {
	bit := uint64(1) << i
	if o.seen&bit != 0 {
		o.duplicate()
	}
	o.seen |= bit
}

func (o *Object) duplicate() { o.d.Failf("duplicate member %.64q", o.d.name) }

// Refuse fails because the current member is not allowed.
func (o *Object) Refuse() { o.d.Failf("the member %.64q must not be there", o.d.name) }

// Require fails unless all members were seen; names[i] is the member that was recorded by Once(i). Call it after Next
// has returned false.
func (o *Object) Require(names ...string) {
	o.require(uint64(1)<<len(names)-1, func(bit int) string { return names[bit] })
}

func (o *Object) require(members uint64, name func(bit int) string) {
	if missing := members &^ o.seen; missing != 0 && o.d.err == nil {
		o.d.failText(o.start, "missing member "+strconv.Quote(name(bits.TrailingZeros64(missing))))
	}
}

// Array is an array being read, element by element.
type Array struct {
	d    *Decoder
	more bool // an element has been read
}

// Array starts reading an array:
//
//	for a := d.Array(); a.Next(); { … read the element … }
func (d *Decoder) Array() Array {
	if d.space() != '[' {
		d.mismatch("array")
	} else {
		d.enter()
	}
	return Array{d: d}
}

// Next moves to the next element, and reports whether there is one. The element must be read before Next is called
// again.
func (a *Array) Next() bool {
	ok := a.d.element(a.more)
	a.more = true
	if ok {
		a.d.AddItems(1)
	}
	return ok && a.d.err == nil
}

// Tag returns the string value of the member name of the next object, without consuming the object. ok is false if
// there is no such member, or the next value is not an object. A member that is not a string is a failure, and so is a
// second member of that name when the object is read. The code that reads the object may or may not meet the member
// itself.
//
// The text up to the member is read twice, unless the member comes first. For nested unions, each with its tag last, it
// is read once for each level, so the time is bounded by depth times size.
//
// The tag is valid as long as the input.
func (d *Decoder) Tag(name string) (tag []byte, ok bool) { return d.peekTag(name, "") }

// LenientTag is Tag, but treats any value that is not a string as absent. The code that reads the object reports that
// it is wrong.
func (d *Decoder) LenientTag(name string) (tag []byte, ok bool) { return d.peekTag(name, "n0tf[{") }

// DefaultTag is Tag or, if the object fits the variant that needs no tag, LenientTag, and then records as a repair that
// the value of the tag is dropped.
func (d *Decoder) DefaultTag(name string, fits bool) (tag []byte, ok bool) {
	if !fits {
		return d.Tag(name)
	}
	if tag, ok = d.LenientTag(name); !ok {
		d.Drops(name)
	}
	return tag, ok
}

// peekTag is Tag, but treats a value of one of the kinds in absent as a missing member.
func (d *Decoder) peekTag(name, absent string) (tag []byte, ok bool) {
	// The fast path: nearly all peers write the tag first. It saves a sixth of the time for a small update.
	if from := d.first(name); from > 0 && from < len(d.data) && d.data[from] == '"' {
		end, ascii := plain(d.data, from+1)
		if ascii && end < len(d.data) && d.data[end] == '"' {
			d.tag, d.tagAt, d.tagEnd = name, d.i, end+1
			return d.data[from+1 : end], true
		}
	}
	m := d.Mark()
	if !d.seek(name) {
		d.Rewind(m)
		return nil, false
	}
	switch kind := d.Kind(); {
	case kind == '"':
		start := d.i
		content, size := d.str()
		if tag = content; size != len(content) {
			tag = []byte(d.unescape(start, content, size))
		}
		ok = d.err == nil
	case strings.IndexByte(absent, kind) < 0:
		d.mismatch("string")
	}
	d.Rewind(m)
	d.tag, d.tagAt, d.tagEnd = name, m.i, 0
	return tag, ok
}

// NoTag fails because Tag found no member with that name where one is required.
func (d *Decoder) NoTag(name string) {
	if d.Kind() == '{' {
		d.Missing(name)
	} else {
		d.mismatch("object")
	}
}

// Fits reports whether the next value is an object that has all of the given members, at most 64. They are given as
// names, each followed by the kinds that the value may have, as Kind returns them, or "" for all. It consumes nothing.
func (d *Decoder) Fits(members ...string) bool {
	if d.Kind() != '{' {
		return false
	}
	_, ok := d.fits(members)
	return ok
}

// fits is Fits, but also reports whether the first item of an array has the members. It returns the end of the text
// that it has read.
func (d *Decoder) fits(members []string) (end int, ok bool) {
	start := d.Mark()
	switch d.Kind() {
	case '[':
		a := d.Array()
		ok = a.Next() && d.Fits(members...)
		d.Rewind(start)
		d.Skip()
		end = d.i
		d.Rewind(start)
		return end, d.err == nil && ok
	case '{':
	default:
		return d.i, false
	}
	var found uint64
	for o := d.Object(); o.Next(); d.Skip() {
		for i := 0; i < len(members); i += 2 {
			if members[i] == string(d.name) && (members[i+1] == "" || strings.IndexByte(members[i+1], d.Kind()) >= 0) {
				found |= 1 << (i / 2)
			}
		}
	}
	end = d.i
	d.Rewind(start)
	return end, d.err == nil && found == 1<<(len(members)/2)-1
}

// Has reports whether the next object has a member with the given name. It consumes nothing.
func (d *Decoder) Has(name string) bool {
	m := d.Mark()
	ok := d.seek(name)
	d.Rewind(m)
	return ok && d.err == nil
}

// ItemHas reports whether the first item of the next array is an object that has a member with the given name. It
// consumes nothing.
func (d *Decoder) ItemHas(name string) bool {
	m := d.Mark()
	ok := false
	if d.space() == '[' {
		a := d.Array()
		ok = a.Next() && d.Has(name)
	}
	d.Rewind(m)
	return ok && d.err == nil
}

// HasValue reports whether the next object has a member with the given name and value: a string, a number or a boolean.
// It consumes nothing.
func (d *Decoder) HasValue(name, value string) bool {
	m := d.Mark()
	ok := d.seek(name) && d.readEquals(value)
	d.Rewind(m)
	return ok && d.err == nil
}

// Fixed reads a value that must equal the given one: a string, a number or a boolean.
func (d *Decoder) Fixed(value string) {
	at := d.Offset()
	if !d.readEquals(value) && d.err == nil {
		d.failText(at, "expected "+value)
	}
}

// readEquals reads any value and reports whether it equals the given one.
func (d *Decoder) readEquals(value string) bool {
	if kind := value[0]; d.Kind() == '"' && kind == '"' {
		start := d.i
		content, size := d.str()
		if d.err != nil {
			return false
		}
		if size == len(content) && len(content) == len(value)-2 {
			return string(content) == value[1:len(value)-1]
		}
		want := Decoder{data: []byte(value)}
		return d.unescape(start, content, size) == want.Str()
	}
	start := d.i
	d.Skip()
	if d.err != nil {
		return false
	}
	text := d.data[start:d.i]
	return string(text) == value || sameNumber(text, []byte(value))
}

// sameNumber reports whether two JSON texts are the same number.
func sameNumber(a, b []byte) bool {
	number := func(text []byte) bool { return text[0] == '-' || text[0]-'0' < 10 }
	if !number(a) || !number(b) {
		return false
	}
	x, err := strconv.ParseFloat(string(a), 64)
	y, err2 := strconv.ParseFloat(string(b), 64)
	if err != nil || err2 != nil || x != y {
		return false
	}
	v, err := parseInteger(bytes.TrimPrefix(a, []byte("-")))
	w, err2 := parseInteger(bytes.TrimPrefix(b, []byte("-")))
	return (err == nil) == (err2 == nil) && v == w
}

// seek moves to the value of the member with the given name, if the next value is an object that has one.
func (d *Decoder) seek(name string) bool {
	if i := d.first(name); i > 0 {
		d.i = i
		return true
	}
	if d.space() != '{' {
		return false
	}
	for o := d.Object(); o.Next(); d.Skip() {
		if string(d.name) == name {
			return true
		}
	}
	return false
}

// first returns the offset of the value of the first member of the next object, if it has the given name and there is
// no white space, or 0.
func (d *Decoder) first(name string) int {
	if d.space() != '{' {
		return 0
	}
	s, n := d.data[d.i:], len(name)
	if len(s) > n+4 && s[1] == '"' && s[n+2] == '"' && s[n+3] == ':' && string(s[2:n+2]) == name {
		return d.i + n + 4
	}
	return 0
}

// Integral reports whether the next value is a number, written without fraction and exponent, that fits in an int64. It
// consumes nothing.
func (d *Decoder) Integral() bool {
	if d.Kind() != '0' {
		return false
	}
	i := d.i
	for i < len(d.data) && (d.data[i] == '-' || d.data[i]-'0' < 10) {
		i++
	}
	_, err := strconv.ParseInt(string(d.data[d.i:i]), 10, 64)
	return err == nil && (i == len(d.data) || d.data[i] != '.' && d.data[i]|0x20 != 'e')
}
