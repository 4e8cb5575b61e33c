package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// bench is a run of the experiments.
type bench struct {
	rounds int
	only   string
	output string

	self   string            // this program
	agents map[string]string // the smallest agents, by library
	node   string            // the folder of the TypeScript programs; empty without Node
}

func (b *bench) flags() {
	flag.IntVar(&b.rounds, "rounds", 10, "how often each experiment is run")
	flag.StringVar(&b.only, "only", "", "a regular expression: run the experiments with such names alone")
	flag.StringVar(&b.output, "o", "", "a file to write the page to")
}

// measurements has an experiment's results by library, round and point.
type measurements map[string][][]result

func (b *bench) run() error {
	only, err := regexp.Compile(b.only)
	if err != nil {
		return err
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "acp-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if b.node, err = installNode(dir); err != nil {
		return err
	}
	if b.agents, err = buildAgents(dir); err != nil {
		return err
	}
	lines := b.experiment(slices.DeleteFunc(experiments(), func(e experiment) bool { return !only.MatchString(e.name) }))
	if only.MatchString(costs) {
		more, err := cost(dir)
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	return b.report(lines)
}

// experiment does all experiments once in each round.
func (b *bench) experiment(chosen []experiment) (lines []line) {
	all := make([]measurements, len(chosen))
	for round := range b.rounds {
		for i, e := range chosen {
			if e.rounds > 0 && round >= e.rounds {
				continue
			}
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-60s", round+1, b.rounds, e.name)
			if all[i] == nil {
				all[i] = measurements{}
			}
			b.round(round, e, all[i])
		}
	}
	fmt.Fprintln(os.Stderr)
	for i, e := range chosen {
		lines = append(lines, e.lines(all[i])...)
	}
	return lines
}

// round runs an experiment once with each library. The order changes, so that no library always follows the same one.
func (b *bench) round(n int, e experiment, m measurements) {
	names := []string{nameACP, nameCoder, nameTypeScript}
	for i := range names {
		name := names[(i+n)%len(names)]
		if name == nameTypeScript && b.node == "" {
			continue
		}
		var points []result
		for _, p := range e.points {
			points = append(points, measure(p.command(b, name)))
		}
		m[name] = append(m[name], points)
	}
}

// command is a client that starts its agent.
func (c conversation) command(b *bench, library string) []string {
	if library == nameTypeScript {
		return []string{"node", filepath.Join(b.node, "client.mjs"), string(asJSON(c)), "node",
			filepath.Join(b.node, "agent.mjs")}
	}
	client := []string{b.self, "-role", "client", "-library", library, string(asJSON(c))}
	if agent, ok := b.agents[library]; ok && c.Start {
		return append(client, agent)
	}
	return append(client, b.self, "-role", "agent", "-library", library)
}

// measure runs a process that prints a result.
func measure(command []string) (r result) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		r.Error = fmt.Sprintf("%v: %.500s", err, &stderr)
	}
	return r
}

// installNode brings the TypeScript programs and their SDK into dir, and returns it; nothing without Node.
func installNode(dir string) (string, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); errors.Is(err, exec.ErrNotFound) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	if err := os.CopyFS(dir, typescript); err != nil {
		return "", err
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = filepath.Join(dir, "typescript")
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return npm.Dir, nil
}

//go:embed typescript
var typescript embed.FS

// sdkVersion is the version of the TypeScript SDK that is installed.
func sdkVersion() string {
	text, err := typescript.ReadFile("typescript/package.json")
	if err != nil {
		panic(err) // it is embedded
	}
	var manifest struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &manifest); err != nil {
		panic(err)
	}
	return manifest.Dependencies["@agentclientprotocol/sdk"]
}
