package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// smallest is the smallest agent that a library, or a package of it, allows.
type smallest struct{ library, program, imports string }

// minimal are the smallest agents, by library, and kit the one made with agentkit.
var (
	minimal = []smallest{
		{nameACP, "./minimal/acp", "github.com/acpgo/sdk/acp"},
		{nameCoder, "./minimal/coder", "github.com/coder/acp-go-sdk"},
	}
	kit = smallest{nameACP, "./minimal/kit", "github.com/acpgo/sdk/acp/agentkit"}
)

const costs = "cost of a minimal agent" // as the experiments are named

// buildAgents builds the smallest agents into dir.
func buildAgents(dir string) (map[string]string, error) {
	agents := map[string]string{}
	for _, m := range minimal {
		agents[m.library] = filepath.Join(dir, filepath.Base(m.program)+"-agent")
		if err := goBuild(agents[m.library], m.program); err != nil {
			return nil, err
		}
	}
	return agents, nil
}

// cost measures the smallest agents.
func (b *bench) cost() ([]line, error) {
	lines, err := costOf("a minimal agent", minimal)
	if err != nil {
		return nil, err
	}
	more, err := costOf("a minimal agent by agentkit", []smallest{kit})
	return append(lines, more...), err
}

func costOf(what string, agents []smallest) ([]line, error) {
	size := line{what: what + ", size", unit: "MB", cells: map[string]cell{}}
	packages := line{what: what + ", packages imported, directly or not", unit: "packages", cells: map[string]cell{}}
	foreign := line{what: what + ", packages imported outside the standard library", unit: "packages",
		cells: map[string]cell{}}
	dir, err := os.MkdirTemp("", "bench-cost")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	output := filepath.Join(dir, "agent")
	for _, m := range agents {
		if err := goBuild(output, m.program); err != nil {
			return nil, err
		}
		info, err := os.Stat(output)
		if err != nil {
			return nil, err
		}
		all, err := goList("-deps", m.imports)
		if err != nil {
			return nil, err
		}
		others, err := goList("-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", m.imports)
		if err != nil {
			return nil, err
		}
		size.cells[m.library] = cell{values: []float64{float64(info.Size()) / 1e6}}
		packages.cells[m.library] = cell{values: []float64{float64(len(all))}}
		foreign.cells[m.library] = cell{values: []float64{float64(len(others))}}
	}
	return []line{size, packages, foreign}, nil
}

func goBuild(output, program string) error {
	if out, err := exec.Command("go", "build", "-o", output, program).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func goList(args ...string) ([]string, error) {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(out)), nil
}
