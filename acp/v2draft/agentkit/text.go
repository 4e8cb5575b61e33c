package agentkit

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/turns"
)

// PromptText is what the user wrote: the text blocks of a prompt, with a newline between them. Attached files and other
// blocks are not in it.
func PromptText(req *v2draft.PromptRequest) string {
	var texts []string
	for _, block := range req.Prompt {
		if text, ok := block.Text(); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// Text is an io.Writer and io.StringWriter whose text the client gets as one message, or as one thought, in pieces as it
// is written.
//
// A piece ends at the end of a character: the bytes of one that come in several calls of Write are held together, and each
// byte that is no UTF-8 becomes U+FFFD.
//
// Write returns when the text is in a buffer. It is sent at once; what is written while the connection is busy is joined
// to one piece. The buffer is bounded, at 64 KiB: when it is full Write waits, up to the end of the context with which the
// text was made. A goroutine runs while there is something to send, and no longer.
//
// The texts of one turn are sent in the order in which they were written, and what the turn's tool calls and terminals send
// comes after the text before it; so does what is sent by the methods of a Session with the turn's context. Before anything
// else that is to come behind a text, call Flush.
//
// When text cannot be sent, the Write that follows, and Flush and Close, return the error. When it was sent and could not
// be stored, Flush and Close do, and the error matches ErrNotStored. When the context has ended, Write returns its cause,
// and what was written before is still sent, for at most ten seconds.
//
// The methods are safe for concurrent use. The text of one Write stays together.
type Text struct {
	text *turns.Text
	id   v2draft.MessageID
}

// NewMessage returns a Text that is a message of the agent. ctx is the turn's, or another one that bounds it. Close it at
// the end of the message; the turn's end does so too.
func NewMessage(ctx context.Context, session Sender) *Text {
	return newText(ctx, session, v2draft.AgentMessageText)
}

// NewThought is NewMessage for a piece of the agent's reasoning.
func NewThought(ctx context.Context, session Sender) *Text {
	return newText(ctx, session, v2draft.AgentThoughtText)
}

func newText(ctx context.Context, session Sender, piece func(v2draft.MessageID, string) v2draft.SessionUpdate) *Text {
	id := v2draft.MessageID("msg_" + rand.Text())
	return &Text{id: id, text: turns.NewText(ctx, func(ctx context.Context, text string) error {
		return session.Update(ctx, piece(id, text))
	})}
}

// ID is the id of the message in all its pieces.
func (t *Text) ID() v2draft.MessageID { return t.id }

// Write adds p, which it does not keep, to the text.
func (t *Text) Write(p []byte) (int, error) { return t.text.Write(p) }

// WriteString adds s to the text.
func (t *Text) WriteString(s string) (int, error) { return t.text.WriteString(s) }

// Flush waits until everything that was written is on its way, but for the beginning of a character, whose end must still be
// written.
func (t *Text) Flush() error { return t.text.Flush() }

// Close ends the text and waits until all of it is on its way. A character that was not written to its end becomes
// U+FFFD. Closing it once more does nothing, and returns the same error.
func (t *Text) Close() error { return t.text.Close() }
