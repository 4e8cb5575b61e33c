package codec

// Embed lets tests write any value into an object.
func Embed(e *Encoder, v any, names ...string) { e.embed(v, names...) }

// NullableTag is Tag for a union whose tag can be null.
func (d *Decoder) NullableTag(name string) (tag []byte, ok bool) { return d.peekTag(name, "n") }
