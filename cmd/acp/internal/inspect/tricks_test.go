package inspect

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/test/tricks"
)

// pageDoor is what the server tells a page and takes from it; the page itself only draws it.
type pageDoor struct {
	*testPage
	withdraws bool // the agent cancels its request
}

func (d pageDoor) question() questionInfo {
	var found questionInfo
	d.until("the question", func() bool {
		for _, s := range d.state.Sources {
			for _, q := range s.Questions {
				found = q
				return true
			}
		}
		return false
	})
	return found
}

func (d pageDoor) Question() string {
	n := d.question().N
	for range 2 { // it may change in the meantime
		d.do(map[string]any{"do": "seen", "source": "1", "row": n})
		time.Sleep(view.Delay + view.Delay/3)
	}
	d.do(map[string]any{"do": "seen", "source": "1", "row": n})
	var text strings.Builder
	q := d.question()
	for _, f := range append(q.Facts, q.Notes...) {
		text.WriteString(f.Name + " " + f.Text + "\n")
	}
	for _, c := range q.Choices {
		text.WriteString(c.Text + "\n")
	}
	return text.String()
}

func (d pageDoor) Early(index int) {
	if r := d.do(map[string]any{"do": "choose", "source": "1", "row": d.question().N, "option": index}); r.Error == "" {
		d.i.t.Error("an early click counts")
	}
}

func (d pageDoor) Choose(index int) {
	if r := d.do(map[string]any{"do": "choose", "source": "1", "row": d.question().N, "option": index}); r.Error != "" {
		d.i.t.Error(r.Error)
	}
}

func (d pageDoor) Workbench() {}

func (d pageDoor) Cancel() {
	d.do(map[string]any{"do": "send", "source": "1", "method": "session/cancel", "params": map[string]any{"sessionId": "s-1"}, "notification": true})
}

func (d pageDoor) Habit() {
	if d.withdraws { // the agent does not wait until the server has read that
		d.until("no question", func() bool {
			return !slices.ContainsFunc(d.state.Sources, func(s sourceState) bool { return len(s.Questions) > 0 })
		})
	}
	for n := range len(d.rows["1"]) + 1 {
		if r := d.do(map[string]any{"do": "choose", "source": "1", "row": n, "option": 0}); r.Error == "" {
			d.i.t.Errorf("a click on row %d counts", n)
		}
	}
}

// TestTricks: what an agent does around a question does not change what the user decides.
func TestTricks(t *testing.T) {
	for _, k := range tricks.All() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			played := make(tricks.Played, 1)
			k.Tried = make(chan struct{}) // the end of the turn withdraws a question too
			ctx, stop := context.WithCancel(t.Context())
			var serving sync.WaitGroup
			defer serving.Wait()
			defer stop()
			agent := &Agent{Words: []string{"trickster"}, Connect: func(context.Context, io.Writer) (rpc.Transport, error) {
				client, agent := acp.Pipe()
				serving.Go(func() {
					_ = acp.ServeAgent(ctx, agent, acp.AgentHandlers{ // it ends with the test
						NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
							return &acp.NewSessionResponse{SessionID: "s-1"}, nil
						},
						Prompt: k.Prompt(&played),
					}, nil)
				})
				return client, nil
			}}
			p := serveTest(t, Options{Agent: agent, NoMask: true}).browser().open(0, "")
			p.connect("1")
			p.prompt("1", "go")
			k.Test(t, pageDoor{p, k.Ends == tricks.ByRequest}, played)
		})
	}
}
