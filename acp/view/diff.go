package view

import (
	"fmt"
	"strings"
)

// diffContext is how many unchanged lines are shown around each change.
const diffContext = 3

// maxDiffCells bounds the time and the memory for comparing: the product of the numbers of lines that differ.
const maxDiffCells = 1 << 20

// diffLines returns the difference of two texts as the lines of a unified diff, with line numbers in place of headers.
func diffLines(old, new string) []string {
	a, b := splitLines(old), splitLines(new)
	before := 0
	for before < len(a) && before < len(b) && a[before] == b[before] {
		before++
	}
	after := 0
	for after < len(a)-before && after < len(b)-before && a[len(a)-1-after] == b[len(b)-1-after] {
		after++
	}
	lines := make([]string, 0, len(b))
	for _, line := range b[:before] {
		lines = append(lines, " "+line)
	}
	lines = append(lines, edits(a[before:len(a)-after], b[before:len(b)-after])...)
	for _, line := range b[len(b)-after:] {
		lines = append(lines, " "+line)
	}
	// Only the lines near a change are kept.
	var out []string
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] != ' ' {
			for j := max(i-diffContext, 0); j <= min(i+diffContext, len(lines)-1); j++ {
				near[j] = true
			}
		}
	}
	number := 1 // of the new text
	for i, line := range lines {
		if near[i] {
			if i > 0 && !near[i-1] {
				out = append(out, fmt.Sprintf("@@ line %d @@", number))
			}
			out = append(out, line)
		}
		if line[0] != '-' {
			number++
		}
	}
	return out
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// edits returns the lines of both texts, in order: those of a alone begin with "-", those of b alone with "+".
func edits(a, b []string) []string {
	var out []string
	i, j := 0, 0
	if len(a)*len(b) <= maxDiffCells {
		// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
		common := make([][]int32, len(a)+1)
		cells := make([]int32, (len(a)+1)*(len(b)+1))
		for i := range common {
			common[i], cells = cells[:len(b)+1], cells[len(b)+1:]
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i < len(a) && j < len(b) {
			switch {
			case a[i] == b[j]:
				out = append(out, " "+a[i])
				i, j = i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				out = append(out, "-"+a[i])
				i++
			default:
				out = append(out, "+"+b[j])
				j++
			}
		}
	}
	for _, line := range a[i:] {
		out = append(out, "-"+line)
	}
	for _, line := range b[j:] {
		out = append(out, "+"+line)
	}
	return out
}
