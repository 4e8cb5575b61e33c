// Package codec writes and reads JSON for generated code only: programs use the types of package acp or, with
// encoding/json, the methods MarshalJSON and UnmarshalJSON of these types.
//
// [Encode] and [Decode] go by the tags of the fields of generated structs, and need no code for each. Unions have two
// methods, which use a table of their variants; see [Variants]. The structs of the commonest messages have the same
// methods, with code for the members that are always there:
//
//	func (x *TextContent) EncodeJSON(e *codec.Encoder) {
//		e.BeginObject()
//		if !x.Annotations.IsZero() {
//			codec.EncodeMember(e, x, 0)
//		}
//		e.Name("text")
//		e.Str(x.Text)
//		e.EndObject()
//	}
//
//	func (x *TextContent) DecodeJSON(d *codec.Decoder) {
//		*x = TextContent{}
//		o := d.Object()
//		for o.Next() {
//			switch string(o.Name()) {
//			case "text":
//				o.Once(1)
//				x.Text = d.Str()
//			default:
//				codec.DecodeMember(&o, x)
//			}
//		}
//		codec.Require(&o, 0b10, x)
//	}
//
// The first error is kept: after it, an [Encoder] discards its output and a [Decoder] finds nothing more to read, so
// these methods need not check after each call. JSON pointers are not tracked; they are computed from the bytes when an
// error or a repair is reported.
//
// Texts must follow RFC 8259: UTF-8 without a byte order mark, nothing but white space after the value, at most
// [MaxDepth] levels of nesting. Beyond the RFC, names of members are case-sensitive, and a known member must not occur
// twice; in values that are skipped or kept as raw JSON, names are not compared. If a bad value is dropped because a
// schema allows that ([Decoder.Recover]), this is recorded as a [Repair]; so is half of a surrogate pair in an escape
// sequence, which becomes U+FFFD. The output of an Encoder is always strict, and contains no newline.
//
// Texts may be hostile. Reading takes time proportional to the length, except for tags that do not come first; see
// [Decoder.Tag]. For a text of more than a few KiB, the values of this module's packages take at most 20 times its
// length in memory, and reading them allocates at most 64 times its length, mostly for items that leniency drops.
package codec

// SupportVersion1 is referenced by generated files, so that they do not compile against a version of this package that
// no longer supports their code.
const SupportVersion1 = true

// MaxDepth is how many levels of arrays and objects a text may have, for writing and for reading.
const MaxDepth = 256

// Value is implemented by pointers to generated unions and lists, and to the structs of the commonest messages.
type Value interface {
	// EncodeJSON writes exactly one JSON value.
	EncodeJSON(*Encoder)
	// DecodeJSON reads exactly one JSON value. It copies the parts of the input that it keeps.
	DecodeJSON(*Decoder)
}
