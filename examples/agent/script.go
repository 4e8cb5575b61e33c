package main

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
)

// scene is what a word in a prompt plays.
type scene struct {
	word  string // also the name of the command
	title string
	hint  string // what may follow the command
	play  func(ctx context.Context, t *turn) error
}

// scenes returns all scenes, in the order in which they are played.
func scenes() []scene {
	return []scene{
		{word: "think", title: "Think about it", play: thinkAloud},
		{word: "read", title: "Read a file", hint: "path", play: readFile},
		{word: "edit", title: "Edit a file", hint: "path", play: editFile},
		{word: "run", title: "Run a command", hint: "`command`", play: runCommand},
		{word: "permission", title: "Ask for permission", play: askPermission},
		{word: "form", title: "Ask a question", play: askForm},
		{word: "link", title: "Open a page", play: askURL},
		{word: "mode", title: "Switch the mode", play: switchMode},
		{word: "notice", title: "Send a notice", play: sendNotice},
		{word: "compact", title: "Compact the context", play: compact},
		{word: "mcp", title: "List the tools of MCP servers", play: listTools},
		{word: "fail", title: "Fail", play: failTool},
	}
}

// commands returns the slash commands: the scenes, and the plan.
func commands() []acp.AvailableCommand {
	list := []acp.AvailableCommand{{Name: "plan", Description: "Make a plan of what follows"}}
	for _, sc := range scenes() {
		command := acp.AvailableCommand{Name: sc.word, Description: sc.title}
		if sc.hint != "" {
			command.Input = acp.Some(acp.NewAvailableCommandInputUnstructured(acp.UnstructuredCommandInput{Hint: sc.hint}))
		}
		list = append(list, command)
	}
	return list
}

// stopReasons maps words to the reason for which the turn ends.
var stopReasons = map[string]acp.StopReason{
	"max_tokens":        acp.StopReasonMaxTokens,
	"max_turn_requests": acp.StopReasonMaxTurnRequests,
	"refuse":            acp.StopReasonRefusal,
}

// play plays the scenes that the prompt selects.
func (t *turn) play(ctx context.Context) error {
	words := t.words()
	if len(words) >= 4 && slices.Equal(words[:4], []string{"write", "a", "very", "long"}) {
		return writeVeryLong(ctx, t)
	}
	for _, word := range words {
		if reason, ok := stopReasons[word]; ok {
			t.stop = reason
		}
	}
	chosen := slices.DeleteFunc(scenes(), func(sc scene) bool { return !slices.Contains(words, sc.word) })
	chosen = append(chosen, scene{title: "Answer", play: answer})
	planned := slices.Contains(words, "plan")
	for i, sc := range chosen {
		if planned {
			if err := t.Update(ctx, plan(chosen, i)); err != nil {
				return err
			}
		}
		if err := sc.play(ctx, t); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if planned {
		return t.Update(ctx, plan(chosen, len(chosen)))
	}
	return nil
}

// plan returns the whole plan (PLN-3) with the scenes before current completed.
func plan(scenes []scene, current int) acp.SessionUpdate {
	entries := make([]acp.PlanEntry, len(scenes))
	for i, sc := range scenes {
		entry := acp.PlanEntry{Content: sc.title, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending}
		switch {
		case i < current:
			entry.Status = acp.PlanEntryStatusCompleted
		case i == current:
			entry.Status = acp.PlanEntryStatusInProgress
		}
		entries[i] = entry
	}
	return acp.UpdatePlan(entries...)
}

// writeVeryLong writes until the turn is cancelled.
func writeVeryLong(ctx context.Context, t *turn) error {
	const (
		pace  = 50 * time.Millisecond
		limit = 2 * time.Minute
	)
	message := acp.Some(newMessageID())
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		chunk := acp.ContentChunk{Content: acp.TextBlock("On and on it goes. "), MessageID: message}
		if err := t.Update(ctx, acp.NewSessionUpdateAgentMessageChunk(chunk)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// answer is the last part of every turn.
func answer(ctx context.Context, t *turn) error {
	if t.stop == acp.StopReasonRefusal {
		return t.say(ctx, "I would rather not.")
	}
	text := "You said: " + t.text
	if len(t.attached) > 0 {
		text += "\n\nYou attached " + strings.Join(t.attached, ", ") + "."
	}
	if err := t.say(ctx, "%s", text); err != nil {
		return err
	}
	for _, link := range t.links {
		chunk := acp.ContentChunk{Content: link, MessageID: acp.Some(newMessageID())}
		if err := t.Update(ctx, acp.NewSessionUpdateAgentMessageChunk(chunk)); err != nil {
			return err
		}
	}
	return nil
}

func thinkAloud(ctx context.Context, t *turn) error {
	return t.think(ctx, "The user wants something. There is no model here, so the script says what comes next.")
}

// switchMode changes the mode from the agent's side (MOD-3).
func switchMode(ctx context.Context, t *turn) error {
	mode := modeAsk
	if t.Mode() == modeAsk {
		mode = modeAuto
	}
	return t.Update(ctx, acp.ModeUpdate(mode))
}

// sendNotice sends a notice, which not every client supports (SCH-12).
func sendNotice(ctx context.Context, t *turn) error {
	err := t.Update(ctx, acp.NewSessionUpdateNotice(acp.Notice{
		Severity: acp.NoticeSeverityInfo, Title: "The script is at its notice",
	}))
	if errors.Is(err, acp.ErrUnsupported) {
		return t.say(ctx, "The script is at its notice, and your client takes none.\n\n")
	}
	return err
}

// compact reports a compaction, which not every client supports (SCH-13).
func compact(ctx context.Context, t *turn) error {
	id := acp.CompactionID("comp_" + rand.Text())
	for _, update := range []acp.SessionUpdate{
		acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: id, Status: acp.CompactionStatusInProgress}),
		acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{
			CompactionID: id, Content: acp.TextBlock("The user and the agent had a talk."),
		}),
		acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: id, Status: acp.CompactionStatusCompleted}),
	} {
		err := t.Update(ctx, update)
		if errors.Is(err, acp.ErrUnsupported) {
			return t.say(ctx, "The context was compacted.\n\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func listTools(ctx context.Context, t *turn) error {
	servers := t.State.servers
	if len(servers) == 0 {
		return t.say(ctx, "The session has no MCP servers.\n\n")
	}
	for _, server := range servers {
		if err := t.say(ctx, "%s\n\n", shorten(server.tools(ctx))); err != nil {
			return err
		}
	}
	return nil
}
