package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// columns of the table.
var columns = []struct {
	title string
	of    func(l line) string
}{
	{"measure", func(l line) string { return l.what }},
	{"unit", func(l line) string { return l.unit }},
	{"acp", value(nameACP)},
	{"coder", value(nameCoder)},
	{"× coder", ratio(nameCoder)},
	{"TypeScript", value(nameTypeScript)},
	{"× TypeScript", ratio(nameTypeScript)},
}

func value(library string) func(line) string {
	return func(l line) string {
		c, ok := l.cells[library]
		switch {
		case !ok:
			return ""
		case math.IsNaN(c.median()):
			return "failed"
		case c.note != "":
			return c.spread() + " *"
		}
		return c.spread()
	}
}

func ratio(library string) func(line) string {
	return func(l line) string { return spread(l.times(library)) }
}

func writeTable(w *strings.Builder, lines []line) {
	for _, c := range columns {
		fmt.Fprintf(w, "| %s ", c.title)
	}
	w.WriteString("|\n" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, l := range lines {
		for _, c := range columns {
			fmt.Fprintf(w, "| %s ", c.of(l))
		}
		w.WriteString("|\n")
	}
}

const page = `# Benchmarks

Written by ` + "`make bench`" + `, which holds the same conversations by this library and by others and prints this table.
%s
- **acp**: this library, as its users write it, with all guarantees on: order, backpressure, limits, gating, cancellation.
- **coder**: %s, as its examples write it. It closes a connection on which more than 1,024 notifications wait, so
  turns have at most 1,000 updates where nothing else is said.
- **TypeScript**: @agentclientprotocol/sdk %s on both sides, as its examples write it.

Client and agent are two processes. Updates exist before they are sent, and clients look at the number in each; the slow one
sleeps a millisecond after every tenth. Allocations have their part of what a turn itself allocates. For the start, acp and
coder have agents of their own in bench/minimal. Values are medians of %d rounds (slow clients: 3) with their quartiles, in
which the libraries took turns; ratios are made round by round: × is how many times as fast this library is. In all other
columns less is better.

`

// report prints the page and writes it to the output, and prints it.
func (b *bench) report(lines []line) error {
	var text strings.Builder
	fmt.Fprintf(&text, page, machine(), module("github.com/coder/acp-go-sdk"), sdkVersion(), b.rounds)
	writeTable(&text, lines)
	noted := ""
	for _, l := range lines {
		for _, c := range columns {
			if cell := l.cells[c.title]; cell.note != "" && noted != l.experiment {
				fmt.Fprintf(&text, "\n\\* %s, %s: %s\n", l.experiment, c.title, cell.note)
			}
		}
		noted = l.experiment
	}
	if _, err := io.WriteString(os.Stdout, text.String()); err != nil || b.output == "" {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.output), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.output, []byte(text.String()), 0o644)
}

// machine says what this runs on.
func machine() string {
	node := "none"
	if out, err := exec.Command("node", "--version").Output(); err == nil {
		node = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("\nMeasured on %s, %d cores, %s (%s), %s, Node %s:\n",
		cpu(), runtime.NumCPU(), system(), runtime.GOOS+"/"+runtime.GOARCH, runtime.Version(), node)
}

func cpu() string { return valueIn("/proc/cpuinfo", "model name", ":", "unknown processor") }

func system() string { return valueIn("/etc/os-release", "PRETTY_NAME", "=", runtime.GOOS) }

// valueIn finds what a file says behind a name, if there is such a file.
func valueIn(path, name, separator, otherwise string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	for l := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(l, separator); ok && strings.TrimSpace(k) == name {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return otherwise
}

// module is a module that this program was built with.
func module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return d.Path + " " + d.Version
			}
		}
	}
	return path
}
