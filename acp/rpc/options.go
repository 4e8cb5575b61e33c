package rpc

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/wire"
)

// Options tunes a connection. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// Logger receives diagnostics, such as mistakes of handlers that the peer does not see. Nil means that warnings and
	// errors go to slog.Default.
	Logger *slog.Logger
	// Hooks observe the connection.
	Hooks Hooks
	// MaxRequests is how many requests of the peer may be in progress; one more is refused with an error. The default
	// is 4096.
	MaxRequests int
	// MaxBytes bounds the messages that the connection holds, whatever the peer sends and however slowly it reads. The
	// default is 256 MiB. A message counts as its text plus 64 bytes for each element of its lists and maps, because
	// values take more memory than their text. The parts are:
	//
	//   - A half of MaxBytes for requests in progress, from when they are read until they are answered and their
	//     handlers have returned. Each counts as an additional 8 KiB. A request beyond that is refused with an error;
	//     cancellations and the answers to this side's calls always pass.
	//   - An eighth for the answers that handlers have announced with [Reserve], which blocks if there is no room.
	//     Answers are handed to the writer one at a time. Memory that handlers hold without Reserve is not counted.
	//   - QueueLimit, an eighth, for notifications that wait for their handlers.
	//   - Twice QueueLimit, a quarter, for updates that wait for loops over turns. For each such turn up to 1/64 of
	//     QueueBytes is not counted.
	//
	// In each of these parts, a single message may be as long as the transport allows. In addition there are the
	// message that is being read, up to two that are being sent, a sixteenth of MaxBytes of refusals that are unsent,
	// and one answer for each of this side's calls. The elements of one message may count for at most a quarter of
	// MaxBytes; a message with more is invalid. Go's garbage collector lets the heap grow to twice the memory in use;
	// see GOGC.
	MaxBytes int
	// QueueBytes is how much of one session's notifications may wait for their handler before nothing more is read; 0
	// means 1/64 of MaxBytes, 4 MiB. A single message may exceed it. All sessions together may have four times as much,
	// and MaxRequests sessions may have notifications waiting. The same limits apply to the updates that wait for a
	// loop over a turn's updates, and to all loops together.
	QueueBytes int
	// QueueLimit is how far such a queue, and the total of all queues, may grow while its own handler waits for a call,
	// which could otherwise never be answered. At the limit the call fails with ErrOverflow. In that state, additional
	// sessions may have notifications waiting: as many as fit in it at 8 KiB each. The same holds for the updates that
	// wait for a loop over a turn's updates whose body makes calls with the turn's context; all loops together have
	// twice as much. 0 means an eighth of MaxBytes, 32 MiB.
	QueueLimit int
	// DrainTime bounds how long requests may still be answered, and notifications handled, after the peer has ended the
	// stream. Then the contexts of their handlers end. The default is 1 s: clients wait about 2 s before they kill an
	// agent, and the rest of that time is for the handlers and for the agent's own shutdown.
	DrainTime time.Duration
	// CloseTime bounds how long the end of a connection, by Close or by the peer, waits for handlers whose contexts
	// have ended and for unsent messages, together. If a handler is still running after that, the connection stops
	// waiting for it, and Close and Wait return ErrStuck. The default is 5 s.
	CloseTime time.Duration
	// CancelGrace is how long a cancelled turn waits for the agent's answer. The default is 30 s.
	CancelGrace time.Duration
	// SkipNoise skips lines that do not look like the beginning of JSON, such as output that agents print by mistake.
	// They are reported to Hooks.Invalid and not answered.
	SkipNoise bool
	// ConcurrentTurns lets a session have more than one turn at a time, for agents that queue prompts or add them to
	// the running turn. Otherwise a second prompt is refused.
	ConcurrentTurns bool
}

// Hooks are functions that the connection calls, from several goroutines at once. They must be quick, and must not call
// the peer; only Serve and Call may block, like the functions that they wrap. Each may be nil.
type Hooks struct {
	// Repair is called for each part of a message that is wrong and was dropped, replaced or kept anyway, with the
	// method of the message.
	Repair func(method string, repair codec.Repair)
	// Invalid is called for input that was refused, ignored or skipped: lines that are not a JSON-RPC message,
	// responses that answer no call, notifications that cannot be decoded. line is the line, its beginning, or the
	// parameters of a notification; it is valid during the call, and nil if it is not known. reason repeats its first
	// 256 bytes.
	Invalid func(line []byte, reason error)
	// Message is called for every message, as it is on the wire. The bytes are valid only during the call.
	Message func(sent bool, message []byte)
	// Panic is called when a handler panics. The peer only sees an internal error.
	Panic func(method string, value any, stack []byte)

	// Serve wraps every handler, and every delivery of an update to the loop over a turn. Call wraps every call to the
	// peer, including turns and notifications. See Middleware.
	Serve, Call Middleware

	// Start lets hooks keep state for each connection, because one Hooks may serve many connections. It is called once
	// for each connection, before anything is sent or read, with the connection and these hooks. It returns the hooks
	// that the connection uses, which usually wrap the given ones. conn may be kept, but must not be used before Start
	// has returned.
	Start func(conn *Conn, hooks Hooks) Hooks
	// End is called once when the connection is over, before Done is closed.
	End func()
}

// bind returns the hooks of one connection.
func (h Hooks) bind(conn *Conn) Hooks {
	start := h.Start
	if start == nil {
		return h
	}
	h.Start = nil
	return start(conn, h)
}

// Middleware is a function around a handler or a call. It calls next, which runs the handler or makes the call, at most
// once, with ctx or a context made from it, and returns next's error or another one; an error returned without calling
// next refuses the call. A second call of next fails. It may look at call, and change it where its fields say so.
//
// Serve is called for messages that reach a handler or a loop, and for updates that have neither. It is not called for
// messages that were refused earlier, for example because the method is not served or the parameters are wrong, nor for
// other notifications without a handler, nor for $/cancel_request. Hooks.Repair is called for errors in the parameters
// before Serve is called. While initialize is being served nothing else is read, so Serve must then be quick and must
// not call the peer.
//
// Call is not called for calls that this side refuses to send, for example because the peer did not advertise the
// method. For a turn, next returns when the turn is over and all of its updates have been handled or given to its loop.
//
// A cancellation does not go through Call if it is sent because a context has ended, or by the Cancel method of a turn.
// One sent by the Cancel method of a session or a connection does, and the turns that it cancels do not end before Call
// returns.
//
// For a request handler, the error that next returns includes the one that the peer will get: errors.AsType finds that
// *Error, and errors.Is and errors.As find the error that the handler returned. It is nil for a turn that was
// cancelled, and for a question of such a turn, because the answer is then a result, regardless of what the handler
// returned.
type Middleware func(ctx context.Context, call *CallInfo, next func(context.Context) error) error

// CallInfo describes the call or the request that a Middleware wraps.
type CallInfo struct {
	// Method is the method's name.
	Method string
	// ID is the id of the request. It is null for a notification, and for an outgoing call until next has returned or
	// if the call was not sent.
	ID ID
	// Incoming reports whether this side serves the call.
	Incoming bool
	// Notification reports whether the call is a notification, which has no answer.
	Notification bool
	// Session is the session id in the parameters, or "".
	Session string
	// Size is the length of the text of the parameters, in bytes: as received, or as it would be sent without changes.
	Size int
	// Meta is the _meta of the parameters, or nil. In an outgoing call, the members that a Middleware sets there before
	// it calls next are added to the _meta of the parameters, replacing members of the same name. Parameters that were
	// left out, or are null, become an object whose only member is _meta. To remove a member, change Params. In an
	// incoming call a change has no effect.
	Meta codec.Meta
	// NoMeta reports whether the parameters of an outgoing call cannot hold _meta, for example because they are an
	// array. If a Middleware sets a member anyway, next fails with a *codec.Error, and nothing is sent. Only calls by
	// name can have such parameters.
	NoMeta bool
	// Params holds the parameters: a pointer to the generated type, the value that was passed to Call or Notify, or a
	// json.RawMessage for a fallback. The value that it points to may be changed before next is called, and Params may
	// be replaced by a value of the same type, which is not checked again.
	Params any
	// Result is set by next, unless it fails: a pointer to the generated type. The value that it points to may be
	// changed afterwards, and Result may be replaced by a value of the same type.
	Result any
}

// config returns the options for the engine, with the hooks of the connection.
func (o *Options) config(hooks Hooks) engine.Config {
	return engine.Config{
		Logger:          cmp.Or(o.Logger, wire.DefaultLogger()),
		MaxRequests:     o.MaxRequests,
		MaxBytes:        o.MaxBytes,
		QueueBytes:      o.QueueBytes,
		QueueLimit:      o.QueueLimit,
		DrainTime:       o.DrainTime,
		CloseTime:       o.CloseTime,
		CancelGrace:     o.CancelGrace,
		SkipNoise:       o.SkipNoise,
		ConcurrentTurns: o.ConcurrentTurns,
		Repair:          hooks.Repair,
		Invalid:         hooks.Invalid,
		Panic:           hooks.Panic,
		Serve:           hooks.Serve.engine(),
		Call:            hooks.Call.engine(),
		End:             hooks.End,
		Errors: engine.Errors{
			Answered: func(method string, e *engine.Error) error {
				return &CallError{Method: method, Err: fromWire(e)}
			},
			Visible:          visible,
			RequestCancelled: ErrRequestCancelled,
		},
	}
}

func (m Middleware) engine() engine.Middleware {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, call *engine.Call, next func(context.Context) error) error {
		return m(ctx, (*CallInfo)(call), func(ctx context.Context) error {
			err := next(ctx)
			if err == nil || !call.Incoming || call.Notification {
				return err
			}
			return &servedError{ErrorOf(err), err}
		})
	}
}

// servedError is the error that a handler returned, and the one that the peer gets.
type servedError struct {
	visible *Error
	err     error
}

func (e *servedError) Error() string   { return e.err.Error() }
func (e *servedError) Unwrap() []error { return []error{e.visible, e.err} }
