package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// line is one row of the table.
type line struct {
	experiment string
	what, unit string
	cells      map[string]cell // by library
}

// cell has the results of one library by round.
type cell struct {
	values []float64 // NaN where a round failed
	note   string    // what went wrong
}

// lines makes an experiment's rows.
func (e experiment) lines(m measurements) (all []line) {
	for _, r := range e.rows {
		l := line{experiment: e.name, what: e.name + r.what, unit: r.unit, cells: map[string]cell{}}
		for name, rounds := range m {
			c := cell{note: note(rounds)}
			for _, points := range rounds {
				v := math.NaN()
				if r.failed || !slices.ContainsFunc(points, func(p result) bool { return p.Error != "" }) {
					v = r.of(points)
				}
				c.values = append(c.values, v)
			}
			if c.note != "" || !math.IsNaN(c.median()) {
				l.cells[name] = c
			}
		}
		all = append(all, l)
	}
	return all
}

// note describes the errors of some rounds.
func note(rounds [][]result) string {
	failed, lost, swapped, why := 0, 0, 0, ""
	for _, points := range rounds {
		bad := false
		for _, p := range points {
			lost += p.Lost
			swapped += p.Swapped
			if p.Error != "" {
				bad, why = true, p.Error
			}
		}
		if bad {
			failed++
		}
	}
	var parts []string
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("failed in %d of %d rounds (%s)", failed, len(rounds),
			strings.Join(strings.Fields(why), " ")))
	}
	if lost > 0 {
		parts = append(parts, digits(float64(lost))+" updates lost")
	}
	if swapped > 0 {
		parts = append(parts, digits(float64(swapped))+" out of order")
	}
	return strings.Join(parts, ", ")
}

func (c cell) median() float64 { return quantile(c.values, 0.5) }

// spread returns the median and the quartiles.
func (c cell) spread() string { return spread(c.values) }

func spread(values []float64) string {
	middle, low, high := digits(quantile(values, 0.5)), digits(quantile(values, 0.25)), digits(quantile(values, 0.75))
	if low == high {
		return middle
	}
	return middle + " (" + low + "–" + high + ")"
}

// times returns, by round, how many times as fast as the other library this one was.
func (l line) times(other string) (ratios []float64) {
	if l.unit != "µs" {
		return nil
	}
	own := l.cells[nameACP].values
	for i, v := range l.cells[other].values {
		if i < len(own) && own[i] > 0 && v > 0 {
			ratios = append(ratios, v/own[i])
		}
	}
	return ratios
}

// quantile ignores NaN, and interpolates.
func quantile(values []float64, q float64) float64 {
	v := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	at := q * float64(len(v)-1)
	i := int(at)
	return v[i] + (at-float64(i))*(v[min(i+1, len(v)-1)]-v[i])
}

// digits writes three significant digits, and all before the decimal point.
func digits(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case math.Abs(v) < 0.0005:
		return "0"
	case v == math.Trunc(v) && math.Abs(v) < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) < 1000:
		decimals := 2 - int(math.Floor(math.Log10(math.Abs(v))))
		return strconv.FormatFloat(v, 'f', min(max(decimals, 0), 3), 64)
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
