package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// ReplayOptions configures Replay.
type ReplayOptions struct {
	// Speed is the speed of the replay: 1 keeps the delays of the recording, 2 halves them, and so on. 0 means no
	// delays.
	Speed float64
	// Exact enables the comparison of texts, numbers and lists, in addition to the structure of messages.
	Exact bool
	// Patience is how long to wait for a message after a later one has arrived. The default is 1 s.
	Patience time.Duration
	// Silence is how long the peer may send nothing while a message is expected. 0 means no limit except the context.
	Silence time.Duration
	// Replace has texts to replace in the played messages, such as paths, as pairs of old and new texts like the
	// arguments of strings.NewReplacer.
	Replace []string
	// OnDifference is called for each difference, in order. It may be nil.
	OnDifference func(Difference)
}

// DifferenceKind is a way in which the live side differs from the recording.
type DifferenceKind string

// The kinds of differences.
const (
	Missing    DifferenceKind = "missing"      // the recorded message did not arrive
	Additional DifferenceKind = "additional"   // the live message is not in the recording
	Different  DifferenceKind = "different"    // the live message has the same subject but another structure
	OutOfOrder DifferenceKind = "out of order" // the live message arrived after one that follows it in the recording
)

// Difference is a place where the live side differs from the recording.
type Difference struct {
	Kind DifferenceKind
	// Number is the line of the recorded message in the file. For an additional message, it is the line of the message
	// that was expected instead. It is 0 at the end of the recording.
	Number int
	// Subject names the message, such as "session/update plan".
	Subject string
	// Text describes the difference. It may be empty.
	Text string
	// Live is the line that arrived, and Line the recorded one. Either may be nil.
	Live, Line []byte
}

// String returns a text of the form "line 12: different: session/update plan: /params/update: missing "entries"".
func (d Difference) String() string {
	var b strings.Builder
	if d.Number > 0 {
		fmt.Fprintf(&b, "line %d: ", d.Number)
	} else {
		b.WriteString("at the end: ")
	}
	fmt.Fprintf(&b, "%s: %s", d.Kind, d.Subject)
	if d.Text != "" {
		b.WriteString(": " + d.Text)
	}
	return b.String()
}

// ReplayResult has the counts of a replay.
type ReplayResult struct {
	// Played is the number of messages that were sent, and Met the number of recorded messages that the peer sent.
	Played, Met int
	// Dropped is the number of messages that were not sent because they answer requests that did not arrive.
	Dropped     int
	Differences int
	// Ended is the reason why the connection ended, if the peer ended it before the end of the recording.
	Ended error
}

// Replay connects and plays one side of the recording; the other side is live. It sends a message when all messages of
// the live side that precede it in the recording have arrived. Ids that the live side chooses, of requests, sessions,
// terminals and so on, replace the recorded ones. The messages of the live side must have the same subjects in the same
// order, and the same structure: members and their types, kinds, statuses and the like, but not texts, numbers, lengths
// of lists, or the number of pieces in which a text arrives.
//
// Replay continues after a difference. It answers a request that is not in the recording with an error. After the last
// message, it ends a live agent's input, or waits until the live client ends the connection. An error means that the
// recording could not be played to the end; the result then has the counts until that point.
func (r *Recorded) Replay(ctx context.Context, side conformance.Side, transport rpc.Transport,
	options *ReplayOptions) (*ReplayResult, error) {
	p := &replay{recorded: r, side: side, names: newNames(), inbox: newInbox(), liveIDs: map[*message][]byte{},
		asked: map[string]string{}, options: *cmp.Or(options, &ReplayOptions{})}
	if len(p.options.Replace)%2 != 0 {
		return &p.result, errors.New("the last text in ReplayOptions.Replace has no replacement")
	}
	p.texts = strings.NewReplacer(p.options.Replace...)
	p.options.Patience = cmp.Or(p.options.Patience, time.Second)
	stream, err := transport.Connect(ctx)
	if err != nil {
		return &p.result, fmt.Errorf("%s: %w", r.name, err)
	}
	p.stream = stream
	p.split()
	err, closeErr := converse(ctx, stream, p.inbox, p.play)
	if err == nil && closeErr != nil && !errors.Is(closeErr, io.EOF) {
		err = fmt.Errorf("close: %w", closeErr)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", r.name, err)
	}
	return &p.result, err
}

// replay is one run.
type replay struct {
	recorded *Recorded
	options  ReplayOptions
	side     conformance.Side
	stream   rpc.Stream
	inbox    *inbox
	names    *names
	texts    *strings.Replacer
	result   ReplayResult

	toSend   []played            // the messages to send, in order
	expected []*live             // the expected messages that have not arrived, in order
	liveIDs  map[*message][]byte // the live ids of the recorded requests that have arrived
	asked    map[string]string   // the methods of the requests that were sent, by id
	last     *live               // the expected message that arrived last
	heard    time.Time           // the time of the last message
	beyond   bool                // a message other than the first expected one has arrived since
}

// played is a message to send.
type played struct {
	*message
	index    int      // in the recording
	request  *message // the request that it answers, if the live side sent that
	previous time.Time
}

// live is an expected message.
type live struct {
	*message
	index     int
	flow      *flow
	overtaken bool // a later one has arrived
	pattern   any
	made      bool // the pattern has been built
}

// flow is a series of consecutive messages whose number is arbitrary.
type flow struct{ met, missed bool }

// split splits the recording into the messages to send and the expected ones.
func (p *replay) split() {
	open := map[string]*message{}
	var previous time.Time
	for i, m := range p.recorded.steps {
		if m.writer == p.side {
			step := played{message: m, index: i, previous: previous}
			if m.isAnswer() {
				step.request = open[m.id]
				delete(open, m.id)
			}
			p.toSend = append(p.toSend, step)
		} else {
			if m.kind == conformance.Request {
				open[m.id] = m
			}
			l := &live{message: m, index: i}
			if m.flows() {
				l.flow = &flow{}
				if n := len(p.expected); n > 0 && p.expected[n-1].flow != nil && p.expected[n-1].same(&m.subject) {
					l.flow = p.expected[n-1].flow
				}
			}
			p.expected = append(p.expected, l)
		}
		if !m.time.IsZero() {
			previous = m.time
		}
	}
}

// play runs until all messages of both sides have been exchanged.
func (p *replay) play(ctx context.Context) error {
	for len(p.toSend) > 0 || len(p.expected) > 0 {
		if len(p.toSend) > 0 && (len(p.expected) == 0 || p.expected[0].index > p.toSend[0].index) {
			step := p.toSend[0]
			p.toSend = p.toSend[1:]
			if err := p.send(ctx, step); err != nil {
				return p.broken(ctx, err)
			}
			continue
		}
		ended, err := p.listen(ctx)
		if err != nil {
			return err
		}
		if ended {
			return nil
		}
	}
	return p.end(ctx)
}

// end ends a live agent's input, and compares the messages that still arrive.
func (p *replay) end(ctx context.Context) error {
	if closer, ok := p.stream.(rpc.HalfCloser); ok && p.side == conformance.Client {
		if err := closer.CloseWrite(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return p.broken(ctx, err)
		}
	}
	var limit time.Duration
	if p.side == conformance.Client {
		limit = p.options.Patience
	}
	for {
		line, err := p.next(ctx, limit)
		var tooLong *rpc.TooLongError
		switch {
		case errors.As(err, &tooLong):
			p.differ(Difference{Kind: Additional, Subject: "a line that is too long", Text: err.Error()})
		case err == nil:
			if err := p.take(line); err != nil {
				return p.broken(ctx, err)
			}
		case errors.Is(err, io.EOF), errors.Is(err, errSilent):
			return nil
		default:
			return err
		}
	}
}

// errSilent means that no message arrived within the time limit.
var errSilent = errors.New("no message arrived")

// next waits for a line for at most limit; 0 means no limit.
func (p *replay) next(ctx context.Context, limit time.Duration) ([]byte, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errSilent)
		defer cancel()
	}
	return p.inbox.next(ctx)
}

// listen waits for the next message of the live side. It returns ended if there are no more.
func (p *replay) listen(ctx context.Context) (ended bool, err error) {
	limit := p.options.Silence
	if p.beyond {
		limit = max(time.Until(p.heard.Add(p.options.Patience)), time.Nanosecond)
	}
	line, err := p.next(ctx, limit)
	var tooLong *rpc.TooLongError
	switch {
	case err == nil:
		p.heard = time.Now()
		if err := p.take(line); err != nil {
			return false, p.broken(ctx, err)
		}
		return false, nil
	case errors.As(err, &tooLong):
		p.differ(Difference{Kind: Additional, Number: p.expected[0].number, Subject: "a line that is too long",
			Text: err.Error()})
		return false, nil
	case errors.Is(err, errSilent):
		p.giveUp()
		return false, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	return true, p.broken(ctx, err)
}

// broken ends the run because the connection has ended. Missing messages are then differences, not errors.
func (p *replay) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.result.Ended = err
	for _, l := range p.expected {
		p.missing(l)
	}
	p.expected = nil
	p.result.Dropped += len(p.toSend)
	p.toSend = nil
	return nil
}

// giveUp stops waiting for the messages that should have arrived before the next message to send.
func (p *replay) giveUp() {
	until := len(p.recorded.steps)
	if len(p.toSend) > 0 {
		until = p.toSend[0].index
	}
	for len(p.expected) > 0 && p.expected[0].index < until {
		p.missing(p.expected[0])
		p.expected = p.expected[1:]
	}
	p.beyond = slices.ContainsFunc(p.expected, func(l *live) bool { return l.overtaken })
}

func (p *replay) missing(l *live) {
	if l.flow != nil {
		if l.flow.met || l.flow.missed {
			return // one difference for all pieces
		}
		l.flow.missed = true
	}
	p.differ(Difference{Kind: Missing, Number: l.number, Subject: l.subject.String(), Line: l.line})
}

func (p *replay) differ(d Difference) {
	p.result.Differences++
	if p.options.OnDifference != nil {
		p.options.OnDifference(d)
	}
}

// send sends a message of the recording.
func (p *replay) send(ctx context.Context, step played) error {
	if p.options.Speed > 0 && !step.previous.IsZero() && step.time.After(step.previous) {
		select {
		case <-time.After(time.Duration(float64(step.time.Sub(step.previous)) / p.options.Speed)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	id := p.liveIDs[step.request]
	line := rewrite(step.line, id, p.replacement)
	if step.request != nil && id == nil {
		p.result.Dropped++
		return nil
	}
	if step.kind == conformance.Request {
		p.asked[step.id] = step.method
	}
	p.result.Played++
	return p.stream.Write(line)
}

// replacement returns the replacement of a string in a message to send.
func (p *replay) replacement(member, value string) (string, bool) {
	if isIdentity(member) {
		if bound, ok := p.bound(member, value); ok {
			return bound, true
		}
		// The played side chose this id, so the live side must use it.
		p.names.bind(identityName(member, value), value)
		return value, false
	}
	return p.texts.Replace(value), true
}

// bound returns the live id that replaces a recorded one: that of the same member, or else that of other members if
// they agree.
func (p *replay) bound(member, value string) (string, bool) {
	if id, ok := p.names.values[identityName(member, value)].(string); ok {
		return id, true
	}
	found, ok := "", false
	for name, id := range p.names.values {
		if _, of, _ := strings.Cut(name, "="); of == value {
			text, _ := id.(string)
			if ok && text != found {
				return "", false
			}
			found, ok = text, true
		}
	}
	return found, ok
}

// maxAhead is the maximum number of expected messages that are compared with one that has arrived.
const maxAhead = 256

// find returns the recorded message that a live one corresponds to: the first that it matches, or else the first with
// the same subject that is expected before the next message to send, together with the difference.
func (p *replay) find(got *subject, document any) (at int, difference error) {
	until := len(p.recorded.steps)
	if len(p.toSend) > 0 {
		until = p.toSend[0].index
	}
	at = -1
	for i, l := range p.expected[:min(len(p.expected), maxAhead)] {
		if !l.same(got) {
			continue
		}
		before := len(p.names.bound)
		err := p.compare(l, got, document)
		if err == nil {
			return i, nil
		}
		p.names.undo(before)
		if at < 0 && (l.index < until || got.isAnswer()) {
			at, difference = i, err
		}
	}
	if at >= 0 {
		learn(p.expected[at].pattern, document, p.names)
	}
	return at, difference
}

// compare returns the difference between a live message and a recorded one with the same subject.
func (p *replay) compare(l *live, got *subject, document any) error {
	if l.kind == "" {
		return nil // lines that are not messages are not compared
	}
	if l.kind != got.kind {
		return fmt.Errorf("got %s, want %s: %s", got, &l.subject, text(got.members))
	}
	if !l.made {
		l.pattern, l.made = l.message.pattern(p.options.Exact), true
	}
	return match(l.pattern, document, p.names, "")
}

// take compares a line of the live side with the expected messages.
func (p *replay) take(line []byte) error {
	got := subjectOf(line)
	if got.isAnswer() {
		got.method = p.asked[got.id]
		delete(p.asked, got.id)
	}
	document := withoutMeta(got.members)
	at, difference := p.find(&got, document)
	if at < 0 {
		return p.additional(&got, line)
	}
	l := p.expected[at]
	d := Difference{Number: l.number, Subject: l.subject.String(), Live: line, Line: l.line}
	switch {
	case difference != nil:
		d.Kind, d.Text = Different, difference.Error()
		p.differ(d)
	case l.overtaken:
		d.Kind = OutOfOrder
		p.differ(d)
	}
	p.result.Met++
	if l.kind == conformance.Request {
		p.liveIDs[l.message] = []byte(got.id)
	}
	if l.flow != nil {
		l.flow.met = true
	}
	p.last = l
	if at == 0 {
		p.expected = p.expected[1:]
		p.beyond = len(p.expected) > 0 && p.expected[0].overtaken
		return nil
	}
	earlier := slices.DeleteFunc(p.expected[:at:at], func(e *live) bool {
		e.overtaken = true
		return e.flow != nil && e.flow.met // fewer pieces than were recorded
	})
	p.expected = append(earlier, p.expected[at+1:]...)
	p.beyond = slices.ContainsFunc(earlier, func(e *live) bool { return e.overtaken })
	return nil
}

// additional reports a message that is not in the recording, and answers it if it is a request.
func (p *replay) additional(got *subject, line []byte) error {
	if p.last != nil && p.last.flow != nil && p.last.same(got) {
		return nil // more pieces than were recorded
	}
	d := Difference{Kind: Additional, Subject: got.String(), Live: line}
	if len(p.expected) > 0 {
		d.Number = p.expected[0].number
	}
	p.differ(d)
	if got.kind != conformance.Request {
		return nil
	}
	return p.stream.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not in the recording"}}`, got.id))
}
