// Package engine runs connections: it reads what a peer sends, has it handled in the order that the protocol needs,
// and runs the turns of both sides. It knows no message of the protocol; package acp and its siblings say by Routes
// what each method means. Users see it through packages acp and rpc.
//
// # Who runs
//
//	         the peer
//	   │                  ▲
//	   ▼ lines            │ lines
//	reader              writer             one of each for a connection (package wire)
//	   │                  ▲
//	   │ decides:         │ messages are appended to its buffer, by whoever sends
//	   │                  │
//	   ├─ answer ───────► caller           goroutines of the user: calls, turns, loops over updates
//	   ├─ cancellation ─► contexts end, at once
//	   ├─ request ──────► handler          one goroutine for each request in progress
//	   └─ notification ─► queue ─► worker  one for each session that has notifications waiting
//	                                 │
//	                                 └──► handler, or the loop over the updates of a turn
//
// The reader never runs a handler. It waits for one only where the route says so, as that of initialize does, and for
// room in a queue: that is how a slow side holds the other up. Whatever must not wait, answers and cancellations, it
// acts on at once, ahead of the queues. All goroutines belong to the Conn, which waits for them when it ends.
//
// # In which order
//
// A queue counts its notifications. The position of an answer or a request is how many were queued when it was read;
// the caller gets the answer, and the handler the request, when so many were handled: returned from the handler, or
// given to the loop. That is the only order between the goroutines, and needs no other lock. The reader takes the
// position in pending.note; a call waits for it in pending.barrier, a turn in Conn.awaitTurn, a request in its inbound,
// all by queue.reached.
//
// # Who may wait for whom
//
// A handler of a notification, and the body of a loop over updates, is a holder: while it runs, what is behind it waits.
// If it calls the peer, only the reader can bring the answer, so the reader must not wait for it then. The context that
// a holder is given marks its calls. While there is one, the holder's queue grows beyond QueueBytes, up to QueueLimit,
// where the call fails with ErrOverflow. Requests of the session do not wait for such a holder either, because the peer
// may need their answer first. A call of a loop's body with another context cannot be told from anybody's: while any
// caller waits, a loop's queue grows too, and at the limit the loop ends, with ErrOverflow; neither a call nor a turn of
// somebody else is ever ended for it, unless all loops together have reached their limit.
//
// # What a connection holds
//
// The peer decides how much comes, and when it reads what goes, so each kind of message that is held has its part of
// MaxBytes. No part waits for another one:
//
//	requests in progress     the next one is refused: the reader must go on, for what a handler waits for
//	answers                  Reserve waits, in the order of asking, for those who have reserved before
//	queues                   the reader waits for handlers, while none of them waits for a call
//	loops                    the worker, and then the reader, waits for loops, while nobody waits for a call
//	unsent messages          who sends waits for the peer to read; the reader only when a flood of its own answers is unsent
//
// What is alone in its part always passes, so that every message does, sooner or later. A cancellation, whichever side
// sends it, and an answer to a call of this side need no room. So the only waiting on the peer is that of senders, and
// who has reserved waits for nothing else: when both sides are full, each still reads, and what it reads is refused,
// or answers what somebody waits for.
//
// An answer has room in the writer when what is unsent, and what others are about to append, leaves some; see
// wire.Request.TakeRoom. Otherwise all that wait would append when there is room for one. The reservation ends when
// the answer is appended, because so few are there: one that is written, and one that waits for that.
//
// # Where the rules are
//
// A file uses only files above it in this list, so each can be read without those below:
//
//	locks, errors, values, tasks   errors and answers, JSON values of any type, goroutines
//	calls, budget                  holders and the calls they wait for, room for answers
//	config, route                  what the owner of a connection sets
//	queue, flow                    order and byte limits: of a session's notifications, of a loop's updates
//	session                        the turns of one session, and their cancellation
//	conn                           a connection: its sessions, and all of the above together
//	report, middleware             what the owner is told, and what the owner puts around calls
//	request                        a request of the peer, up to its answer
//	call, method                   a call of this side; typed methods
//	follow, turn, keep             turns of this side, their ends, turns of the peer beyond their requests
//	notification                   from the reader to a queue, and from there to a handler or a loop
//	reader, start, rpc             what the reader decides; how a connection begins and ends
//
// Up to session nothing knows a connection. What happens to the turns of a session, and to the questions that belong to
// them, is session.step: one function from an event to the session's next state and what is to be done, under one lock;
// Conn.carryOut does it, without the lock. A turn of this side is in one of these phases, see phase:
//
//	                           ┌──► recalling ──┐
//	                           │                ▼
//	waiting ──► sending ──► running ──────► cancelling ──► finished
//
// A cancellation makes a step, and whoever made the step sends session/cancel before it returns, behind the request and
// ahead of all that its caller sends next; whoever cancels the same turn meanwhile waits for that. A turn is over for
// its caller only when no cancellation of it is still to be sent.
//
// A turn that the peer holds behind another one is recalled instead: $/cancel_request is sent in the same way. Its
// answer may say that it has begun all the same. Then the reader sends session/cancel. Turns that are begun after the
// recall are sent when the answer has come, or CancelGrace has passed, so that they come behind that too.
//
// # Locks
//
// There are five kinds, and a goroutine takes them in this order only; see locks_race.go:
//
//  1. inbound.mu, while one request's answer is written, so that a cancellation comes before or behind it
//  2. Conn.mu, the sessions' states, and the requests in progress
//  3. callsInFlight.mu, the calls that holders wait for
//  4. queue.mu, one session's queue
//  5. flow.mu, what waits for one loop
//
// No other lock is taken while that of tasks or of reserving is held.
// The locks of package wire come behind these. Functions of users are called with none of them held.
// Under the race detector TestLockOrder checks the order of every lock in this list.
package engine
