// Package rpc is what lies below the Agent Client Protocol: transports, errors, options and hooks, extension
// methods, and raw calls. It knows no message of the protocol; package acp, which authors of agents and
// clients use, adds those.
//
// A [Conn] runs over a [Transport]; every connection of package acp has one. What it calls goes through
// [RequestMethod] and [NotificationMethod], or by name through [Call] and [Notify]; what it serves beside the
// protocol are [Extensions].
//
// # Transports
//
// [Stdio], [Command], [IO] and [Pipe] make transports that carry a message a line. Another one needs a type
// with Connect, and a [Stream] that reads a message, writes a message and closes. What makes a stream fast is
// optional: a [FastStream] writes many messages at once, writes a short one without waiting, and says when it
// waits for more; a [HalfCloser] ends its output and still reads. A stream that looks at the messages of
// another, or changes them, is made by [Wrap], which passes all of that on.
//
// # Rules
//
// A connection keeps these, and its tests show it:
//
//  1. It runs one reader, one writer, one worker for each session that has notifications waiting, and
//     one goroutine for each request in progress; some that are done wait for the next, so that a
//     handler that locks its thread must unlock it. Close ends them all, and Wait returns after them.
//  2. The notifications of one session are handled in order. An answer reaches its caller, and a
//     request its handler, after the notifications of its session that came before. What is called
//     from inside a notification handler does not wait for that handler; while that handler waits for
//     a call, no request of the session, and nothing that a request's handler calls, waits for it.
//  3. A session's queue is bounded, and so are all together. When one is full nothing more is read
//     until there is room; nothing is dropped. If its handler itself waits for a call, or until it can
//     send a notification, the queue grows to a hard limit instead, at which that call fails with
//     [ErrOverflow].
//  4. Cancellations and answers are acted on as soon as they are read. A turn can be cancelled from
//     the moment its request was read; cancelling an idle session does nothing.
//  5. A turn that was cancelled is answered as cancelled, whatever error its handler returns. What its
//     handler sent comes before the answer, what [AfterResponse] sends comes after. The work of a turn
//     that its answer only begins is cancelled in the same way.
//  6. Cancelling a turn of this side tells the peer, answers what waits for
//     this side's user as cancelled, and nothing otherwise that the peer reads behind the cancellation,
//     still takes updates, and waits for the answer, for a bounded time. Where the answer only begins
//     the turn, what ends it is waited for as the answer is.
//  7. Ending the context of any other call sends $/cancel_request; a late answer is absorbed. An
//     incoming $/cancel_request ends the handler's context.
//  8. What is not served, or not at the time, is refused: method not found, or what the protocol says.
//  9. A line that is no JSON is answered with −32700, a message that is none and a batch with −32600,
//     an unknown method with −32601, wrong parameters with −32602 and a pointer, a failing handler
//     with −32603 and nothing of ours. The connection lives on, and a request is answered once. A
//     response that is malformed, or has neither result nor error, ends its call with an error, and is
//     not answered.
//  10. Messages are bounded in length and depth; a longer one is refused and skipped. The time that one
//     takes grows as its length does, whatever is in it. Of memory a connection allocates at most 12
//     bytes for each byte that it reads and 2 KiB for each line, and for parameters and results what
//     package codec says besides, twice if they are not the last member of their message. Errors repeat at most some hundred bytes of what the peer sent.
//  11. Ids are echoed as they came: strings, numbers, null.
//  12. When the peer ends the stream, calls fail at once with an error that matches [ErrClosed] and
//     says why; requests received before are still answered, for a while.
//  13. A subprocess has a group of its own, which is ended with the connection: by the end of its
//     input, then asked, then by force.
//  14. Errors are [Error]; errors.Is compares codes. Others are hidden from the peer unless [Public].
//  15. Diagnostics go to log/slog: without a logger only warnings, to the default one. [Hooks] watch and wrap.
package rpc
