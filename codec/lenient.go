package codec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Repair describes a value that was read leniently.
type Repair struct {
	// Pointer is the JSON pointer of the value. Very long names are cut off.
	Pointer string
	// Msg says how the value was treated and why.
	Msg string
}

// maxRepairs bounds how many repairs a Decoder records for one text; the rest are counted.
const maxRepairs = 256

// repair is a Repair before its pointers are known.
type repair struct {
	at    int // offset of the value
	cause int // offset of the error within the value
	msg   string
}

func (d *Decoder) repair(r repair) {
	if len(d.repairs) == maxRepairs {
		d.omitted++
		return
	}
	d.repairs = append(d.repairs, r)
}

// Mark is a position in the text of one Decoder.
type Mark struct {
	i, left          int
	repairs, omitted int
	failed           bool
}

// Mark returns the position before the next value.
func (d *Decoder) Mark() Mark {
	d.space()
	return Mark{d.i, d.left, len(d.repairs), d.omitted, d.err != nil}
}

// Rewind returns to m, to read again from there, unless the Decoder has failed. Repairs are kept.
func (d *Decoder) Rewind(m Mark) {
	if d.err == nil {
		d.i, d.left = m.i, m.left
	}
}

// Retry reports whether reading the value at m has failed. If so, it clears the failure and returns to m, so that the
// value can be read in another way. A text that is not JSON stays failed, as does one that had failed before m.
func (d *Decoder) Retry(m Mark) bool {
	if d.err == nil || m.failed || errors.Is(d.err, ErrSyntax) {
		return false
	}
	d.err = nil
	d.Rewind(m)
	d.repairs, d.omitted = d.repairs[:m.repairs], m.omitted
	return true
}

// RetryFitting is Retry, but only if there is an object at m that Fits the members, or an array whose first item does,
// and only as long as not too much of the text has been read again: with nested values, each level could double the
// amount read.
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

// Recover is Retry, but skips the value, which is a repair; the caller then sets the result to its zero value.
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

// Repair records that the value at m was read leniently, without a failure; msg says how.
func (d *Decoder) Repair(m Mark, msg string) { d.repair(repair{at: m.i, cause: m.i, msg: msg}) }

// Drops records a repair for each of the named members that the next object has with a value other than null: members
// of other variants of a union, which the variant that is read next cannot hold.
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

// NullAs is Null, and records as a repair that null was read as the value described by what, such as "[]".
func (d *Decoder) NullAs(what string) bool {
	m := d.Mark()
	if !d.Null() {
		return false
	}
	d.Repair(m, "null read as "+what)
	return true
}

// Repairs returns the repairs so far, in the order of the text. If there are very many, a last Repair without a pointer
// says how many more there were.
func (d *Decoder) Repairs() []Repair {
	if len(d.repairs) == 0 {
		return nil
	}
	// Values that were read twice, after Rewind, may have been repaired twice.
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
