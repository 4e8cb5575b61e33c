// Package gen generates Go source from a schema of the Agent Client Protocol. It does not read or write files;
// cmd/acpgen does.
//
// Generate runs the stages in order. Each stage is in a file or package with its name.
package gen

import (
	"errors"
	"fmt"

	"github.com/acpgo/sdk/internal/gen/emit"
	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/gen/text"
)

// Config configures the generator.
type Config struct {
	// Schema is the schema document.
	Schema []byte
	// Source is the origin of Schema for the header: "schema.json of … 2.4.0".
	Source string
	// Package is the name of the generated package.
	Package string
	// Module is the import path of the module that contains the runtime, codec and acp/rpc.
	Module string
	// Overrides has the decisions about this schema; see [Overrides] for those of this project.
	Overrides []Override
	// Facade adds handlers, connections and sessions, which need hand-written files next to them.
	Facade bool
	// Doc is the package comment, or "" if a hand-written file of the package has one.
	Doc string
	// Tests adds tables for tests of the package, with every definition and every method.
	Tests bool
	// Stable is the schema of the same version without experimental features, or nil. Everything that only Schema has
	// is experimental: it is documented as such, and a facade refuses to send it unless its feature is enabled.
	Stable []byte
	// Unstable has the overrides for the schema with experimental features beside this one. Those that this schema uses
	// have to move to Overrides. Compare also takes that schema, to report what becomes stable.
	Unstable     []Override
	Experimental []byte
	// Hooks is the import path of the generated package, if the hooks of a proxy are wanted too; see [Result].
	Hooks string

	keepStale bool // generate Go even if there are stale decisions, or features without a name
}

// check returns an error for values that cannot be used in Go source.
func (c *Config) check() error {
	if !text.IsPackage(c.Package) {
		return fmt.Errorf("%q cannot be the name of a package", c.Package)
	}
	if !text.IsImportPath(c.Module) {
		return fmt.Errorf("%q cannot be the import path of a module", c.Module)
	}
	return nil
}

// Generate returns the files of the generated package by name. If it returns an error, there are no files.
func Generate(c Config) (map[string][]byte, error) {
	out, err := Run(c)
	if err != nil {
		return nil, err
	}
	return out.Files, nil
}

// Result has the files of the generated package by name, the file hooks_gen.go of a package proxy if Config.Hooks is
// set, and the questions that only people can answer.
type Result struct {
	Files     map[string][]byte
	Hooks     []byte
	Questions []Question
}

// Run is like Generate, but also returns the questions.
func Run(c Config) (*Result, error) {
	out, err := generate(c)
	if err != nil {
		return nil, err
	}
	if out.stale != nil {
		return nil, out.stale
	}
	return &out.Result, nil
}

// output is the result of all stages.
type output struct {
	Result
	pkg   *model.Package
	stale error // decisions that the schema does not use; then there are no files
	moves []Override
	lacks []Override // features that have no name
}

func generate(c Config) (out *output, err error) {
	out = new(output)
	if err := c.check(); err != nil {
		return nil, err
	}
	// 1. Read the schema with every keyword, except those that a decision ignores.
	decisions := newDecisions(c.Overrides, c.Unstable)
	doc, err := schema.Parse(c.Schema, func(is ...string) bool { _, ok := decisions.find(Ignored, is...); return ok })
	if err != nil {
		return nil, suggestIgnored(c.Schema, err)
	}
	// 2. Determine what each definition is in Go.
	if out.pkg, err = build(doc); err != nil {
		return nil, err
	}
	// 3. Apply the decisions of people.
	out.stale = decide(out.pkg, decisions)
	out.Questions = questions(out.pkg, decisions)
	// 4. Mark experimental parts.
	if c.Stable != nil {
		err = mark(out.pkg, c.Stable, decisions, c.Facade)
		if c.keepStale {
			out.lacks, err = wanted(err)
		}
	}
	if c.Stable == nil && c.keepStale {
		decisions.useAll(Feature) // nothing says what is experimental
	}
	// 5. Name everything.
	err = errors.Join(err, name(out.pkg, decisions, c.Facade))
	// 6. Report all stale decisions.
	out.stale, out.moves = errors.Join(out.stale, decisions.unused()), decisions.moves()
	if err != nil {
		return nil, errors.Join(err, out.stale)
	}
	if out.stale != nil && !c.keepStale {
		return out, nil
	}
	// 7. Write Go.
	config := emit.Config{
		Package:  c.Package,
		Module:   c.Module,
		Source:   fmt.Sprintf("Schema: %s, sha256 %x.", c.Source, doc.Digest[:6]),
		Facade:   c.Facade,
		Tests:    c.Tests,
		Doc:      c.Doc,
		Openings: openings,
		Filler:   filler,
	}
	if c.Facade {
		config.Hot = hot
	}
	out.Files, err = emit.Files(out.pkg, config)
	if err == nil && c.Hooks != "" {
		out.Hooks, err = emit.Hooks(out.pkg, config, c.Hooks)
	}
	return out, err
}
