package tui

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/cmd/acp/internal/test/tricks"
	"github.com/acpgo/sdk/internal/test/must"
)

// script drives the program in plain mode, with an agent, by lines.
type script struct {
	t     *testing.T
	opts  *Options
	in    *os.File
	ended chan error

	mu      sync.Mutex
	text    string // output that was not expected yet
	all     string
	written chan struct{}
}

// plainly runs the program in plain mode.
func plainly(t *testing.T, handlers acp.AgentHandlers, setup func(*Options)) *script {
	t.Helper()
	inR, inW, err := os.Pipe()
	must.Do(t, err)
	outR, outW, err := os.Pipe()
	must.Do(t, err)
	opts := &Options{In: inR, Out: outW, Talk: talk.Options{Agent: talk.Agent{Name: "tester", Trusted: true}, Cwd: t.TempDir()}}
	ctx, stop := context.WithCancel(context.Background())
	agents := connects(t, ctx, opts, handlers)
	if setup != nil {
		setup(opts)
	}
	s := &script{t: t, opts: opts, in: inW, ended: make(chan error, 1), written: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		for r := bufio.NewReader(outR); ; {
			b, err := r.ReadByte()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text += string(rune(b))
			s.all += string([]byte{b})
			s.mu.Unlock()
			select {
			case s.written <- struct{}{}:
			default:
			}
		}
	})
	go func() {
		err := RunPlain(ctx, opts)
		outW.Close()
		s.ended <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		select {
		case err := <-s.ended:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
		stop()
		agents.Wait()
		reading.Wait()
		checkHarmless(t, s.all)
		if strings.Contains(s.all, "\x1b") {
			t.Error("a control sequence was written")
		}
	})
	return s
}

// want waits until texts were written in this order.
func (s *script) want(texts ...string) {
	s.t.Helper()
	late := time.After(time.Minute)
	for _, text := range texts {
		for {
			s.mu.Lock()
			before, after, ok := strings.Cut(s.text, text)
			if ok {
				s.text = after
			}
			s.mu.Unlock()
			if ok {
				break
			}
			select {
			case <-s.written:
			case <-late:
				s.t.Fatalf("%q was not written, but:\n%s", text, before)
			}
		}
	}
}

// typ types lines.
func (s *script) typ(lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(s.in, l)
	}
}

func TestPlainHostileTexts(t *testing.T) {
	s := plainly(t, acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		for i := range len(hostile) {
			if err := s.Update(ctx, acp.AgentMessageText(strings.ToValidUTF8(hostile[i:i+1], ""))); err != nil {
				return nil, err
			}
		}
		_ = s.Update(ctx, acp.StartToolCall("t", hostile))
		return nil, acp.ErrInvalidRequest.WithMessagef("%s", hostile)
	}}, nil)
	s.want("> ")
	s.typ("go")
	s.want("-32600", "> ")
}

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
