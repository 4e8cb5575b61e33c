package badlines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A Peer writes arbitrary bytes and keeps the answers to them.
type Peer struct {
	w      io.WriteCloser
	onLine func(line []byte)
	done   chan struct{} // closed when the stream has ended

	mu      sync.Mutex
	ledger  Ledger
	sent    []byte
	answers []*Answer
	err     error // the first fault
}

// NewPeer starts reading from r until it ends. If onLine is not nil, it is called with every line.
func NewPeer(r io.Reader, w io.WriteCloser, ledger Ledger, onLine func(line []byte)) *Peer {
	p := &Peer{w: w, onLine: onLine, ledger: ledger, done: make(chan struct{})}
	go p.read(r)
	return p
}

func (p *Peer) read(r io.Reader) {
	defer close(p.done)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && len(line) == 0 {
			return
		}
		if err != nil {
			err = fmt.Errorf("%.300q was sent and cut off: %w", line, err)
		}
		p.take(line, err)
	}
}

func (p *Peer) take(line []byte, err error) {
	if p.onLine != nil {
		p.onLine(line)
	}
	a, bad := ReadAnswer(line)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err, bad)
	if a != nil {
		p.answers = append(p.answers, a)
		p.ledger.Answered(a)
	}
}

// Write sends lines, each with its newline, in pieces. The sizes of the pieces are used one after the other
// and then again from the first; without sizes there is one piece.
func (p *Peer) Write(lines, sizes []byte) error {
	p.mu.Lock()
	for line := range bytes.Lines(lines) {
		p.ledger.Sent(bytes.TrimSuffix(line, []byte("\n")))
	}
	p.sent = append(p.sent, lines...)
	p.mu.Unlock()
	for i := 0; len(lines) > 0; i++ {
		n := len(lines)
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[i%len(sizes)]))
		}
		if _, err := p.w.Write(lines[:n]); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// Answers returns the answers with an id that have arrived so far.
func (p *Peer) Answers(id string) []*Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*Answer
	for _, a := range p.answers {
		if Key(a.ID) == Key([]byte(id)) {
			found = append(found, a)
		}
	}
	return found
}

// Owed returns the number of answers that are due for an id according to the lines sent so far.
func (p *Peer) Owed(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.Owed(id)
}

// End ends the peer's writing.
func (p *Peer) End() error { return p.w.Close() }

// Verdict waits until the other side's output ends. It returns an error if that side sent a malformed line,
// if its answers are not the right ones (see Ledger.Check), or if an error tells internals.
func (p *Peer) Verdict(all bool) error {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.err, p.ledger.Check(all))
	for _, a := range p.answers {
		if leak := a.Leak(p.sent); leak != "" {
			err = errors.Join(err, fmt.Errorf("%q in %s", leak, a))
		}
	}
	return err
}
