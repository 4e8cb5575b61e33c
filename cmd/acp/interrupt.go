package main

import (
	"io"
	"os"
	"os/signal"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance/report"
)

// recordingInput returns standard input for reading a recording; an interrupt of the program ends it.
func (p *program) recordingInput() (io.ReadCloser, error) {
	if err := input.HasEnd(p.stdin); err != nil {
		return nil, err
	}
	return io.NopCloser(untilInterrupt(p.stdin)), nil
}

// untilInterrupt returns a reader that ends with report.ErrStopped when the program is interrupted, so that what was
// judged until then can be summarized. A second interrupt ends the program. The goroutine that reads lives as long as
// the program, because nothing can end a read from a terminal.
func untilInterrupt(in io.Reader) io.Reader {
	r := &interruptible{chunks: make(chan chunk), taken: make(chan struct{}), interrupted: make(chan os.Signal, 1)}
	signal.Notify(r.interrupted, os.Interrupt)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := in.Read(buf)
			r.chunks <- chunk{buf[:n], err}
			<-r.taken
			if err != nil {
				return
			}
		}
	}()
	return r
}

// chunk is the result of one Read.
type chunk struct {
	text []byte
	err  error
}

type interruptible struct {
	chunks      chan chunk
	taken       chan struct{} // after a chunk has been used up
	interrupted chan os.Signal

	have *chunk
	err  error
}

func (r *interruptible) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.have == nil {
		select {
		case c := <-r.chunks:
			r.have = &c
		case <-r.interrupted:
			signal.Stop(r.interrupted)
			r.err = report.ErrStopped
			return 0, r.err
		}
	}
	n := copy(p, r.have.text)
	if r.have.text = r.have.text[n:]; len(r.have.text) == 0 {
		r.err = r.have.err
		r.have = nil
		r.taken <- struct{}{}
	}
	return n, nil
}
