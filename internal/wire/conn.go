// This file owns the connection: what sourcegraph/jsonrpc2 does for us, and what we do around it.

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/acpgo/sdk/acp/codec"
)

// Stream carries whole messages; see rpc.Stream, which has the same methods.
type Stream interface {
	Read() ([]byte, error)
	Write(lines []byte) error
	Close() error
}

// Handler is told what the peer sends. Its methods are called by the reader, one at a time and in the
// order of the wire; what they are given is valid until they return. While one of them runs nothing is
// read, which is how backpressure reaches the peer.
type Handler interface {
	// HandleRequest must see to it that r is answered, exactly once, later or at once.
	HandleRequest(r *Request, params []byte)
	HandleNotification(method, params []byte)
	// HandleEnd is called once when nothing more will be read: err is io.EOF or what broke the stream.
	// Requests may still be answered for the drain time.
	HandleEnd(err error)
	// HandleDrained is called when the drain time is over; requests still in progress must be
	// abandoned.
	HandleDrained()
	// HandleInvalid is told what was refused, ignored or skipped; line may be nil.
	HandleInvalid(line []byte, reason error)
}

// Config is what a connection needs to know. The zero value of each field but Handler works.
type Config struct {
	Handler Handler
	// Logger gets what the connection has to say about itself.
	Logger *slog.Logger
	// Drain bounds how long requests may still be answered after the peer ended the stream.
	Drain time.Duration
	// SkipNoise makes lines that do not begin like JSON be reported but not answered.
	SkipNoise bool
}

// Conn is a JSON-RPC connection. All methods are safe for concurrent use.
//
// The library's Conn keeps the pending calls, hands requests to their handler, and closes. It never
// sees a payload: ReadObject gives it a message of some forty bytes with a token for the id, and
// WriteObject is told by the library's OnSend hook which message it is to write and writes the real
// one. Thereby a line that cannot be decoded does not end the connection, foreign ids of any shape
// come back as they were, and parameters are encoded once. Notifications, which have nothing to
// correlate, do not enter the library at all.
//
// Two goroutines belong to a Conn, the library's reader and the writer; Close ends both. A third of the
// library's, which waits for a context, ends with them.
type Conn struct {
	stream  Stream
	handler Handler
	log     *slog.Logger
	drain   time.Duration
	noise   bool

	lib    *jsonrpc2.Conn
	out    *writer
	decode *codec.Decoder // the reader's

	sending message // what the library is about to write; guarded by its own lock for sending

	readDone chan struct{} // closed when the reader has read its last
	life     context.Context
	endLife  context.CancelFunc // called by Close
	once     sync.Once

	incoming       *Request // the request that the library is given a stub of; the reader's
	incomingParams []byte
	endSeen        bool // the handler was told of the end; the reader's

	mu        sync.Mutex
	starting  map[uint64]*Call    // ours, not sent yet
	calls     map[uint64]*Call    // ours, unanswered
	lastCall  uint64              // the last id given out
	requests  map[uint64]*Request // the peer's, not done
	answering map[uint64]*Request // the peer's, whose answer is being written
	lastToken uint64
	abandoned []uint64      // calls that the library still waits for and nobody else does
	idle      chan struct{} // set while the reader waits for requests to be answered
	ended     error         // why nothing more will be read
	giveUp    *time.Timer   // set when sending has failed
}

// message names a message that the library writes.
type message struct {
	token    uint64
	response bool
}

// ErrClosed says that this side has closed the connection.
var ErrClosed = errors.New("connection closed")

// NewConn starts a connection on stream.
func NewConn(stream Stream, cfg Config) *Conn {
	c := &Conn{
		stream:    stream,
		handler:   cfg.Handler,
		log:       cfg.Logger,
		drain:     cfg.Drain,
		noise:     cfg.SkipNoise,
		decode:    codec.NewDecoder(nil),
		readDone:  make(chan struct{}),
		starting:  map[uint64]*Call{},
		calls:     map[uint64]*Call{},
		requests:  map[uint64]*Request{},
		answering: map[uint64]*Request{},
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.life, c.endLife = context.WithCancel(context.Background())
	c.out = newWriter(stream.Write, c.writeFailed)
	started := make(chan struct{})
	c.lib = jsonrpc2.NewConn(context.Background(), &objectStream{c, started}, requestHandler{c},
		jsonrpc2.OnSend(c.noteSending), jsonrpc2.SetLogger(libraryLog{c.log}))
	close(started)
	return c
}

// Done is closed when the connection is over: nothing is read any more and nothing can be sent.
func (c *Conn) Done() <-chan struct{} { return c.lib.DisconnectNotify() }

// Err says why nothing more is read: io.EOF, what the stream failed with, or nil while it is read.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Close sends what is pending, for as long as ctx lasts, ends the stream, and waits for the
// goroutines. Later calls wait for the first.
func (c *Conn) Close(ctx context.Context) error {
	var err error
	c.once.Do(func() {
		if ferr := c.out.flush(ctx); ferr != nil && !errors.Is(ferr, ErrClosed) {
			c.log.Debug("closing with messages unsent", "error", ferr)
		}
		c.mu.Lock()
		if c.ended == nil {
			c.ended = ErrClosed
		}
		if c.giveUp != nil {
			c.giveUp.Stop()
		}
		c.mu.Unlock()
		c.endLife()
		c.out.close()
		if err = c.lib.Close(); errors.Is(err, jsonrpc2.ErrClosed) {
			err = nil
		}
	})
	<-c.readDone
	<-c.out.done
	return err
}

// Notify sends a notification. It returns when the message was handed to the writer, and waits before
// that, up to ctx, while too much is unsent.
func (c *Conn) Notify(ctx context.Context, method string, params Encodable) error {
	if err := c.out.room(ctx, highWater); err != nil {
		return c.because(err)
	}
	return c.Post(method, params)
}

// Post is Notify without waiting: for what must get out however much is unsent.
func (c *Conn) Post(method string, params Encodable) error {
	err := c.out.append(func(dst []byte) ([]byte, error) { return appendNotification(dst, method, params) })
	return c.because(err)
}

// A Call is a request that was sent.
type Call struct {
	conn       *Conn
	id         uint64
	method     string
	params     Encodable
	onSent     func(params []byte)
	onResponse func(Response)
	waiter     jsonrpc2.Waiter
	err        error // why there will be no response
}

// Response is what the peer answered.
type Response struct {
	Result []byte // valid in the callback only; nil when there is an error
	Err    error  // an *Error of the peer's, or what is wrong with its response
}

// Start sends a request. It waits, up to ctx, while too much is unsent. onSent is shown the parameters
// as they are sent. onResponse is called by the reader when the response is read, before Wait returns.
// Neither must block.
func (c *Conn) Start(
	ctx context.Context, method string, params Encodable, onSent func(params []byte), onResponse func(Response),
) (*Call, error) {
	if err := c.out.room(ctx, highWater); err != nil {
		return nil, c.because(err)
	}
	call := &Call{conn: c, method: method, params: params, onSent: onSent, onResponse: onResponse}
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return nil, c.ended
	}
	c.lastCall++
	call.id = c.lastCall
	c.starting[call.id] = call
	c.mu.Unlock()

	waiter, err := c.lib.DispatchCall(ctx, method, nil, jsonrpc2.PickID(jsonrpc2.ID{Num: call.id}))
	if err != nil {
		c.mu.Lock()
		delete(c.starting, call.id)
		delete(c.calls, call.id)
		c.mu.Unlock()
		return nil, c.because(err)
	}
	call.waiter = waiter
	return call, nil
}

// ID is the id under which the request was sent.
func (call *Call) ID() ID { return IntID(int64(call.id)) }

// Wait returns nil when the response has been read, ctx.Err() when that ends first, or why there will
// be no response. After an error of ctx it may be called again.
func (call *Call) Wait(ctx context.Context) error {
	err := call.waiter.Wait(ctx, nil)
	switch {
	case err == nil:
		call.conn.mu.Lock()
		defer call.conn.mu.Unlock()
		return call.err
	default:
		return call.conn.because(err)
	}
}

// Abandon gives a call up: nobody waits for it any more, and a response that still comes is dropped.
func (call *Call) Abandon() {
	c := call.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.calls[call.id]; ok {
		delete(c.calls, call.id)
		c.abandoned = append(c.abandoned, call.id)
	}
}

// because replaces an error that only says that the connection is over by the reason.
func (c *Conn) because(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, jsonrpc2.ErrClosed) {
		if why := c.Err(); why != nil {
			return why
		}
		return ErrClosed
	}
	return err
}

// A Request is one that the peer sent. It must be answered exactly once, and Done must be called when
// everything that belongs to it was sent.
type Request struct {
	ID     ID
	Method string

	conn    *Conn
	token   uint64
	claimed bool // guarded by conn.mu
	result  Encodable
	failure *Error
	invalid error // the result could not be encoded
}

// An Answer is a failure or, if that is nil, a result. A nil result is null.
type Answer struct {
	Result  Encodable
	Failure *Error
}

var errAnswered = errors.New("the request was answered before")

// Answer answers the request. It waits, up to ctx, while too much is unsent. A result that cannot be
// encoded is answered as an internal error, and its error returned.
func (r *Request) Answer(ctx context.Context, a Answer) error {
	if err := r.conn.out.room(ctx, highWater); err != nil {
		return err
	}
	return r.AnswerNow(a)
}

// AnswerNow is Answer without waiting, for what must get out however much is unsent.
func (r *Request) AnswerNow(a Answer) error {
	c := r.conn
	c.mu.Lock()
	if r.claimed {
		c.mu.Unlock()
		return errAnswered
	}
	r.claimed = true
	r.result, r.failure = a.Result, a.Failure
	c.answering[r.token] = r
	c.mu.Unlock()
	err := c.lib.SendResponse(context.Background(), &jsonrpc2.Response{ID: jsonrpc2.ID{Num: r.token}})
	c.mu.Lock()
	delete(c.answering, r.token)
	c.mu.Unlock()
	if err == nil {
		err = r.invalid
	}
	return c.because(err)
}

// Refuse answers with an error, for the reader, and is done. It waits only when a flood of refusals is
// unsent.
func (r *Request) Refuse(failure *Error) error {
	defer r.Done()
	if err := r.conn.out.room(r.conn.life, floodWater); err != nil {
		return err
	}
	return r.AnswerNow(Answer{Failure: failure})
}

// Done says that nothing more belongs to the request. Until then the end of the peer's stream does not
// end the connection, within the drain time.
func (r *Request) Done() {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, r.token)
	if c.idle != nil && len(c.requests) == 0 {
		close(c.idle)
		c.idle = nil
	}
}

// noteSending is the library's OnSend hook: it runs under the lock under which WriteObject runs next.
func (c *Conn) noteSending(req *jsonrpc2.Request, resp *jsonrpc2.Response) {
	if req != nil {
		c.sending = message{token: req.ID.Num}
	} else {
		c.sending = message{token: resp.ID.Num, response: true}
	}
}

// writeObject writes the message that noteSending announced.
func (c *Conn) writeObject() error {
	m := c.sending
	c.mu.Lock()
	call, r := c.starting[m.token], c.answering[m.token]
	c.mu.Unlock()
	if m.response {
		return c.writeAnswer(r)
	}
	return c.out.append(func(dst []byte) ([]byte, error) {
		dst, err := appendRequest(dst, call.id, call.method, call.params, call.onSent)
		if err != nil {
			return dst, err
		}
		// From here on a response counts; before, it was to nothing.
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended != nil {
			return dst, c.ended // its response could not be read any more
		}
		delete(c.starting, call.id)
		c.calls[call.id] = call
		return dst, nil
	})
}

// writeAnswer writes the answer to a request; what cannot be encoded is replaced by an error.
func (c *Conn) writeAnswer(r *Request) error {
	if r.failure == nil {
		err := c.out.append(func(dst []byte) ([]byte, error) { return appendResult(dst, &r.ID, r.result) })
		bad, ok := errors.AsType[*codec.Error](err)
		if !ok {
			return err
		}
		r.invalid = fmt.Errorf("answer to %s: %w", r.Method, bad)
		r.failure = &Error{Code: codeInternal, Message: "Internal error"}
	}
	err := c.out.append(func(dst []byte) ([]byte, error) { return appendError(dst, &r.ID, r.failure) })
	if bad, ok := errors.AsType[*codec.Error](err); ok {
		// Only the data can be at fault; the peer gets the error without it.
		r.invalid = fmt.Errorf("error answer to %s: %w", r.Method, bad)
		plain := &Error{Code: r.failure.Code, Message: r.failure.Message}
		err = c.out.append(func(dst []byte) ([]byte, error) { return appendError(dst, &r.ID, plain) })
	}
	return err
}

// objectStream is the connection as the library sees it.
type objectStream struct {
	c       *Conn
	started <-chan struct{} // closed when c is complete
}

var (
	stubEnd      = []byte(`}`)
	stubRequest  = []byte(`{"jsonrpc":"2.0","method":"x","id":`)
	stubResponse = []byte(`{"jsonrpc":"2.0","result":null,"id":`)
)

func stub(kind []byte, token uint64) []byte {
	b := make([]byte, 0, 64)
	b = append(b, kind...)
	b = strconv.AppendUint(b, token, 10)
	return append(b, stubEnd...)
}

// ReadObject gives the library its next message.
func (s *objectStream) ReadObject(v any) error {
	<-s.started
	b, err := s.c.next()
	if err != nil {
		close(s.c.readDone)
		return err
	}
	return v.(interface{ UnmarshalJSON([]byte) error }).UnmarshalJSON(b)
}

// WriteObject writes the message that the library has announced.
func (s *objectStream) WriteObject(any) error { return s.c.writeObject() }

// Close is called by the library, once.
func (s *objectStream) Close() error {
	s.c.out.close()
	return s.c.stream.Close()
}

// next reads until there is something for the library: a request, a response, or the end.
func (c *Conn) next() ([]byte, error) {
	for {
		if token, ok := c.nextAbandoned(); ok {
			return stub(stubResponse, token), nil
		}
		if c.endSeen {
			return c.end()
		}
		line, err := c.stream.Read()
		if long, ok := errors.AsType[*TooLongError](err); ok {
			if b := c.refuseLong(long); b != nil {
				return b, nil
			}
			continue
		}
		if err != nil {
			c.mu.Lock()
			if c.ended == nil {
				c.ended = err
			}
			err, c.endSeen = c.ended, true
			c.mu.Unlock()
			c.handler.HandleEnd(err)
			continue
		}
		if b := c.dispatch(line); b != nil {
			return b, nil
		}
	}
}

// nextAbandoned gives the library responses to calls that nobody waits for.
func (c *Conn) nextAbandoned() (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.abandoned)
	if n == 0 {
		return 0, false
	}
	token := c.abandoned[n-1]
	c.abandoned = c.abandoned[:n-1]
	return token, true
}

// end fails the pending calls one by one, then waits until the requests in progress were answered, and
// then ends the library's reading.
func (c *Conn) end() ([]byte, error) {
	c.mu.Lock()
	for id, call := range c.calls {
		delete(c.calls, id)
		call.err = c.ended
		c.mu.Unlock()
		return stub(stubResponse, id), nil
	}
	err, waiting := c.ended, len(c.requests) > 0
	idle := make(chan struct{})
	if waiting {
		c.idle = idle
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.life, c.drain)
	defer cancel()
	if waiting {
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	c.handler.HandleDrained()
	if ferr := c.out.flush(ctx); ferr != nil {
		c.log.Debug("the peer ended the stream, answers are unsent", "error", ferr)
	}
	return nil, err
}

// dispatch handles one line and returns what the library needs to see of it, if anything.
func (c *Conn) dispatch(line []byte) []byte {
	env := parse(c.decode, line)
	switch env.kind {
	case kindNotification:
		c.handler.HandleNotification(env.method, env.params)
	case kindRequest:
		c.mu.Lock()
		c.lastToken++
		r := &Request{ID: env.id, Method: string(env.method), conn: c, token: c.lastToken}
		c.requests[r.token] = r
		c.mu.Unlock()
		c.incoming, c.incomingParams = r, env.params
		return stub(stubRequest, r.token)
	case kindResponse:
		return c.dispatchResponse(line, &env)
	default:
		return c.dispatchInvalid(line, &env)
	}
	return nil
}

// dispatchInvalid answers what is no message. If it looks like a response it ends the call instead, of
// which nothing else would come.
func (c *Conn) dispatchInvalid(line []byte, env *envelope) []byte {
	if c.noise && (env.failure.Code == codeParse || line[0] != '{') {
		c.handler.HandleInvalid(line, errNoise)
		return nil
	}
	c.handler.HandleInvalid(line, env.failure)
	if env.unread {
		id, response, known := recoverID(line[:min(len(line), keepEnds)], line[max(0, len(line)-keepEnds):])
		if response {
			return c.failCall(id, known, fmt.Errorf("malformed response: %s", env.failure.Message))
		}
		if known && env.failure.Code == codeInvalidRequest {
			env.id = id
		}
	}
	c.refuse(env.id, env.failure)
	return nil
}

var (
	errNoise           = errors.New("a line that is no message")
	errUnknownResponse = errors.New("a response to no request")
	errPeerComplains   = errors.New("the peer could not read a message")
)

// dispatchResponse gives a response to its call and the library a stub of it.
func (c *Conn) dispatchResponse(line []byte, env *envelope) []byte {
	n, ours := env.id.callNumber()
	c.mu.Lock()
	call := c.calls[n]
	if ours && call != nil {
		delete(c.calls, call.id)
	}
	late := ours && n > 0 && n <= c.lastCall && c.starting[n] == nil
	c.mu.Unlock()
	switch {
	case ours && call != nil:
	case late:
		c.log.Debug("late response", "id", n)
		return nil
	case env.id.IsNull() && env.failure != nil:
		c.handler.HandleInvalid(line, fmt.Errorf("%w: %w", errPeerComplains, env.failure))
		return nil
	default:
		c.handler.HandleInvalid(line, errUnknownResponse)
		return nil
	}
	resp := Response{Result: env.result}
	switch {
	case env.broken != nil:
		resp = Response{Err: fmt.Errorf("malformed response to %s: %w", call.method, env.broken)}
	case env.failure != nil:
		resp = Response{Err: env.failure}
	}
	call.onResponse(resp)
	return stub(stubResponse, call.id)
}

// refuseLong answers, or fails, what an overlong message was about.
func (c *Conn) refuseLong(long *TooLongError) []byte {
	c.handler.HandleInvalid(long.Head, long)
	id, response, known := recoverID(long.Head, long.Tail)
	if response {
		return c.failCall(id, known, long)
	}
	if !known {
		id = ID{}
	}
	c.refuse(id, &Error{Code: codeInvalidRequest, Message: "Invalid request: message too long"})
	return nil
}

// failCall ends the call that an unreadable response was for, if that is known.
func (c *Conn) failCall(id ID, known bool, reason error) []byte {
	n, ours := id.callNumber()
	c.mu.Lock()
	call := c.calls[n]
	if !known || !ours || call == nil {
		c.mu.Unlock()
		return nil
	}
	delete(c.calls, n)
	c.mu.Unlock()
	call.onResponse(Response{Err: fmt.Errorf("response to %s: %w", call.method, reason)})
	return stub(stubResponse, call.id)
}

// refuse answers a message that never became a request.
func (c *Conn) refuse(id ID, failure *Error) {
	err := c.out.room(c.life, floodWater)
	if err == nil {
		err = c.out.append(func(dst []byte) ([]byte, error) { return appendError(dst, &id, failure) })
	}
	if err != nil {
		c.log.Debug("refusal unsent", "error", err)
	}
}

// writeFailed ends a connection that can no longer send, after giving the peer time to end it itself,
// so that what it has sent is still read.
func (c *Conn) writeFailed(err error) {
	c.log.Debug("sending failed", "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp = time.AfterFunc(c.drain, func() {
		c.mu.Lock()
		if c.ended == nil {
			c.ended = err
		}
		c.mu.Unlock()
		if cerr := c.lib.Close(); cerr != nil {
			c.log.Debug("closing", "error", cerr)
		}
	})
}

// requestHandler receives the library's stubs of requests, on the reader.
type requestHandler struct{ c *Conn }

func (h requestHandler) Handle(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) {
	h.c.handler.HandleRequest(h.c.incoming, h.c.incomingParams)
}

// libraryLog passes what the library logs on.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	l.log.Debug(strings.TrimSpace(fmt.Sprintf(format, args...)))
}
