package main

import (
	"errors"
	"io"
	"os"
	"os/signal"

	"github.com/muesli/cancelreader"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance/report"
)

// recordingInput returns standard input for reading a recording. It ends with report.ErrStopped when the program is
// interrupted, so that what was judged until then can be summarized. A second interrupt ends the program.
func (p *program) recordingInput() (io.ReadCloser, error) {
	if err := input.HasEnd(p.stdin); err != nil {
		return nil, err
	}
	in, err := cancelreader.NewReader(p.stdin)
	if err != nil { // a file, of which no read takes long
		if in, err = cancelreader.NewReader(struct{ io.Reader }{p.stdin}); err != nil {
			return nil, err
		}
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() { // lives as long as the program
		<-interrupted
		signal.Stop(interrupted)
		in.Cancel()
	}()
	return interruptible{in}, nil
}

type interruptible struct{ cancelreader.CancelReader }

// Read implements io.Reader.
func (r interruptible) Read(b []byte) (int, error) {
	n, err := r.CancelReader.Read(b)
	if errors.Is(err, cancelreader.ErrCanceled) {
		err = report.ErrStopped
	}
	return n, err
}
