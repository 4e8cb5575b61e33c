//go:build linux || darwin

package terminal

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
)

const pictureFile = "../../../../docs/run.svg"

// The size of a cell in a picture, in pixels.
const cellWidth, cellHeight = 8.4, 18

// light draws pictures of a light terminal. The emulator reads the same variable.
var light = os.Getenv("SCREEN_LIGHT") != ""

// colors are the terminal's own colors, and the first 16 of its palette.
func colors() (foreground, background string, palette []string) {
	if light {
		return "#1f2328", "#ffffff", strings.Fields("#24292f #cf222e #116329 #4d2d00 #0969da #8250df #1b7c83 #6e7781 " +
			"#57606a #a40e26 #1a7f37 #633c01 #218bff #a475f9 #3192aa #8c959f")
	}
	return "#d7dde5", "#0d1117", strings.Fields("#484f58 #ff7b72 #3fb950 #d29922 #58a6ff #bc8cff #39c5cf #b1bac4 " +
		"#6e7681 #ffa198 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd #f0f6fc")
}

// colorOf returns a color that a style names; "" if the word is no color.
func colorOf(name string) string {
	_, _, palette := colors()
	bright, isBright := strings.CutPrefix(name, "bright-")
	if i := slices.Index(strings.Fields("black red green yellow blue magenta cyan white"), bright); i >= 0 {
		if isBright {
			i += 8
		}
		return palette[i]
	}
	if strings.HasPrefix(name, "#") {
		return name
	}
	switch i, err := strconv.Atoi(name); {
	case err != nil:
		return ""
	case i < 16:
		return palette[i]
	default:
		r, g, b, _ := ansi.IndexedColor(i).RGBA()
		return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
	}
}

// picture draws a frame that has its cells as SVG.
func picture(f *screen.Frame, label string) string {
	var b strings.Builder
	_, background, palette := colors()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %d" role="img" aria-label="acp run: %s">`+"\n"+
		`<rect width="100%%" height="100%%" rx="8" fill="%s" stroke="%s"/>`+"\n"+
		`<g font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n",
		float64(f.Cols+2)*cellWidth, (f.Rows+1)*cellHeight, label, background, palette[8])
	for y, line := range f.Lines {
		styles := map[int]string{} // by the cell at which something else begins
		for _, run := range line.Runs {
			if _, begins := styles[run.End]; !begins {
				styles[run.End] = ""
			}
			styles[run.Start] = run.Style
		}
		text, from, x, style := "", 0, 0, ""
		for _, c := range line.Cells {
			if s, changes := styles[x]; changes && s != style {
				drawText(&b, text, from, x, y, style)
				text, from, style = "", x, s
			}
			text += c.Text
			x += c.Width
		}
		drawText(&b, text, from, x, y, style)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// drawText draws the text of the cells of a line from one to another, which look the same.
func drawText(b *strings.Builder, text string, from, to, y int, style string) {
	fg, background, _ := colors()
	bg, attributes, reverse := "", "", false
	for word := range strings.FieldsSeq(style) {
		switch on, isBackground := strings.CutPrefix(word, "on-"); {
		case isBackground:
			bg = colorOf(on)
		case colorOf(word) != "":
			fg = colorOf(word)
		case word == "bold":
			attributes += ` font-weight="bold"`
		case word == "italic":
			attributes += ` font-style="italic"`
		case word == "underline":
			attributes += ` text-decoration="underline"`
		case word == "reverse":
			reverse = true
		}
	}
	if bg == "" && reverse {
		bg = background
	}
	if reverse {
		fg, bg = bg, fg
	}
	top := float64(y)*cellHeight + cellHeight/2
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", float64(from+1)*cellWidth, top, float64(to-from)*cellWidth, cellHeight, bg)
	}
	trimmed := strings.TrimLeft(text, " ")
	from += len(text) - len(trimmed)
	before := len(trimmed)
	trimmed = strings.TrimRight(trimmed, " ")
	if to -= before - len(trimmed); trimmed != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" fill="%s"%s>%s</text>`+"\n",
			float64(from+1)*cellWidth, top+cellHeight*0.75, float64(to-from)*cellWidth, fg, attributes, html.EscapeString(strings.ReplaceAll(trimmed, " ", "\u00a0"))) // readers of SVG collapse spaces
	}
}

// pictureDir is the directory of the session, which the picture shows as one of the same length.
var pictureDir = regexp.MustCompile(`/tmp/ap-[0-9a-f]{4}/work`)

// TestPicture plays the session of docs/run.svg: a question and its answer, a tool call, and the permission for another one.
func TestPicture(t *testing.T) {
	p := ready(t, staging{command: []string{"run", "--", "coder", "-title", "Coder", "-model", "qwen3-coder"}, named: true, cols: 92, rows: 34})
	p.say("Why does the test fail?")
	p.answered("expects 5.")
	p.say("Fix it")
	p.Wait("asks for permission to change a file", "No, never")
	p.Gone("Ctrl-G: answer")
	draw := func(f *screen.Frame) string {
		return pictureDir.ReplaceAllString(picture(f, "a question and its answer, and a permission request that shows the change"), "/home/ann/project")
	}
	switch want, err := os.ReadFile(pictureFile); {
	case *pictures != "":
		p.shows("run")
	case *update:
		if err := os.WriteFile(pictureFile, []byte(draw(p.Settled())), 0o644); err != nil {
			t.Error(err)
		}
	case err != nil:
		t.Error(err)
	default:
		p.Until("docs/run.svg, which -update writes", func(*screen.Frame) bool { return draw(p.Whole()) == string(want) })
	}
	p.decide("y")
	p.answered("selected yes")
	p.quit()
}
