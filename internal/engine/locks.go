// This file owns the locks of a connection and their order.

package engine

// rank is the place of a lock in the order in which a goroutine may take several: only one of a higher rank than
// all that it holds. The wire's locks come behind all of these; the wire calls nothing of the engine's with one
// held but pending.Sent.
type rank int

const (
	rankAnswer rank = iota + 1 // inbound.mu: one request's answer
	rankConn                   // Conn.mu: the sessions and their turns, the requests and calls in progress
	rankQueue                  // session.mu: one session's queue
	rankFlow                   // flow.mu: what waits for one loop over updates
)
