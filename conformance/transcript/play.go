package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// Patience is the time limit of Run for a whole script.
const Patience = time.Minute

// Run plays one side of a script in a test, for at most Patience, and fails the test if the peer's messages differ from
// the script. It may be called from any goroutine of the test.
func Run(tb conformance.TB, script *Script, side conformance.Side, transport rpc.Transport) {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), Patience, fmt.Errorf("no message within %v", Patience))
	defer cancel()
	if err := script.Play(ctx, side, transport); err != nil {
		tb.Errorf("%v", err)
	}
}

// Play connects and plays one side of the script: it writes the messages of that side and compares the peer's messages
// with those of the other side. It returns an error at the first difference, if the peer ends the connection too early,
// or if ctx ends. It always closes the connection. Messages after the last one of the script are not checked, so a
// script that shows that something is not answered must end with a request that is answered.
func (s *Script) Play(ctx context.Context, side conformance.Side, transport rpc.Transport) error {
	stream, err := transport.Connect(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	p := &player{script: s, side: side, stream: stream, names: newNames(), inbox: newInbox()}
	err, closeErr := converse(ctx, stream, p.inbox, p.play)
	if err == nil && closeErr != nil {
		err = fmt.Errorf("%s: close: %w", s.name, closeErr)
	}
	return err
}

// converse plays over a stream while all incoming messages are put into an inbox. It closes the stream.
func converse(ctx context.Context, stream rpc.Stream, inbox *inbox, play func(context.Context) error) (err,
	closeErr error) {
	var reader sync.WaitGroup
	reader.Go(func() { inbox.fill(stream) })
	unblock := context.AfterFunc(ctx, func() { _ = stream.Close() }) // the Close below returns the same error
	err = play(ctx)
	unblock()
	closeErr = stream.Close()
	reader.Wait()
	return err, closeErr
}

type player struct {
	script *Script
	side   conformance.Side
	stream rpc.Stream
	names  *names
	inbox  *inbox
}

// inbox has the lines that were read, without a limit. With a limit, the player and a peer could deadlock, each waiting
// for the other one to read.
type inbox struct {
	more chan struct{} // has capacity one; signals that something was added

	mu    sync.Mutex
	lines []incoming
}

func newInbox() *inbox { return &inbox{more: make(chan struct{}, 1)} }

// incoming is the result of one Read.
type incoming struct {
	line []byte
	err  error
}

// fill reads until the stream ends.
func (b *inbox) fill(stream rpc.Stream) {
	for {
		line, err := stream.Read()
		b.mu.Lock()
		b.lines = append(b.lines, incoming{bytes.Clone(line), err})
		b.mu.Unlock()
		select {
		case b.more <- struct{}{}:
		default:
		}
		if _, tooLong := errors.AsType[*rpc.TooLongError](err); err != nil && !tooLong {
			return
		}
	}
}

// next removes and returns the oldest line.
func (b *inbox) next(ctx context.Context) ([]byte, error) {
	for {
		b.mu.Lock()
		if len(b.lines) > 0 {
			in := b.lines[0]
			b.lines = b.lines[1:]
			b.mu.Unlock()
			return in.line, in.err
		}
		b.mu.Unlock()
		select {
		case <-b.more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *player) play(ctx context.Context) error {
	for steps := p.script.steps; len(steps) > 0; {
		n := 1
		for n < len(steps) && steps[n].writer == steps[0].writer {
			n++
		}
		run := steps[:n]
		steps = steps[n:]
		var err error
		if run[0].writer == p.side {
			err = p.write(run)
		} else {
			err = p.expect(ctx, run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *player) write(run []step) error {
	for _, step := range run {
		line := step.raw
		if line == nil {
			message, err := fill(step.message, p.names, p.script.values)
			if err != nil {
				return p.fail(step, err)
			}
			if line, err = encode(message); err != nil {
				return p.fail(step, err)
			}
		}
		if err := p.stream.Write(line); err != nil {
			return p.fail(step, err)
		}
	}
	return nil
}

// expect reads until every step of the run has been met, except those that may be missing.
func (p *player) expect(ctx context.Context, run []step) error {
	for {
		at := slices.IndexFunc(run, func(s step) bool { return !s.repeated })
		if at < 0 {
			return nil
		}
		line, err := p.inbox.next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			err = context.Cause(ctx)
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return p.fail(run[at], err)
		}
		met, err := p.meet(run, at, line)
		if err != nil {
			return err
		}
		if !run[met].repeated {
			run = slices.Concat(run[at:met], run[met+1:])
		}
	}
}

// meet finds the step that a line matches: the next mandatory one, another one of its group if the order is free, or
// one of the repeated ones before it.
func (p *player) meet(run []step, at int, line []byte) (met int, err error) {
	last := at
	for run[at].anyOrder && last+1 < len(run) && run[last+1].anyOrder {
		last++
	}
	var difference error
	for i := at; i <= last; i++ {
		if err := p.matches(run[i], line); err == nil {
			return i, nil
		} else if difference == nil {
			difference = err
		}
	}
	for i := range at {
		if p.matches(run[i], line) == nil {
			return i, nil
		}
	}
	return 0, p.fail(run[at], difference)
}

// matches returns nil if a line matches a step, and then keeps the names that it binds.
func (p *player) matches(s step, line []byte) error {
	got := fmt.Errorf("got %q", line)
	if s.raw != nil {
		if !bytes.Equal(s.raw, line) {
			return got
		}
		return nil
	}
	var message any
	if err := decode(line, &message); err != nil {
		return fmt.Errorf("%w: %w", got, err)
	}
	before := len(p.names.bound)
	if err := match(s.message, message, p.names, ""); err != nil {
		p.names.undo(before)
		return fmt.Errorf("%w\n\tgot  %s\n\twant %s", err, line, text(s.message))
	}
	return nil
}

func (p *player) fail(s step, err error) error {
	return fmt.Errorf("%s:%d: %s: %w", p.script.name, s.line, s.writer, err)
}
