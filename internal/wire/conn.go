package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/codec"
)

// Handler handles what the peer sends. The reader calls its methods one at a time, in the order of the wire; their
// arguments are valid until they return. While a method runs nothing is read, which is how backpressure reaches the
// peer.
type Handler interface {
	// HandleRequest either accepts the request, with Conn.Accept, or refuses it, with Conn.Refuse.
	HandleRequest(id ID, method string, params []byte)
	HandleNotification(method, params []byte)
	// TryRequest and TryNotification are passed the rest of the message from the parameters on, which has not been
	// examined. They handle the message, or return false if there is anything unusual about it.
	TryRequest(id ID, method, rest []byte) bool
	TryNotification(method, rest []byte) bool
	// Flush is called when the reader may have to wait for more, and before every message except those that
	// TryNotification handles: deferred work is done now.
	Flush()
	// ReleaseMessage is called after a long message: the handler must drop its references to the message, or the
	// message's buffer is kept until the next one.
	ReleaseMessage()
	// HandleEnd is called once when nothing more will be read: err is io.EOF or the error that broke the stream.
	// Requests may still be answered for the drain time.
	HandleEnd(err error)
	// HandleDrained is called when the drain time is over; requests still in progress must be
	// abandoned.
	HandleDrained()
	// HandleInvalid is called for input that was refused, ignored or skipped; line may be nil.
	HandleInvalid(line []byte, reason error)
}

// Config configures a connection. The zero value of each field is valid, except that Handler must be set.
type Config struct {
	Handler Handler
	// Logger gets the connection's own messages.
	Logger *slog.Logger
	// Drain bounds how long requests may still be answered after the peer has ended the stream.
	Drain time.Duration
	// Flood is how many unsent bytes make the reader wait; 0 means 16 MiB.
	Flood int
	// SkipNoise makes the connection report lines that do not begin like JSON without answering them.
	SkipNoise bool
	// Repair, if set, is called for a message that has the member result or error with null, which was read as absent.
	// method is that of the message, or of the call that it answers.
	Repair func(method, member string)
}

// Conn is a JSON-RPC connection. All methods are safe for concurrent use.
//
// sourcegraph/jsonrpc2 keeps track of the pending calls, sends them, and closes the stream; see library. It never sees
// a payload: it is told when a call is over, and the real request is written in place of its own. Therefore a line that
// cannot be decoded does not end the connection, ids from the peer are returned unchanged whatever their form, and
// parameters are encoded only once. The peer's requests with their answers, and notifications, do not pass through it.
//
// A Conn has two goroutines, the library's reader and the writer; Close ends both. A third goroutine, the library's,
// which waits for a context, ends with them.
type Conn struct {
	stream  FastStream
	handler Handler
	flush   func() // of the handler
	log     *slog.Logger
	drain   time.Duration
	noise   bool
	repair  func(method, member string)
	flood   int

	lib    *library
	out    *writer
	decode *codec.Decoder // owned by the reader

	readDone     chan struct{} // closed when the reader has read its last message
	streamClosed chan struct{}
	closeErr     error // result of closing the stream; set before streamClosed is closed
	life         context.Context
	endLife      context.CancelFunc // called by Close
	once         sync.Once

	endSeen bool // the handler knows of the end; owned by the reader

	serving atomic.Int64  // requests of the peer that are not done
	idle    chan struct{} // gets a value when there may be none; the reader waits for it

	mu       sync.Mutex
	calls    map[uint64]*Call // unanswered calls of this side
	lastCall uint64           // the highest id sent
	ended    error            // why nothing more will be read
	giveUp   *time.Timer      // set when sending has failed
}

// ErrClosed reports that this side has closed the connection.
var ErrClosed = errors.New("connection closed")

// NewConn returns a connection on stream, which does not read before Run. Run must be called.
func NewConn(stream Stream, cfg Config) *Conn {
	c := &Conn{
		stream:       fast(stream),
		handler:      cfg.Handler,
		flush:        cfg.Handler.Flush,
		log:          cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		drain:        cfg.Drain,
		noise:        cfg.SkipNoise,
		repair:       cfg.Repair,
		flood:        cmp.Or(cfg.Flood, refusalHighWater),
		decode:       codec.NewDecoder(nil),
		readDone:     make(chan struct{}),
		streamClosed: make(chan struct{}),
		idle:         make(chan struct{}, 1),
		calls:        map[uint64]*Call{},
	}
	c.life, c.endLife = context.WithCancel(context.Background())
	c.out = newWriter(c.stream, c.writeFailed, c.Err)
	c.lib = newLibrary(c, c.log)
	return c
}

// Run starts reading.
func (c *Conn) Run() { c.lib.run() }

// Done returns a channel that is closed when the connection is over: nothing more is read, and nothing can be sent.
func (c *Conn) Done() <-chan struct{} { return c.lib.done() }

// Err returns the reason why nothing more is read: io.EOF or the error of the stream; or nil while it is being read.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// closeStream implements libraryUser.
func (c *Conn) closeStream() error {
	c.out.close()
	defer close(c.streamClosed)
	c.closeErr = c.stream.Close()
	return c.closeErr
}

// Close sends pending messages until ctx ends, ends the stream, and waits for the goroutines. Later calls wait for the
// first.
func (c *Conn) Close(ctx context.Context) error {
	var err error
	c.once.Do(func() {
		if ferr := c.out.flush(ctx); ferr != nil && !errors.Is(ferr, ErrClosed) {
			c.log.Debug("closing with messages unsent", "error", ferr)
		}
		c.endLife()
		c.mu.Lock()
		if c.ended == nil {
			c.ended = ErrClosed
		}
		if c.giveUp != nil {
			c.giveUp.Stop()
		}
		c.mu.Unlock()
		c.out.close()
		var closed bool
		if closed, err = c.lib.close(); !closed {
			<-c.streamClosed // which the library has begun to close
			err = c.closeErr
		}
	})
	<-c.readDone
	<-c.out.done
	return err
}

// Notify sends a notification. It returns when the message has been handed to the writer; before that, it blocks while
// too much is unsent, until ctx ends.
func (c *Conn) Notify(ctx context.Context, method string, params Encodable) error {
	params = Ready(params)
	for {
		if err := c.out.room(ctx, highWater); err != nil {
			return c.because(err)
		}
		if err := c.post(highWater, method, params); err != errFull {
			return err
		}
	}
}

// TryNotify is Notify without blocking; if too much is unsent, it sends nothing and returns false.
func (c *Conn) TryNotify(method string, params Encodable) (sent bool, err error) {
	if c.out.full(highWater) {
		return false, nil
	}
	if err = c.post(highWater, method, Ready(params)); err == errFull {
		return false, nil
	}
	return true, err
}

// Post is Notify without blocking, for messages that must be sent even if much is unsent.
func (c *Conn) Post(method string, params Encodable) error {
	return c.post(unlimited, method, Ready(params))
}

func (c *Conn) post(limit int, method string, params Encodable) error {
	return c.because(c.out.append(limit, func(dst []byte) ([]byte, error) {
		return appendNotification(dst, method, params)
	}))
}

// A Call is a request of this side. It is used once.
type Call struct {
	conn      *Conn
	id        uint64
	libraryID uint64 // its id in the library
	method    string
	params    Encodable
	caller    Caller
	waiter    waiter
	err       error // why there will be no response

	answered atomic.Bool
}

// A Caller is notified of the progress of its call. Its methods must not block.
type Caller interface {
	// Sent is passed the parameters as they are sent.
	Sent(params []byte)
	// Answered is called by the reader when the response is read, before Wait returns.
	Answered(Response)
	// TryAnswered is Answered with the rest of the message from the result on, which has not been examined. If there is
	// anything unusual about it, TryAnswered returns false, and Answered will be called.
	TryAnswered(rest []byte) bool
}

// Response is the peer's response.
type Response struct {
	Result []byte // valid only in the callback; nil if there is an error
	Err    error  // an *Error from the peer, or an error about its response
}

// Start sends a request. It blocks while too much is unsent, until ctx ends.
func (c *Conn) Start(ctx context.Context, call *Call, method string, params Encodable, caller Caller) error {
	call.conn, call.method, call.params, call.caller = c, method, Ready(params), caller
	defer func() { call.params = nil }() // they may be long
	for {
		if err := c.out.room(ctx, highWater); err != nil {
			return c.because(err)
		}
		if err := c.lib.send(ctx, call); err != errFull {
			return c.because(err)
		}
	}
}

// ID returns the id with which the request was sent.
func (call *Call) ID() ID { return IntID(int64(call.id)) }

// Wait returns nil when the response has been read, ctx.Err() if ctx ends first, or the reason why there will be no
// response. After an error of ctx it may be called again.
func (call *Call) Wait(ctx context.Context) error {
	err := call.waiter.wait(ctx)
	switch {
	case call.answered.Load(): // even if ctx, or the connection, ended at the same time
		return nil
	case err == nil:
		call.conn.mu.Lock()
		defer call.conn.mu.Unlock()
		return call.err
	default:
		return call.conn.because(err)
	}
}

// answer ends the call with a response; the reader calls it.
func (call *Call) answer(resp Response) {
	call.caller.Answered(resp)
	call.answered.Store(true)
}

// Abandon gives up a call: no one waits for it any more, and a response that still arrives is dropped.
func (call *Call) Abandon() {
	c := call.conn
	c.mu.Lock()
	_, listed := c.calls[call.id]
	delete(c.calls, call.id)
	c.mu.Unlock()
	if listed { // otherwise the reader tells the library that it is over
		c.lib.giveUp(call.libraryID)
	}
}

// because replaces an error that only reports that the connection is over with the reason.
func (c *Conn) because(err error) error {
	if errors.Is(err, ErrClosed) {
		if why := c.Err(); why != nil {
			return why
		}
		return ErrClosed
	}
	return err
}

// A Request is a request of the peer that the handler has accepted. It must be answered exactly once, at any time, and
// Done must be called when everything that belongs to it has been sent.
type Request struct {
	ID     ID
	Method string

	conn    *Conn
	claimed atomic.Bool
}

// An Answer is a failure or, if that is nil, a result. A nil result is null.
type Answer struct {
	Result  Encodable
	Failure *Error
}

var errAnswered = errors.New("the request was answered before")

// AwaitRoom waits while too much is unsent, until ctx ends. Answers are sent regardless.
func (r *Request) AwaitRoom(ctx context.Context) {
	// If messages cannot be sent, sending reports that.
	_ = r.conn.out.room(ctx, highWater)
}

// TakeRoom is AwaitRoom, but also waits while too much will be unsent once the answers for which room has been taken
// are sent. It returns how much room the answer has: size bytes or, if that is 0, as much as is usual. LeaveRoom gives
// it back when the request has been answered. After taking room, the caller must not wait for anything before that.
func (r *Request) TakeRoom(ctx context.Context, size int) (room int) {
	size = max(size, usualAnswer)
	if r.conn.out.claim(ctx, highWater, size) != nil {
		return 0
	}
	return size
}

// LeaveRoom gives back the room that TakeRoom returned.
func (r *Request) LeaveRoom(room int) {
	if room > 0 {
		r.conn.out.unclaim(room)
	}
}

// AwaitFlood waits while so much is unsent that even the reader must wait, until ctx ends. It is for answers that the
// reader produces, or waits for.
func (c *Conn) AwaitFlood(ctx context.Context) {
	_ = c.out.room(ctx, c.flood) // like AwaitRoom
}

// Answer answers the request, even if much is unsent. A result that cannot be encoded is answered with an internal
// error, and its error is returned.
func (r *Request) Answer(a Answer) error {
	if r.claimed.Swap(true) {
		return errAnswered
	}
	return r.conn.because(r.write(a))
}

// write writes the answer; an answer that cannot be encoded is replaced by an error.
func (r *Request) write(a Answer) (invalid error) {
	c := r.conn
	if a.Failure == nil {
		result := Ready(a.Result)
		err := c.out.append(unlimited, func(dst []byte) ([]byte, error) { return appendResult(dst, &r.ID, result) })
		bad, ok := errors.AsType[*codec.Error](err)
		if !ok {
			return err
		}
		invalid = fmt.Errorf("answer to %s: %w", r.Method, bad)
		a.Failure = &Error{Code: codeInternal, Message: "Internal error"}
	}
	fail := func(e *Error) error {
		return c.out.append(unlimited, func(dst []byte) ([]byte, error) { return appendError(dst, &r.ID, e) })
	}
	err := fail(a.Failure)
	if bad, ok := errors.AsType[*codec.Error](err); ok {
		// Only the data can be the cause; the peer gets the error without it.
		invalid = fmt.Errorf("error answer to %s: %w", r.Method, bad)
		err = fail(&Error{Code: a.Failure.Code, Message: a.Failure.Message})
	}
	return cmp.Or(err, invalid)
}

// Done records that the request is over. Until then, the end of the peer's stream does not end the connection, within
// the drain time.
func (r *Request) Done() {
	if c := r.conn; c.serving.Add(-1) == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// writeRequest writes the call that was passed to the library.
func (c *Conn) writeRequest(call *Call) error {
	return c.out.append(highWater, func(dst []byte) ([]byte, error) {
		dst, err := appendRequest(dst, call.id, call.method, call.params, call.caller.Sent)
		if err != nil {
			return dst, err
		}
		// From now on a response counts; before, it would answer nothing.
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended != nil {
			return dst, c.ended // its response could no longer be read
		}
		c.calls[call.id], c.lastCall = call, call.id
		return dst, nil
	})
}

// next reads until there is something for the library: the library's id of a call that is over, or the end.
func (c *Conn) next() (libraryID uint64, err error) {
	for {
		if c.endSeen {
			return c.end()
		}
		line, err := c.stream.ReadLine(c.flush)
		if err != nil {
			c.flush()
			if long, ok := errors.AsType[tooLong](err); ok {
				if libraryID, ok := c.refuseLong(long); ok {
					return libraryID, nil
				}
				continue
			}
			if lost, ok := errors.AsType[callLost](err); ok {
				if libraryID, ok := c.failCall(lost.LostCall()); ok {
					return libraryID, nil
				}
				continue
			}
			c.mu.Lock()
			if c.ended == nil {
				c.ended = err
			}
			err, c.endSeen = c.ended, true
			c.mu.Unlock()
			c.handler.HandleEnd(err)
			continue
		}
		libraryID, ok := c.dispatch(line)
		if len(line) > readChunk {
			c.decode.Reset(nil)
			c.handler.ReleaseMessage()
		}
		if ok {
			return libraryID, nil
		}
	}
}

// end fails the pending calls one by one, then waits until the requests in progress have been answered, and then ends
// the library's reading.
func (c *Conn) end() (libraryID uint64, err error) {
	c.mu.Lock()
	for id, call := range c.calls {
		delete(c.calls, id)
		call.err = c.ended
		c.mu.Unlock()
		return call.libraryID, nil
	}
	err = c.ended
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.life, c.drain)
	defer cancel()
	for c.serving.Load() > 0 && ctx.Err() == nil {
		select {
		case <-c.idle:
		case <-ctx.Done():
		}
	}
	c.handler.HandleDrained()
	if ferr := c.out.flush(ctx); ferr != nil {
		c.log.Debug("the peer ended the stream, answers are unsent", "error", ferr)
	}
	close(c.readDone)
	return 0, err
}

// dispatch handles one line; if that ends a call, it returns the library's id of the call.
func (c *Conn) dispatch(line []byte) (libraryID uint64, ok bool) {
	u, ok := begin(line)
	if ok && u.kind == kindNotification && c.handler.TryNotification(u.method, u.rest) {
		return 0, false
	}
	c.handler.Flush()
	switch {
	case ok && u.kind == kindRequest:
		ok = c.handler.TryRequest(IntID(u.id), u.method, u.rest)
	case ok && u.kind == kindResponse:
		libraryID, ok = c.tryResponse(uint64(u.id), u.rest)
	default:
		ok = false
	}
	if ok {
		return libraryID, u.kind == kindResponse
	}
	env := parse(c.decode, line)
	if env.kind == kindNotification || env.kind == kindRequest {
		c.repaired(string(env.method), &env)
	}
	switch env.kind {
	case kindNotification:
		c.handler.HandleNotification(env.method, env.params)
	case kindRequest:
		c.handler.HandleRequest(env.id, c.decode.Interned(env.method), env.params)
	case kindResponse:
		return c.dispatchResponse(line, &env)
	default:
		return c.dispatchInvalid(line, &env)
	}
	return 0, false
}

// repaired reports a null that was read as absent.
func (c *Conn) repaired(method string, env *envelope) {
	if env.null != "" && c.repair != nil {
		c.repair(method, env.null)
	}
}

// dispatchInvalid answers a line that is not a message. If the line looks like a response, it ends the call instead,
// because no other response would arrive.
func (c *Conn) dispatchInvalid(line []byte, env *envelope) (libraryID uint64, ok bool) {
	if env.bare && c.isCall(env.id) {
		env.broken = errNeither
		return c.dispatchResponse(line, env)
	}
	var id ID
	var response, known bool
	if env.unread {
		id, response, known = RecoverID(ends(line))
	}
	noise := c.noise && (env.failure.Code == codeParse || line[0] != '{')
	framed := isFraming(line)
	if framed {
		env.failure.Message = "Parse error: " + errFramed.Error()
	}
	switch {
	case noise && framed:
		c.handler.HandleInvalid(line, errFramed)
	case noise:
		c.handler.HandleInvalid(line, errNoise)
	default:
		c.handler.HandleInvalid(line, env.failure)
	}
	switch {
	case response:
		return c.failCall(id, fmt.Errorf("malformed response: %s", env.failure.Message))
	case noise:
		return 0, false
	case known && env.failure.Code == codeInvalidRequest:
		env.id = id
	}
	c.Refuse(env.id, env.failure)
	return 0, false
}

// isFraming reports whether a line is a header of the Language Server Protocol, such as "Content-Length: 52".
func isFraming(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimLeft(value, " ")
	return bytes.EqualFold(name, []byte("Content-Length")) && len(value) > 0 && '0' <= value[0] && value[0] <= '9'
}

var (
	errNoise  = errors.New("a line that is not a message")
	errFramed = errors.New("Content-Length is the framing of the Language Server Protocol; a message of ACP is one line")
	// ErrUnknownResponse reports that a response answers no request of this side.
	ErrUnknownResponse = errors.New("a response that answers no request")
	// ErrPeerComplains reports that the peer could not read a message: its error response names no request.
	ErrPeerComplains = errors.New("the peer could not read a message")
)

// tryResponse passes a response to its call, if there is nothing unusual about it.
func (c *Conn) tryResponse(id uint64, rest []byte) (libraryID uint64, ok bool) {
	c.mu.Lock()
	call := c.calls[id]
	delete(c.calls, id) // from now on Abandon leaves it to the reader
	c.mu.Unlock()
	if call == nil {
		return 0, false
	}
	if !call.caller.TryAnswered(rest) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[id] = call
		return 0, false
	}
	call.answered.Store(true)
	return call.libraryID, true
}

// isCall reports whether an id is that of a call of this side, answered or not. A message with such an id and without a
// method is a malformed response. If it were answered with an error, the peer would take that for the answer to one of
// its own requests, since both sides count from 1.
func (c *Conn) isCall(id ID) bool {
	n, ours := callNumber(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	return ours && n <= c.lastCall
}

// dispatchResponse passes a response to its call.
func (c *Conn) dispatchResponse(line []byte, env *envelope) (libraryID uint64, ok bool) {
	n, ours := callNumber(env.id)
	c.mu.Lock()
	call := c.calls[n]
	if ours && call != nil {
		delete(c.calls, call.id)
	}
	late := ours && n <= c.lastCall
	c.mu.Unlock()
	switch {
	case ours && call != nil:
	case late:
		c.log.Debug("late response", "id", n)
		return 0, false
	case env.id.IsNull() && env.failure != nil:
		c.handler.HandleInvalid(line, fmt.Errorf("%w: %w", ErrPeerComplains, env.failure))
		return 0, false
	default:
		c.handler.HandleInvalid(line, ErrUnknownResponse)
		return 0, false
	}
	c.repaired(call.method, env)
	resp := Response{Result: env.result}
	switch {
	case env.broken != nil:
		resp = Response{Err: fmt.Errorf("malformed response to %s: %w", call.method, env.broken)}
	case env.failure != nil:
		resp = Response{Err: env.failure}
	}
	call.answer(resp)
	return call.libraryID, true
}

// refuseLong answers the request, or fails the call, that an overlong message is about.
func (c *Conn) refuseLong(long tooLong) (libraryID uint64, ok bool) {
	head, tail := long.Ends()
	c.handler.HandleInvalid(head, long)
	id, response, known := RecoverID(head, tail)
	if response {
		return c.failCall(id, fmt.Errorf("response: %w", long))
	}
	if !known {
		id = ID{}
	}
	c.Refuse(id, &Error{Code: codeInvalidRequest, Message: "Invalid request: message too long"})
	return 0, false
}

// failCall ends the call with the given id, if there is one: its response cannot be read, or will not arrive.
func (c *Conn) failCall(id ID, reason error) (libraryID uint64, ok bool) {
	n, ours := callNumber(id)
	c.mu.Lock()
	call := c.calls[n]
	if !ours || call == nil {
		c.mu.Unlock()
		return 0, false
	}
	delete(c.calls, n)
	c.mu.Unlock()
	call.answer(Response{Err: reason})
	return call.libraryID, true
}

// Accept makes r the request with the given id. Only the handler calls it, from HandleRequest.
func (c *Conn) Accept(r *Request, id ID, method string) {
	r.ID, r.Method, r.conn = id, method, c
	c.serving.Add(1)
}

// Refuse answers a request that cannot be accepted. Only the reader calls it. It waits only if a flood of refusals is
// unsent.
func (c *Conn) Refuse(id ID, failure *Error) {
	err := c.out.room(c.life, c.flood)
	if err == nil {
		err = c.out.append(unlimited, func(dst []byte) ([]byte, error) { return appendError(dst, &id, failure) })
	}
	if err != nil {
		c.log.Debug("refusal unsent", "error", err)
	}
}

// writeFailed ends a connection that can no longer send. Before that, it gives the peer time to end the connection
// itself, so that everything the peer has sent is still read.
func (c *Conn) writeFailed(err error) {
	c.log.Debug("sending failed", "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return // it is being closed
	}
	c.giveUp = time.AfterFunc(c.drain, func() {
		c.mu.Lock()
		if c.ended == nil {
			c.ended = err
		}
		c.mu.Unlock()
		if _, cerr := c.lib.close(); cerr != nil {
			c.log.Debug("closing", "error", cerr)
		}
	})
}
