package gen

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/api"
)

// Compare returns a report on the differences between the packages generated from two schemas. The configurations may
// differ only in the schemas and Source. Decisions that the old schema does not use are ignored; those that the new
// schema does not use are part of the report.
func Compare(old, new Config, imports types.Importer) (*api.Report, error) {
	before, err := version(old, imports)
	if err != nil {
		return nil, In(old.Source, err)
	}
	after, err := version(new, imports)
	if err != nil {
		return nil, In(new.Source, err)
	}
	if old.Experimental != nil {
		old.Stable, old.Schema, old.Overrides = old.Schema, old.Experimental, slices.Concat(old.Overrides, old.Unstable)
		whole, err := version(old, imports)
		if err != nil {
			return nil, In(old.Source, err)
		}
		before.Experimental = whole.Go
	}
	return api.Compare(before, after), nil
}

// version generates the package of one schema and type-checks it.
func version(c Config, imports types.Importer) (api.Version, error) {
	c.keepStale = true
	out, err := generate(c)
	if err != nil {
		return api.Version{}, err
	}
	v := api.Version{Name: c.Source, Model: out.pkg}
	if v.Go, err = api.Declarations(c.Package, out.Files, imports); err != nil {
		return api.Version{}, fmt.Errorf("what is generated does not compile: %w", err)
	}
	if out.stale != nil {
		for _, problem := range Problems(out.stale) {
			v.Stale = append(v.Stale, strings.TrimPrefix(problem.Error(), "/: "))
		}
	}
	v.Moves, v.Lacks, v.Questions, v.Idle = texts(out.moves), texts(out.lacks), texts(out.Questions), idle(out.pkg)
	return v, nil
}

func texts[T fmt.Stringer](list []T) (out []string) {
	for _, item := range list {
		out = append(out, item.String())
	}
	return out
}
