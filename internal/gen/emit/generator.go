package emit

import (
	"fmt"
	"regexp"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// Config describes the generated package and its runtime.
type Config struct {
	Package string // name of the generated package
	Module  string // import path of the module that holds codec and acp/rpc
	Source  string // the line of the header that names the schema
	Facade  bool   // also write handlers, connections and sessions, which hand-written files complete
	Tests   bool   // also write the tables that tests of the package need
	Doc     string // the package comment, or "" if hand-written files have one

	// Openings are the beginnings of descriptions, each with the words that replace it after the name of the
	// declaration. The first match counts.
	Openings [][2]string

	// Filler matches paragraphs that are left out of the description of a union's unknown variants: they say nothing.
	Filler *regexp.Regexp

	// Hot has the types that are read and written by code of their own, not by tables, because nearly all messages have
	// them.
	Hot []string
}

type generator struct {
	Config
	pkg  *model.Package
	each map[string]string // the tests of items that gates has written, by the receiver and the name of the method

	users map[model.Decl]bool   // the declarations whose values can use features
	ids   map[*model.Field]bool // the members of parameters and results that must not be empty
}

// codecName, rpcName and engineName qualify a name of the runtime. Only packages of this module name the engine.
func (g *generator) codecName(name string) *jen.Statement {
	return jen.Qual(g.Module+"/codec", name)
}
func (g *generator) rpcName(name string) *jen.Statement {
	return jen.Qual(g.Module+"/acp/rpc", name)
}
func (g *generator) engineName(name string) *jen.Statement {
	return jen.Qual(g.Module+"/internal/engine", name)
}

const jsonPath = "encoding/json"

// goType returns the Go type of t.
func (g *generator) goType(t model.Type) *jen.Statement {
	switch t := t.(type) {
	case model.Basic:
		return jen.Id(t.Go())
	case model.Any:
		return jen.Qual(jsonPath, "RawMessage")
	case model.Meta:
		return g.codecName("Meta")
	case model.Null:
		return jen.Struct()
	case model.Named:
		return jen.Id(t.Decl.Base().Go)
	case model.Runtime:
		if t.Name == model.RuntimeID {
			return g.codecName(t.Name)
		}
		return g.rpcName(t.Name)
	case model.Slice:
		return jen.Index().Add(g.goType(t.Elem))
	case model.Map:
		return jen.Map(jen.String()).Add(g.goType(t.Elem))
	case model.Nullable:
		return g.codecName("Opt").Types(g.goType(t.Elem))
	case model.Pointer:
		return jen.Op("*").Add(g.goType(t.Elem))
	}
	panic(fmt.Sprintf("no Go type for %T", t))
}

// fieldType returns the Go type of a field.
func (g *generator) fieldType(f *model.Field) *jen.Statement {
	if f.Opt() {
		return g.codecName("Opt").Types(g.goType(f.Type))
	}
	return g.goType(f.Type)
}

// zeroOf returns the condition that x, a field, is not set.
func zeroOf(x *jen.Statement, f *model.Field) *jen.Statement {
	if f.Opt() {
		return x.Dot("IsZero").Call()
	}
	switch t := f.Type.(type) {
	case model.Basic:
		return zeroBasic(x, t)
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			return zeroBasic(x, d.Type)
		case *model.Union:
			return x.Dot("Variant").Op("==").Nil()
		case *model.Newtype:
			if basic, ok := d.Type.(model.Basic); ok {
				return zeroBasic(x, basic)
			}
			return x.Op("==").Nil()
		case *model.Struct:
			return x.Dot("IsZero").Call()
		}
	}
	return x.Op("==").Nil()
}

func zeroBasic(x *jen.Statement, t model.Basic) *jen.Statement {
	switch t.Kind {
	case model.Bool:
		return jen.Op("!").Add(x)
	case model.String:
		return x.Op("==").Lit("")
	}
	return x.Op("==").Lit(0)
}
