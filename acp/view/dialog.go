package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
)

// lineDialog asks a [Question] on a terminal that is used line by line. Nothing else is printed between show and the
// answer: what stands directly above the prompt must be the facts and the options.
type lineDialog struct {
	*Question
	draw func(*Question) (head []string, facts int, body []string)

	rest  []string // the lines that have to be shown before the options
	wrong bool     // the last line was not an answer
}

// pageLines is how many lines of facts and notes are shown at once, so that all of them can be read.
const pageLines = 20

// show returns the question from its beginning, to be printed before the prompt. If it is long, the user has to ask for
// the rest with empty lines.
func (d *lineDialog) show(now time.Time) (shown []string) {
	head, facts, body := d.draw(d.Question)
	if d.Title != "" {
		shown = append(shown, PrintableLine(d.Title))
	}
	switch d.rest = head; {
	case len(head) > pageLines && len(body) > 0:
		shown = append(append(shown, body...), "")
	case len(head) > pageLines:
	case len(body) > 0:
		shown = slices.Concat(shown, head, []string{""}, body, []string{""})
		if d.rest = nil; len(body) > 10 { // the facts stay close to the options
			d.rest = head[:facts]
		}
	}
	return d.next(shown, now)
}

// next returns the lines of the next page, after others.
func (d *lineDialog) next(lines []string, now time.Time) []string {
	n := min(len(d.rest), pageLines)
	lines = append(lines, d.rest[:n]...)
	if d.rest = d.rest[n:]; len(d.rest) > 0 {
		d.Shown(Begun, now)
		return lines
	}
	for i, c := range d.Choices {
		lines = append(lines, fmt.Sprintf("%d: %s", i+1, c.Text))
	}
	d.shown = [Whole + 1]time.Time{} // the delay begins when everything is visible
	d.Shown(Whole, now)
	return lines
}

// asks returns the prompt that belongs to what was shown last.
func (d *lineDialog) asks() string {
	switch n := len(d.rest); {
	case n > 0:
		return fmt.Sprintf("Enter shows the rest, %d lines: ", n)
	case d.wrong:
		return fmt.Sprintf("Which one, 1 to %d? ", len(d.Choices))
	}
	return which
}

// answer takes a line that the user has begun to type at a time. It returns the option that was chosen, or the lines to
// print before the prompt is repeated.
func (d *lineDialog) answer(line string, begun, now time.Time) (*acp.PermissionOption, []string) {
	line = strings.TrimSpace(line)
	n, err := strconv.Atoi(line)
	d.wrong = false
	switch {
	case begun.Before(d.shown[Begun]): // it was meant for something else
	case d.Update():
		return nil, d.show(now)
	case line == "" && len(d.rest) > 0:
		return nil, d.next(nil, now)
	case line == "":
		return nil, d.show(now)
	case err != nil || len(d.rest) > 0 || n < 1 || n > len(d.Choices):
		d.wrong = true
	default:
		option, err := d.Choose(n-1, begun)
		if err == nil {
			return option, nil
		}
		return nil, []string{"Not yet: " + err.Error() + "."}
	}
	return nil, nil
}

// drawPlainly draws a question without any styles, in 80 columns.
func drawPlainly(q *Question) (head []string, facts int, body []string) {
	for _, f := range q.Facts {
		head = append(head, f.lines()...)
	}
	facts = len(head)
	for _, f := range q.Notes {
		head = append(head, f.lines()...)
	}
	return head, facts, nil
}

// lines returns a fact as lines that begin with its name or with spaces, and are so short that the terminal does not
// break them, which would put the agent's words at the beginning of a line.
func (f Fact) lines() []string {
	var lines []string
	add := func(line string) { lines = append(lines, Printable(line)) }
	for i, text := range strings.Split(f.Text, "\n") {
		line, width := "  ", 2
		if i == 0 {
			line, width = f.Name+" ", len(f.Name)+1
		}
		for _, r := range text {
			w := 1
			if r >= 0x1100 { // many of them are wide
				w = 2
			}
			if width += w; width > 79 {
				add(line)
				line, width = "  ", 2+w
			}
			line += string(r)
		}
		add(line)
	}
	return lines
}
