package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance/acptest"
	"github.com/acpgo/sdk/internal/test/must"
)

// calls are tool calls as updates make them.
type calls map[acp.ToolCallID]acp.ToolCall

func folded(updates []acp.SessionUpdate) calls {
	all := calls{}
	for _, update := range updates {
		switch u := update.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			all[u.ToolCallID] = acp.ToolCall(*u)
		case *acp.SessionUpdateToolCallUpdate:
			call := all[u.ToolCallID]
			call.ToolCallID = u.ToolCallID
			call.Apply(acp.ToolCallUpdate(*u))
			all[u.ToolCallID] = call
		}
	}
	return all
}

// recorded calls do in a turn, of which the store must have the same tool calls as the client. It returns them.
func recorded(t *testing.T, do func(context.Context, *agentkit.Turn[state]) error) calls {
	t.Helper()
	var history []acp.SessionUpdate
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: open(t, t.TempDir()), Prompt: func(
		ctx context.Context, turn *agentkit.Turn[state], req *acp.PromptRequest,
	) (*acp.PromptResponse, error) {
		if agentkit.PromptText(req) == "do" {
			return nil, do(ctx, turn)
		}
		for update, err := range turn.History(ctx) {
			must.Do(t, err)
			history = append(history, update)
		}
		return nil, nil
	}})
	t.Cleanup(sessions.Close)
	c := acptest.NewClient(t, sessions.Handlers(), sessions.Options(nil), nil)
	s := c.StartSession(t)
	live := folded(c.Say(t, s, "do").Updates)
	c.Say(t, s, "read")
	if stored := folded(history); !reflect.DeepEqual(live, stored) {
		t.Errorf("live\n%.2000s\nstored\n%.2000s", fmt.Sprint(live), fmt.Sprint(stored))
	}
	return live
}

// More calls than are joined at once lose nothing.
func TestManyOpenToolCalls(t *testing.T) {
	const n = 100
	live := recorded(t, func(ctx context.Context, turn *agentkit.Turn[state]) error {
		var open []*agentkit.ToolCall
		for i := range n {
			call, err := turn.StartToolCall(ctx, fmt.Sprint("Tool ", i))
			if err != nil {
				return err
			}
			open = append(open, call)
			if i%16 != 15 {
				continue
			}
			for _, call := range open {
				if err := call.Progress(fmt.Sprint(i)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if len(live) != n {
		t.Errorf("there are %d calls", len(live))
	}
}

// At most 64 open calls are remembered: the next one has what is pending of them stored.
func TestJoinedToolCallsAreBounded(t *testing.T) {
	var program strings.Builder
	for i := range 100 {
		fmt.Fprintf(&program, "call c%d Tool; progress c%d shown; ", i, i)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		got := perform(t, dir, "store\n> new\n> prompt "+program.String()+"wait go\n> stored\n> open go\n")
		if stored := regexp.MustCompile(`(?m)^- call: .* shows`).FindAllString(got, -1); len(stored) != 64 {
			t.Errorf("%d updates are stored:\n%s", len(stored), got)
		}
	})
}

// An author may use the list again that an update was made of.
func TestToolCallUpdatesAreCopied(t *testing.T) {
	recorded(t, func(ctx context.Context, turn *agentkit.Turn[state]) error {
		content := []acp.ToolCallContent{acp.ToolText("shown")}
		locations := []acp.ToolCallLocation{{Path: "/shown"}}
		raw := []byte(`"shown"`)
		err := errors.Join(turn.Update(ctx, acp.StartToolCall("c", "Tool")), turn.Update(ctx, acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{
			ToolCallID: "c", Content: acp.Some(content), Locations: acp.Some(locations), RawOutput: raw,
		})))
		content[0], locations[0].Path = acp.ToolText("never"), "/never"
		copy(raw, `"never"`)
		return errors.Join(err, turn.Update(ctx, acp.UpdateToolCall("c", acp.WithStatus(acp.ToolCallStatusCompleted))))
	})
}

// A title that an update empties is empty in the history too.
func TestEmptyTitleIsStored(t *testing.T) {
	for _, last := range []acp.ToolCallOption{acp.WithStatus(acp.ToolCallStatusInProgress), acp.WithStatus(acp.ToolCallStatusCompleted)} {
		live := recorded(t, func(ctx context.Context, turn *agentkit.Turn[state]) error {
			update := func(u acp.ToolCallUpdate) error {
				u.ToolCallID = "c"
				return turn.Update(ctx, acp.NewSessionUpdateToolCallUpdate(u))
			}
			return errors.Join(turn.Update(ctx, acp.StartToolCall("c", "Tool")),
				update(acp.ToolCallUpdate{Title: acp.Some("Other")}), update(acp.ToolCallUpdate{Title: acp.Some("")}),
				turn.Update(ctx, acp.UpdateToolCall("c", last)))
		})
		if title := live["c"].Title; title != "" {
			t.Errorf("got the title %q", title)
		}
	}
}
