// Package rpc is the layer below the Agent Client Protocol: transports, errors, options and hooks, extension
// methods, and raw calls. It knows no message of the protocol; package acp adds those.
//
// A [Conn] runs over a [Transport]; every connection of package acp has one. Methods are called by
// [RequestMethod] and [NotificationMethod], which have types, or by their names with [Call] and [Notify].
// [Extensions] serve methods that are not the protocol's.
//
// # Transports
//
// [Stdio], [Command], [IO] and [Pipe] make transports that carry one message a line. A transport of your own is a
// type with Connect, and a [Stream] that reads a message, writes a message and closes. What makes a stream fast is
// optional: a [FastStream] writes many messages at once, writes a short one without waiting, and says when it waits
// for more; a [HalfCloser] ends its output and still reads. [Wrap] makes a stream that looks at the messages of
// another one, or changes them, and passes all of that on.
//
// # Rules
//
// Every connection follows these rules; tests show each of them:
//
//  1. A connection runs one reader, one writer, one worker for each session that has notifications waiting, and one
//     goroutine for each request in progress. Goroutines are used again, so a handler that locks its thread must
//     unlock it. Close ends them all, and Wait returns after them, or with [ErrStuck] if handlers do not end in time.
//  2. The notifications of one session are handled in order. The answer to a call is given to its caller, and a
//     request to its handler, after the notifications of its session that came before it were handled. A call from
//     inside a notification handler does not wait for that handler. While that handler waits for a call, the
//     requests of its session, and the calls of their handlers, do not wait for it either.
//  3. The queue of a session is bounded, and so are all queues together. When one is full, nothing more is read until
//     there is room; nothing is dropped. While the session's own handler waits for a call, or to send a notification,
//     the queue may grow to a hard limit; at that limit the call fails with [ErrOverflow]. The requests in progress are
//     bounded in number and in bytes: one more is refused. Large answers are made one after the other, see [Reserve].
//     [Options].MaxBytes says what a connection holds at most.
//  4. Cancellations and answers are acted on as soon as they are read. A turn can be cancelled from the moment when its
//     request was read; cancelling an idle session does nothing.
//  5. A turn that was cancelled is answered as cancelled, whatever its handler returns. What its handler sent comes
//     before the answer, what [AfterResponse] sends comes after it. If the answer only begins the turn, the work after
//     the answer is cancelled in the same way.
//  6. When this side cancels a turn, the peer is told, and the permission requests of the session are answered as
//     cancelled; no other answer to them is sent afterwards. Updates are still accepted, and the answer is waited for,
//     for a bounded time. If the answer only begins the turn, its end is waited for in the same way.
//  7. Ending the context of any other call sends $/cancel_request; a late answer is dropped. An incoming
//     $/cancel_request ends the context of the handler.
//  8. A request for a method that is not served, or not served now, is refused: with method not found, or with the
//     error that the protocol asks for.
//  9. A line that is not JSON is answered with −32700; JSON that is not a JSON-RPC message, and a batch, with −32600; an
//     unknown method with −32601; wrong parameters with −32602 and a JSON pointer; a failing handler with −32603 and
//     no details. The connection goes on, and each request is answered once. A response that is malformed, or has
//     neither result nor error, ends its call with an error, and is not answered.
//  10. Messages are bounded in length and depth; a longer one is refused and skipped. The time that a message takes is
//     proportional to its length. A connection allocates at most 12 bytes for each byte that it reads, 2 KiB for each
//     line, and for parameters and results what package codec says, twice if they are not the last member of their
//     message. Errors repeat at most some hundred bytes of what the peer sent.
//  11. Ids are sent back as they came: strings, numbers, null.
//  12. When the peer ends the stream, calls fail at once with an error that matches [ErrClosed] and says why. Requests
//     that were received before are still answered, for a bounded time.
//  13. A subprocess has a process group of its own, which ends with the connection: its input is closed, then it is
//     asked to end, then it is killed.
//  14. An [Error] is sent to the peer as it is. The text of any other error is not sent, unless [Public] wraps it.
//  15. Diagnostics go to log/slog; without a logger, warnings and errors go to the default one. [Hooks] watch the
//     connection and wrap handlers and calls; Hooks.Start makes those of one connection.
package rpc
