// Package gen turns a schema of the Agent Client Protocol into Go source. It reads and writes no
// files; cmd/acpgen does.
//
// The stages follow each other in Generate, and each stands in a file or package of its own name.
package gen

import (
	"errors"
	"fmt"

	"github.com/acpgo/sdk/internal/gen/emit"
	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/gen/text"
)

// Config says what to generate.
type Config struct {
	// Schema is the schema document.
	Schema []byte
	// Source says where Schema comes from, for the header: "schema.json of … 2.4.0".
	Source string
	// Package is the name of the generated package.
	Package string
	// Module is the import path of the module that holds the runtime, acp/codec and acp/rpc.
	Module string
	// Overrides are the decisions about this schema; see [Overrides] for those of this project.
	Overrides []Override
	// Facade adds handlers, connections and sessions, which need hand-written files beside them.
	Facade bool
	// Doc is the package comment, or "" if hand-written files beside the generated ones have one.
	Doc string
	// Tests adds tables for tests of the package: every definition, and every method.
	Tests bool
	// Stable is the schema of the same version without experimental features, or nil. What only Schema has is
	// experimental: it is documented so, and a facade refuses to send it unless its feature is enabled.
	Stable []byte

	keepStale bool // write Go although there are stale decisions
}

// check refuses what cannot stand in Go source.
func (c *Config) check() error {
	if !text.IsPackage(c.Package) {
		return fmt.Errorf("%q cannot be the name of a package", c.Package)
	}
	if !text.IsImportPath(c.Module) {
		return fmt.Errorf("%q cannot be the import path of a module", c.Module)
	}
	return nil
}

// Error is what is wrong with a schema, and where. Generate's errors are of this type, or join some, unless the
// configuration is wrong.
type Error = schema.Error

// Generate returns the files of the generated package by name. An error means that there are none:
// every problem is found before anything is written.
func Generate(c Config) (map[string][]byte, error) {
	out, err := Run(c)
	if err != nil {
		return nil, err
	}
	return out.Files, nil
}

// Result is what comes of a schema: the files of the package by name, and what only people can answer.
type Result struct {
	Files     map[string][]byte
	Questions []Question
}

// Run is Generate, with the questions.
func Run(c Config) (*Result, error) {
	out, err := generate(c)
	if err != nil {
		return nil, err
	}
	if out.stale != nil {
		return nil, out.stale
	}
	return &Result{out.files, out.questions}, nil
}

// Problems returns the errors that err is or joins, one by one.
func Problems(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, err := range joined.Unwrap() {
		out = append(out, Problems(err)...)
	}
	return out
}

// In says of each problem where it is.
func In(where string, err error) error {
	if err == nil {
		return nil
	}
	var out []error
	for _, err := range Problems(err) {
		out = append(out, fmt.Errorf("%s: %w", where, err))
	}
	return errors.Join(out...)
}

// output is what comes of a schema.
type output struct {
	pkg   *model.Package
	files map[string][]byte // nil if there are stale decisions
	stale error             // decisions that the schema has no use for

	questions []Question
}

func generate(c Config) (out *output, err error) {
	out = new(output)
	if err := c.check(); err != nil {
		return nil, err
	}
	// 1. Read the schema, every keyword of it that no decision leaves out.
	decisions := newDecisions(c.Overrides)
	doc, err := schema.Parse(c.Schema, func(is ...string) bool { _, ok := decisions.find(Ignored, is...); return ok })
	if err != nil {
		return nil, suggestIgnored(err)
	}
	// 2. Decide what each definition is in Go.
	if out.pkg, err = build(doc); err != nil {
		return nil, err
	}
	// 3. Add what only people can know.
	out.stale = decide(out.pkg, decisions)
	out.questions = questions(out.pkg, decisions)
	// 4. Mark what is experimental.
	if c.Stable != nil {
		// A gate that is stale leaves what it gated without a feature: that is said once.
		err = mark(out.pkg, c.Stable, decisions, c.Facade && out.stale == nil)
	}
	// 5. Name everything.
	err = errors.Join(err, name(out.pkg, decisions, c.Facade))
	// 6. Refuse decisions that the schema has outgrown, all at once.
	out.stale = errors.Join(out.stale, decisions.unused())
	if err != nil {
		return nil, errors.Join(err, out.stale)
	}
	if out.stale != nil && !c.keepStale {
		return out, nil
	}
	// 7. Write Go.
	out.files, err = emit.Files(out.pkg, emit.Config{
		Package:  c.Package,
		Module:   c.Module,
		Source:   fmt.Sprintf("Schema: %s, sha256 %x.", c.Source, doc.Digest[:6]),
		Facade:   c.Facade,
		Tests:    c.Tests,
		Doc:      c.Doc,
		Openings: openings,
	})
	return out, err
}
