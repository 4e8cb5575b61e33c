package talk

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/view"
)

// Kind is the kind of an Event.
type Kind int

// The kinds of events. Those about the connection correspond to those of package reconnect.
const (
	// Lost: the connection is lost. Err says why, Interrupted what was in progress.
	Lost Kind = iota + 1
	// Waiting: the next attempt is made after Wait. Err says why the last one failed, if there was one.
	Waiting
	// Replaying: the history of Session is being sent again; its State was reset.
	Replaying
	// Restored: Session is restored, and Differences lists what has changed. Without a session: the connection is
	// restored.
	Restored
	// SessionLost: Session could not be restored. Err says why.
	SessionLost
	// GaveUp: the Client is over. Err says why.
	GaveUp
	// Decided: a permission request was answered. Decision says how and why.
	Decided
	// Stderr: the agent wrote the line Text to standard error.
	Stderr
	// Warning: an error occurred and was ignored. Err describes it.
	Warning
	// Slow: the agent has not answered the method Text for the time Wait.
	Slow
	// URLCompleted: the user has finished what Elicitation asked for at a URL.
	URLCompleted
)

var kindNames = [...]string{
	"", "lost", "waiting", "replaying", "restored", "session lost", "gave up", "decided", "stderr", "warning", "slow",
	"URL completed",
}

// String returns the kind in a word or two.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Event is something that the user may want to know. Kind says which fields are set.
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

// Decision is how a permission request was answered.
type Decision struct {
	// Request is the request, with the complete tool call.
	Request *acp.RequestPermissionRequest
	// By is the decision of the rules. If its Effect is policy.Ask, the user was asked.
	By policy.Decision
	// Option is the chosen option, or nil if none was chosen.
	Option *acp.PermissionOption
}

// String says what was requested, and what was chosen.
func (d *Decision) String() string {
	call, chosen := acp.ToolCall{}, "cancelled"
	call.Apply(d.Request.ToolCall)
	if d.Option != nil {
		chosen = view.NewChoice(*d.Option).Text
	}
	return view.Subject(&call) + ": " + chosen
}

func (c *Client) event(e Event) {
	if c.opts.Event != nil {
		c.opts.Event(e)
	}
}

// notify reports an event of the connection.
func (c *Client) notify(_ context.Context, e reconnect.Event) {
	switch e.Kind {
	case reconnect.Replaying:
		c.states.Of(e.Session).Reset()
	case reconnect.Restored:
		if s := c.Session(e.Session); s != nil {
			c.running.Go(func() {
				// On error the connection is lost again.
				if current, err := s.conn.Live(c.life); err == nil {
					s.state.SetSession(current)
				}
			})
		}
	}
	c.event(Event{
		Kind: Kind(e.Kind), Session: e.Session, Err: e.Err, Wait: e.Wait, Interrupted: e.Interrupted,
		Differences: e.Differences,
	})
}

// maxLine is the maximum length of a reported line of standard error.
const maxLine = 16 << 10

// lineWriter splits what is written into lines. It must be used by one goroutine.
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

// flush reports an unfinished line.
func (w *lineWriter) flush() {
	line := strings.TrimSuffix(string(w.part), "\r")
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "\uFFFD")
	}
	w.part = w.part[:0]
	w.line(line)
}
