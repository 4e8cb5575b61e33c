package repo_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

const modulePath = "github.com/acpgo/sdk/"

// guides returns the documents for users and contributors.
func guides(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	references, err2 := filepath.Glob("docs/reference/*.md")
	if err := errors.Join(err, err2); err != nil || len(files) == 0 || len(references) == 0 {
		t.Fatal("no guides in docs", err)
	}
	return append(append(files, references...), "README.md", "SECURITY.md", "CONTRIBUTING.md")
}

// TestGuidesCompile type-checks the Go code in the README and the guides.
func TestGuidesCompile(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports := must.Get(compiled())(t)
	files := token.NewFileSet()
	config := types.Config{Importer: imports, Error: func(err error) { t.Error(err) }}
	check := func(pkg ...*ast.File) { _, _ = config.Check("guide", files, pkg, nil) } // each error was reported
	var tests []*ast.File
	for _, b := range guideBlocks(t) {
		file, err := parser.ParseFile(files, "", b.file(""), parser.SkipObjectResolution)
		switch {
		case err != nil:
			t.Error(err)
		case strings.Contains(b.text, "func Test"):
			tests = append(tests, file)
		default:
			check(file)
		}
	}
	check(tests...)
}

// guideBlocks returns all blocks, and the programs in the documentation of package acp, except those about
// contrib/mcpacp and contrib/otelacp, which are built by these modules.
func guideBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	for _, guide := range guides(t) {
		if guide != "docs/mcp.md" && guide != "docs/telemetry.md" {
			blocks = append(blocks, goBlocks(t, guide)...)
		}
	}
	const doc = "acp/doc.go"
	text := readFile(t, doc)
	programs := regexp.MustCompile(`(?m)^//\tpackage main\n(?://(?:\t.*)?\n)*`).FindAllStringIndex(text, -1)
	if len(programs) != 2 {
		t.Errorf("%s: %d programs, want an agent and a client", doc, len(programs))
	}
	for _, at := range programs {
		program := strings.TrimPrefix(strings.NewReplacer("\n//\t", "\n", "\n//", "\n").Replace("\n"+text[at[0]:at[1]]), "\n")
		blocks = append(blocks, block{guide: doc, line: strings.Count(text[:at[0]], "\n") + 1, text: program})
	}
	return blocks
}

// TestREADME follows the README's instructions for importing the module, and runs the README's client against its
// agent, and the tests in docs/testing.md.
func TestREADME(t *testing.T) {
	tier.Need(t, tier.Full)
	blocks := guideBlocks(t)
	programs := slices.DeleteFunc(slices.Clone(blocks), func(b block) bool {
		return b.guide != "README.md" || !strings.HasPrefix(b.text, "package main")
	})
	if len(programs) != 2 {
		t.Fatalf("%d programs in the README", len(programs))
	}
	readme := readFile(t, "README.md")
	setUp, build := shown(t, readme, "sh\n(go mod init [^`]*)"), shown(t, readme, "sh\n(go mod tidy\ngo build[^`]*)")
	root := must.Get(filepath.Abs("."))(t)
	setUp = strings.ReplaceAll(setUp, "/path/to/clone", root)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)))
	}
	run("sh", "-ec", setUp)
	for i, name := range []string{"agent", "client"} {
		if n := strings.Count(programs[i].text, "\n"); n > 40 {
			t.Errorf("the %s has %d lines", name, n)
		}
		write(name+"/main.go", programs[i].text)
	}
	for i, b := range blocks {
		if strings.Contains(b.text, "func Test") {
			write(fmt.Sprintf("tests/block%d_test.go", i), b.file(root))
		}
	}
	write("tests/testdata/setup.txtar", shown(t, readFile(t, "docs/testing.md"), "txtar\n(.*?)"))
	if got, want := run("sh", "-ec", build), "You said: hello\nend_turn\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if out := run("go", "test", "-v", "./tests"); strings.Count(out, "\n--- PASS") != 3 {
		t.Errorf("not the three tests of docs/testing.md:\n%s", out)
	}
}

// shown returns the part of a document's block that the group of a pattern matches.
func shown(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```" + pattern + "```").FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the document does not show %s", pattern)
	}
	return found[1]
}

// block is a block of Go in a guide.
type block struct {
	guide string
	line  int    // of its first line
	in    string // the function that contains it: "func(ctx context.Context) error", or ""
	text  string
}

// goBlocks finds the blocks of Go in a guide. A comment in the line above a block names the function that contains it.
func goBlocks(t *testing.T, guide string) []block {
	t.Helper()
	text := readFile(t, guide)
	var blocks []block
	for _, at := range regexp.MustCompile("(?ms)(?:^<!-- (func[^\n]*) -->\n)?^```go\n(.*?)^```$").FindAllStringSubmatchIndex(text, -1) {
		b := block{guide: guide, line: strings.Count(text[:at[4]], "\n") + 1, text: text[at[4]:at[5]]}
		if at[2] >= 0 {
			b.in = text[at[2]:at[3]]
		}
		blocks = append(blocks, b)
	}
	if n := strings.Count(text, "```go"); n != len(blocks) {
		t.Fatalf("%s: %d of %d blocks of Go found", guide, len(blocks), n)
	}
	return blocks
}

// imported are the packages that blocks may use without importing them.
var imported = []string{
	"bytes", "context", "crypto/rand", "encoding/json", "errors", "fmt", "io", "iter", "log", "log/slog", "net", "net/http", "os", "os/exec", "path/filepath",
	"strings", "sync", "testing", "testing/synctest", "time",
	modulePath + "acp", modulePath + "conformance/acptest", modulePath + "acp/agentkit", modulePath + "acp/agentkit/workspace", modulePath + "codec", modulePath + "acp/conduct", modulePath + "acp/launch", modulePath + "acp/local", modulePath + "acp/proxy", modulePath + "acp/reconnect", modulePath + "acp/registry",
	modulePath + "acp/remote", modulePath + "acp/policy", modulePath + "acp/rpc", modulePath + "acp/translate", modulePath + "acp/view",
	modulePath + "conformance", modulePath + "conformance/probe", modulePath + "conformance/recording", modulePath + "conformance/transcript",
}

// file returns a block as a Go file. The compiler's errors name the line of the guide.
func (b block) file(root string) string {
	line := fmt.Sprintf("//line %s:%d\n", filepath.Join(root, b.guide), b.line)
	if regexp.MustCompile(`(?m)^package `).MatchString(b.text) {
		return line + b.text
	}
	var file strings.Builder
	file.WriteString("package guide\n")
	for _, path := range imported {
		name := path[strings.LastIndex(path, "/")+1:]
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(b.in + b.text) {
			fmt.Fprintf(&file, "import %q\n", path)
		}
	}
	if b.in == "" {
		file.WriteString(line + b.text)
		return file.String()
	}
	fmt.Fprintf(&file, "var _ = %s {\n%s%s\npanic(\"the end of what the guide shows\")\n}\n", b.in, line, b.text)
	return file.String()
}

// A tool call that a block of a guide updates by a literal name must be started in the same block.
func TestGuidesStartToolCalls(t *testing.T) {
	updated := regexp.MustCompile(`\b(?:UpdateToolCall|ToolCallRef)\(("[^"]*")`)
	found := 0
	for _, b := range guideBlocks(t) {
		for _, m := range updated.FindAllStringSubmatch(b.text, -1) {
			if found++; !strings.Contains(b.text, "StartToolCall("+m[1]) {
				t.Errorf("%s:%d: the tool call %s is updated, but it was not started", b.guide, b.line, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no guide updates a tool call")
	}
}

// TestGuidesNames looks up the names that the guides mention as `acp.X`, `acp.X.Y` or `X.Y`.
func TestGuidesNames(t *testing.T) {
	imports := must.Get(compiled())(t)
	packages := map[string]*types.Package{}
	for _, path := range imported {
		if !strings.HasPrefix(path, modulePath) || path == modulePath+"acp/agentkit" { // version 2 has a package with the same name
			continue
		}
		pkg := must.Get(imports.Import(path))(t)
		packages[pkg.Name()] = pkg
	}
	span := regexp.MustCompile("`(?:([a-z]+)\\.)?([A-Z]\\w*)(?:\\.([A-Z]\\w*))?[^`\n]*`")
	found := 0
	for _, guide := range guides(t) {
		for _, m := range span.FindAllStringSubmatch(prose(t, guide), -1) {
			name, member := m[2], m[3]
			pkg, ours := packages[m[1]]
			if m[1] == "" {
				pkg = packages["acp"] // a name without a package may be another library's
				ours = member != "" && pkg.Scope().Lookup(name) != nil
			}
			if !ours {
				continue
			}
			found++
			object := pkg.Scope().Lookup(name)
			if object == nil || !object.Exported() {
				t.Errorf("%s: %s: there is no %s", guide, m[0], name)
			} else if member != "" {
				if o, _, _ := types.LookupFieldOrMethod(object.Type(), true, pkg, member); o == nil {
					t.Errorf("%s: %s: %s has no %s", guide, m[0], name, member)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names found", found)
	}
}

// TestGuidesLinks follows links from one file of the repository to another, to a heading if they name one.
func TestGuidesLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped := regexp.MustCompile(`[^\w -]`)
	for _, guide := range guides(t) {
		for _, m := range link.FindAllStringSubmatch(prose(t, guide), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := guide
			if target != "" {
				path = filepath.Join(filepath.Dir(guide), filepath.FromSlash(target))
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", guide, err)
			} else if anchor != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(prose(t, path), -1), func(h []string) bool {
				return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor
			}) {
				t.Errorf("%s: there is no heading for %s", guide, m[1])
			}
		}
	}
}

// TestGuidesNameTests checks that the tests named in SECURITY.md exist in the tree.
func TestGuidesNameTests(t *testing.T) {
	var sources strings.Builder
	walkTree(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			sources.WriteString(readFile(t, path))
		}
	})
	names := regexp.MustCompile("`(Test\\w+)(?:/(\\w+))?`")
	named := names.FindAllStringSubmatch(readFile(t, "SECURITY.md"), -1)
	if len(named) < 40 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !strings.Contains(sources.String(), "\nfunc "+m[1]+"(t *testing.T)") {
			t.Errorf("there is no %s", m[1])
		}
		if m[2] != "" {
			if _, err := os.Stat(filepath.Join("cmd/acp/testdata/script", m[2]+".txtar")); err != nil {
				t.Error(err)
			}
		}
	}
}

// prose returns a guide without its code blocks.
func prose(t *testing.T, guide string) string {
	t.Helper()
	return regexp.MustCompile("(?ms)^ *````.*?^ *````$|^ *```.*?^ *```$").ReplaceAllString(readFile(t, guide), "")
}
