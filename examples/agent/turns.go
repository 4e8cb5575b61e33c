// This file owns a turn: from the prompt to the answer, and what it tells the client on the way.

package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// contextSize is how many tokens this agent pretends to have room for.
const contextSize = 200_000

// turn is a prompt being answered.
type turn struct {
	*acp.AgentSession

	session *session
	start   int // where the turn begins in the history

	commandTime time.Duration

	end  context.CancelCauseFunc // ends it early
	over chan struct{}           // closed when it has ended

	text     string             // what the user wrote
	attached []string           // what came with it, described
	links    []acp.ContentBlock // of it
	stop     acp.StopReason
}

func newMessageID() acp.MessageID { return acp.MessageID("msg_" + rand.Text()) }

// prompt serves session/prompt. When the turn was cancelled it returns the error that this led to, and
// the runtime answers with the stop reason cancelled (PRM-11, PRM-12).
func (a *agent) prompt(ctx context.Context, client *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	t := &turn{
		AgentSession: client,
		stop:         acp.StopReasonEndTurn,

		commandTime: a.commandTime,
		end:         end,
		over:        make(chan struct{}),
	}
	if err := a.begin(t, req); err != nil {
		return nil, err
	}
	defer close(t.over)
	for _, block := range req.Prompt {
		t.take(block)
	}
	err := t.play(ctx)
	if errors.Is(err, agentkit.ErrDismissed) {
		t.stop, err = acp.StopReasonCancelled, nil
	}
	if err := t.finish(ctx); err != nil {
		t.session.log.Error("turn not kept or not reported", "error", err)
	}
	if err == nil && ctx.Err() != nil { // cancelled just now
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: t.stop}, nil
}

// begin starts a turn in the session that a prompt is for. Under the lock, nobody logs out meanwhile.
func (a *agent) begin(t *turn, req *acp.PromptRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.authorize(); err != nil {
		return err
	}
	if t.session = a.active[req.SessionID]; t.session == nil {
		return acp.SessionNotFound(req.SessionID)
	}
	return t.session.begin(t, req.Prompt, int64(a.maxHistory))
}

// take takes a block of the prompt.
func (t *turn) take(block acp.ContentBlock) {
	describe := func(format string, args ...any) { t.attached = append(t.attached, fmt.Sprintf(format, args...)) }
	switch b := block.Variant.(type) {
	case *acp.ContentBlockText:
		t.text += b.Text
	case *acp.ContentBlockImage:
		describe("an image (%s, %s)", b.MimeType, size(b.Data))
	case *acp.ContentBlockAudio:
		describe("a sound (%s, %s)", b.MimeType, size(b.Data))
	case *acp.ContentBlockResourceLink:
		describe("a link to %s (%s)", b.Name, b.URI)
		t.links = append(t.links, acp.ResourceLinkBlock(b.Name, b.URI))
	case *acp.ContentBlockResource:
		switch r := b.Resource.Variant.(type) {
		case *acp.TextResourceContents:
			describe("the text of %s (%d bytes)", r.URI, len(r.Text))
		case *acp.BlobResourceContents:
			describe("the content of %s (%s)", r.URI, size(r.Blob))
		}
	case *acp.ContentBlockUnknown:
		describe("something of the unknown type %s", b.Tag)
	}
}

// size says how much data there is in base64.
func size(data string) string {
	bytes, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "not base64"
	}
	return fmt.Sprintf("%d bytes", len(bytes))
}

// words are the words of the text in lower case, without what surrounds them.
func (t *turn) words() []string {
	return strings.FieldsFunc(strings.ToLower(t.text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
}

// finish keeps the conversation, and tells the client what the turn has changed of the session. It all
// comes before the answer (PRM-13), also when the turn was cancelled.
func (t *turn) finish(ctx context.Context) error {
	s := t.session
	s.mu.Lock()
	s.turn = nil
	if t.stop == acp.StopReasonRefusal { // what was refused is no part of the conversation
		s.record.History = s.record.History[:t.start]
	}
	var changed acp.SessionInfoUpdate
	if !s.record.Info.Title.Present() && t.text != "" {
		changed.Title = acp.Some(title(t.text))
		s.record.Info.Title = changed.Title
	}
	bytes, err := s.save()
	changed.UpdatedAt = s.record.Info.UpdatedAt
	usage := s.record.Settings.Usage
	s.mu.Unlock()

	updates := []acp.SessionUpdate{acp.NewSessionUpdateSessionInfoUpdate(changed)}
	if usage {
		used := min(uint64(bytes/4), contextSize)
		updates = append(updates, acp.NewSessionUpdateUsageUpdate(acp.UsageUpdate{Used: used, Size: contextSize}))
	}
	for _, update := range updates {
		err = errors.Join(err, t.AgentSession.Update(ctx, update))
	}
	return err
}

// title makes a title of a prompt: its first words on one line.
func title(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > 60 {
		runes = append(runes[:59], '…')
	}
	return string(runes)
}

// Update sends an update and keeps it for those who load the session later: without terminals, which are gone then, and
// whose output Record keeps.
func (t *turn) Update(ctx context.Context, update acp.SessionUpdate) error {
	kept := update
	if call, ok := update.Variant.(*acp.SessionUpdateToolCallUpdate); ok && call.Content.Present() {
		copied := acp.ToolCallUpdate(*call)
		copied.Content = acp.Some(slices.DeleteFunc(slices.Clone(call.Content.Value()), func(c acp.ToolCallContent) bool {
			_, terminal := c.Variant.(*acp.ToolCallContentTerminal)
			return terminal
		}))
		kept = acp.NewSessionUpdateToolCallUpdate(copied)
	}
	t.session.remember(kept)
	return t.AgentSession.Update(ctx, update)
}

// Record keeps what the client has seen in another form.
func (t *turn) Record(_ context.Context, update acp.SessionUpdate) error {
	t.session.remember(update)
	return nil
}

// say sends a message, in chunks of a few words as a model would.
func (t *turn) say(ctx context.Context, format string, args ...any) error {
	return t.stream(ctx, acp.NewSessionUpdateAgentMessageChunk, fmt.Sprintf(format, args...))
}

// think sends thoughts, unless the user does not want to see any.
func (t *turn) think(ctx context.Context, text string) error {
	if t.session.settings().Thoughts == thoughtsHidden {
		return nil
	}
	return t.stream(ctx, acp.NewSessionUpdateAgentThoughtChunk, text)
}

func (t *turn) stream(ctx context.Context, chunk func(acp.ContentChunk) acp.SessionUpdate, text string) error {
	const wordsAtOnce = 6
	message := acp.Some(newMessageID())
	for words := range slices.Chunk(strings.SplitAfter(text, " "), wordsAtOnce) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		block := acp.TextBlock(strings.Join(words, ""))
		if err := t.Update(ctx, chunk(acp.ContentChunk{Content: block, MessageID: message})); err != nil {
			return err
		}
	}
	return nil
}
