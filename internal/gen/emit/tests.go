package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// definitions writes the table of the types that are definitions, for tests.
func (g *generator) definitions(f *jen.File) {
	if g.Facade {
		g.definedTypes(f)
		return
	}
	var definitions []jen.Code
	scalars := false
	for _, d := range g.pkg.Decls {
		c := d.Base()
		switch t := (model.Named{Decl: d}); {
		case c.Schema == "":
		case c.Null:
			definitions = append(definitions, g.scalar(c.Schema, model.Nullable{Elem: t}))
			scalars = true
		case model.Scalar(d):
			definitions = append(definitions, g.scalar(c.Schema, t))
			scalars = true
		default:
			definitions = append(definitions, jen.Lit(c.Schema).Op(":").Id("newValue").Types(jen.Id(c.Go)))
		}
	}
	add(f, source(`// definitions makes a new value of each definition that is a type of this package.
var definitions = map[string]func() any %

func newValue[T any]() any { return new(T) }`, eachOnALine("{}", definitions...)))
	if scalars {
		g.scalars(f)
	}
}

// definedTypes lists the types that are definitions. Their names follow from each other, and no scalar has bounds.
func (g *generator) definedTypes(f *jen.File) {
	var types, open []string
	for _, d := range g.pkg.Decls {
		c := d.Base()
		if enum, ok := d.(*model.Enum); ok && enum.Names() && enum.Open && c.Schema != "" {
			open = append(open, c.Go)
		} else if c.Schema != "" {
			types = append(types, c.Go)
		}
	}
	list := func(names []string) *jen.Statement {
		return wrapped(names, func(name string) *jen.Statement { return jen.New(jen.Id(name)) })
	}
	add(f, source(`// types has a pointer to each definition of the schema, openEnums to enums that allow any name.
var types = []any{%}
var openEnums = []any{%}`, list(types), list(open)))
}

// scalar returns the row of a definition of a type without codec methods.
func (g *generator) scalar(schema string, t model.Type) jen.Code {
	return jen.Lit(schema).Op(":").Id("newScalar").Types(g.goType(t)).
		Call(jen.Lit(strings.Join(typeOptions(t), ",")))
}

// scalars writes the type that makes a codec.Value of a type without codec methods.
func (g *generator) scalars(f *jen.File) {
	add(f, source(`// scalar is a value of a type without codec methods.
type scalar[T any] struct {
	value   T
	options string
}

func (x *scalar[T]) EncodeJSON(e *%) { %(e, &x.value, x.options) }

func (x *scalar[T]) DecodeJSON(d *%) { %(d, &x.value, x.options) }

func (x *scalar[T]) MarshalJSON() ([]byte, error) { return %(x.value) }

func (x *scalar[T]) UnmarshalJSON(data []byte) error { return %(data, &x.value) }

func newScalar[T any](options string) func() any {
	return func() any { return &scalar[T]{options: options} }
}`, g.codecName("Encoder"), g.codecName("EncodeAs"), g.codecName("Decoder"), g.codecName("DecodeAs"),
		jen.Qual(jsonPath, "Marshal"), jen.Qual(jsonPath, "Unmarshal")))
}
