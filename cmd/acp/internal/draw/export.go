package draw

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// ExportOptions configure [Export].
type ExportOptions struct {
	// Title is the first line; by default the session's title.
	Title string
	// Facts are lines below it, such as the agent's name and the directory.
	Facts []string
	// Terminal returns the output of a terminal.
	Terminal func(acp.TerminalID) (Output, bool)
}

// exportWidth is the width of an exported conversation.
const exportWidth = 100

// Export writes a whole conversation as a text, as it is drawn in the theme [Plain] with everything unfolded.
func Export(w io.Writer, s *view.Snapshot, o *ExportOptions) error {
	t := NewTranscript(&Options{Theme: Plain(), Width: exportWidth, Unfolded: true, Terminal: o.Terminal})
	t.Update(s)
	b := bufio.NewWriter(w) // keeps the first error until Flush
	write := func(lines ...string) {
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	for _, head := range append([]string{cmp.Or(o.Title, s.Title.Value(), "Session")}, o.Facts...) {
		write(t.p.strings(line{{label(head), style{}}}.wrap(exportWidth, nil), exportWidth)...)
	}
	write("")
	if n := s.First(); n > 0 {
		write(fmt.Sprintf("(%d older items are not stored)", n), "")
	}
	for item := range s.Items() {
		for part := range t.partsOf(item.Index) {
			for _, l := range t.lines(item.Index, part) {
				write(t.finish(l, item.Index))
			}
		}
		delete(t.items, item.Index)
	}
	if plan := Plan(t.p.Theme, s, exportWidth, 1<<30); len(plan) > 0 {
		write("")
		write(plan...)
	}
	if u, ok := s.Usage.Get(); ok {
		write("", Line(t.p.Theme, Usage(t.p.Theme, u), exportWidth))
	}
	return b.Flush()
}
