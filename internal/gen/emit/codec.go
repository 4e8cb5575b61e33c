// codec_gen.go has the encoder and decoder of every type. The generated functions list members; packages codec and rpc
// implement the operations on them.

package emit

import (
	"encoding/json"
	"fmt"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

var (
	e = jen.Id("e")
	d = jen.Id("d")
	x = jen.Id("x")
	o = jen.Id("o")
)

func (g *generator) codec(f *jen.File) {
	f.Comment("This does not compile with a runtime of another generation, which lacks the constant.")
	f.Const().Id("_").Op("=").Add(g.codecName("SupportVersion1"))
	f.Line()
	for _, decl := range g.pkg.Decls {
		switch decl := decl.(type) {
		case *model.Struct:
			if !g.tabled(decl) {
				g.structCodec(f, decl)
			}
		case *model.Newtype:
			if !model.Scalar(decl) {
				g.newtypeCodec(f, decl)
			}
		case *model.Union:
			g.unionCodec(f, decl)
		}
	}
}

// encoder and decoder begin the methods of types that are not read and written as their tags say.
func (g *generator) encoder(decl, name string) *jen.Statement {
	return method(decl).Id(name).Params(jen.Id("e").Op("*").Add(g.codecName("Encoder")))
}

func (g *generator) decoder(decl, name string) *jen.Statement {
	return method(decl).Id(name).Params(jen.Id("d").Op("*").Add(g.codecName("Decoder")))
}

// encode and decode return the statements that write and read v, a value of a type that readsItself.
func (g *generator) encode(t model.Type, v *jen.Statement) *jen.Statement {
	if g.hasMethods(t) {
		return call(v, "EncodeJSON", e)
	}
	return g.codecName("Encode").Call(e, jen.Op("&").Add(v))
}

func (g *generator) decode(t model.Type, v *jen.Statement) *jen.Statement {
	if g.hasMethods(t) {
		return call(v, "DecodeJSON", d)
	}
	return g.codecName("Decode").Call(d, jen.Op("&").Add(v))
}

// hasMethods reports whether a type that readsItself has EncodeJSON and DecodeJSON.
func (g *generator) hasMethods(t model.Type) bool {
	named, _ := t.(model.Named)
	s, ok := named.Decl.(*model.Struct)
	return !ok || !g.tabled(s)
}

// call returns x.name(args).
func call(x *jen.Statement, name string, args ...jen.Code) *jen.Statement {
	return x.Clone().Dot(name).Call(args...)
}

// structCodec writes the codec methods of a struct. A struct that a variant declares has only the methods that its
// union calls.
func (g *generator) structCodec(f *jen.File, s *model.Struct) {
	if s.Variant != nil {
		missing := jen.If(x.Clone().Op("==").Nil()).Block(
			call(e, "FailObject", jen.Lit("a variant that is a nil %T"), x),
			jen.Return())
		add(f, g.encoder(s.Go, "encodeMembers").Block(append([]jen.Code{missing}, g.encodeStruct(s)...)...))
		add(f, g.decoder(s.Go, "decodeMembers").Block(g.decodeObject(s.Fields, s)...))
		return
	}
	add(f, g.encoder(s.Go, "EncodeJSON").Block(object(g.encodeStruct(s)...)...))
	body := []jen.Code{jen.Op("*").Add(x).Op("=").Id(s.Go).Values()}
	add(f, g.decoder(s.Go, "DecodeJSON").Block(append(body, g.decodeObject(s.Fields, s)...)...))
}

// object returns the statements that write an object with the given members.
func object(members ...jen.Code) []jen.Code {
	return append(append([]jen.Code{call(e, "BeginObject")}, members...), call(e, "EndObject"))
}

func (g *generator) newtypeCodec(f *jen.File, decl *model.Newtype) {
	value := jen.Op("*").Add(x)
	g.coders(f, decl.Go,
		append([]jen.Code{g.write(decl.Type, value, true)}, g.checkWritten(decl.Type, value)...),
		append([]jen.Code{value.Clone().Op("=").Add(g.readAs(decl.Go, decl.Type))}, g.checkRead(decl.Type, value)...))
}

// coders writes EncodeJSON and DecodeJSON with the given bodies.
func (g *generator) coders(f *jen.File, name string, encode, decode []jen.Code) {
	body := func(code []jen.Code) *jen.Statement {
		if len(code) == 1 {
			return oneLine(code...)
		}
		return jen.Block(code...)
	}
	add(f, g.encoder(name, "EncodeJSON").Add(body(encode)))
	add(f, g.decoder(name, "DecodeJSON").Add(body(decode)))
}

// encodeStruct returns the statements that write the members of a struct.
func (g *generator) encodeStruct(s *model.Struct) []jen.Code {
	var out []jen.Code
	for _, f := range s.Fixed {
		out = append(out, call(e, "Fixed", jen.Lit(f.JSON), jen.Lit(string(f.Value))))
	}
	out = append(out, g.encodeFields(s.Fields)...)
	if s.Extra == nil {
		return out
	}
	args := []jen.Code{e, x.Clone().Dot(s.Extra.Go), g.checkedWriter(s.Extra.Elem)}
	for _, name := range names(s) {
		args = append(args, jen.Lit(name))
	}
	return append(out, g.codecName("EncodeExtra").Call(args...))
}

// names returns the names of the members that an object has besides those kept in Extra.
func names(s *model.Struct) []string {
	var out []string
	for _, f := range s.Fixed {
		out = append(out, f.JSON)
	}
	for _, f := range s.Fields {
		out = append(out, f.JSON)
	}
	return append(out, s.Elsewhere()...)
}

// encodeFields returns the statements that write members.
func (g *generator) encodeFields(fields []*model.Field) []jen.Code {
	var out []jen.Code
	for _, f := range fields {
		out = append(out, g.encodeField(f)...)
	}
	return out
}

func (g *generator) encodeField(f *model.Field) []jen.Code {
	v := x.Clone().Dot(f.Go)
	if f.Flat {
		return []jen.Code{g.codecName("Embed").Call(e, jen.Op("&").Add(v))}
	}
	if _, meta := f.Type.(model.Meta); meta {
		return []jen.Code{g.codecName("EncodeMeta").Call(e, v)}
	}
	if f.Opt() {
		name := "EncodeOpt"
		if f.Presence == model.RequiredNull {
			name = "EncodeOptNull"
		}
		var code *jen.Statement
		if readsItself(f.Type) {
			code = g.codecName(name+"Value").Call(e, written(f.JSON), jen.Op("&").Add(v))
		} else {
			code = g.codecName(name).Call(e, written(f.JSON), v, g.writer(f.Type))
		}
		checks := g.checkWritten(f.Type, jen.Id("v"))
		if checks == nil {
			return []jen.Code{code}
		}
		return []jen.Code{code, jen.If(
			jen.List(jen.Id("v"), jen.Id("ok")).Op(":=").Add(v).Dot("Get").Call(),
			jen.Id("ok"),
		).Block(checks...)}
	}
	code := append([]jen.Code{call(e, "Name", written(f.JSON)), g.write(f.Type, v, false)}, g.checkWritten(f.Type, v)...)
	if f.Presence == model.Plain && !f.Always {
		return []jen.Code{jen.If(set(f)).Block(code...)}
	}
	return code
}

// bounds returns the calls of the codec that check the bounds of a value of the type.
func (g *generator) bounds(t model.Type, v *jen.Statement) []jen.Code {
	var out []jen.Code
	if d := enumOf(t); d != nil && !d.Names() && !d.Open {
		out = append(out, g.codecName("Listed").Call(v))
	}
	t = plain(t)
	for i, limit := range model.BoundsOf(t) {
		if k := model.BoundKeywords[i]; limit != "" && k.Check != "" {
			out = append(out, g.codecName(k.Check).Call(append([]jen.Code{v}, limitOf(k, limit)...)...))
		}
	}
	if t, ok := t.(model.Runtime); ok && t.Name == model.RuntimeID {
		out = append(out, g.codecName("IDInParams").Call(v, jen.Lit(t.Null)))
	}
	return out
}

// limitOf returns a limit as the arguments of the function that checks it.
func limitOf(k model.BoundKeyword, limit string) []jen.Code {
	if k.Limit != model.Names {
		return []jen.Code{verbatim(limit)}
	}
	var names []string
	mustRead(json.RawMessage(limit), &names)
	var out []jen.Code
	for _, name := range names {
		out = append(out, jen.Lit(name))
	}
	return out
}

// checkRead returns the statements that check a value after reading it, checkWritten those after writing it.
func (g *generator) checkRead(t model.Type, v *jen.Statement) []jen.Code {
	return checks(d, g.bounds(t, v))
}

func (g *generator) checkWritten(t model.Type, v *jen.Statement) []jen.Code {
	return checks(e, g.bounds(t, v))
}

func checks(coder *jen.Statement, calls []jen.Code) []jen.Code {
	var out []jen.Code
	for _, c := range calls {
		out = append(out, call(coder, "Check", c))
	}
	return out
}

// readsItself reports whether codec.Encode and codec.Decode take pointers to the type.
func readsItself(t model.Type) bool {
	switch t := t.(type) {
	case model.Named:
		return !model.Scalar(t.Decl)
	case model.Runtime:
		return true
	}
	return false
}

// plain returns the type that a named scalar is defined over, and any other type as it is.
func plain(t model.Type) model.Type {
	if named, ok := t.(model.Named); ok {
		switch d := named.Decl.(type) {
		case *model.Enum:
			return d.Type
		case *model.Newtype:
			if model.Scalar(d) {
				return d.Type
			}
		}
	}
	return t
}

// enumOf returns the enum of t, or nil.
func enumOf(t model.Type) *model.Enum {
	if named, ok := t.(model.Named); ok {
		d, _ := named.Decl.(*model.Enum)
		return d
	}
	return nil
}

// isEnum reports whether t is a closed list of names.
func isEnum(t model.Type) bool {
	d := enumOf(t)
	return d != nil && d.Closed()
}

// write returns the statement that writes the value v. A defined value is of a type defined over t.
func (g *generator) write(t model.Type, v *jen.Statement, defined bool) *jen.Statement {
	if isEnum(t) {
		return g.codecName("EncodeEnum").Call(e, v)
	}
	if basic := plain(t); basic != t {
		t, defined = basic, true
	}
	as := func(name string) *jen.Statement {
		if defined {
			return jen.Id(name).Call(v)
		}
		return v
	}
	switch t := t.(type) {
	case model.Basic:
		switch t.Kind {
		case model.String:
			return call(e, "Str", as("string"))
		case model.Bool:
			return call(e, "Bool", as("bool"))
		case model.Int:
			if t.Bits < 64 {
				v = jen.Id("int64").Call(v)
			} else {
				v = as("int64")
			}
			return call(e, "Int", v)
		case model.Uint:
			if t.Bits < 64 {
				v = jen.Id("uint64").Call(v)
			} else {
				v = as("uint64")
			}
			return call(e, "Uint", v)
		}
		return call(e, "Float", as("float64"))
	case model.Any:
		if defined {
			v = jen.Qual(jsonPath, "RawMessage").Call(v)
		}
		return call(e, "Raw", v)
	case model.Named, model.Runtime:
		if defined {
			v = jen.Parens(jen.Op("*").Add(g.goType(t))).Call(jen.Op("&").Add(v))
			return g.codecName("Encode").Call(e, v)
		}
		return g.encode(t, v)
	case model.Null:
		return call(e, "Null")
	case model.Slice:
		if g.sliceKind(t) == "SliceFunc" {
			return g.codecName("EncodeSliceFunc").Call(e, v, g.checkedWriter(t.Elem))
		}
		return g.writer(t).Call(e, v)
	case model.Map:
		if g.mapKind(t) == "MapFunc" {
			return g.codecName("EncodeMapFunc").Call(e, v, g.checkedWriter(t.Elem))
		}
		return g.writer(t).Call(e, v)
	case model.Nullable:
		return g.codecName("EncodeNullable").Call(e, v, g.checkedWriter(t.Elem))
	case model.Pointer:
		return g.writer(t).Call(e, v)
	}
	panic(fmt.Sprintf("no writer for %T", t))
}

// checkedWriter is like writer, with the checks of the type.
func (g *generator) checkedWriter(t model.Type) *jen.Statement {
	checks := g.checkWritten(t, jen.Id("v"))
	if checks == nil {
		return g.writer(t)
	}
	return g.writerFunc(t, checks...)
}

// writerFunc returns a function literal that writes a value of the type.
func (g *generator) writerFunc(t model.Type, checks ...jen.Code) *jen.Statement {
	return jen.Func().Params(jen.Id("e").Op("*").Add(g.codecName("Encoder")), jen.Id("v").Add(g.goType(t))).
		Block(append([]jen.Code{g.write(t, jen.Id("v"), false)}, checks...)...)
}

// writer returns the function that writes a value of the type.
func (g *generator) writer(t model.Type) *jen.Statement {
	if isEnum(t) {
		return g.codecName("EncodeEnum")
	}
	if basic, ok := plain(t).(model.Basic); ok && basic != t {
		switch basic.Kind {
		case model.String:
			return g.codecName("EncodeString")
		case model.Int:
			return g.codecName("EncodeInt")
		case model.Uint:
			return g.codecName("EncodeUint")
		}
		return g.writerFunc(t)
	}
	switch t := t.(type) {
	case model.Basic:
		switch t.Kind {
		case model.Int:
			return g.codecName("EncodeInt")
		case model.Uint:
			return g.codecName("EncodeUint")
		}
		return g.codecMethod("Encoder",
			map[model.Kind]string{model.String: "Str", model.Bool: "Bool", model.Float: "Float"}[t.Kind])
	case model.Any:
		return g.codecMethod("Encoder", "Raw")
	case model.Null:
		return g.codecName("EncodeNull")
	case model.Slice:
		kind := g.sliceKind(t)
		if kind == "SliceFunc" {
			return g.writerFunc(t)
		}
		return g.codecName("Encode" + kind)
	case model.Map:
		kind := g.mapKind(t)
		if kind == "MapFunc" {
			return g.writerFunc(t)
		}
		return g.codecName("Encode" + kind)
	case model.Nullable:
		return g.writerFunc(t)
	case model.Pointer:
		return g.codecName("EncodePointer").Types(g.goType(t.Elem))
	case model.Named, model.Runtime:
		return g.codecName("EncodeValue").Types(g.goType(t))
	}
	panic(fmt.Sprintf("no writer for %T", t))
}

// codecMethod returns a method of the codec as a function.
func (g *generator) codecMethod(of, name string) *jen.Statement {
	return jen.Parens(jen.Op("*").Add(g.codecName(of))).Dot(name)
}

// anyString is a string without constraints.
var anyString = model.Basic{Kind: model.String}

// sliceKind returns the part of the names of the codec's functions that stands for the items of an array, and mapKind
// the same for a map. It ends in Func if the function takes a function for the items.
func (g *generator) sliceKind(t model.Slice) string {
	switch {
	case t.Elem == anyString:
		return "Strings"
	case !readsItself(t.Elem) || g.bounded(t.Elem):
		return "SliceFunc"
	}
	return "Slice"
}

func (g *generator) mapKind(t model.Map) string {
	switch {
	case t.Elem == model.Any{}:
		return "RawMap"
	case t.Elem == anyString:
		return "StringMap"
	case !readsItself(t.Elem) || g.bounded(t.Elem):
		return "MapFunc"
	}
	return "Map"
}

// decodeObject returns the statements that read the members of x: its fields and, for a struct, the members without a
// field.
func (g *generator) decodeObject(fields []*model.Field, s *model.Struct) []jen.Code {
	var cases, required []jen.Code
	for _, f := range fields {
		if f.Flat {
			continue
		}
		code := append([]jen.Code{call(o, "Once", jen.Lit(f.Slot))}, g.decodeField(f)...)
		if g.canBeOff(f.Feature) && !f.OnError {
			code = append(append([]jen.Code{markAt()}, code...),
				g.codecName("RecoverOff").Call(d, jen.Id("at"), bitOf(f.Feature), jen.Op("&").Add(x).Dot(f.Go)))
		}
		cases = append(cases, jen.Case(jen.Lit(f.JSON)).Block(code...))
		if f.Required() {
			required = append(required, jen.Lit(f.JSON))
		}
	}
	other := call(d, "Skip")
	if s != nil {
		fixed, names := fixedMembers(s, len(required))
		cases, required = append(cases, fixed...), append(required, names...)
		if s.Extra != nil {
			var elsewhere []jen.Code
			for _, name := range s.Elsewhere() {
				elsewhere = append(elsewhere, jen.Lit(name))
			}
			if len(elsewhere) > 0 {
				cases = append(cases, jen.Case(elsewhere...).Block(call(d, "Skip")))
			}
			other = g.codecName("DecodeExtra").
				Call(jen.Op("&").Add(o), jen.Op("&").Add(x).Dot(s.Extra.Go), g.checkedReader(s.Extra.Elem, false))
		}
	}
	if len(cases) == 0 {
		return []jen.Code{jen.For(o.Clone().Op(":=").Add(call(d, "Object")), call(o, "Next"), jen.Empty()).Block(other)}
	}
	cases = append(cases, jen.Default().Block(other))
	body := jen.Switch(jen.String().Call(call(o, "Name"))).Block(cases...)
	if len(required) == 0 {
		return []jen.Code{jen.For(o.Clone().Op(":=").Add(call(d, "Object")), call(o, "Next"), jen.Empty()).Block(body)}
	}
	return []jen.Code{
		o.Clone().Op(":=").Add(call(d, "Object")),
		jen.For(call(o, "Next")).Block(body),
		call(o, "Require", required...),
	}
}

// fixedMembers returns the cases of the members that are not fields, and the names of those that are required. Their
// numbers follow those of the required fields.
func fixedMembers(s *model.Struct, required int) (cases, names []jen.Code) {
	for i, f := range s.Fixed {
		cases = append(cases, jen.Case(jen.Lit(f.JSON)).
			Block(call(o, "Once", jen.Lit(required+i)), call(d, "Fixed", jen.Lit(string(f.Value)))))
		names = append(names, jen.Lit(f.JSON))
	}
	for _, name := range s.Without {
		cases = append(cases, jen.Case(jen.Lit(name)).Block(call(o, "Refuse")))
	}
	return cases, names
}

func (g *generator) decodeField(f *model.Field) []jen.Code {
	v := x.Clone().Dot(f.Go)
	if _, meta := f.Type.(model.Meta); meta {
		return []jen.Code{g.decodeMeta(f, v)}
	}
	lenient := ""
	if f.OnError && f.Type != (model.Any{}) {
		lenient = "Lenient"
	}
	if f.Opt() {
		name := "DecodeOpt"
		if !f.Nullable {
			name = "DecodeSome"
		}
		if readsItself(f.Type) && !g.bounded(f.Type) {
			return []jen.Code{g.codecName(name+"Value"+lenient).Call(d, jen.Op("&").Add(v))}
		}
		return []jen.Code{v.Op("=").Add(g.codecName(name+lenient).Call(d, g.checkedReader(f.Type, f.SkipItems)))}
	}

	var code []jen.Code
	switch {
	case lenient != "" && readsItself(f.Type) && !g.bounded(f.Type):
		code = []jen.Code{g.codecName("LenientValue").Call(d, jen.Op("&").Add(v))}
	case lenient != "":
		code = []jen.Code{v.Clone().Op("=").Add(g.codecName("Lenient").Call(d, g.checkedReader(f.Type, f.SkipItems)))}
	default:
		code = append(g.readInto(f.Type, v, f.SkipItems), g.checkRead(f.Type, v)...)
	}
	if f.OnNull {
		empty := "[]"
		if _, ok := f.Type.(model.Map); ok {
			empty = "{}"
		}
		code = []jen.Code{jen.If(jen.Op("!").Add(call(d, "NullAs", jen.Lit(empty)))).Block(code...)}
	}
	return code
}

// decodeMeta reads a _meta member, where null means absent.
func (g *generator) decodeMeta(f *model.Field, v *jen.Statement) jen.Code {
	if f.OnError {
		return v.Op("=").Add(g.codecName("DecodeMeta").Call(d))
	}
	read := v.Op("=").Add(g.codecName("DecodeRawMap").Call(d))
	if f.Nullable {
		return jen.If(jen.Op("!").Add(call(d, "Null"))).Block(read)
	}
	return read
}

// readInto returns the statement that reads v.
func (g *generator) readInto(t model.Type, v *jen.Statement, skipItems bool) []jen.Code {
	if readsItself(t) {
		return []jen.Code{g.decode(t, v)}
	}
	return []jen.Code{v.Clone().Op("=").Add(g.read(t, skipItems))}
}

func (g *generator) bounded(t model.Type) bool { return g.bounds(t, jen.Id("v")) != nil }

// checkedReader is like reader, with the checks of the type.
func (g *generator) checkedReader(t model.Type, skipItems bool) *jen.Statement {
	if !g.bounded(t) {
		return g.reader(t, skipItems)
	}
	return g.readerFunc(t, skipItems)
}

// readerFunc returns a function literal that reads a value of the type, with its checks.
func (g *generator) readerFunc(t model.Type, skipItems bool) *jen.Statement {
	v := jen.Id("v")
	var body []jen.Code
	switch {
	case readsItself(t):
		body = []jen.Code{jen.Var().Add(v).Add(g.goType(t)), g.decode(t, v)}
		body = append(append(body, g.checkRead(t, v)...), jen.Return(v))
	case g.bounded(t):
		body = []jen.Code{v.Clone().Op(":=").Add(g.read(t, skipItems))}
		body = append(append(body, g.checkRead(t, v)...), jen.Return(v))
	default:
		body = []jen.Code{jen.Return(g.read(t, skipItems))}
	}
	return jen.Func().Params(jen.Id("d").Op("*").Add(g.codecName("Decoder"))).Add(g.goType(t)).Block(body...)
}

// read returns the expression that reads a value of the type.
func (g *generator) read(t model.Type, skipItems bool) *jen.Statement {
	if isEnum(t) {
		return g.reader(t, false).Call(d)
	}
	if basic := plain(t); basic != t {
		return g.readAs(t.(model.Named).Decl.Base().Go, basic)
	}
	switch t := t.(type) {
	case model.Basic:
		switch t.Kind {
		case model.String:
			return call(d, "Str")
		case model.Bool:
			return call(d, "Bool")
		case model.Float:
			return call(d, "Float")
		}
	case model.Any:
		return call(d, "Raw")
	case model.Slice:
		if g.sliceKind(t) == "SliceFunc" {
			return g.codecName("DecodeSliceFunc"+lenient(skipItems)).Call(d, g.checkedReader(t.Elem, false))
		}
	case model.Map:
		if g.mapKind(t) == "MapFunc" {
			return g.codecName("DecodeMapFunc").Call(d, g.checkedReader(t.Elem, false))
		}
	case model.Nullable:
		return g.codecName("DecodeOpt").Call(d, g.checkedReader(t.Elem, false))
	}
	return g.reader(t, skipItems).Call(d)
}

// lenient is the suffix of functions that drop items that cannot be read.
func lenient(skipItems bool) string {
	if skipItems {
		return "Lenient"
	}
	return ""
}

// reader returns the function that reads a value of the type.
func (g *generator) reader(t model.Type, skipItems bool) *jen.Statement {
	if isEnum(t) {
		return g.codecName("DecodeEnum").Types(g.goType(t))
	}
	if basic, ok := plain(t).(model.Basic); ok && basic != t {
		switch basic.Kind {
		case model.String:
			return g.codecName("DecodeIntern").Types(g.goType(t))
		case model.Int:
			return g.codecName("DecodeInt").Types(g.goType(t))
		case model.Uint:
			return g.codecName("DecodeUint").Types(g.goType(t))
		}
		return g.readerFunc(t, false)
	}
	switch t := t.(type) {
	case model.Basic:
		switch t.Kind {
		case model.Int:
			return g.codecName("DecodeInt").Types(g.goType(t))
		case model.Uint:
			return g.codecName("DecodeUint").Types(g.goType(t))
		}
		return g.codecMethod("Decoder",
			map[model.Kind]string{model.String: "Str", model.Bool: "Bool", model.Float: "Float"}[t.Kind])
	case model.Any:
		return g.codecMethod("Decoder", "Raw")
	case model.Null:
		return g.codecName("DecodeNull")
	case model.Slice:
		kind := g.sliceKind(t)
		if kind == "SliceFunc" {
			return g.readerFunc(t, skipItems)
		}
		return g.codecName("Decode" + kind + lenient(skipItems)).Types(g.goType(t.Elem))
	case model.Map:
		kind := g.mapKind(t)
		if kind == "MapFunc" {
			return g.readerFunc(t, false)
		}
		fn := g.codecName("Decode" + kind)
		if kind == "Map" {
			return fn.Types(g.goType(t.Elem))
		}
		return fn
	case model.Nullable:
		return g.readerFunc(t, false)
	case model.Pointer:
		return g.codecName("New").Types(g.goType(t.Elem))
	case model.Named, model.Runtime:
		return g.codecName("DecodeValue").Types(g.goType(t))
	}
	panic(fmt.Sprintf("no reader for %T", t))
}

// readAs returns the expression that reads a value of the named type, which is defined over t. Strings of such types
// are interned, because few values occur often.
func (g *generator) readAs(name string, t model.Type) *jen.Statement {
	switch t := t.(type) {
	case model.Basic:
		switch t.Kind {
		case model.String:
			return jen.Id(name).Call(call(d, "Intern"))
		case model.Int:
			return g.codecName("DecodeInt").Types(jen.Id(name)).Call(d)
		case model.Uint:
			return g.codecName("DecodeUint").Types(jen.Id(name)).Call(d)
		}
		return jen.Id(name).Call(g.read(t, false))
	case model.Any:
		return jen.Id(name).Call(g.read(t, false))
	}
	return g.read(t, false)
}
