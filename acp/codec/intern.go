package codec

// This file owns strings that come again and again.

// interned remembers short strings, one for each slot: what falls into the same slot as another
// replaces it.
type interned [64]string

const maxInterned = 64 // bytes

// get finds the slot of b, which is not empty, by its length and its ends. Hashing all of it would take
// five times as long, and gain nothing against those who want strings to fall into the same slot: all
// that costs is an allocation.
func (t *interned) get(b []byte) string {
	n := len(b)
	h := uint64(n)
	if n >= 8 {
		h ^= word(b, 0)*3 ^ word(b, n-8)
	} else {
		h ^= uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	slot := &t[h*0x9e3779b97f4a7c15>>58]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// Intern is Str for ids, enum values and the like: a short string that this Decoder has read lately,
// also before Reset, is not allocated again.
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
