package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// smallest is the smallest agent that a library, or a package of it, allows.
type smallest struct{ what, library, program, imports string }

// minimal are the smallest agents: the first of each library is measured when it starts, too.
var minimal = []smallest{
	{"a minimal agent", nameACP, "./minimal/acp", "github.com/acpgo/sdk/acp"},
	{"a minimal agent", nameCoder, "./minimal/coder", "github.com/coder/acp-go-sdk"},
	{"a minimal agent by agentkit", nameACP, "github.com/acpgo/sdk/examples/hello", "github.com/acpgo/sdk/acp/agentkit"},
}

const costs = "cost of a minimal agent" // as the experiments are named

// file is the executable of a smallest agent in dir.
func (m smallest) file(dir string) string {
	return filepath.Join(dir, filepath.Base(m.program)+"-agent")
}

// buildAgents builds the smallest agents into dir, and returns the files of those that are started.
func buildAgents(dir string) (map[string]string, error) {
	agents := map[string]string{}
	for _, m := range minimal {
		out, err := exec.Command("go", "build", "-o", m.file(dir), m.program).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
		if agents[m.library] == "" {
			agents[m.library] = m.file(dir)
		}
	}
	return agents, nil
}

// cost measures the smallest agents, which are in dir.
func cost(dir string) (lines []line, err error) {
	for i, m := range minimal {
		info, err := os.Stat(m.file(dir))
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
		if i == 0 || m.what != minimal[i-1].what {
			lines = append(lines,
				line{what: m.what + ", size", unit: "MB", cells: map[string]cell{}},
				line{what: m.what + ", packages imported, directly or not", unit: "packages", cells: map[string]cell{}},
				line{what: m.what + ", packages imported outside the standard library", unit: "packages", cells: map[string]cell{}})
		}
		for j, v := range []float64{float64(info.Size()) / 1e6, float64(len(all)), float64(len(others))} {
			lines[len(lines)-3+j].cells[m.library] = cell{values: []float64{v}}
		}
	}
	return lines, nil
}

func goList(args ...string) ([]string, error) {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(out)), nil
}
