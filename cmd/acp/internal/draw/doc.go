// Package draw converts what an agent sends to lines of text for a terminal: the conversation of a session, its plan,
// permission requests, the output of terminals. It also writes a session as a Markdown file.
//
// The package only computes: it starts no goroutines, reads nothing, and writes nothing except in [Export]. Its types
// are not safe for concurrent use.
//
// # What reaches the terminal
//
// Lines that functions of this package return contain only printable characters and sequences that set colors and
// attributes (SGR), which this package composes itself. Text of an agent is cleaned by package plain before anything
// else: what a terminal would interpret is shown as Go writes it in a string, such as \x1b. The output of libraries for
// cleaned text (Markdown, highlighting) is split into characters and styles again, and everything else in it is
// dropped. Lines are independent of each other: each begins and ends without a style.
//
// No line is wider than requested. The width of a character is the largest that any terminal uses for it.
package draw
