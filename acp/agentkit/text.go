package agentkit

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
)

// PromptText returns the text that the user wrote: the text blocks of a prompt, separated by newlines. Attached files
// and other blocks are not included.
func PromptText(req *acp.PromptRequest) string {
	var texts []string
	for _, block := range req.Prompt {
		if text, ok := block.Variant.(*acp.ContentBlockText); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// CodeBlock returns text as a fenced code block in Markdown.
func CodeBlock(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// Text is an io.Writer and io.StringWriter that sends its text to the client as one message or one thought, in pieces,
// as it is written.
//
// A piece always ends at the end of a character: if the bytes of a character arrive in several calls of Write, they are
// sent together. Each byte that is not valid UTF-8 becomes U+FFFD. What people see as one character may consist of
// several (é as e and an accent, an emoji with a skin colour); a piece may end between them, and the client, which
// joins the pieces, shows them correctly.
//
// Write returns when the text is in a buffer. The text is sent at once; text written while the connection is busy is
// joined into one piece. The buffer is limited to 64 KiB: when it is full, Write blocks until there is room or the
// context with which the Text was made ends. A goroutine runs only while there is something to send.
//
// # Order
//
// The texts of one turn are sent in the order in which they were written, and messages that the turn's tool calls send
// come after the text before them; see HandlePrompt for what belongs to a turn. The same holds for messages sent by the
// methods of a Turn. Call Flush before sending anything else that must come after a text: an update sent with an
// acp.AgentSession or a Session, or a call to the client such as for a file, does not wait for the text.
//
// # Errors
//
// If text cannot be sent, the next Write, Flush and Close return the error. If it was sent but could not be stored,
// Flush and Close return an error that matches ErrNotStored. When the context has ended, Write returns its cause, and
// earlier text is still sent, for at most ten seconds.
//
// The methods are safe for concurrent use. The text of one Write stays together.
type Text struct {
	text *turns.Text
	id   acp.MessageID
}

// NewMessage returns a Text that is a message of the agent. ctx is the turn's context, or another one that bounds the
// message. Close the Text at the end of the message; the end of the turn also closes it.
func NewMessage(ctx context.Context, session Sender) *Text {
	return newText(ctx, session, acp.NewSessionUpdateAgentMessageChunk)
}

// NewThought is like NewMessage, for a piece of the agent's reasoning.
func NewThought(ctx context.Context, session Sender) *Text {
	return newText(ctx, session, acp.NewSessionUpdateAgentThoughtChunk)
}

func newText(ctx context.Context, session Sender, chunk func(acp.ContentChunk) acp.SessionUpdate) *Text {
	id := acp.MessageID("msg_" + rand.Text())
	return &Text{id: id, text: turns.NewText(ctx, func(ctx context.Context, piece string) error {
		return session.Update(ctx, chunk(acp.ContentChunk{Content: acp.TextBlock(piece), MessageID: acp.Some(id)}))
	})}
}

// ID returns the id of the message in all its pieces.
func (t *Text) ID() acp.MessageID { return t.id }

// Write adds p to the text. It does not keep p.
func (t *Text) Write(p []byte) (int, error) { return t.text.Write(p) }

// WriteString adds s to the text.
func (t *Text) WriteString(s string) (int, error) { return t.text.WriteString(s) }

// Flush waits until everything written so far is on its way, except for an incomplete character at the end.
func (t *Text) Flush() error { return t.text.Flush() }

// Close ends the text and waits until all of it is on its way. An incomplete character at the end becomes U+FFFD.
// Later calls are no-ops and return the same error.
func (t *Text) Close() error { return t.text.Close() }
