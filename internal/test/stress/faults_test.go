package stress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
)

// The kinds of faults.
const (
	faultNone     = "none"     // no more noise
	faultNoise    = "noise"    // write other lines between messages
	faultTruncate = "truncate" // end in the middle of a line
	faultExit     = "exit"     // end between two lines
	faultHangUp   = "hang up"  // close the output, and continue reading
	faultDeaf     = "deaf"     // stop reading
)

// fault is an instruction for an agent.
type fault struct {
	Kind string `json:"kind"`
	Seed uint64 `json:"seed,omitempty"`
}

// truncatedExit is the exit status of an agent that ends in the middle of a line.
const truncatedExit = 3

// noisyWrites is the average number of writes per line of noise.
const noisyWrites = 20

// garbage holds lines that must be refused, each once, and do no harm.
var garbage = []string{
	"npm WARN deprecated", `{"jsonrpc":"2.0","method":"session/upd`, `[{"jsonrpc":"2.0","method":"x"}]`, "\x00\xff",
	`{"jsonrpc":"1.0","method":"x"}`, `{"jsonrpc":"2.0"}`, "42",
}

// faults belong to one stream, which they wrap.
type faults struct {
	mu    sync.Mutex
	inner rpc.Stream
	kind  string
	rand  *rand.Rand
	lines int           // the number of complete lines written, including
	noisy int           // this number of lines of noise
	deaf  chan struct{} // closed by Close
}

func (f *faults) stream(inner rpc.Stream) rpc.Stream {
	f.inner = inner
	f.deaf = make(chan struct{})
	return &faulty{FastStream: inner.(rpc.FastStream), f: f}
}

// set starts a fault. It does not undo earlier changes to the output.
func (f *faults) set(what *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind = what.Kind
	f.rand = rand.New(rand.NewPCG(what.Seed, 0))
}

// hangUp ends the output between two messages.
func (f *faults) hangUp() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closeWrite()
}

// closeWrite ends the output; mu is held.
func (f *faults) closeWrite() error { return f.inner.(rpc.HalfCloser).CloseWrite() }

func (f *faults) noise() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.noisy
}

func (f *faults) is(kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind == kind
}

// faulty is a line stream with faults, which cut lines.
type faulty struct {
	rpc.FastStream
	f    *faults
	once sync.Once
}

func (s *faulty) ReadLine(beforeWait func()) ([]byte, error) {
	line, err := s.FastStream.ReadLine(beforeWait)
	if s.f.is(faultDeaf) {
		<-s.f.deaf
		return nil, io.EOF
	}
	return line, err
}

func (*faulty) TryWriteLines([]byte) bool { return false }

func (s *faulty) WriteLines(lines []byte) error {
	f := s.f
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.kind {
	case faultTruncate:
		n := f.rand.IntN(len(lines))
		if lines[n] == '\n' {
			n-- // a line that lacks only the newline is complete
		}
		return errors.Join(s.write(lines[:n]), f.exit(truncatedExit))
	case faultExit:
		if err := s.write(lines); err != nil {
			return err
		}
		return f.exit(0)
	case faultHangUp:
		return errors.Join(s.write(lines), f.closeWrite())
	case faultNoise:
		if f.rand.IntN(noisyWrites) == 0 {
			f.noisy++
			if err := s.write([]byte(garbage[f.rand.IntN(len(garbage))] + "\n")); err != nil {
				return err
			}
		}
	}
	return s.write(lines)
}

// write writes lines, the last of which may be cut.
func (s *faulty) write(lines []byte) error {
	err := s.FastStream.WriteLines(lines)
	if err == nil {
		s.f.lines += bytes.Count(lines, []byte("\n"))
	}
	return err
}

// exit ends the process and reports how much was written.
func (f *faults) exit(status int) error {
	if err := f.tell(); err != nil {
		return err
	}
	os.Exit(status)
	return nil
}

// linesWritten is the last message of an agent on standard error.
const linesWritten = "%d lines written\n"

// tell reports how much was written; mu is held, or the connection is over.
func (f *faults) tell() error {
	_, err := fmt.Fprintf(os.Stderr, linesWritten, f.lines)
	return err
}

func (s *faulty) Close() error {
	s.once.Do(func() { close(s.f.deaf) })
	return s.FastStream.Close()
}
