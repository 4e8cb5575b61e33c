package talk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
)

// recorder writes the recordings of a Client, one for each connection.
type recorder struct {
	client *Client

	mu     sync.Mutex
	failed error
}

// begin begins a recording; it returns nil if nothing is recorded.
func (r *recorder) begin() *recording.Writer {
	o := &r.client.opts
	if o.Record == nil {
		return nil
	}
	header := recording.Header{Tool: "acp", Version: o.Version}
	if o.Agent.Command != nil {
		header.Command = append([]string{o.Agent.Command.Program}, o.Agent.Command.Args...)
	}
	var masker *recording.Masker
	if !o.NoMask {
		masker = recording.NewMasker()
	}
	w, err := recording.NewWriter(o.Record, header, masker)
	if err != nil {
		r.fail(err)
		return nil
	}
	return w
}

// fail reports once that the recording is not complete. The conversation continues.
func (r *recorder) fail(err error) {
	r.mu.Lock()
	first := r.failed == nil
	if first {
		r.failed = fmt.Errorf("the recording is not complete: %w", err)
	}
	r.mu.Unlock()
	if first {
		r.client.event(Event{Kind: Warning, Err: r.failed})
	}
}

func (r *recorder) finish() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// tapped is a transport whose lines are recorded and judged.
type tapped struct {
	client  *Client
	inner   acp.Transport
	process *exec.Cmd // nil if the agent is not a process
}

// Connect implements acp.Transport.
func (t *tapped) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &wire{client: t.client, process: t.process, writer: t.client.recorder.begin()}
	var alive context.Context
	alive, w.dead = context.WithCancelCause(context.Background())
	t.client.mu.Lock()
	t.client.alive, t.client.process = alive, t.process
	t.client.mu.Unlock()
	if t.client.opts.Findings != nil {
		w.judge = conformance.NewJudge(nil, nil)
	}
	return rpc.Wrap(stream, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				w.read(line)
			} else if errors.Is(err, io.EOF) {
				w.noteEnd(conformance.Agent)
			}
			return line, err
		},
		Write: w.write,
		Close: func() error {
			w.noteEnd(conformance.Client)
			err := stream.Close()
			w.end()
			return err
		},
	}), nil
}

// wire is one connection.
type wire struct {
	client   *Client
	process  *exec.Cmd
	dead     context.CancelCauseFunc
	answered bool // the response to initialize has passed

	mu     sync.Mutex
	writer *recording.Writer // nil when nothing more is recorded
	judge  *conformance.Judge
	closed conformance.Side // the side that closed the connection; 0 while it is open
	ended  bool
}

func (w *wire) read(line []byte) {
	w.client.heard.Store(time.Now().UnixNano())
	if !w.answered {
		w.answered = w.client.keepLogins(line)
	}
	if w.client.opts.Subagents && bytes.Contains(line, []byte(`"subagent_update"`)) {
		w.client.adopt(line)
	}
	w.pass(conformance.ToClient, line)
	if tap := w.client.opts.Line; tap != nil {
		tap(conformance.Agent, line)
	}
}

func (w *wire) write(line []byte) ([]byte, error) {
	w.pass(conformance.ToAgent, line)
	if tap := w.client.opts.Line; tap != nil {
		tap(conformance.Client, line)
	}
	return line, nil
}

// pass records and judges a line.
func (w *wire) pass(d conformance.Direction, line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	m := conformance.Message{Direction: d, Line: line}
	if w.writer != nil {
		if err := w.writer.Message(m); err != nil {
			w.client.recorder.fail(err)
			w.writer = nil
		}
	}
	if w.judge != nil {
		w.passFindings(w.judge.Message(m))
	}
}

func (w *wire) passFindings(findings []conformance.Finding) {
	for _, f := range findings {
		w.client.opts.Findings(f)
	}
}

// noteEnd records which side closed the connection first.
func (w *wire) noteEnd(by conformance.Side) {
	w.dead(acp.ErrClosed)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed == 0 {
		if w.closed = by; w.judge != nil {
			w.judge.Closed(by)
		}
	}
}

// end is called when the agent's process, if it has one, has ended.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	if w.writer != nil {
		end := &recording.End{}
		if w.process != nil && w.process.ProcessState != nil {
			end = relay.End(w.process.ProcessState)
		}
		end.Closed = w.closed
		if err := w.writer.Write(&recording.Entry{Kind: recording.KindEnd, End: end}); err != nil {
			w.client.recorder.fail(err)
		}
	}
	if w.judge != nil {
		w.passFindings(w.judge.End())
	}
}
