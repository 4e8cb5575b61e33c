// Package tier tells tests how much work to do in this run.
//
// A run has one of four tiers. go test -short runs Short, go test runs Normal, and the environment variable ACP_TEST
// selects the slower two: ACP_TEST=full is what make check runs, and ACP_TEST=nightly what make nightly runs. A test
// that needs npm, a pseudo-terminal, or more than a few seconds calls [Need], or takes its size from [Pick] so that
// every tier runs a part of it.
package tier

import (
	"fmt"
	"os"
	"testing"
)

// Variable is the environment variable that selects Full or Nightly.
const Variable = "ACP_TEST"

// Tier is the amount of work that a run of the tests does. Each tier does what the ones before it do, and more.
type Tier int

const (
	Short   Tier = iota // go test -short: seconds
	Normal              // go test: everything in memory and over pipes
	Full                // make check: also npm, terminals, and larger samples
	Nightly             // make nightly: every size, however long it takes
)

func (t Tier) String() string { return [...]string{"short", "normal", "full", "nightly"}[t] }

// Current returns the tier of this run. ACP_TEST wins over -short.
func Current() Tier {
	switch value := os.Getenv(Variable); value {
	case "full":
		return Full
	case "nightly":
		return Nightly
	case "":
	default:
		panic(fmt.Sprintf("%s=%s: want full or nightly", Variable, value))
	}
	if testing.Short() {
		return Short
	}
	return Normal
}

// Need skips the test unless the run's tier is at least the given one.
func Need(t testing.TB, least Tier) {
	t.Helper()
	if Current() < least {
		t.Skipf("SKIPPED: only in tier %s (docs/maintaining.md, Tests)", least)
	}
}

// Pick returns the value for the tier of this run.
func Pick[T any](short, normal, full, nightly T) T {
	return [...]T{short, normal, full, nightly}[Current()]
}
