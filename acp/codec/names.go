package codec

// This file owns names, the strings that an enum lists.

// Name is an enum of strings that has a list of its values.
type Name interface {
	~string
	Known() bool
}

// EncodeEnum writes a name. It fails on the empty string if that is not listed: it says that nothing is set.
func EncodeEnum[T Name](e *Encoder, v T) {
	if v == "" && !v.Known() {
		e.Failf("empty %T", v)
	}
	e.Str(string(v))
}

// DecodeEnum reads a name as DecodeIntern does; one that is not listed is kept, see [Opt.Kept]. It fails on the
// empty string if that is not listed.
func DecodeEnum[T Name](d *Decoder) T {
	v := T(d.Intern())
	switch {
	case v.Known() || d.err != nil:
	case v == "":
		d.failText(d.i, "empty name")
	default:
		d.unlisted++
	}
	return v
}
