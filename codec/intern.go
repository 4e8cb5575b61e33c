package codec

import "hash/maphash"

// interned remembers short strings, one for each slot: a string replaces another one in the same slot.
type interned [64]string

const maxInterned = 64 // bytes

var internSeed = maphash.MakeSeed()

func (t *interned) get(b []byte) string {
	slot := &t[maphash.Bytes(internSeed, b)%uint64(len(t))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// Intern is Str for ids, enum values and the like: a short string that this Decoder has read recently, even before
// Reset, is not allocated again.
func (d *Decoder) Intern() string {
	if d.space() != '"' {
		d.mismatch("string")
		return ""
	}
	start := d.i
	content, size := d.str()
	if size != len(content) {
		return d.unescape(start, content, size)
	}
	return d.Interned(content)
}

// Interned returns text as a string, as Intern does.
func (d *Decoder) Interned(text []byte) string {
	if len(text) > maxInterned || len(text) == 0 {
		return string(text)
	}
	if d.interned == nil {
		d.interned = new(interned)
	}
	return d.interned.get(text)
}
