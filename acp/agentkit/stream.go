package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// APIError is a failure of the API of an agent's model. If a handler returns it, the client sees its text; the status
// 401 is acp.ErrAuthRequired.
type APIError struct {
	Status     int    // of HTTP; 0 if there was no answer, or none that was complete
	RetryAfter string // the header of that name
	Reason     string
}

// Error returns the status and the reason.
func (e *APIError) Error() string {
	reason := cmp.Or(e.Reason, "no reason given")
	if e.Status == 0 {
		return "the model's API: " + reason
	}
	status := strings.TrimSpace(fmt.Sprint(e.Status, " ", statusText[e.Status]))
	return fmt.Sprintf("the model's API answers %s: %s", status, reason)
}

// Unwrap returns the error for the client.
func (e *APIError) Unwrap() error {
	if e.Status == 401 {
		return &acp.Error{Code: acp.ErrAuthRequired, Message: e.Error()}
	}
	return &acp.Error{Code: rpc.ErrInternal, Message: e.Error()}
}

// temporary reports whether the API may answer another time: a timeout, too many requests, and its own faults.
func (e *APIError) temporary() bool {
	return e.Status == 0 || e.Status == 408 || e.Status == 429 || e.Status >= 500
}

// The bounds of Turn.Stream.
const (
	maxAttempts = 6
	maxWait     = 5 * time.Minute
)

// wait returns how long to wait after the nth attempt: as long as the API asks for, or 0.5 s, 1 s, 2 s and so on.
func (e *APIError) wait(n int) time.Duration {
	wait := time.Second << n / 4
	if seconds, err := strconv.ParseFloat(e.RetryAfter, 64); err == nil && seconds >= 0 {
		wait = time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
	} else if date, err := parseTime(e.RetryAfter); err == nil {
		wait = max(0, time.Until(date)).Round(time.Second)
	}
	return min(wait, maxWait)
}

// Piece is a piece of a model's answer. An empty one only shows that the model is at work.
type Piece struct {
	Text, Thought string
	More          int // bytes of anything else, such as the input of a tool call
}

// StreamOptions configures [Turn.Stream]. A nil *StreamOptions, and the zero value of each field, mean the defaults.
type StreamOptions struct {
	// Hidden hides the answer from the client. It is for the agent's own requests, such as one for a summary.
	Hidden bool
	// MaxBytes is the size of the longest answer, for servers that ignore the limit of a request. The default is 1 MiB.
	MaxBytes int
	// Silence is how long the API may send nothing. The default is five minutes.
	Silence time.Duration
}

// Stream sends a request to a model, and its answer to the client as it arrives: the text as a message, the thoughts as
// a thought. request sends the request and yields the pieces of the answer, or an error; it must end when its context
// does.
//
// If request fails with an *APIError that is temporary (no connection, the status 408, 429, or 500 and above), or the
// API is silent for too long, Stream tells the user with Notify, waits, and calls request again, at most five times. It
// waits as long as RetryAfter asks for, at most five minutes, or otherwise 0.5 s, 1 s, 2 s and so on. If a part of the
// answer has been shown, it does not try again. The error is the last one of request; or it matches ErrTooLarge if the
// answer is longer than MaxBytes, of which the client has got the beginning.
func (t *turn) Stream(ctx context.Context, request func(ctx context.Context) iter.Seq2[Piece, error],
	opts *StreamOptions) error {
	o := *cmp.Or(opts, &StreamOptions{})
	o.MaxBytes, o.Silence = cmp.Or(o.MaxBytes, 1<<20), cmp.Or(o.Silence, 5*time.Minute)
	message, thought := t.NewMessage(ctx), t.NewThought(ctx)
	shown := false
	show := func(p Piece) error {
		if o.Hidden {
			return nil
		}
		shown = shown || p.Text != "" || p.Thought != ""
		_, err1 := thought.WriteString(p.Thought)
		_, err2 := message.WriteString(p.Text)
		return errors.Join(err1, err2)
	}
	err := o.attempt(ctx, request, show)
	for n := 1; n < maxAttempts && ctx.Err() == nil && !shown; n++ {
		failure, ok := errors.AsType[*APIError](err)
		if !ok || !failure.temporary() {
			break
		}
		wait := failure.wait(n)
		notice := acp.Notice{Severity: acp.NoticeSeverityWarning,
			Title: fmt.Sprintf("%v. Trying again in %v.", failure, wait)}
		if err := t.Notify(ctx, notice); err != nil {
			return err
		}
		select {
		case <-time.After(wait):
			err = o.attempt(ctx, request, show)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.Join(err, thought.Close(), message.Close())
}

// attempt sends the request once.
func (o *StreamOptions) attempt(
	ctx context.Context, request func(ctx context.Context) iter.Seq2[Piece, error], show func(Piece) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(o.Silence, func() { cancel(&APIError{Reason: fmt.Sprintf("no answer for %v", o.Silence)}) })
	defer silent.Stop()
	left := o.MaxBytes
	for p, err := range request(ctx) {
		silent.Stop()
		switch cause := context.Cause(ctx); {
		case cause != nil:
			return cause
		case err != nil:
			return err
		}
		p.Text = p.Text[:min(len(p.Text), left)]
		p.Thought = p.Thought[:min(len(p.Thought), left)]
		if err := show(p); err != nil {
			return err
		}
		if left -= len(p.Text) + len(p.Thought) + p.More; left <= 0 {
			return fmt.Errorf("the model's answer: %w", ErrTooLarge)
		}
		silent.Reset(o.Silence)
	}
	return context.Cause(ctx)
}
