package codec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Repair tells of a value that was read leniently.
type Repair struct {
	// Pointer is the JSON pointer of the value. Of very long names it has the beginning.
	Pointer string
	// Msg says what was done to it and why.
	Msg string
}

// maxRepairs bounds how many repairs a Decoder records for one text; the rest are counted.
const maxRepairs = 256

// repair is a Repair before its pointers are known.
type repair struct {
	at    int // offset of the value
	cause int // offset of what is wrong, in the value
	msg   string
}

func (d *Decoder) repair(r repair) {
	if len(d.repairs) == maxRepairs {
		d.omitted++
		return
	}
	d.repairs = append(d.repairs, r)
}

// Mark is a place in the text of one Decoder.
type Mark struct {
	i, left          int
	repairs, omitted int
	failed           bool
}

// Mark returns the place before the value that comes next.
func (d *Decoder) Mark() Mark {
	d.space()
	return Mark{d.i, d.left, len(d.repairs), d.omitted, d.err != nil}
}

// Rewind goes back to m, to read from there again, unless the Decoder has failed. Repairs stay.
func (d *Decoder) Rewind(m Mark) {
	if d.err == nil {
		d.i, d.left = m.i, m.left
	}
}

// Retry reports whether reading the value at m has failed. If so it undoes the failure and goes back to
// m, for the value to be read in another way. A text that is not JSON stays failed, as does one that had
// failed before m.
func (d *Decoder) Retry(m Mark) bool {
	if d.err == nil || m.failed || errors.Is(d.err, ErrSyntax) {
		return false
	}
	d.err = nil
	d.Rewind(m)
	d.repairs, d.omitted = d.repairs[:m.repairs], m.omitted
	return true
}

// RetryFitting is Retry, but only where an object is at m that Fits the members, and as long as not too much of the
// text was read again: where values are within each other, each level could double what is read.
func (d *Decoder) RetryFitting(m Mark, members ...string) bool {
	if d.err == nil {
		return false
	}
	failed := *d
	if !d.Retry(m) {
		return false
	}
	end, ok := d.fits(members)
	failed.again += end - m.i
	if !ok || failed.again > maxAgain*(len(d.data)+1<<10) {
		*d = failed
		return false
	}
	d.again = failed.again
	return true
}

// maxAgain bounds how often a text may be read again on average. Each level of nesting of valid values may need it
// once.
const maxAgain = 64

// Recover is Retry, but passes over the value, which is a repair; the caller then sets what it read to
// its zero value.
func (d *Decoder) Recover(m Mark) bool { return d.err != nil && d.recover(m) }

func (d *Decoder) recover(m Mark) bool {
	failure := d.err
	if !d.Retry(m) {
		return false
	}
	d.Skip()
	if d.err != nil {
		return false
	}
	d.repair(repair{at: m.i, cause: failure.Offset, msg: failure.Error()})
	return true
}

// Repair records that the value at m was read leniently, without having failed; msg says how.
func (d *Decoder) Repair(m Mark, msg string) { d.repair(repair{at: m.i, cause: m.i, msg: msg}) }

// Drops records a repair for each of these members that the object that comes next has with another value than null:
// members of other variants of a union, which the one that is read next has no place for.
func (d *Decoder) Drops(names ...string) {
	for _, name := range names {
		start := d.Mark()
		found := d.seek(name) && d.Kind() != 'n' && d.err == nil
		at := d.Mark()
		if d.Rewind(start); found {
			d.Repair(at, "a member of another variant is dropped")
		}
	}
}

// NullAs is Null, and records as a repair that null was read as what, such as "[]".
func (d *Decoder) NullAs(what string) bool {
	m := d.Mark()
	if !d.Null() {
		return false
	}
	d.Repair(m, "null read as "+what)
	return true
}

// Repairs returns what was read leniently so far, in the order of the text. Of very many, one last
// Repair without pointer tells how many more there were.
func (d *Decoder) Repairs() []Repair {
	if len(d.repairs) == 0 {
		return nil
	}
	// What was read twice, after Rewind, may have been repaired twice.
	pending := slices.Clone(d.repairs)
	slices.SortStableFunc(pending, func(a, b repair) int { return cmp.Compare(a.at, b.at) })
	pending = slices.Compact(pending)

	offsets := make([]int, 0, 2*len(pending))
	for _, r := range pending {
		offsets = append(offsets, r.at, r.cause)
	}
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	resolved := pointers(d.data, offsets...)
	pointer := func(offset int) string {
		i, _ := slices.BinarySearch(offsets, offset)
		return resolved[i]
	}

	out := make([]Repair, 0, len(pending)+1)
	for _, r := range pending {
		at := pointer(r.at)
		if inner := strings.TrimPrefix(pointer(r.cause), at); inner != "" {
			r.msg = inner + ": " + r.msg
		}
		out = append(out, Repair{at, r.msg})
	}
	if d.omitted > 0 {
		out = append(out, Repair{"", fmt.Sprintf("%d more repairs", d.omitted)})
	}
	return out
}
