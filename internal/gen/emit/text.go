// All comments, tags and literals whose text does not come from this package pass through these functions. Names do
// not, because gen has checked that they are identifiers.

package emit

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/text"
)

// comment returns lines of text as comment lines.
func comment(lines []string) []jen.Code {
	out := make([]jen.Code, 0, len(lines))
	for _, line := range lines {
		out = append(out, jen.Comment(text.Comment(line)))
	}
	return out
}

// header begins a file with the line that marks generated files, and the source of the file.
func header(f *jen.File, source string) {
	f.HeaderComment(Header)
	f.HeaderComment(text.Comment(source))
}

// packageComment documents the package.
func packageComment(f *jen.File, lines []string) {
	for _, line := range lines {
		f.PackageComment(text.Comment(line))
	}
}

// embedded declares a string that holds a file, whose name consists of letters, digits and "._/-".
func embedded(f *jen.File, name, file string) {
	add(f, jen.Comment("//go:embed "+file), jen.Var().Id(name).String())
}

// tag returns the tag of a field, which says how tables read and write it. For types without a table, it is
// documentation. Names that encoding/json has no tag for are in a tag of their own.
func tag(name string, options []string, omit bool) jen.Code {
	var tag string
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || r == '"' || r == ',' || r == '`' || text.Line(string(r)) != string(r)
	}) {
		tag = "member:" + strconv.QuoteToASCII(name)
		if omit {
			options = append(options, "omitzero")
		}
	} else {
		if omit {
			name += ",omitzero"
		} else if name == "-" {
			name = "-,"
		}
		tag = "json:" + strconv.Quote(name)
	}
	tag += codecTag(options)
	if strconv.CanBackquote(tag) {
		return jen.Op("`" + tag + "`")
	}
	return jen.Lit(tag)
}

// untagged returns the tag of a field that is not a member, with options of the tag codec.
func untagged(options ...string) jen.Code { return jen.Op("`json:\"-\"" + codecTag(options) + "`") }

// optionsTag returns the tag of a field that has only options of the tag codec, if there are any.
func optionsTag(options ...string) jen.Code {
	if len(options) == 0 {
		return jen.Null()
	}
	return jen.Op("`" + codecTag(options)[1:] + "`")
}

// codecTag returns the tag codec, which begins with a space, or "" if there are no options.
func codecTag(options []string) string {
	if len(options) == 0 {
		return ""
	}
	return ` codec:"` + strings.Join(options, ",") + `"`
}

// written returns the literal of a text as JSON has it, without quotes: the codec does not escape the names of members
// and tags.
func written(s string) *jen.Statement {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return jen.Lit(quoted[1 : len(quoted)-1])
}

// message returns the literal of a text that is used as a format: percent signs of the schema are escaped.
func message(ours string, theirs ...string) *jen.Statement {
	return jen.Lit(ours + strings.ReplaceAll(text.Line(strings.Join(theirs, "")), "%", "%%"))
}

// kinds returns the literal of the first characters of JSON values.
func kinds(s string) *jen.Statement {
	if strconv.CanBackquote(s) {
		return jen.Op("`" + s + "`")
	}
	return jen.Lit(s)
}

// verbatim returns a literal that the model has in the syntax of Go or JSON: a number or a string. Anything else
// becomes a string.
func verbatim(s string) *jen.Statement {
	expr, err := parser.ParseExpr(s)
	if minus, ok := expr.(*ast.UnaryExpr); ok {
		expr = minus.X
	}
	if _, ok := expr.(*ast.BasicLit); err != nil || !ok || text.Line(s) != s {
		return jen.Lit(s)
	}
	return jen.Op(s)
}

// sealed is an interface with one method, whose name is an identifier, on one line.
func sealed(method string) jen.Code { return jen.Op("interface{ " + method + "() }") }
