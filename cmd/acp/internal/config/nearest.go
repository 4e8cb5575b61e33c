package config

import (
	"math"
	"slices"
	"strings"
)

// maxNear is the number of names that are suggested.
const maxNear = 3

// Nearest returns the names that may have been meant, the most likely first: those that differ in few letters, and
// those that begin with name.
func Nearest(name string, known []string) []string {
	type near struct {
		name     string
		distance int
	}
	name = strings.ToLower(name)
	var found []near
	for _, k := range known {
		d := distance(name, strings.ToLower(k))
		if d <= max(1, min(len(name), len(k))/3) {
			found = append(found, near{k, d})
		} else if len(name) >= 3 && strings.HasPrefix(strings.ToLower(k), name) {
			found = append(found, near{k, len(k)})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var names []string
	for _, f := range found[:min(len(found), maxNear)] {
		names = append(names, f.name)
	}
	return names
}

// distance returns how many letters have to be added, removed, replaced or swapped with the next one.
func distance(a, b string) int {
	if most := 64; len(a) > most || len(b) > most {
		return math.MaxInt // too different to be a typing error
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
