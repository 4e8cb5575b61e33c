//go:build race

package engine

import "sync"

// rank is the position of a lock in the order in which a goroutine may take several: each must have a higher rank than
// all that it holds. The wire's locks come after all of these; with one held, the wire calls nothing of the engine
// except pending.Sent.
type rank int

const (
	rankAnswer rank = iota + 1 // inbound.mu: one request's answer
	rankConn                   // Conn.mu: the sessions and their turns, the requests in progress
	rankCalls                  // callsInFlight.mu: the calls that holders wait for
	rankQueue                  // queue.mu: one session's queue
	rankFlow                   // flow.mu: the updates waiting for one loop
)

// The locks of each rank, which tests can observe. Without the race detector they are plain mutexes, because a generic
// method is not inlined, which costs 3 % of a round trip.
type (
	answerLock = lock[ofAnswer]
	connLock   = lock[ofConn]
	callsLock  = lock[ofCalls]
	queueLock  = lock[ofQueue]
	flowLock   = lock[ofFlow]
)

// lockHook, if set, is called for every lock that is taken or released. Tests set it to check the order.
var lockHook func(r rank, taken bool)

// lock is a mutex with a rank.
type lock[R interface{ rank() rank }] struct{ mu sync.Mutex }

func (l *lock[R]) Lock() {
	if lockHook != nil {
		var r R
		lockHook(r.rank(), true)
	}
	l.mu.Lock()
}

func (l *lock[R]) Unlock() {
	if lockHook != nil {
		var r R
		lockHook(r.rank(), false)
	}
	l.mu.Unlock()
}

type (
	ofAnswer struct{}
	ofConn   struct{}
	ofCalls  struct{}
	ofQueue  struct{}
	ofFlow   struct{}
)

func (ofAnswer) rank() rank { return rankAnswer }
func (ofConn) rank() rank   { return rankConn }
func (ofCalls) rank() rank  { return rankCalls }
func (ofQueue) rank() rank  { return rankQueue }
func (ofFlow) rank() rank   { return rankFlow }
