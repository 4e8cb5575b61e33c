package hostile

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
)

// Flags reads the command line of a program that makes one of several attacks: the flags -case, -list and -report, and
// those that the program has defined. It returns the attack of -case and the report. With -list, or the name of no
// attack, it prints what is to say and ends the program.
func Flags[A any](attacks map[string]A) (A, *Report) {
	name := flag.String("case", "none", "the attack")
	list := flag.Bool("list", false, "print the names of the attacks")
	report := flag.String("report", "", "where to write the report; nowhere if it is empty")
	flag.Parse()
	if *list {
		for _, name := range slices.Sorted(maps.Keys(attacks)) {
			fmt.Println(name)
		}
		os.Exit(0)
	}
	attack, ok := attacks[*name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no attack %q\n", *name)
		os.Exit(2)
	}
	return attack, NewReport(*report)
}
