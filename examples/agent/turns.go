package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// contextSize is the size of the context that this agent claims to have, in tokens.
const contextSize = 200_000

// turn is a prompt being answered.
type turn struct {
	*agentkit.Turn[*state]

	commandTime time.Duration
	log         *slog.Logger

	text     string             // the user's text
	attached []string           // descriptions of its attachments
	links    []acp.ContentBlock // links in the prompt
	used     int                // size of the prompt and of the agent's answer, in bytes
	stop     acp.StopReason
}

func newMessageID() acp.MessageID { return acp.MessageID("msg_" + rand.Text()) }

// take processes a block of the prompt.
func (t *turn) take(block acp.ContentBlock) {
	const length = 256 // for a block that is not text, and for the names in one
	t.used += length
	describe := func(format string, args ...any) { t.attached = append(t.attached, fmt.Sprintf(format, args...)) }
	switch b := block.Variant.(type) {
	case *acp.ContentBlockText:
		t.text += b.Text
		t.used += len(b.Text)
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
		default:
			describe("a resource of an unknown kind")
		}
	case *acp.ContentBlockUnknown:
		describe("something of the unknown type %s", b.Tag)
	default:
		describe("something of an unknown kind")
	}
}

// size returns the amount of data in base64 text, as words.
func size(data string) string {
	bytes, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "not base64"
	}
	return fmt.Sprintf("%d bytes", len(bytes))
}

// words returns the words of the text in lower case, without surrounding punctuation.
func (t *turn) words() []string {
	return strings.FieldsFunc(strings.ToLower(t.text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
}

// finish reports to the client what the turn has changed in the session. These updates precede the answer (PRM-13),
// even if the turn was cancelled.
func (t *turn) finish(ctx context.Context) error {
	changed := acp.SessionInfoUpdate{UpdatedAt: acp.Some(sessionstore.FormatTime(time.Now()))}
	var usage []acp.SessionUpdate
	err := change(context.WithoutCancel(ctx), t.Session, func(s *state) error {
		if !s.Titled && t.text != "" && t.stop != acp.StopReasonRefusal { // a refused prompt is not part of the conversation
			s.Titled, changed.Title = true, acp.Some(title(t.text))
		}
		s.Used += uint64(t.used)
		if s.Settings.Usage {
			used := min(s.Used/4, contextSize)
			usage = append(usage, acp.NewSessionUpdateUsageUpdate(acp.UsageUpdate{Used: used, Size: contextSize}))
		}
		return nil
	})
	for _, update := range append([]acp.SessionUpdate{acp.NewSessionUpdateSessionInfoUpdate(changed)}, usage...) {
		err = errors.Join(err, t.Update(ctx, update))
	}
	return err
}

// title returns the first words of a prompt, on one line.
func title(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > 60 {
		runes = append(runes[:59], '…')
	}
	return string(runes)
}

// say sends a message, in chunks of a few words, like a model.
func (t *turn) say(ctx context.Context, format string, args ...any) error {
	return t.stream(ctx, acp.NewSessionUpdateAgentMessageChunk, fmt.Sprintf(format, args...))
}

// think sends thoughts, unless the user has turned them off.
func (t *turn) think(ctx context.Context, text string) error {
	if t.State.settings().Thoughts == thoughtsHidden {
		return nil
	}
	return t.stream(ctx, acp.NewSessionUpdateAgentThoughtChunk, text)
}

func (t *turn) stream(ctx context.Context, chunk func(acp.ContentChunk) acp.SessionUpdate, text string) error {
	const wordsAtOnce = 6
	message := acp.Some(newMessageID())
	t.used += len(text)
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
