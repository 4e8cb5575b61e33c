package draw

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// The limits for drawing the output of a terminal.
const (
	maxOutput      = 256 << 10 // bytes, from the end
	maxOutputLines = 1000
	maxColumns     = 4096
	maxGaps        = 256 << 10 // cells in all that the cursor skipped and left empty
)

// screen is the screen of a terminal without a right edge. It knows the movements of progress bars, which rewrite lines
// just above; everything else that a program may send is ignored.
type screen struct {
	lines    [][]cell
	row, col int
	style    style
	dropped  int // lines at the beginning
	gaps     int
}

// terminalLines returns the last lines of an output.
func terminalLines(output string) (lines []line, dropped int) {
	if len(output) > maxOutput {
		output = output[len(output)-maxOutput:]
		if i := strings.IndexByte(output, '\n'); i >= 0 {
			output = output[i+1:]
		}
		dropped = 1
	}
	s := &screen{lines: [][]cell{nil}}
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	var state byte
	for len(output) > 0 {
		seq, _, n, after := ansi.DecodeSequence(output, state, p)
		if n <= 0 {
			break
		}
		state, output = after, output[n:]
		s.write(seq, p)
	}
	for _, cells := range s.lines {
		var b builder
		for _, c := range cells {
			if c.cluster == "" {
				c = cell{" ", 1, c.style}
			}
			if c.width >= 0 {
				b.add(c.cluster, c.width, c.style)
			}
		}
		lines = append(lines, b.take())
	}
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines, dropped + s.dropped
}

// write executes a sequence or writes a character.
func (s *screen) write(seq string, p *ansi.Parser) {
	if len(seq) == 1 {
		switch seq[0] {
		case '\n', '\v', '\f':
			s.down()
			s.col = 0
			return
		case '\r':
			s.col = 0
			return
		case '\b':
			s.col = max(s.col-1, 0)
			return
		case '\t':
			s.col = min(s.col/8*8+8, maxColumns)
			return
		}
		if seq[0] < ' ' || seq[0] == 0x7f {
			return
		}
	}
	if strings.HasPrefix(seq, "\x1b[") {
		s.control(seq, p)
		return
	}
	if isSequence(seq) || seq[0] == 0xc2 && len(seq) == 2 && seq[1] < 0xa0 {
		return
	}
	if !utf8.ValidString(seq) {
		seq = "\ufffd"
	}
	for text := clean(seq); len(text) > 0; {
		cluster, rest, width := next(text)
		text = rest
		s.put(cell{cluster, width, s.style})
	}
}

// put writes a character at the cursor. A character of two columns is followed by an empty cell.
func (s *screen) put(c cell) {
	row := s.lines[s.row]
	if c.width == 0 {
		if n := min(s.col, len(row)); n > 0 && len(row[n-1].cluster) < maxCluster {
			row[n-1].cluster += c.cluster
		}
		return
	}
	if s.col+c.width > maxColumns {
		return
	}
	if gap := s.col - len(row); gap > 0 {
		if s.gaps += gap; s.gaps > maxGaps {
			s.col = len(row)
		}
	}
	for len(row) < s.col+c.width {
		row = append(row, cell{})
	}
	row[s.col] = c
	for i := 1; i < c.width; i++ {
		row[s.col+i] = cell{width: -1, cluster: " ", style: c.style}
	}
	if end := s.col + c.width; end < len(row) && row[end].width < 0 {
		row[end] = cell{} // the other half of an overwritten character
	}
	s.lines[s.row] = row
	s.col += c.width
}

// down moves the cursor down, and creates a line if it was in the last one.
func (s *screen) down() {
	s.row++
	if s.row == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
	if len(s.lines) > maxOutputLines {
		s.lines = s.lines[1:]
		s.row--
		s.dropped++
	}
}

// control executes a sequence that begins with CSI.
func (s *screen) control(seq string, p *ansi.Parser) {
	if apply(&s.style, seq, p) {
		return
	}
	n, _ := p.Param(0, -1)
	some := min(max(n, 1), maxColumns) // the distance: at least 1
	row := s.lines[s.row]
	switch p.Command() { // which includes a prefix or an intermediate character, such as those of modes
	case 'A':
		s.row = max(s.row-some, 0)
	case 'B':
		s.row = min(s.row+some, len(s.lines)-1)
	case 'C':
		s.col = min(s.col+some, maxColumns)
	case 'D':
		s.col = max(s.col-some, 0)
	case 'G':
		s.col = some - 1
	case 'K':
		if n <= 0 {
			s.lines[s.row] = row[:min(s.col, len(row))]
		} else if n > 1 {
			s.lines[s.row] = nil
		}
	case 'J':
		if n <= 0 {
			s.lines[s.row] = row[:min(s.col, len(row))]
			s.lines = s.lines[:s.row+1]
		} else if n > 1 {
			s.lines, s.row, s.col = [][]cell{nil}, 0, 0 // programs clear the screen to draw a new one from its beginning
		}
	}
}

// terminalBlock draws the output of a terminal of a tool call.
func (p *painter) terminalBlock(id string, width int) []line {
	if p.terminal == nil {
		return line{{"terminal " + label(id), p.dim}}.wrap(width, nil)
	}
	out, ok := p.terminal(id)
	if !ok {
		return line{{"terminal " + label(id) + ": not known", p.dim}}.wrap(width, nil)
	}
	return p.output(out, width)
}

// maxLiveLines is how many lines of the output of a running command a folded tool call shows.
const maxLiveLines = 6

// lastOutput draws the last n lines of a known terminal.
func (p *painter) lastOutput(id string, n, width int) []line {
	if p.terminal == nil {
		return nil
	}
	out, ok := p.terminal(id)
	if !ok {
		return nil
	}
	lines, _ := terminalLines(out.Text)
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		lines[i] = l.clip(width, p.marks.ellipsis)
	}
	return lines
}

// output draws an output.
func (p *painter) output(o Output, width int) []line {
	lines, dropped := terminalLines(o.Text)
	var out []line
	if o.Command != "" {
		out = append(out, line{{"$ " + label(o.Command), p.dim}}.wrap(width, nil)...)
	}
	if o.Truncated || dropped > 0 {
		out = append(out, line{{"(the beginning is omitted)", p.dim}}.wrap(width, nil)...)
	}
	for _, l := range lines {
		out = append(out, l.wrap(width, nil)...)
	}
	if o.Status != "" {
		s := p.dim
		if o.Failed {
			s = p.bad
		}
		out = append(out, line{{label(o.Status), s}}.wrap(width, nil)...)
	}
	return out
}
