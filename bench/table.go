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
	"strconv"
	"strings"
)

// columns of the table. Their titles are how changes finds them again.
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
	{"by hand", value(nameByHand)},
	{"share of by hand", ratio(nameByHand)},
	{"target", func(l line) string { return l.verdicts() }},
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
- **by hand**: a loop on this module's codec without a JSON-RPC library, a queue, limits, cancellation or reaction to errors.

Client and agent are two processes, except "in memory", where an io.Pipe stands between them. Updates exist before they are
sent, and clients look at the number in each; the slow one sleeps a millisecond after every tenth. Allocations have their part
of what a turn itself allocates. For the start, acp and coder have agents of their own in bench/minimal, the other Go agents
are one program. Values are medians of %d rounds (slow clients: 3) with their quartiles, in which the libraries took turns;
ratios are made round by round, and higher is better for this library: × is how many times as fast, share is its part of the
speed of the loop by hand. In all other columns less is better.

`

// report prints the page and writes it to the output, and prints what changed.
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
	last, err := committed(b.output)
	if err != nil {
		fmt.Println("\nNo table was committed before.")
	} else {
		all := changes(last, text.String())
		fmt.Printf("\nAgainst the last committed table %d medians differ by more than %v %%.\n", len(all), 100*notable)
		for _, change := range all {
			fmt.Println("  " + change)
		}
	}
	if err := os.MkdirAll(filepath.Dir(b.output), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.output, []byte(text.String()), 0o644)
}

// committed is a file as it was committed last.
func committed(path string) (string, error) {
	show := exec.Command("git", "show", "HEAD:./"+filepath.Base(path))
	show.Dir = filepath.Dir(path)
	out, err := show.Output()
	return string(out), err
}

const notable = 0.1 // a change of a median by less is noise

// changes compares what does not depend on the machine: ratios, and values that are no times.
func changes(before, after string) (all []string) {
	was, is := readTable(before), readTable(after)
	for _, r := range is {
		for _, old := range was {
			if old["measure"] != r["measure"] || old["unit"] != r["unit"] {
				continue
			}
			titles := []string{"× coder", "× TypeScript", "share of by hand"}
			if r["unit"] != "µs" {
				titles = []string{"acp"}
			}
			for _, title := range titles {
				x, errX := leading(old[title])
				y, errY := leading(r[title])
				if errX == nil && errY == nil && math.Abs(y-x) > notable*math.Abs(x) {
					all = append(all, fmt.Sprintf("%s: %s was %s, is %s", r["measure"], title, old[title], r[title]))
				}
			}
		}
	}
	return all
}

// readTable reads the rows of a page's table by column titles.
func readTable(text string) (rows []map[string]string) {
	var titles []string
	for l := range strings.Lines(text) {
		fields := strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|")
		if len(fields) < 2 {
			continue
		}
		row := map[string]string{}
		for i, f := range fields {
			if titles != nil && i < len(titles) {
				row[titles[i]] = strings.TrimSpace(f)
			}
			fields[i] = strings.TrimSpace(f)
		}
		if titles == nil {
			titles = fields
		} else {
			rows = append(rows, row)
		}
	}
	return rows
}

// leading is the number that a cell begins with.
func leading(cell string) (float64, error) {
	first, _, _ := strings.Cut(cell, " ")
	return strconv.ParseFloat(strings.ReplaceAll(first, ",", ""), 64)
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
