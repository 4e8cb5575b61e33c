package view_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "write what testdata/conversations.txt shows anew")

const conversations = "testdata/conversations.txt"

type object = map[string]any

// player plays the lines of a conversation to a State: "prompt 1 BLOCKS", "cancel 1" and "end 1" are about a turn by its
// number, "ask REQUEST" is a request for permission, "answer OPTION" is the user's, "reset" is what session/load does, and
// any other line is an update. "show" is followed by what a snapshot has, "print" by what a Console prints.
type player struct {
	*testing.T
	state   *view.State
	console *view.Console
	out     strings.Builder // of the console
	turns   map[int]*view.Turn
	answer  func(*acp.RequestPermissionResponse)
}

func newPlayer(t *testing.T) *player {
	p := &player{T: t, turns: map[int]*view.Turn{}}
	p.console = view.NewConsole(strings.NewReader(""), &p.out)
	p.state = p.console.Sessions.Of("s")
	return p
}

func (p *player) play(line string) {
	p.Helper()
	word, rest, _ := strings.Cut(line, " ")
	number, blocks, _ := strings.Cut(rest, " ")
	turn, _ := strconv.Atoi(number)
	read := func(text string, to any) {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			p.Fatalf("%s: %v", line, err)
		}
	}
	switch word {
	case "prompt":
		var prompt []acp.ContentBlock
		read(blocks, &prompt)
		p.turns[turn] = p.state.Prompt(prompt...)
	case "cancel":
		p.turns[turn].Cancel()
	case "end":
		p.turns[turn].End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)
	case "ask":
		var req acp.RequestPermissionRequest
		read(rest, &req)
		p.answer = p.state.BeginPermission(&req)
	case "answer":
		if rest == "nothing" {
			p.answer(nil)
		} else {
			p.answer(&acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(acp.PermissionOptionID(rest))})
		}
	case "reset":
		p.state.Reset()
	default:
		var u acp.SessionUpdate
		read(line, &u)
		p.state.Update(u)
	}
}

// The conversations of testdata/conversations.txt look as it says, at each line "show", and a console prints what it says
// at each line "print".
func TestConversations(t *testing.T) {
	want := must.Get(os.ReadFile(conversations))(t)
	var got strings.Builder
	var p *player
	for line := range strings.Lines(string(want)) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		got.WriteString(line)
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "#"):
			p = newPlayer(t)
		case line == "show":
			got.WriteString(describe(p.state.Snapshot()))
		case line == "print":
			p.out.Reset()
			p.console.Show("s")
			for line := range strings.Lines(p.out.String()) {
				got.WriteString("  |" + strings.TrimSuffix(line, "\n") + "\n")
			}
		case line != "":
			p.play(line)
		}
	}
	if *update {
		must.Do(t, os.WriteFile(conversations, []byte(got.String()), 0o644))
	} else if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-%s +state; go test -run Conversations -update writes it):\n%s", conversations, diff)
	}
}

// text is a value as JSON.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// plainJSON is a value as maps and slices.
func plainJSON(v any) (plain any) {
	if err := json.Unmarshal([]byte(text(v)), &plain); err != nil {
		panic(err)
	}
	return plain
}

// describe is a snapshot as lines: of the session, of turns and of items.
func describe(s *view.Snapshot) string {
	session := object{}
	put(session, "plan", s.Plan)
	for _, plan := range s.Plans {
		old, _ := session["plans"].([]any)
		session["plans"] = append(old, plan.Content)
	}
	put(session, "modes", s.Modes)
	put(session, "options", s.ConfigOptions)
	put(session, "usage", s.Usage)
	put(session, "title", s.Title)
	put(session, "updatedAt", s.UpdatedAt)
	if s.Commands != nil {
		session["commands"] = s.Commands
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  session %s\n", text(plainJSON(putMeta(session, s.Meta))))
	fmt.Fprintf(&b, "  versions %s\n", text(s.Versions))
	for turn := range s.Turns() {
		fmt.Fprintf(&b, "  turn %d from %d, ended %t, cancelled %t, replayed %t %s\n", turn.Number, turn.First, turn.Ended, turn.Cancelled,
			turn.Replayed, turn.StopReason)
	}
	for item := range s.Items() {
		fmt.Fprintf(&b, "  item %d of turn %d: %s\n", item.Index, item.Turn, text(plainJSON(describeItem(item))))
	}
	return b.String()
}

func put[T any](o object, key string, value acp.Opt[T]) {
	switch v, ok := value.Get(); {
	case ok:
		o[key] = v
	case value.IsNull():
		o[key] = nil
	}
}

func putMeta(o object, meta acp.Meta) object {
	if meta != nil {
		o["_meta"] = meta
	}
	return o
}

func blocks(c view.Content) (content []any) {
	for block := range c.Blocks() {
		content = append(content, block)
	}
	return content
}

func describeItem(item *view.Item) object {
	switch v := item.Variant.(type) {
	case *view.Message:
		return putMeta(object{"is": "message", "role": v.Role.String(), "id": v.ID, "content": blocks(v.Content), "sent": v.Sent}, v.Meta)
	case *view.ToolCall:
		o := object{"is": "tool", "announced": v.Announced, "cancelled": v.Cancelled, "unfinished": v.Unfinished, "call": v.Call}
		if v.Permission != nil {
			o["options"] = v.Permission.Options
			put(o, "outcome", v.Permission.Outcome)
		}
		return o
	case *view.Compaction:
		o := putMeta(object{"is": "compaction", "id": v.ID, "status": v.Status, "summary": blocks(v.Summary)}, v.Meta)
		put(o, "error", v.Error)
		return o
	case *view.Subagent:
		return object{"is": "subagent", "update": (*acp.SubagentUpdate)(v)}
	case *view.SessionMessage:
		o := putMeta(object{"is": "session_message", "id": v.ID, "content": blocks(v.Content)}, v.Meta)
		put(o, "senderSessionId", v.Sender)
		put(o, "recipientSessionId", v.Recipient)
		put(o, "senderMessageId", v.SenderMessage)
		put(o, "recipientMessageId", v.RecipientMessage)
		return o
	case *view.Notice:
		return object{"is": "notice", "notice": (*acp.Notice)(v)}
	case *view.Unknown:
		return object{"is": "unknown", "raw": json.RawMessage(v.Raw)}
	}
	return object{"is": "nothing known"}
}
