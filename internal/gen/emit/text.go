// All comments, tags and literals whose text does not come from this package pass through these functions. Names do
// not, because gen has checked that they are identifiers.

package emit

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"slices"
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

// newFile returns a file that begins with the line that marks generated files, and the source of the file.
func newFile(pkg, source string) *jen.File {
	f := jen.NewFile(pkg)
	f.HeaderComment(Header)
	f.HeaderComment(text.Comment(source))
	return f
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

// tag returns the tag of a member. Names that encoding/json has no tag for are in a tag of their own.
func tag(name string, options []string, omit bool) jen.Code {
	unusual := func(r rune) bool { return strings.ContainsRune("\\\",`", r) || text.Line(string(r)) != string(r) }
	switch {
	case name != "" && !strings.ContainsFunc(name, unusual):
		if omit {
			name += ",omitzero"
		} else if name == "-" {
			name = "-,"
		}
		return fieldTag("json:"+strconv.Quote(name), codecTag(options))
	case omit:
		options = append(options, "omitzero")
	}
	return fieldTag("member:"+strconv.QuoteToASCII(name), codecTag(options))
}

// untagged returns the tag of a field that is not a member, with options of the tag codec.
func untagged(options ...string) jen.Code { return fieldTag(`json:"-"`, codecTag(options)) }

// codecTag returns the tag codec, or "" if there are no options.
func codecTag(options []string) string {
	if len(options) == 0 {
		return ""
	}
	return "codec:" + strconv.QuoteToASCII(strings.Join(options, ","))
}

// fieldTag returns the tags of a field, except those that are "".
func fieldTag(tags ...string) jen.Code {
	tag := strings.Join(slices.DeleteFunc(tags, func(tag string) bool { return tag == "" }), " ")
	switch {
	case tag == "":
		return jen.Null()
	case strconv.CanBackquote(tag):
		return jen.Op("`" + tag + "`")
	}
	return jen.Lit(tag)
}

// inJSON returns a text as JSON has it, without quotes.
func inJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
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

// source returns Go code that is constant but for its parts, which replace each % of it: a name, code, or statements.
func source(code string, parts ...any) *jen.Statement {
	texts := strings.Split(code, "%")
	out := jen.Op(texts[0])
	for i, part := range parts {
		switch part := part.(type) {
		case string:
			out.Id(part)
		case []jen.Code:
			if out.Custom(jen.Options{Separator: "\n"}, part...); len(part) == 0 { // nor is there an empty line
				texts[i+1] = strings.TrimLeft(texts[i+1], "\n\t")
			}
		case jen.Code:
			out.Add(part)
		}
		out.Op(texts[i+1])
	}
	return out
}

// bitSet returns the literal of a set of bits.
func bitSet(bits uint64) jen.Code { return jen.Op("0b" + strconv.FormatUint(bits, 2)) }
