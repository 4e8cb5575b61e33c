package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
)

// hostile is text that would affect a terminal.
const hostile = "\x1b]0;title\x07\x1b[2J\x1b[31mred\u009b5n\u202eback\r\x00\x7f\u2066end"

// TestHostileTexts: hostile text of an agent never reaches the terminal; see world.screen.
func TestHostileTexts(t *testing.T) {
	a := &cast{
		call:    &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID("t" + hostile), Title: acp.Some(hostile), RawInput: json.RawMessage(`{"command":"\u001b[2J\u009b"}`)},
		options: []acp.PermissionOption{{OptionID: "a", Name: hostile, Kind: acp.PermissionOptionKindAllowOnce}},
	}
	inWorld(t, acp.AgentHandlers{
		NewSession: func(ctx context.Context, c *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			acp.AfterResponse(ctx, func(ctx context.Context) {
				s := c.Session("s")
				_ = s.Update(ctx, acp.TitleUpdate(hostile))
				_ = s.Update(ctx, acp.CommandsUpdate(acp.AvailableCommand{Name: "c" + hostile, Description: hostile}))
				_ = s.Update(ctx, acp.UpdatePlan(acp.PlanEntry{Content: hostile, Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusPending}))
			})
			return &acp.NewSessionResponse{SessionID: "s", Modes: acp.Some(acp.SessionModeState{CurrentModeID: "m", AvailableModes: []acp.SessionMode{{ID: "m", Name: hostile, Description: acp.Some(hostile)}}}),
				ConfigOptions: acp.Some([]acp.SessionConfigOption{acp.SelectOption("o", hostile, "v", acp.SelectValue("v", hostile))})}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			_ = s.Update(ctx, acp.AgentMessageText(hostile))
			_, _ = s.ElicitURL(ctx, hostile, "id", "https://example.com/page")
			_, _ = s.ElicitForm(ctx, hostile, acp.ElicitationSchema{Properties: map[string]acp.ElicitationPropertySchema{
				hostile: acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Title: acp.Some(hostile), Description: acp.Some(hostile), Default: acp.Some(hostile)}),
				"e":     acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Enum: acp.Some([]string{hostile})}),
			}})
			if _, err := a.ask(ctx, s, ""); err != nil {
				return nil, err
			}
			return nil, acp.ErrInvalidRequest.WithMessagef("%s", hostile)
		},
	}, nil, func(w *world) {
		w.sleep(time.Second)
		w.screen()
		for _, key := range []string{"alt+m", "alt+o", "ctrl+s", "alt+n", "ctrl+p"} {
			w.key(key)
			w.screen()
			w.key("esc")
		}
		w.typ("/c")
		w.screen()
		w.key("esc", "backspace", "backspace")
		w.say("go")
		w.sleep(time.Second)
		w.want("asks you to open a page")
		w.key("n")
		w.sleep(time.Second)
		w.want("Ctrl-X: decline")
		w.key("ctrl+x")
		w.sleep(time.Second)
		w.want("asks for permission")
		w.key("y")
		w.sleep(time.Second)
		w.want("failed")
		w.key("alt+n")
		w.screen()
		if title := w.m.View().WindowTitle; strings.ContainsAny(title, "\x1b\x07\u009b\r\x00") {
			t.Errorf("title of the window: %q", title)
		}
	})
}

// TestFormTooLarge: a form too large to fill in is declined, and the user is informed.
func TestFormTooLarge(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"type":"object","properties":{"first":{"type":"string"}`)
	for i := range maxFields {
		fmt.Fprintf(&schema, `,"f%d":{"type":"string"}`, i)
	}
	f := &cast{form: schema.String() + "}}"}
	inWorld(t, f.handlers(), nil, func(w *world) {
		w.settle()
		w.say("form")
		w.sleep(2 * time.Second)
		f.want(t, `{"action":"decline"}`)
		w.want("declined a form of the agent: it has 201 fields")
	})
}
