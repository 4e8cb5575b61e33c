package tui

import (
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/test/tricks"
)

// worldDoor is the dialog on the screen.
type worldDoor struct{ *world }

func (d worldDoor) Question() string {
	d.sleep(2 * time.Second)
	screen := d.screen()
	return screen[max(0, strings.LastIndex(screen, "tester asks for permission")):]
}

func (d worldDoor) Early(index int) {
	d.settle()
	d.Choose(index)
	d.key("backspace") // it was typed
}

func (d worldDoor) Choose(index int) {
	d.key(strconv.Itoa(index + 1))
	d.sleep(time.Second)
}

func (d worldDoor) Cancel() {
	d.key("ctrl+c")
	d.sleep(time.Second)
}

func (d worldDoor) Habit() {
	d.sleep(time.Second)
	if len(d.m.questions) > 0 {
		d.t.Error("the question is still there")
	}
	d.key("y", "1", "enter")
	d.sleep(time.Second)
}

// TestTricks: what an agent does around a question does not change what the user decides.
func TestTricks(t *testing.T) {
	for _, k := range tricks.All() {
		t.Run(k.Name, func(t *testing.T) {
			var played tricks.Played
			inWorld(t, acp.AgentHandlers{Prompt: k.Prompt(&played)}, nil, func(w *world) {
				played = make(tricks.Played, 1)
				w.update(tea.WindowSizeMsg{Width: 100, Height: 300})
				w.settle()
				w.say("go")
				if k.Unasked {
					w.sleep(time.Second)
				}
				k.Test(t, worldDoor{w}, played)
			})
		})
	}
}

// TestPlainTricks is TestTricks in plain mode.
func TestPlainTricks(t *testing.T) {
	for _, k := range tricks.All() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			played := make(tricks.Played, 1)
			s := plainly(t, acp.AgentHandlers{Prompt: k.Prompt(&played)}, nil)
			s.want("> ")
			s.typ("go")
			if !k.Unasked {
				s.want("asks for permission")
			}
			k.Test(t, &tricks.Lines{T: t, Type: func(line string) { s.typ(line) }, Stop: func() { s.typ(":cancel") }, Shown: func() string {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.all
			}}, played)
		})
	}
}
