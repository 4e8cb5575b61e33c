package agentkit

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/acpgo/sdk/acp"
)

// Notify tells the user something that is not a part of the conversation, such as why the answer takes longer: with a
// notice or, if the client does not support notices, with a thought.
func (t *turn) Notify(ctx context.Context, notice acp.Notice) error {
	if t.Conn().Capabilities().Session.Value().Notices.Present() {
		return t.Update(ctx, acp.NewSessionUpdateNotice(notice))
	}
	text := notice.Title
	if more, ok := notice.Description.Get(); ok {
		text += ": " + more
	}
	return t.Update(ctx, acp.AgentThoughtText(text+"\n"))
}

// Compact replaces the conversation by the summary that summarize returns: Session.Messages then begins with it, also
// when the session is loaded. Compact sends the client the begin and the end of the compaction, or notices if the
// client does not support compactions; see Notify. If summarize fails, the conversation stays as it is and Compact
// returns the error.
func (t *turn) Compact(ctx context.Context, summarize func() (string, error)) error {
	show := func(u acp.CompactionUpdate) error {
		update := acp.NewSessionUpdateCompactionUpdate(u)
		if t.Conn().Capabilities().Session.Value().Compaction.Present() {
			return t.Update(ctx, update)
		}
		told := acp.Notice{Severity: acp.NoticeSeverityInfo, Title: "Summarizing the conversation: " + string(u.Status)}
		return errors.Join(t.Record(ctx, update), t.Notify(ctx, told))
	}
	u := acp.CompactionUpdate{
		CompactionID: acp.CompactionID("compaction_" + strings.ToLower(rand.Text())), Status: acp.CompactionStatusInProgress,
	}
	if err := show(u); err != nil {
		return err
	}
	summary, err := summarize()
	switch {
	case err == nil:
		u.Status, u.Summary = acp.CompactionStatusCompleted, acp.Some([]acp.ContentBlock{acp.TextBlock(summary)})
	case ctx.Err() != nil:
		u.Status = acp.CompactionStatusCancelled
	default:
		u.Status = acp.CompactionStatusFailed
	}
	return errors.Join(err, show(u))
}
