//go:build linux || darwin

package terminal

// The recording of a session in the docs. It consists of the screens of a scripted session, so that it is always the
// same; go test -run TestRunDemo -update . renews it.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/screen"
)

const demoFile = "../../../../docs/run.cast"

// cast is a recording for asciinema: asciicast version 2, with an event for each screen.
type cast struct {
	p      *play
	time   float64
	events []string
	want   []string // the content of the file
}

// head is the first line of a recording.
func (c *cast) head(cols, rows int) string {
	return fmt.Sprintf(`{"version": 2, "width": %d, "height": %d, "title": "acp run", "env": {"TERM": "xterm-256color"}}`, cols, rows)
}

// frame adds the screen to the recording, after seconds after the previous one.
func (c *cast) frame(after float64) {
	c.p.t.Helper()
	c.time += after
	event := func(f *screen.Frame) string {
		text, err := json.Marshal(demoMask(f.Redraw()))
		if err != nil {
			c.p.t.Fatal(err)
		}
		return fmt.Sprintf(`[%.2f, "o", %s]`, c.time, text)
	}
	n := len(c.events)
	if *update {
		c.events = append(c.events, event(c.p.Settled()))
		return
	}
	if n >= len(c.want) {
		c.p.t.Fatalf("%s has only %d screens", demoFile, n)
	}
	c.p.Until(fmt.Sprintf("screen %d of %s, which -update writes: %s", n+1, demoFile, c.want[n]), func(*screen.Frame) bool { return event(c.p.Whole()) == c.want[n] })
	c.events = append(c.events, c.want[n])
}

var (
	demoWorking = regexp.MustCompile(`working (\d+)s([^\x1b]*)`)
	demoPath    = regexp.MustCompile(`ap-[0-9a-f]{4}`)
)

// demoMask masks what differs between two recordings, and keeps the widths.
func demoMask(text string) string {
	text = demoPath.ReplaceAllString(text, "ap-0000")
	return demoWorking.ReplaceAllStringFunc(text, func(found string) string {
		parts := demoWorking.FindStringSubmatch(found)
		return "working 0s" + parts[2] + strings.Repeat(" ", len(parts[1])-1)
	})
}

// TestRunDemo plays the session of docs/run.cast.
func TestRunDemo(t *testing.T) {
	const cols, rows = 90, 30
	p := ready(t, staging{cols: cols, rows: rows})
	c := &cast{p: p}
	if !*update {
		c.want = readCast(t)
	}
	c.frame(0.5)
	prompt := "Fix the failing test"
	for i, r := range prompt {
		p.Type(string(r))
		p.Wait(strings.TrimRight(prompt[:i+1], " "))
		c.frame(0.08)
	}
	p.Press("enter")
	p.Wait("Find the mistake", "the number behind it", "working")
	c.frame(1)
	p.open()
	p.Wait("asks for permission", "No, never")
	p.Gone("Ctrl-G: answer")
	c.frame(3)
	p.Press("pgdown")
	p.Wait("new line")
	c.frame(2)
	p.Press("d")
	c.frame(2)
	p.Press("d")
	p.decide("y")
	p.answered("The test passes now.")
	c.frame(2)
	p.Press("ctrl+p")
	p.Wait("filter:")
	c.frame(3)
	p.Press("esc")
	p.Gone("filter:")
	c.frame(1)
	p.quit()
	c.time += 3
	c.events = append(c.events, fmt.Sprintf(`[%.2f, "o", "\u001b[2J\u001b[H"]`, c.time))
	text := c.head(cols, rows) + "\n" + strings.Join(c.events, "\n") + "\n"
	if *update {
		if err := os.WriteFile(filepath.FromSlash(demoFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if len(c.events) != len(c.want) {
		t.Errorf("%s has %d screens, want %d", demoFile, len(c.want), len(c.events))
	}
}

func readCast(t *testing.T) (events []string) {
	t.Helper()
	file, err := os.Open(filepath.FromSlash(demoFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		events = append(events, lines.Text())
	}
	if err := lines.Err(); err != nil || len(events) == 0 {
		t.Fatalf("%s: %v", demoFile, err)
	}
	return events[1:]
}
