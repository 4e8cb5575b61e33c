package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
)

// live is a connection to the agent. The pages are its client, except that it may answer requests for files and
// terminals itself.
type live struct {
	in     *Inspection
	source *source
	stream rpc.Stream
	serves *serves
	out    chan outgoing
	ended  chan struct{}
	killed atomic.Bool // by the user

	mu      sync.Mutex
	lastID  int
	answers answers
}

// outgoing is a message to write.
type outgoing struct {
	line []byte
	auto bool
}

// maxQueue bounds the messages that wait for an agent that does not read.
const maxQueue = 1000

var (
	errNotLive = errors.New("the agent is not connected")
	errQueue   = errors.New("the agent does not read: too many messages wait")
)

// start starts the agent as a new source.
func (in *Inspection) start() (*live, error) {
	agent := in.options.Agent
	if agent == nil {
		return nil, errors.New("there is no agent to talk to")
	}
	began := time.Now()
	s, err := in.source(sourceOptions{
		kind: "agent", name: strings.Join(agent.Words, " "),
		header: recording.Header{Tool: "acp", Version: in.options.Version, Command: agent.Words, Date: began},
	})
	if err != nil {
		return nil, err
	}
	stderr := &input.Lines{Most: maxStderr, Line: func(line string, lost int) {
		s.happens(recording.Entry{Kind: recording.KindStderr, Direction: conformance.ToClient, Line: []byte(line)}, false)
		if lost > 0 {
			s.note(fmt.Errorf("%d bytes of this line of standard error are not kept", lost))
		}
	}}
	fail := func(err error) (*live, error) {
		s.note(fmt.Errorf("the agent was not started: %w", err))
		s.end(true)
		return nil, err
	}
	transport, err := agent.Connect(in.context, stderr)
	if err != nil {
		return fail(err)
	}
	stream, err := transport.Connect(in.context)
	if err != nil {
		return fail(err)
	}
	l := &live{in: in, source: s, stream: stream, out: make(chan outgoing, maxQueue), ended: make(chan struct{}),
		answers: answers{FS: "memory", Terminal: "memory"}}
	if in.options.Folder != "" {
		l.answers = answers{FS: "folder", Terminal: "folder"}
	}
	ask := s.decide
	if !agent.Remote {
		ask = nil
	}
	if l.serves, err = newServes(in.options.Folder, ask); err != nil {
		return fail(errors.Join(err, stream.Close()))
	}
	s.mu.Lock()
	s.answering, s.respond = l.answering, l.respond
	s.mu.Unlock()
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return fail(errors.Join(errClosed, stream.Close(), l.serves.close()))
	}
	in.live[s.id] = l
	in.running.Go(func() { l.read(stderr) })
	in.mu.Unlock()
	go l.write()
	return l, nil
}

// connected returns the connection of a source.
func (in *Inspection) connected(id string) (*live, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l := in.live[id]; l != nil {
		return l, nil
	}
	return nil, errNotLive
}

// read reads what the agent writes until its end.
func (l *live) read(stderr *input.Lines) {
	stop := context.AfterFunc(l.in.context, func() { _ = l.stream.Close() }) // the agent's end is recorded below
	defer stop()
	var end recording.End
	for {
		line, err := l.stream.Read()
		if long, ok := errors.AsType[*rpc.TooLongError](err); ok {
			l.source.note(long)
			continue
		}
		if lost, ok := errors.AsType[*rpc.CallLostError](err); ok {
			l.source.note(fmt.Errorf("the call %s was lost: %w", lost.ID, lost.Err))
			continue
		}
		if err != nil {
			end.Closed = conformance.Agent
			if exit, ok := errors.AsType[*rpc.ExitError](err); ok && exit.State != nil {
				end = *relay.End(exit.State)
				end.Closed = conformance.Agent
			}
			if l.in.context.Err() != nil || l.killed.Load() {
				end.Closed = conformance.Client
			}
			if !errors.Is(err, io.EOF) && l.in.context.Err() == nil {
				l.source.note(err)
			}
			break
		}
		l.answer(line, l.source.happens(recording.Entry{Kind: recording.KindMessage, Direction: conformance.ToClient,
			Line: line}, false))
	}
	close(l.ended)
	_ = l.stream.Close() // the end of the agent is known
	stderr.Flush()
	if err := l.serves.close(); err != nil {
		l.source.note(err)
	}
	l.source.happens(recording.Entry{Kind: recording.KindEnd, End: &end}, false)
	l.in.mu.Lock()
	delete(l.in.live, l.source.id)
	l.in.mu.Unlock()
}

// write writes what is queued. It ends with the connection.
func (l *live) write() {
	for {
		select {
		case <-l.ended:
			return
		case m := <-l.out:
			// The message is recorded before it is written, so that its answer comes after it.
			l.source.happens(recording.Entry{Kind: recording.KindMessage, Direction: conformance.ToAgent, Line: m.line}, m.auto)
			err := writeLine(l.stream, m.line)
			if err != nil {
				l.source.note(fmt.Errorf("the message was not sent: %w", err))
			}
		}
	}
}

// writeLine writes a line byte for byte if the stream can.
func writeLine(stream rpc.Stream, line []byte) error {
	if fast, ok := stream.(rpc.FastStream); ok && !json.Valid(line) {
		return fast.WriteLines(append(bytes.Clone(line), '\n'))
	}
	return stream.Write(line)
}

// send queues a line.
func (l *live) send(line []byte, auto bool) error {
	select {
	case <-l.ended:
		return errNotLive
	default:
	}
	select {
	case l.out <- outgoing{line, auto}:
		return nil
	default:
		return errQueue
	}
}

// request sends a request or a notification, and returns the id.
func (l *live) request(c *command) (id string, err error) {
	message := struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{JSONRPC: "2.0", Method: c.Method, Params: c.Params}
	if !c.Notification {
		l.mu.Lock()
		l.lastID++
		id = strconv.Itoa(l.lastID)
		l.mu.Unlock()
		message.ID = json.RawMessage(id)
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return "", err
	}
	return id, l.send(bytes.TrimSuffix(line.Bytes(), []byte("\n")), false)
}

// raw sends a line as it is.
func (l *live) raw(c *command) error {
	line := []byte(c.Line)
	var compact bytes.Buffer
	if bytes.ContainsAny(line, "\r\n") && json.Compact(&compact, line) == nil {
		line = compact.Bytes()
	}
	if bytes.ContainsAny(line, "\r\n") {
		return errors.New("what is sent is one line: it cannot contain line breaks")
	}
	return l.send(line, false)
}

// kill ends the agent.
func (l *live) kill(how string) error {
	l.killed.Store(true)
	if how == "close" {
		half, ok := l.stream.(rpc.HalfCloser)
		if !ok {
			return errors.New("this connection cannot end its input alone")
		}
		return half.CloseWrite()
	}
	return l.stream.Close()
}

// answering returns the answers in force.
func (l *live) answering() *answers {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.answers
	return &a
}

func (l *live) setAnswers(a *answers) error {
	for _, mode := range []string{a.FS, a.Terminal} {
		switch mode {
		case "ask", "memory":
		case "folder":
			if l.in.options.Folder == "" {
				return errors.New("no folder was given on the command line: --folder")
			}
		default:
			return fmt.Errorf("answers cannot be %q", mode)
		}
	}
	l.mu.Lock()
	l.answers = *a
	l.mu.Unlock()
	l.source.log.touch()
	return nil
}

// answer answers a request for files or terminals, which is in a row, if the user does not.
func (l *live) answer(line []byte, row int) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return
	}
	do := l.serves.handler(m.Method, l.answering())
	if do == nil {
		return
	}
	at := shown{row, m.ID, l.source.masks(line)} // line is valid only until the next one is read
	l.serves.run(func(ctx context.Context) {
		result, err := do(context.WithValue(ctx, shownKey{}, at), m.Params)
		if err := l.respond(m.ID, result, err, true); err != nil && !errors.Is(err, errNotLive) {
			l.source.note(err)
		}
	})
}

// respond answers a request of the agent: with a result, unless it has failed.
func (l *live) respond(id json.RawMessage, result any, failed error, auto bool) error {
	answer := struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *rpc.Error      `json:"error,omitempty"`
	}{JSONRPC: "2.0", ID: id}
	if failed != nil {
		answer.Error = rpc.ErrorOf(failed)
	} else {
		answer.Result = result
	}
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return l.send(line, auto)
}

// maxStderr bounds a line of standard error.
const maxStderr = 1 << 20
