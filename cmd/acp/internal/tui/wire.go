package tui

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/conformance"
)

// The number of messages that are kept, and the number of bytes of each.
const (
	maxWire     = 500
	maxWireLine = 4000
)

// wire keeps the last messages. The connection fills it, so its methods must not block.
type wire struct {
	mu    sync.Mutex
	lines []wireLine
	count int
}

// wireLine is a message.
type wireLine struct {
	at   time.Time
	from conformance.Side
	text string // its beginning
	size int
}

func (w *wire) add(at time.Time, from conformance.Side, line []byte) {
	l := wireLine{at: at, from: from, text: string(line[:min(len(line), maxWireLine)]), size: len(line)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	w.lines = append(w.lines[max(0, len(w.lines)+1-maxWire):], l)
}

// last returns the messages that are kept, the oldest first, and how many there were in total.
func (w *wire) last() ([]wireLine, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines), w.count
}

// showWire shows the last messages.
func (m *Model) showWire() tea.Cmd {
	lines, count := m.wire.last() // a snapshot: the screen does not move while it is read
	width, drawn := 0, []string(nil)
	return m.showPages(fmt.Sprintf("The last %d of %s", len(lines), plural(count, "message")), true,
		func(m *Model, w int) []string {
			if w == width {
				return drawn
			}
			width, drawn = w, nil
			for _, l := range lines {
				head := l.at.Format("15:04:05.000") + " → agent"
				if l.from == conformance.Agent {
					head = l.at.Format("15:04:05.000") + " ← agent"
				}
				drawn = append(drawn, m.style.dim.Render(fit(head, w)))
				text := l.text
				if l.size > len(text) {
					text = strings.ToValidUTF8(text, "") + fmt.Sprintf("… (%d bytes)", l.size)
				}
				drawn = append(drawn, wrap(cleanText(text), w)...)
			}
			return drawn
		})
}
