package view_test

import (
	"fmt"
	"os"

	"github.com/acpgo/sdk/acp/view"
)

// A title that clears the screen and fakes an answer of the user's becomes one harmless line.
func ExamplePrintableLine() {
	fmt.Println("Allow?", view.PrintableLine("ls\x1b[2J\n> yes"))
	// Output:
	// Allow? ls\x1b[2J\n> yes
}

func ExamplePrintable() {
	fmt.Println(view.Printable("one\r\ntwo \u202egnp.exe\n::add-mask::x"))
	// Output:
	// one
	// two \u202egnp.exe
	// \x3a:add-mask::x
}

// The standard error of an agent's process is marked, line by line.
func ExamplePrintableWriter() {
	stderr := view.NewPrintableWriter(os.Stdout, "agent: ")
	fmt.Fprint(stderr, "starting\nerr")
	fmt.Fprint(stderr, "or: \x1b[31mred")
	if err := stderr.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// agent: starting
	// agent: error: \x1b[31mred
}
