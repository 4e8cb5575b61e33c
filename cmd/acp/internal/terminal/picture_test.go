//go:build linux || darwin

package terminal

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

const pictureFile = "../../../../docs/run.svg"

// The size of a cell in the picture, in pixels, and the terminal's own colors.
const (
	cellWidth, cellHeight  = 8.4, 18
	foreground, background = "#d7dde5", "#0d1117"
)

// palette is the first 16 colors.
var palette = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
}

// A look is the style of text.
type look struct {
	fg, bg                string // "" is the terminal's own
	bold, italic, reverse bool
}

// lookOf parses the arguments of a sequence that sets a look.
func lookOf(args string) (l look, err error) {
	words := strings.Split(args, ";")
	for i := 0; i < len(words); i++ {
		n, err := strconv.Atoi("0" + words[i])
		switch {
		case err != nil:
			return l, err
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 3:
			l.italic = true
		case n == 7:
			l.reverse = true
		case n >= 30 && n < 38:
			l.fg = palette[n-30]
		case n >= 90 && n < 98:
			l.fg = palette[n-90+8]
		case n == 38 || n == 48:
			color, used, err := colorOf(words[i+1:])
			if err != nil {
				return l, err
			}
			if i += used; n == 38 {
				l.fg = color
			} else {
				l.bg = color
			}
		default:
			return l, fmt.Errorf("the picture has no look %d", n)
		}
	}
	return l, nil
}

// colorOf parses "5", an index, or "2", red, green, blue, and returns the number of words.
func colorOf(words []string) (color string, used int, err error) {
	var n [4]int
	for i := range min(len(words), len(n)) {
		if n[i], err = strconv.Atoi(words[i]); err != nil {
			return "", 0, err
		}
	}
	switch i := n[1]; {
	case n[0] == 2:
		return fmt.Sprintf("#%02x%02x%02x", n[1], n[2], n[3]), 4, nil
	case n[0] != 5:
		return "", 0, fmt.Errorf("the picture has no colors of kind %d", n[0])
	case i < 16:
		return palette[i], 2, nil
	case i < 232: // a cube with sides of six colors
		level := func(n int) int { return []int{0, 95, 135, 175, 215, 255}[n%6] }
		return fmt.Sprintf("#%02x%02x%02x", level((i-16)/36), level((i-16)/6), level(i-16)), 2, nil
	default:
		gray := 8 + 10*(i-232)
		return fmt.Sprintf("#%02x%02x%02x", gray, gray, gray), 2, nil
	}
}

// picture draws an event of a recording, which is a whole screen: its sequences move to the beginning of a line or set
// a look.
func picture(screen string, cols, rows int) (string, error) {
	var b strings.Builder
	width, height := float64(cols+2)*cellWidth, (rows+1)*cellHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %d" role="img" aria-label="acp run: an agent asks for permission to edit a file, and shows the change">`+"\n"+
		`<rect width="100%%" height="100%%" rx="8" fill="%s" stroke="%s"/>`+"\n"+
		`<g font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" xml:space="preserve">`+"\n", width, height, background, palette[8])
	sequence := regexp.MustCompile(`\x1b\[(\??)([0-9;]*)([A-Za-z])|[^\x1b]+`)
	x, y, style := 0, 0, look{}
	for _, found := range sequence.FindAllStringSubmatch(screen, -1) {
		var err error
		switch found[1] + found[3] {
		case "J", "?l", "?h": // clearing the screen, and the cursor, which is not drawn
		case "H":
			_, err = fmt.Sscanf(found[2], "%d;%d", &y, &x)
			x, y = x-1, y-1
		case "m":
			style, err = lookOf(found[2])
		case "":
			drawText(&b, found[0], x, y, style)
			x += ansi.StringWidth(found[0])
		default:
			err = fmt.Errorf("the picture has no sequence %q", found[0])
		}
		if err != nil {
			return "", err
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String(), nil
}

// drawText draws a text in one look.
func drawText(b *strings.Builder, text string, x, y int, style look) {
	fg, bg := style.fg, style.bg
	if fg == "" {
		fg = foreground
	}
	if style.reverse {
		if bg == "" {
			bg = background
		}
		fg, bg = bg, fg
	}
	cells := ansi.StringWidth(text)
	left, top := float64(x+1)*cellWidth, float64(y)*cellHeight+cellHeight/2
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", left, top, float64(cells)*cellWidth, cellHeight, bg)
	}
	trimmed := strings.TrimRight(text, " ")
	if trimmed == "" {
		return
	}
	attributes := ""
	if style.bold {
		attributes += ` font-weight="bold"`
	}
	if style.italic {
		attributes += ` font-style="italic"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" fill="%s"%s>%s</text>`+"\n",
		left, top+cellHeight*0.75, float64(ansi.StringWidth(trimmed))*cellWidth, fg, attributes, html.EscapeString(trimmed))
}

// TestPicture draws the screen of docs/run.cast with the permission request and the change as docs/run.svg.
func TestPicture(t *testing.T) {
	screen := ""
	for _, line := range readCast(t) {
		var event []any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if text := event[2].(string); strings.Contains(text, "asks for permission") && strings.Contains(text, "new line") {
			screen = text
		}
	}
	if screen == "" {
		t.Fatal("no screen asks for permission and shows the change")
	}
	got, err := picture(screen, 90, 30)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(pictureFile), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(filepath.FromSlash(pictureFile))
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/run.svg is not what docs/run.cast shows; go test -run TestPicture -update . writes it")
	}
}
