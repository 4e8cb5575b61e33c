// Package engine runs connections: it reads messages from a peer, has them handled in the order that the protocol
// requires, and runs the turns of both sides. It does not know the messages of the protocol: package acp and its
// siblings define with Routes what each method means. Users see it through packages acp and rpc.
//
// # Who runs
//
//	         the peer
//	   │                  ▲
//	   ▼ lines            │ lines
//	reader              writer             one of each for a connection (package wire)
//	   │                  ▲
//	   │ decides:         │ senders append messages to its buffer
//	   │                  │
//	   ├─ answer ───────► caller           goroutines of the user: calls, turns, loops over updates
//	   ├─ cancellation ─► contexts end, at once
//	   ├─ request ──────► handler          one goroutine for each request in progress
//	   └─ notification ─► queue ─► worker  one for each session that has notifications waiting
//	                                 │
//	                                 └──► handler, or the loop over the updates of a turn
//
// The reader never runs a handler. It waits for a handler only if its route says so, like that of initialize, and for
// room in a queue: this is how a slow side slows the other one down. It acts on answers and cancellations at once,
// ahead of the queues, because these must not wait. All goroutines belong to the Conn, which waits for them when it
// ends.
//
// # In which order
//
// A queue counts its notifications. The position of an answer or a request is how many were queued when it was read;
// the caller gets the answer, and the handler the request, when that many have been handled, which means that the
// handler has returned or the loop has received them. This is the only order between the goroutines, and needs no other
// lock. The reader takes the position in pending.note; a call waits for it in pending.barrier, a turn in
// Conn.awaitTurn, a request in its inbound; all of them use queue.reached.
//
// # Who may wait for whom
//
// A handler of a notification, and the body of a loop over updates, is a holder: while it runs, everything after it
// waits. If it calls the peer, only the reader can deliver the answer, so the reader must not wait for the holder. The
// holder's context marks its calls. During such a call, the holder's queue grows beyond QueueBytes, up to QueueLimit,
// where the call fails with ErrOverflow. Requests of the session do not wait for such a holder either, because the peer
// may need their answer first. If a loop's body makes a call with another context, the call cannot be attributed to the
// loop: while any caller waits, a loop's queue grows too, and at the limit the loop ends with ErrOverflow. No other
// call or turn is ever ended for it, unless all loops together have reached their limit.
//
// # What a connection holds
//
// The peer decides how much it sends, and when it reads, so each kind of message that the connection holds has its part
// of MaxBytes. No part waits for another one:
//
//	requests in progress     the next one is refused: the reader must continue, because handlers may wait for it
//	answers                  Reserve waits, in order of arrival, for earlier reservations
//	queues                   the reader waits for handlers, while none of them waits for a call
//	loops                    the worker, and then the reader, waits for loops, while no one waits for a call
//	unsent messages          senders wait for the peer to read; the reader only when a flood of its own answers is unsent
//
// A message that is alone in its part always passes, so every message passes sooner or later. Cancellations, from
// either side, and answers to calls of this side need no room. Therefore only senders wait for the peer, and a handler
// that has reserved room waits for nothing else: when both sides are full, each still reads, and what it reads is
// either refused or the answer to a waiting call.
//
// An answer has room in the writer if the unsent messages, and those that others are about to append, leave some; see
// wire.Request.TakeRoom. Otherwise all waiting answers would be appended as soon as there is room for one. The
// reservation ends when the answer is appended, because few answers are there at a time: one that is being written, and
// one that waits for it.
//
// # Where the rules are
//
// A file uses only files above it in this list, so each can be read without those below it:
//
//	locks, errors, values          errors and answers, JSON values of any type
//	tasks, context                 goroutines and contexts of handlers
//	calls, budget                  holders and the calls they wait for, room for answers
//	config, route                  what the owner of a connection sets
//	queue, flow                    order and byte limits: of a session's notifications, of a loop's updates
//	session                        the turns of one session, and their cancellation
//	conn                           a connection: its sessions, and all of the above together
//	report, middleware             reports to the owner, and what the owner puts around calls
//	request                        a request of the peer, up to its answer
//	call, method                   a call of this side; typed methods
//	follow, turn, keep             turns of this side, their ends, turns of the peer beyond their requests
//	notification                   from the reader to a queue, and from there to a handler or a loop
//	reader, start, rpc             what the reader decides; how a connection begins and ends
//
// The files up to session do not know the connection. session.step decides what happens to the turns of a session, and
// to the questions that belong to them: it is one function from an event to the session's next state and its effects,
// under one lock; Conn.carryOut carries the effects out, without the lock. A turn of this side is in one of these
// phases, see phase:
//
//	                           ┌──► recalling ──┐
//	                           │                ▼
//	waiting ──► sending ──► running ──────► cancelling ──► finished
//
// A cancellation makes a step, and the goroutine that made the step sends session/cancel before it returns, after the
// turn's request and before anything that its caller sends next; other goroutines that cancel the same turn in the
// meantime wait for that. A turn is over for its caller only when none of its cancellations is still to be sent.
//
// A turn that the peer holds until an earlier one ends is recalled instead: $/cancel_request is sent in the same way.
// Its answer may report that the turn has begun nevertheless; then the reader sends session/cancel. Turns that are
// begun after the recall are sent when the answer has arrived, or CancelGrace has passed, so that they follow that
// cancellation too.
//
// # Locks
//
// There are five kinds, and a goroutine takes them only in this order; see locks_race.go:
//
//  1. inbound.mu, while one request's answer is written, so that a cancellation comes either before or after it
//  2. Conn.mu, the sessions' states, and the requests in progress
//  3. callsInFlight.mu, the calls that holders wait for
//  4. queue.mu, one session's queue
//  5. flow.mu, the updates waiting for one loop
//
// While the lock of tasks, of reserving or of a context is held, no other lock is taken. The locks of package wire come
// after these. Functions of users are called with none of them held. Under the race detector, TestMain
// checks the order of every lock in this list.
package engine
