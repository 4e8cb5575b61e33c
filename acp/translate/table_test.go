package translate_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/test/must"
)

// A row says what becomes of one method, definition, member, variant or value: the versions that have it, its name, what
// becomes of it, the function that does it, and what the other side gets. What becomes of it is "same", "renamed",
// "reshaped", "none" if the other version has nothing for it, or "parts" if it is the same and what it contains is not.
//
// A line of the file table.txt may have several names. One that begins with . or = is a member or a variant of the
// definition before it.
type row struct {
	versions, name, kind, by, note string
	section, line                  string // of the file
}

func readTable(t *testing.T) (rows []row) {
	text := must.Get(os.ReadFile("table.txt"))(t)
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "# "); ok {
			section = title
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, "\t", 5)
		if len(f) != 5 {
			t.Errorf("table.txt: not five fields: %s", line)
			continue
		}
		definition := ""
		for name := range strings.SplitSeq(f[1], ", ") {
			if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "=") {
				name = definition + name
			} else {
				definition = owner(name)
			}
			rows = append(rows, row{f[0], name, f[2], f[3], f[4], section, line})
		}
	}
	return rows
}

// owner returns the definition that a name belongs to, or the name of a method.
func owner(name string) string {
	if i := strings.IndexAny(name, ".="); i > 0 && !strings.HasPrefix(name, "method ") {
		return name[:i]
	}
	return name
}

// contents returns what a schema defines, by name, with a text that is equal for equal definitions. A definition of a
// string alone counts as a string. Members and variants of a definition follow it, as Definition.member and
// Definition=variant.
func contents(t *testing.T, schema string) map[string]string {
	var s struct {
		Defs map[string]map[string]any `json:"$defs"`
	}
	must.Do(t, json.Unmarshal([]byte(schema), &s))
	alias := func(name string) bool {
		d := s.Defs[name]
		return d["type"] == "string" && d["enum"] == nil && d["const"] == nil
	}
	// plain returns the schema without what does not change the messages.
	var plain func(v any) any
	plain = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				if name := strings.TrimPrefix(ref, "#/$defs/"); !alias(name) {
					return name
				}
				return map[string]any{"type": "string"}
			}
			if all, ok := v["allOf"].([]any); ok && len(all) == 1 && v["properties"] == nil {
				return plain(all[0])
			}
			out := map[string]any{}
			for k, x := range v {
				if k == "properties" {
					members := map[string]any{}
					for name, member := range x.(map[string]any) {
						members[name] = plain(member)
					}
					out[k] = members
				} else if !slices.Contains([]string{"description", "title", "default", "format", "contentEncoding", "not", "discriminator"}, k) && !strings.HasPrefix(k, "x-") {
					out[k] = plain(x)
				}
			}
			if either, ok := out["anyOf"].([]any); ok && len(either) == 2 {
				if a, ok := either[0].(map[string]any); ok && a["type"] == "string" && len(a) == 1 {
					return map[string]any{"type": []any{"string", "null"}}
				}
			}
			return out
		case []any:
			var out []any
			for _, x := range v {
				out = append(out, plain(x))
			}
			return out
		}
		return v
	}
	text := func(v any) string {
		b := must.Get(json.Marshal(plain(v)))(t)
		return string(b)
	}
	all := map[string]string{}
	for name, d := range s.Defs {
		if slices.Contains(envelopes, name) || alias(name) {
			continue
		}
		if method, ok := d["x-method"].(string); ok {
			all["method "+method] = ""
		}
		all[name] = ""
		required, _ := d["required"].([]any)
		members, _ := d["properties"].(map[string]any)
		for member, m := range members {
			all[name+"."+member] = text(m) + fmt.Sprint(slices.Contains(required, any(member)))
		}
		for _, key := range []string{"oneOf", "anyOf"} {
			variants, _ := d[key].([]any)
			for _, v := range variants {
				variant := v.(map[string]any)
				all[name+"="+variantName(variant)] = text(v)
			}
		}
	}
	return all
}

// envelopes are the definitions that only list the methods.
var envelopes = []string{
	"AgentNotification", "AgentRequest", "AgentResponse", "ClientNotification", "ClientRequest", "ClientResponse", "ProtocolLevelNotification",
	"ProxyNotification", "ProxyRequest", "ProxyResponse",
}

func variantName(v map[string]any) string {
	if c, ok := v["const"]; ok {
		return fmt.Sprint(c)
	}
	members, _ := v["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if m, ok := members[name].(map[string]any); ok && m["const"] != nil {
			return fmt.Sprint(m["const"])
		}
	}
	title, _ := v["title"].(string)
	ref, _ := v["$ref"].(string)
	kind, _ := v["type"].(string)
	return cmp.Or(strings.ToLower(title), strings.TrimPrefix(ref, "#/$defs/"), kind, "any")
}

// A need is what a row must say of a name: the versions that have it, and whether it may be the same: because its text
// is, and it contains nothing that changes.
type need struct {
	versions    string
	same, parts bool
}

// needs returns what the table must have. Changed are the definitions of which some part does not stay the same.
func needs(one, two map[string]string, rows []row) map[string]need {
	changed := map[string]bool{}
	for _, r := range rows {
		if r.kind == "renamed" || r.kind == "reshaped" || r.kind == "none" {
			changed[owner(r.name)] = true
		}
	}
	contains := func(text string) bool {
		return slices.ContainsFunc(reference.FindAllStringSubmatch(text, -1), func(m []string) bool { return changed[m[1]] })
	}
	for before := -1; before != len(changed); {
		before = len(changed)
		for _, all := range []map[string]string{one, two} {
			for name, text := range all {
				if contains(text) {
					changed[owner(name)] = true
				}
			}
		}
	}
	all := map[string]need{}
	for name, text := range one {
		if other, ok := two[name]; ok {
			all[name] = need{versions: "12", same: text == other, parts: contains(text)}
		} else {
			all[name] = need{versions: "1"}
		}
	}
	for name := range two {
		if _, ok := one[name]; !ok {
			all[name] = need{versions: "2"}
		}
	}
	return all
}

var reference = regexp.MustCompile(`"([A-Z]\w+)"`)

// check returns the rows that the table lacks, as they should be written, and what is wrong with those that it has.
func check(rows []row, all map[string]need) (lacking, wrong []string) {
	have := map[string]row{}
	for _, r := range rows {
		if _, twice := have[r.name]; twice {
			wrong = append(wrong, "two rows for "+r.name)
		}
		have[r.name] = r
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, what := all[name], "\treshaped\tFUNCTION\tWHAT THE OTHER SIDE GETS"
		if n.same && n.parts {
			what = "\tparts\tFUNCTION\tWHAT THE OTHER SIDE GETS"
		} else if n.same {
			what = "\tsame\t-\tPasses"
		}
		if r := have[name]; r.versions != n.versions {
			lacking = append(lacking, n.versions+"\t"+name+what)
		} else if r.kind == "same" && r.note == "Passes" && (!n.same || n.parts) {
			wrong = append(wrong, name+" differs, or contains what does: say what becomes of it")
		} else if r.kind == "parts" && !n.parts {
			wrong = append(wrong, name+" contains nothing that changes")
		}
	}
	for _, r := range rows {
		if _, ok := all[r.name]; !ok {
			wrong = append(wrong, "no schema has "+r.name)
		}
	}
	return lacking, wrong
}

// TestTable requires a row for everything that the schemas define, and names of functions that exist.
func TestTable(t *testing.T) {
	rows := readTable(t)
	one, two := contents(t, sdk.SchemaV1Unstable()), contents(t, sdk.SchemaV2Unstable())
	lacking, wrong := check(rows, needs(one, two, rows))
	if len(lacking) > 0 {
		t.Errorf("table.txt lacks rows. Write:\n%s", strings.Join(lacking, "\n"))
	}
	for _, w := range wrong {
		t.Errorf("table.txt: %s", w)
	}
	functions, kinds := functionNames(t), map[string]int{}
	for _, r := range rows {
		kinds[r.kind]++
		bad := r.note == "" || !functions[r.by] && (r.by != "-" || r.kind != "same")
		if bad || !slices.Contains([]string{"same", "parts", "renamed", "reshaped", "none"}, r.kind) {
			t.Errorf("table.txt: a bad row: %s", r)
		}
	}
	// The stable schemas are parts of the unstable ones.
	for _, s := range []string{sdk.SchemaV1(), sdk.SchemaV2()} {
		for name := range contents(t, s) {
			_, in1 := one[name]
			if _, in2 := two[name]; !in1 && !in2 {
				t.Errorf("only a stable schema has %s", name)
			}
		}
	}
	t.Logf("%d rows: %v", len(rows), kinds)
}

// TestDoc compares the tables of docs/reference/translate.md with table.txt.
func TestDoc(t *testing.T) {
	const page, begin = "../../docs/reference/translate.md", "<!-- The rest is generated from acp/translate/table.txt. -->\n"
	var b strings.Builder
	var last row
	same, names := 0, ""
	end := func() {
		if names != "" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", map[string]string{"1": "1", "2": "2", "12": "both"}[last.versions], names, strings.ReplaceAll(last.note, "*", `\*`))
		}
		names = ""
	}
	for _, r := range readTable(t) {
		if r.kind == "same" && r.note == "Passes" {
			same++
			continue
		}
		if r.line != last.line {
			end()
			if r.section != last.section {
				b.WriteString("\n### " + r.section + "\n\n| version | what | what the other version gets |\n|---|---|---|\n")
			}
			last = r
		}
		if name := "`" + strings.TrimPrefix(r.name, "method ") + "`"; names == "" {
			names = name
		} else if owner(r.name) == r.name || !strings.Contains(names, "`"+owner(r.name)+"`") {
			names += ", " + name
		}
	}
	end()
	fmt.Fprintf(&b, "\n### The same in both versions\n\n%d methods, definitions, members and values pass as they are, with everything that no schema has.\n", same)
	text := must.Get(os.ReadFile(page))(t)
	head, _, found := strings.Cut(string(text), begin)
	switch want := head + begin + b.String(); {
	case !found:
		t.Errorf("%s has no line %s", page, begin)
	case want == string(text):
	case *update:
		must.Do(t, os.WriteFile(page, []byte(want), 0o644))
	default:
		t.Errorf("%s differs from the table: run go test -run Doc ./acp/translate -update", page)
	}
}

func functionNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
