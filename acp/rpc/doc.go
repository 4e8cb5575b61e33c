// Package rpc is the layer below the Agent Client Protocol: transports, errors, options and hooks, extension methods,
// and raw calls. It does not define the protocol's messages; package acp adds those.
//
// A [Conn] runs over a [Transport]; every connection of package acp has one. Call methods with the typed
// [RequestMethod] and [NotificationMethod], or by name with [Call] and [Notify]. [Extensions] serve methods outside the
// protocol.
//
// # Transports
//
// [Stdio], [Command], [IO] and [Pipe] return transports that carry one message per line. A custom transport is a type
// with Connect, and a [Stream] that reads a message, writes a message and closes. Two optional interfaces make a stream
// faster or more capable: a [FastStream] writes many messages at once, and reports when it waits for more; a
// [HalfCloser] ends its output and still reads. [Wrap] makes a stream that inspects or changes the messages of another
// stream, and keeps all of these features.
//
// # Rules
//
// Every connection follows these rules, each of which is tested:
//
//  1. A connection runs one reader, one writer, one worker for each session that has notifications waiting, and one
//     goroutine for each request in progress. Goroutines are reused, so a handler that locks its thread must unlock it.
//     Close ends them all, and Wait returns after they have ended, or with [ErrStuck] if handlers do not end in time.
//  2. The notifications of one session are handled in order. The caller of a call gets the answer, and a handler gets a
//     request, after the notifications of the session that arrived before it have been handled. A call from inside a
//     notification handler does not wait for that handler. While that handler waits for a call, the requests of its
//     session, and the calls of their handlers, do not wait for it either.
//  3. The queue of each session is bounded, and so is the total of all queues. When one is full, nothing more is read
//     until there is room; nothing is dropped. While the session's own handler waits for a call, or to send a
//     notification, the queue may grow to a hard limit; at that limit the call fails with [ErrOverflow]. The requests
//     in progress are bounded in number and in bytes: further requests are refused. Large answers are produced one at a
//     time; see [Reserve]. [Options].MaxBytes bounds what a connection holds.
//  4. Cancellations and answers are acted on as soon as they are read. A turn can be cancelled as soon as its request
//     has been read; cancelling an idle session does nothing.
//  5. A turn that was cancelled is answered as cancelled, whatever its handler returns. Messages that its handler sent
//     come before the answer, and those that [AfterResponse] sends come after it. If the answer only begins the turn,
//     the work after the answer is cancelled in the same way.
//  6. When this side cancels a turn, it notifies the peer, and answers the permission requests of the session as
//     cancelled; it sends no other answer to them afterwards. Updates are still accepted, and the connection waits for
//     the answer, for a bounded time. If the answer only begins the turn, it waits for the turn's end in the same way.
//  7. Ending the context of any other call sends $/cancel_request; a late answer is dropped. An incoming
//     $/cancel_request ends the context of the handler.
//  8. A request for a method that is not served, or not at that time, is refused with "method not found" or with the
//     error that the protocol requires.
//  9. A line that is not JSON is answered with −32700; JSON that is not a JSON-RPC message, or that is a batch, with
//     −32600; an unknown method with −32601; wrong parameters with −32602 and a JSON pointer; a failing handler with
//     −32603 and no details. The connection continues, and each request is answered once. A response that is malformed,
//     or has neither result nor error, ends its call with an error, and is not answered.
//  10. Messages are bounded in length and depth; a longer one is refused and skipped. The time to process a message is
//     proportional to its length. A connection allocates at most 12 bytes for each byte that it reads, 2 KiB for each
//     line, and for parameters and results the amount that package codec documents, twice if they are not the last
//     member of their message. Errors repeat at most a few hundred bytes of the peer's message.
//  11. Ids are sent back unchanged: strings, numbers, null.
//  12. When the peer ends the stream, calls fail at once with an error that matches [ErrClosed] and gives the reason.
//     Requests received before that are still answered, for a bounded time.
//  13. A subprocess has its own process group, which ends with the connection: its input is closed, then it is asked to
//     end, then it is killed.
//  14. An [Error] is sent to the peer unchanged. The text of any other error is not sent, unless [Public] wraps it.
//  15. Diagnostics go to log/slog; without a logger, warnings and errors go to the default one. [Hooks] observe the
//     connection and wrap handlers and calls; Hooks.Start creates the hooks of one connection.
package rpc
