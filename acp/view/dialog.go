package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
)

// LineDialog asks a [Question] on a terminal that is used line by line. The caller must print nothing else between Show
// and the answer, or call Show again after it: what stands directly above the prompt must be the facts and the options.
type LineDialog struct {
	Question *Question
	// Title are the first lines.
	Title []string
	// Draw returns the lines of the facts and, after them, of the notes; how many are of the facts; and other lines that
	// help the user, such as the content of the tool call. If it is nil, the lines are not wider than 80 columns.
	Draw func() (head []string, facts int, body []string)
	// Option is the format of an option's line, for its number and its text.
	Option string
	// Prompt asks for a number; Again does after a line that is not one, and is a format for the number of options.
	Prompt, Again string

	rest  []string // the lines that have to be shown before the options
	wrong bool     // the last line was not an answer
}

// pageLines is how many lines of facts and notes are shown at once, so that all of them can be read.
const pageLines = 20

// Show returns the question from its beginning, to be printed before the prompt. If it is long, the user has to ask for
// the rest with empty lines.
func (d *LineDialog) Show(now time.Time) []string {
	draw := d.Draw
	if draw == nil {
		draw = d.plainly
	}
	head, facts, body := draw()
	shown := slices.Clone(d.Title)
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
func (d *LineDialog) next(lines []string, now time.Time) []string {
	n := min(len(d.rest), pageLines)
	lines = append(lines, d.rest[:n]...)
	if d.rest = d.rest[n:]; len(d.rest) > 0 {
		d.Question.Shown(Begun, now)
		return lines
	}
	for i, c := range d.Question.Choices {
		lines = append(lines, fmt.Sprintf(d.Option, i+1, c.Text))
	}
	d.Question.shown = [Whole + 1]time.Time{} // the delay begins when everything is visible
	d.Question.Shown(Whole, now)
	return lines
}

// Asks returns the prompt that belongs to what was shown last.
func (d *LineDialog) Asks() string {
	switch n := len(d.rest); {
	case n > 0:
		return fmt.Sprintf("Enter shows the rest, %d lines: ", n)
	case d.wrong:
		return fmt.Sprintf(d.Again, len(d.Question.Choices))
	}
	return d.Prompt
}

// Answer takes a line that the user has begun to type at a time. It returns the option that was chosen, or the lines to
// print before the prompt is repeated. call is what is known of the tool call now, or nil: if the agent has changed it,
// the question is asked again.
func (d *LineDialog) Answer(line string, begun, now time.Time, call *acp.ToolCall) (*acp.PermissionOption, []string) {
	line = strings.TrimSpace(line)
	n, err := strconv.Atoi(line)
	d.wrong = false
	switch {
	case begun.Before(d.Question.shown[Begun]): // it was meant for something else
	case d.Question.Update(call):
		return nil, d.Show(now)
	case line == "" && len(d.rest) > 0:
		return nil, d.next(nil, now)
	case line == "":
		return nil, d.Show(now)
	case err != nil || len(d.rest) > 0 || n < 1 || n > len(d.Question.Choices):
		d.wrong = true
	default:
		option, err := d.Question.Choose(n-1, begun)
		if err == nil {
			return option, nil
		}
		return nil, []string{"Not yet: " + err.Error() + "."}
	}
	return nil, nil
}

// plainly draws the question without any styles.
func (d *LineDialog) plainly() (head []string, facts int, body []string) {
	for _, f := range d.Question.Facts {
		head = append(head, f.lines()...)
	}
	facts = len(head)
	for _, f := range d.Question.Notes {
		head = append(head, f.lines()...)
	}
	return head, facts, nil
}

// lines returns a fact as lines that begin with its name or with spaces, and are so short that the terminal does not
// break them, which would put the agent's words at the beginning of a line.
func (f Fact) lines() []string {
	var lines []string
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
				lines = append(lines, line)
				line, width = "  ", 2+w
			}
			line += string(r)
		}
		lines = append(lines, line)
	}
	return lines
}
