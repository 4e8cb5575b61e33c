package talk

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
)

// Kind says what an Event tells.
type Kind int

// The kinds of events. Those of the connection are those of package reconnect.
const (
	// Lost: the connection is lost. Err says why, Interrupted what was in progress.
	Lost Kind = iota + 1
	// Waiting: the next try is made after Wait. Err says why the last one failed, if there was one.
	Waiting
	// Replaying: the history of Session comes again; its State was reset.
	Replaying
	// Restored: Session is back, Differences says what of it is another than before. Without a session: the connection is.
	Restored
	// SessionLost: Session could not be brought back. Err says why.
	SessionLost
	// GaveUp: the Client is over. Err says why.
	GaveUp
	// Decided: a question for permission was answered: Decision says how and why.
	Decided
	// Stderr: the agent wrote Text, a line, to standard error.
	Stderr
	// Warning: something is wrong, and was passed over: Err says what.
	Warning
	// URLCompleted: what Elicitation had the user do at a URL is done.
	URLCompleted
)

var kindNames = [...]string{
	"", "lost", "waiting", "replaying", "restored", "session lost", "gave up", "decided", "stderr", "warning", "URL completed",
}

// String gives the kind in a word or two.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Event is something that a user may want to be told; see Kind for which fields are set.
type Event struct {
	Kind        Kind
	Session     acp.SessionID
	Err         error
	Text        string
	Wait        time.Duration
	Interrupted []reconnect.Interrupted
	Differences []reconnect.Difference
	Decision    *Decision
	Elicitation acp.ElicitationID
}

// Decision is how a question for permission was answered.
type Decision struct {
	// Request is the question, with the whole of the tool call.
	Request *acp.RequestPermissionRequest
	// By is what the rules say. If its Effect is policy.Ask, the user was asked.
	By policy.Decision
	// Option is what was chosen, or nil if nothing was.
	Option *acp.PermissionOption
}

// String says what was asked for, and what was chosen.
func (d *Decision) String() string {
	call, chosen := acp.ToolCall{}, "cancelled"
	call.Apply(d.Request.ToolCall)
	if d.Option != nil {
		chosen, _ = draw.OptionText(*d.Option)
	}
	return draw.Subject(&call) + ": " + chosen
}

func (c *Client) event(e Event) {
	if c.opts.Event != nil {
		c.opts.Event(e)
	}
}

// notify tells what happens to the connection.
func (c *Client) notify(e reconnect.Event) {
	switch e.Kind {
	case reconnect.Replaying:
		c.states.Of(e.Session).Reset()
	case reconnect.Restored:
		if s := c.Session(e.Session); s != nil {
			c.running.Go(func() {
				// The error says that it is lost again.
				if current, err := s.conn.Current(c.life); err == nil {
					s.state.Opened(current)
				}
			})
		}
	}
	c.event(Event{
		Kind: Kind(e.Kind), Session: e.Session, Err: e.Err, Wait: e.Wait, Interrupted: e.Interrupted, Differences: e.Differences,
	})
}

// maxLine bounds a line of standard error that is told.
const maxLine = 16 << 10

// lineWriter splits what is written into lines. It is for one goroutine.
type lineWriter struct {
	line func(string)
	part []byte
}

// Write implements io.Writer, and never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	text := string(p)
	for {
		line, rest, ended := strings.Cut(text, "\n")
		if room := maxLine - len(w.part); len(line) > room {
			line = line[:room]
		}
		w.part = append(w.part, line...)
		if !ended {
			return len(p), nil
		}
		w.flush()
		text = rest
	}
}

// flush tells the line that is not ended.
func (w *lineWriter) flush() {
	line := strings.TrimSuffix(string(w.part), "\r")
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "\uFFFD")
	}
	w.part = w.part[:0]
	w.line(line)
}
