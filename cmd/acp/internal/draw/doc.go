// Package draw makes lines of text for a terminal out of what an agent says: the conversation of a session, its plan, what
// it asks permission for, the output of terminals, and a session as Markdown for a file.
//
// It computes only: it starts no goroutine, reads nothing and writes nothing but what [Export] is told to. Its types are
// not safe for concurrent use.
//
// # What reaches the terminal
//
// A line that a function of this package returns contains printable characters and sequences that set colours and
// attributes (SGR), which this package has composed itself. Text of an agent is cleaned by package plain before anything
// else is done with it: what a terminal would obey is shown as Go writes it in a string, such as \x1b. What libraries make
// of cleaned text (Markdown, highlighting) is taken apart again into characters and styles, and everything else of it is
// dropped. A line needs no other line: it begins without a style and ends so.
//
// No line is wider than asked for. A character is taken for as wide as the widest terminal draws it.
package draw
