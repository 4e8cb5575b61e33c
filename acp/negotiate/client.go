package negotiate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// Client connects to an agent in the newest version that both speak.
type Client struct {
	// V1 connects in version 1, usually with acp.Connect. Nil means that the client does not support it.
	V1 func(ctx context.Context, transport rpc.Transport) error
	// V2 connects in version 2, usually with acpv2.Connect. Nil means that the client does not support it.
	V2 func(ctx context.Context, transport rpc.Transport) error
}

// Connect connects to an agent, in version 2 if the agent supports it and otherwise in version 1, and returns the
// version. ctx bounds connecting, and nothing afterwards.
//
// V1 and V2 are called concurrently. The agent gets one initialize request, which asks for version 2 and, for agents of
// version 1, contains the data of V1's request. The answer goes to one of the two, whose connection continues; the
// other one sees its connection end, and its result is ignored. If V1 or V2 returns an error before its request,
// Connect returns that error; after that, it returns the error of the chosen version, or of version 2 if none could be
// chosen.
func (c Client) Connect(ctx context.Context, transport rpc.Transport) (version int, err error) {
	switch {
	case c.V1 == nil && c.V2 == nil:
		return 0, errors.New("acp: a client that speaks no version")
	case transport == nil:
		return 0, errors.New("acp: no transport to connect with")
	case c.V2 == nil:
		return 1, c.V1(ctx, transport)
	case c.V1 == nil:
		return 2, c.V2(ctx, transport)
	}
	stream, err := transport.Connect(ctx)
	if err != nil {
		return 0, fmt.Errorf("acp: connecting: %w", err)
	}
	v1, v2 := newLane(stream), newLane(stream)
	var both sync.WaitGroup
	both.Go(func() { v1.run(ctx, c.V1) })
	both.Go(func() { v2.run(ctx, c.V2) })
	version = choose(stream, v1, v2)
	both.Wait()
	switch version {
	case 1:
		return 1, v1.err
	case 2:
		err := v2.err
		if errors.Is(err, rpc.ErrClosed) && v1.err != nil && !errors.Is(v1.err, rpc.ErrClosed) {
			err = v1.err // it gave up first, and thereby closed the stream of both
		}
		// The end of ctx also ends the stream, which the connection may notice first.
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			return 2, fmt.Errorf("%w: %w", cause, err)
		}
		return 2, err
	}
	return 0, errors.Join(v1.early, v2.early, stream.Close())
}

// choose asks the agent for its version, and lets one of the lanes continue. It returns 0 if neither lane has sent a
// request.
func choose(stream rpc.Stream, v1, v2 *lane) (version int) {
	defer v1.end()
	defer v2.end()
	request1, request2 := v1.request(), v2.request()
	if request1 == nil || request2 == nil {
		return 0
	}
	before, answer, err := exchange(stream, request1, request2)
	if err == nil && answer.Result.ProtocolVersion == 1 {
		var line []byte
		if line, err = answer.forRequest(request1.ID); err == nil {
			v1.goOn(append(before, read{line: line}))
			return 1
		}
	}
	if err != nil {
		v2.goOn(append(before, read{err: err}))
	} else {
		v2.goOn(append(before, answer.read))
	}
	return 2
}

// read is the result of a Read of the stream.
type read struct {
	line []byte
	err  error
}

// message is an initialize request or the answer to it.
type message struct {
	JSONRPC string                     `json:"jsonrpc"`
	ID      rpc.ID                     `json:"id"`
	Method  string                     `json:"method,omitempty"`
	Params  map[string]json.RawMessage `json:"params,omitempty"`
}

// answer is the agent's answer.
type answer struct {
	read
	Result initializeParams
}

// maxBefore bounds what an agent may send before it answers initialize, in bytes.
const maxBefore = 1 << 20

// exchange sends the request of version 2, with the members that only the request of version 1 has, and reads up to the
// answer. It returns everything that arrived before the answer.
func exchange(stream rpc.Stream, request1, request2 *message) (before []read, a *answer, err error) {
	for name, value := range request1.Params {
		if _, ok := request2.Params[name]; !ok {
			request2.Params[name] = value
		}
	}
	line, err := json.Marshal(request2)
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Write(line); err != nil {
		return nil, nil, err
	}
	for size := 0; size <= maxBefore; {
		line, err := stream.Read()
		if long, skipped := errors.AsType[*rpc.TooLongError](err); skipped {
			if wire.AnswersLong(long.Head, long.Tail, request2.ID) {
				return before, &answer{read: read{err: err}}, nil
			}
			before = append(before, read{err: err})
			size += len(long.Head) + len(long.Tail) + 1
			continue
		}
		if err != nil {
			return before, nil, err
		}
		line = bytes.Clone(line)
		if a := answerTo(request2.ID, line); a != nil {
			return before, a, nil
		}
		before = append(before, read{line: line})
		size += len(line) + 1
	}
	return nil, nil, errors.New("acp: the agent sends too much before it answers initialize")
}

// answerTo returns the answer in line, or nil if line is not an answer to the request with the given id. An error, a
// result without a version, and an answer that cannot be read or is too long count as version 0: the connection of
// version 2 reports what is wrong with it.
func answerTo(id rpc.ID, line []byte) *answer {
	if !wire.Answers(line, id) {
		return nil
	}
	a := &answer{read: read{line: line}}
	var m struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(line, &m) != nil || codec.Unmarshal(m.Result, &a.Result) != nil {
		a.Result = initializeParams{}
	}
	return a
}

// forRequest returns the answer with another request's id.
func (a *answer) forRequest(id rpc.ID) ([]byte, error) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(a.line, &m)
	if err == nil {
		m["id"], err = json.Marshal(id)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// lane is the stream of one version's connection. Before the version is chosen it takes the initialize request, and
// delivers nothing; then it continues as the stream of both, or ends.
type lane struct {
	stream rpc.Stream    // shared by both lanes
	asked  chan []byte   // receives the initialize request
	chosen chan struct{} // closed when the version has been chosen
	closed chan struct{} // closed by Close
	once   sync.Once     // guards closed
	done   chan struct{} // closed when run returns
	err    error         // result of the version's function; set before done is closed
	early  error         // the same, if it did not send a request

	// Set before chosen is closed.
	won   bool
	reads []read // messages before the rest of the stream
}

func newLane(stream rpc.Stream) *lane {
	return &lane{
		stream: stream,
		asked:  make(chan []byte, 1),
		chosen: make(chan struct{}),
		closed: make(chan struct{}),
		done:   make(chan struct{}),
	}
}

// run calls the version's function.
func (l *lane) run(ctx context.Context, connect func(context.Context, rpc.Transport) error) {
	defer close(l.done)
	l.err = connect(ctx, only{rpc.Wrap(l.stream, rpc.Wrapper{
		Read: l.read, Write: l.write, CloseWrite: l.closeWrite, Close: l.close,
	})})
}

// request waits for the initialize request. It returns nil if there is none.
func (l *lane) request() *message {
	select {
	case line := <-l.asked:
		return l.parse(line)
	case <-l.done:
	}
	select {
	case line := <-l.asked: // both were ready
		return l.parse(line)
	default:
		l.early = cmp.Or(l.err, errNotAsked)
		return nil
	}
}

var errNotAsked = errors.New("acp: connected without initialize")

func (l *lane) parse(line []byte) *message {
	m := &message{}
	if err := json.Unmarshal(line, m); err != nil || m.Method != methodInitialize || m.Params == nil {
		l.early = fmt.Errorf("acp: not an initialize request: %.200q", line)
		return nil
	}
	return m
}

// goOn lets the connection continue, first with the messages that were read, and then with the stream.
func (l *lane) goOn(reads []read) { l.won, l.reads = true, reads }

// end is called when the version has been chosen.
func (l *lane) end() { close(l.chosen) }

// goesOn reports whether the version has been chosen and is this one.
func (l *lane) goesOn() bool {
	select {
	case <-l.chosen:
		return l.won
	default:
		return false
	}
}

func (l *lane) read(next func() ([]byte, error), beforeWait func()) ([]byte, error) {
	select {
	case <-l.chosen:
	default:
		beforeWait()
		select {
		case <-l.chosen:
		case <-l.closed:
		}
	}
	if !l.goesOn() {
		return nil, io.EOF
	}
	if len(l.reads) > 0 {
		first := l.reads[0]
		l.reads = l.reads[1:]
		return first.line, first.err
	}
	return next()
}

func (l *lane) write(message []byte) ([]byte, error) {
	if l.goesOn() {
		return message, nil
	}
	select {
	case l.asked <- bytes.Clone(message):
	default: // it gave up, or was not chosen
	}
	return nil, nil
}

func (l *lane) closeWrite() error {
	if !l.goesOn() {
		return nil
	}
	if h, ok := l.stream.(rpc.HalfCloser); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (l *lane) close() error {
	l.once.Do(func() { close(l.closed) })
	select {
	case <-l.chosen:
		if !l.won {
			return nil
		}
	default: // it gave up
	}
	return l.stream.Close()
}
