// The state of a session beside its queue: the turns of both sides and the questions that belong to them. All of it
// changes in step, which is where the rules of turns and their cancellation stand. It knows no connection: whoever makes
// a step carries its effects out.

package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

// session is what the connection knows of one session, or, under "", of everything that belongs to none. Sessions
// come and go with traffic.
type session struct {
	id         string
	concurrent bool // the peer may have several turns at a time

	queue // has a lock of its own

	// Guarded by Conn.mu, changed by step.
	incoming  []*incoming     // turns of the peer's in progress, and those whose answer is being sent
	questions []*incoming     // the peer's questions in progress that a cancelled turn answers
	outgoing  []*outgoingTurn // turns of this side in progress, in the order in which they were begun
}

// active reports whether anything but notifications is going on; Conn.mu is held.
func (s *session) active() bool { return len(s.incoming)+len(s.questions)+len(s.outgoing) > 0 }

// incoming is a request of the peer's in progress, or a turn that no request has asked for, as its session knows it. It
// carries the handler's context; inbound is the context itself.
type incoming struct {
	context.Context
	cancel   context.CancelCauseFunc
	route    *Route
	question question      // the request; nil for a turn that no request has asked for
	ends     []*incoming   // the turns that are answered first
	done     chan struct{} // of a turn: closed when the answer was sent, and the turn is over
	entered  chan struct{} // of a turn beside others: closed when EnterTurn has called for it

	freed     bool        // its session may take the next turn; guarded by Conn.mu
	cancelled atomic.Bool // the turn was; set with Conn.mu held
}

// A question is a request that is answered as cancelled when the turn of this side that it belongs to is cancelled.
type question interface {
	// withdraw takes the request away from its handler, and reports whether the caller must call answerCancelled.
	withdraw() bool
	answerCancelled()
}

// TurnSpec says how a turn runs.
type TurnSpec struct {
	// Session is the id of the session that the turn belongs to.
	Session string
	// CancelMethod and CancelParams are the notification that cancels it.
	CancelMethod string
	CancelParams any
	// Cancelled makes the result of a turn that was cancelled before its request was sent, see Route.Cancelled. Without
	// it such a turn fails with ErrTurnCancelled.
	Cancelled func(result any) any
}

// outgoingTurn is a turn of this side in progress.
type outgoingTurn struct {
	spec    TurnSpec
	session *session
	feed    func(params any, size int) bool // reports whether it has taken an update; nil: nobody reads updates
	inside  <-chan struct{}                 // closed when a notification handler waits for the end
	left    bool                            // it was taken out of its session; used by whoever runs it
	unsent  bool                            // its request could not be sent; used by whoever runs it

	// Guarded by Conn.mu; see session.step.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	phase    phase
	wanted   bool                  // it was cancelled before its request was on its way
	told     bool                  // together with the session, and who did that tells the peer
	settled  chan struct{}         // closed when its request was sent, or could not be
	posted   chan struct{}         // of a cancelled turn: closed when its cancellation is on its way, if there is one
	recalled chan struct{}         // of a turn that was recalled: closed when it is known to be over, or cancelled
	first    uint64                // the notifications of the session that came before it
	ended    bool                  // what ends it was read,
	last     uint64                // and before that these notifications of the session
	accepted bool                  // the answer has come, of a turn that goes on after it
	request  interface{ cancel() } // set when its request is sent

	behind []<-chan struct{} // what its request waits for; set when it is begun

	// Of a turn that goes on after its answer, see TurnEnd.
	endRead  chan struct{}         // closed when what ends it was read; nil: its answer ends it
	notified func(params any) bool // reports the end; the reader's
}

// phase is how far a turn of this side is.
//
//	                           ┌──► recalling ──┐
//	                           │                ▼
//	waiting ──► sending ──► running ──────► cancelling
//	   │           │           │                │
//	   └───────────┴───────────┴────────────────┴──► finished
type phase uint8

const (
	waiting    phase = iota // its request was not sent, and will not be if it is cancelled now
	sending                 // its request is being sent
	running                 // its request is on its way
	recalling               // the peer is asked to end that request, which it had not answered; see session.holds
	cancelling              // its cancellation is on its way too, or is being sent by whoever has made this step
	finished                // it is out of the session
)

// event is something that happens in a session.
type event struct {
	kind eventKind
	in   *incoming     // the peer's request that it is about, if any
	turn *outgoingTurn // the turn of this side that it is about, if any
}

type eventKind uint8

const (
	requestRead      eventKind = iota // in was read
	cancelRead                        // the peer has cancelled its turn
	turnOpened                        // in is a turn that no request has asked for
	turnFreed                         // in goes on, but leaves room for the next turn
	answerSent                        // in was answered, and is over
	turnBegun                         // turn was begun
	turnSending                       // turn's request is about to be sent
	turnSent                          // turn's request is on its way
	turnUnsent                        // turn's request could not be sent
	turnAccepted                      // turn's answer was read, and turn goes on after it
	turnCancelled                     // turn is cancelled
	sessionCancelled                  // all turns of this side are cancelled
	turnEnded                         // what ends turn was read
	turnDone                          // whoever runs turn is done with it
)

// effects are what a step leaves to be done without the lock, in this order.
type effects struct {
	refuse   error             // the event is refused
	end      []*incoming       // the contexts of these turns of the peer's end, one after the other
	before   []<-chan struct{} // what is awaited before the peer is told
	recall   []*outgoingTurn   // the peer is asked to end the requests of these
	withdraw []*incoming       // these questions are answered as cancelled
	told     []*outgoingTurn   // the peer is told that these are cancelled
	posted   []chan struct{}   // are closed then, for those who wait for it
	after    []<-chan struct{} // what is awaited last
}

// step is what an event does to a session; Conn.mu is held.
func (s *session) step(e event) (do effects) {
	in, turn := e.in, e.turn
	switch e.kind {

	// A session has one turn of the peer's at a time, unless the author opts in. The next one waits for the answers
	// to those that were cancelled: the peer need not know them yet. What ends the turn cancels it, and waits for
	// its answer. A question that comes while a turn of this side is being cancelled is answered as cancelled at
	// once.
	case requestRead:
		switch route := in.route; {
		case route.EndsTurn:
			in.ends = slices.Clone(s.incoming)
			do.end = s.cancelTurns()
		case route.Turn:
			if s.busy(false) {
				do.refuse = errBusy
				break
			}
			if !s.concurrent {
				in.ends = slices.DeleteFunc(slices.Clone(s.incoming), func(turn *incoming) bool { return turn.freed })
			}
			s.incoming = append(s.incoming, in)
		case route.Cancelled != nil:
			s.questions = append(s.questions, in)
			if s.cancelling() {
				do.withdraw = []*incoming{in}
			}
		}
	case turnOpened:
		if s.busy(true) {
			do.refuse = errBusy
			break
		}
		s.incoming = append(s.incoming, in)

	// A cancellation is about the turns that are there; without any it is about nothing.
	case cancelRead:
		do.end = s.cancelTurns()

	// A turn that has ended but for its answer, or for what it reports, does not keep the next from coming, and is
	// not cancelled any more. It stays until its answer is on its way, because what ends it comes behind that.
	case turnFreed:
		in.freed = true
	case answerSent:
		is := func(other *incoming) bool { return other == in }
		s.incoming = slices.DeleteFunc(s.incoming, is)
		s.questions = slices.DeleteFunc(s.questions, is)

	// A turn of this side whose context has ended is cancelled at the peer before another one begins: the
	// cancellation is about all that the peer does in the session. To the new turn belong the notifications that
	// are read from now on.
	case turnBegun:
		for _, other := range s.outgoing {
			if other.ctx.Err() != nil {
				s.cancel(other, &do)
			}
			if other.recalled != nil {
				turn.behind = append(turn.behind, other.recalled)
			}
		}
		turn.first = s.position()
		s.outgoing = append(s.outgoing, turn)

	// What was cancelled before its request is sent is not sent. What is cancelled meanwhile is cancelled at the
	// peer behind its request.
	case turnSending:
		if turn.wanted {
			do.refuse = ErrTurnCancelled
			break
		}
		turn.phase = sending
		turn.settled = make(chan struct{})
	case turnSent:
		close(turn.settled)
		turn.phase = running
		switch {
		case turn.told:
			turn.phase = cancelling
		case turn.wanted:
			s.cancelSent(turn, &do)
		}
	case turnUnsent:
		close(turn.settled)
		turn.phase = waiting
		if turn.wanted && !turn.told {
			close(turn.posted)
		}

	case turnCancelled:
		s.cancel(turn, &do)

	// A turn that was recalled has begun all the same: it is cancelled now, ahead of what waits behind it.
	case turnAccepted:
		turn.accepted = true
		if turn.phase == recalling {
			turn.posted = make(chan struct{})
			s.cancelSent(turn, &do)
			do.posted = append(do.posted, turn.recalled)
		}

	// The same as turnCancelled for all turns at once. The peer is told also without any.
	case sessionCancelled:
		do.withdraw = slices.Clone(s.questions)
		for _, turn := range s.outgoing {
			switch {
			case turn.phase == recalling:
				turn.phase = cancelling
				close(turn.recalled)
				do.after = append(do.after, turn.posted)
			case turn.posted != nil: // somebody tells the peer, or has
				do.after = append(do.after, turn.posted)
				continue
			case turn.phase == running:
				turn.phase = cancelling
			case turn.phase == sending:
				do.before = append(do.before, turn.settled)
			}
			turn.wanted, turn.told, turn.posted = true, true, make(chan struct{})
			do.told, do.posted = append(do.told, turn), append(do.posted, turn.posted)
		}

	// A turn is over with the notifications that were read before its end. It leaves the session when nothing of
	// it is being sent any more, so that no cancellation of it comes behind what its caller sends next.
	case turnEnded:
		turn.ended, turn.last = true, s.position()
		if turn.phase == recalling {
			turn.phase = running
			close(turn.recalled)
		}
	case turnDone:
		if turn.posted != nil && !isClosed(turn.posted) {
			do.refuse, do.after = errBeingSent, append(do.after, turn.posted)
			break
		}
		if turn.phase == recalling {
			close(turn.recalled)
		}
		turn.phase = finished
		s.outgoing = slices.DeleteFunc(s.outgoing, func(o *outgoingTurn) bool { return o == turn })
	}
	return do
}

// cancel is what cancels a turn of this side. The peer is told once, by who cancels, and whoever cancels too waits
// for that.
func (s *session) cancel(turn *outgoingTurn, do *effects) {
	switch turn.phase {
	case waiting:
		turn.wanted = true
	case sending:
		if !turn.wanted {
			turn.wanted, turn.posted = true, make(chan struct{})
		}
		do.after = append(do.after, turn.posted)
	case running:
		if !turn.ended {
			turn.posted = make(chan struct{})
			s.cancelSent(turn, do)
		}
	case recalling, cancelling:
		do.after = append(do.after, turn.posted)
	}
}

// cancelSent cancels a turn whose request is on its way. The questions that wait for this side's user are answered as
// cancelled. A turn that the peer holds behind an earlier one is recalled instead, because a cancellation would be
// about the earlier one. Only the answer says whether that came in time: until then, later turns are not sent, because
// a cancellation would be about them too.
func (s *session) cancelSent(turn *outgoingTurn, do *effects) {
	do.posted = append(do.posted, turn.posted)
	if s.holds(turn) {
		turn.phase, turn.recalled = recalling, make(chan struct{})
		do.recall = append(do.recall, turn)
		return
	}
	turn.phase = cancelling
	do.withdraw, do.told = append(do.withdraw, s.questions...), append(do.told, turn)
}

var (
	errBusy      = errors.New("acp: the session is busy with another turn")
	errBeingSent = errors.New("acp: the turn's cancellation is being sent")
)

// busy reports whether the session has a turn of the peer's that keeps another one from coming. Whether those count
// that were cancelled, and have not ended yet, is for the caller to say.
func (s *session) busy(cancelled bool) bool {
	return !s.concurrent && slices.ContainsFunc(s.incoming, func(in *incoming) bool {
		return !in.freed && (cancelled || in.Err() == nil && !in.cancelled.Load())
	})
}

// cancelTurns notes that the turns of the peer's are cancelled, except those of which only the answer is still to be
// sent. It returns the latest one first: when a turn ends, one that waits for it must know of its own cancellation.
func (s *session) cancelTurns() (turns []*incoming) {
	for _, in := range slices.Backward(s.incoming) {
		if !in.freed {
			in.cancelled.Store(true)
			turns = append(turns, in)
		}
	}
	return turns
}

// cancelling reports whether a turn of this side is being cancelled.
func (s *session) cancelling() bool {
	return slices.ContainsFunc(s.outgoing, func(turn *outgoingTurn) bool { return turn.phase == cancelling || turn.told })
}

// holds reports whether the peer holds a turn of this side behind an earlier one, as far as it has said.
func (s *session) holds(turn *outgoingTurn) bool {
	return turn.endRead != nil && !turn.accepted && s.outgoing[0] != turn
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
