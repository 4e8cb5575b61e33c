// This file has the state of a session other than its queue: the turns of both sides and the questions that belong to
// them. All of it changes in step, which contains the rules of turns and their cancellation. It does not know the
// connection: the caller of step carries out its effects.

package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

// session is what the connection knows about one session, or, with the id "", about everything that belongs to none.
// Sessions come and go with traffic.
type session struct {
	id         string
	concurrent bool // the peer may have several turns at a time

	queue // has its own lock

	// Guarded by Conn.mu, changed by step.
	// the peer's requests for which EnterTurn has not called enter, in the order of their arrival
	entering  []*incoming
	incoming  []*incoming     // turns of the peer in progress, and those whose answer is being sent
	questions []*incoming     // the peer's questions in progress, which are answered when their turn is cancelled
	outgoing  []*outgoingTurn // turns of this side in progress, in the order in which they were begun
	following []chan struct{} // each closed when the functions of AfterResponse of a request have returned
}

// active reports whether anything other than notifications is in progress; Conn.mu is held.
func (s *session) active() bool {
	return len(s.entering)+len(s.incoming)+len(s.questions)+len(s.outgoing)+len(s.following) > 0
}

// incoming is the session's view of a request of the peer in progress, or of a turn that no request has asked for. It
// has the handler's context; inbound is the context itself.
type incoming struct {
	lateContext
	route    *Route
	question question        // the request; nil for a turn that no request has asked for
	ends     []*incoming     // the turns that must be answered first
	behind   []chan struct{} // closed when what must be sent before the turn has been sent
	done     chan struct{}   // for a turn or Enterer: closed when the answer has been sent and it is over
	entered  chan struct{}   // for a concurrent turn or Enterer: closed when EnterTurn has called enter for it

	freed     bool        // the session may accept the next turn; guarded by Conn.mu
	during    bool        // for a question: a turn of this side was in progress when it was read; guarded by Conn.mu
	cancelled atomic.Bool // the turn was cancelled, or that of the question has ended; set with Conn.mu held
}

// A question is a request that is answered as cancelled when the turn of this side to which it belongs is cancelled.
type question interface {
	// withdraw takes the request from its handler, and reports whether the caller must call answerCancelled.
	withdraw() bool
	answerCancelled()
}

// TurnSpec defines how a turn runs.
type TurnSpec struct {
	// Session is the id of the turn's session.
	Session string
	// CancelMethod and CancelParams are the notification that cancels it.
	CancelMethod string
	CancelParams any
	// Cancelled returns the result of a turn that was cancelled before its request was sent, see Route.Cancelled. If it
	// is nil, such a turn fails with ErrTurnCancelled.
	Cancelled func(result any) any
}

// outgoingTurn is a turn of this side in progress.
type outgoingTurn struct {
	spec    TurnSpec
	session *session
	feed    func(params any, size int) bool // reports whether it has taken an update; nil if updates are not read
	inside  <-chan struct{}                 // closed when a notification handler waits for the end
	left    bool                            // it was removed from its session; owned by the goroutine that runs it
	unsent  bool                            // its request could not be sent; owned by the goroutine that runs it

	// Guarded by Conn.mu; see session.step.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	phase    phase
	wanted   bool                  // it was cancelled before its request was on its way
	told     bool                  // it was cancelled with the whole session, by a goroutine that tells the peer
	settled  chan struct{}         // closed when its request has been sent, or could not be sent
	posted   chan struct{}         // for a cancelled turn: closed when its cancellation, if any, is on its way
	recalled chan struct{}         // for a recalled turn: closed when it is known to be over or cancelled
	first    uint64                // position: the notifications of the session that came before it
	ended    bool                  // the event that ends it has been read,
	last     uint64                // and this many notifications of the session before it
	accepted bool                  // the answer has arrived, for a turn that continues after it
	request  interface{ cancel() } // set when its request is sent

	behind []<-chan struct{} // what its request waits for; set when the turn is begun

	// For a turn that continues after its answer, see TurnEnd.
	endRead  chan struct{}         // closed when the event that ends it is read; nil if it ends with its answer
	notified func(params any) bool // reports the end; owned by the reader
}

// phase is the phase of a turn of this side.
//
//	                           ┌──► recalling ──┐
//	                           │                ▼
//	waiting ──► sending ──► running ──────► cancelling
//	   │           │           │                │
//	   └───────────┴───────────┴────────────────┴──► finished
type phase uint8

const (
	waiting    phase = iota // its request has not been sent, and will not be if it is cancelled now
	sending                 // its request is being sent
	running                 // its request is on its way
	recalling               // the peer has been asked to end the unanswered request; see session.holds
	cancelling              // its cancellation is on its way too, or is being sent by the goroutine that made this step
	finished                // it has left the session
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
	turnFreed                         // in continues, but makes room for the next turn
	answerSent                        // in has been answered, and is over
	turnBegun                         // turn was begun
	turnSending                       // turn's request is about to be sent
	turnSent                          // turn's request is on its way
	turnUnsent                        // turn's request could not be sent
	turnAccepted                      // turn's answer was read, and turn continues after it
	turnCancelled                     // turn is cancelled
	sessionCancelled                  // all turns of this side are cancelled
	turnEnded                         // the event that ends turn was read
	turnDone                          // the goroutine that runs turn is done with it
)

// effects are the actions that a step leaves to be done without the lock, in this order.
type effects struct {
	refuse   error             // the reason for refusing the event
	end      []*incoming       // end the contexts of these turns of the peer, one after another
	before   []<-chan struct{} // wait for these before telling the peer
	recall   []*outgoingTurn   // ask the peer to end the requests of these turns
	withdraw []*incoming       // answer these questions as cancelled
	told     []*outgoingTurn   // tell the peer that these turns are cancelled
	posted   []chan struct{}   // then close these, for those who wait for it
	after    []<-chan struct{} // wait for these last
}

// step applies an event to a session; Conn.mu is held.
func (s *session) step(e event) (do effects) {
	in, turn := e.in, e.turn
	switch e.kind {

	// A session has one turn of the peer at a time, unless the author opts in. The next one waits for the answers to
	// cancelled ones, of which the peer need not know yet. A request that ends the turn cancels it, and waits for its
	// answer. A question that arrives while a turn of this side is being cancelled is answered as cancelled at once.
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
			in.behind = slices.Clone(s.following)
			s.incoming = append(s.incoming, in)
		case route.Cancelled != nil:
			s.questions, in.during = append(s.questions, in), len(s.outgoing) > 0
			if s.cancelling() {
				do.withdraw = []*incoming{in}
			}
		}
		if do.refuse == nil && in.entered != nil {
			s.entering = append(s.entering, in)
		}
	case turnOpened:
		if s.busy(true) {
			do.refuse = errBusy
			break
		}
		s.incoming = append(s.incoming, in)

	// A cancellation applies to the turns in progress; without any it does nothing.
	case cancelRead:
		do.end = s.cancelTurns()

	// A turn that has ended except for its answer, or its final reports, does not prevent the next one, and is no
	// longer cancelled. It stays until its answer is on its way, because a request that ends it must follow that
	// answer.
	case turnFreed:
		in.freed = true
	case answerSent:
		is := func(other *incoming) bool { return other == in }
		s.entering = slices.DeleteFunc(s.entering, is)
		s.incoming = slices.DeleteFunc(s.incoming, is)
		s.questions = slices.DeleteFunc(s.questions, is)

	// A turn of this side whose context has ended is cancelled at the peer before another one begins, because the
	// cancellation applies to all work of the peer in the session. The notifications that are read from now on belong
	// to the new turn.
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

	// A turn cancelled before its request is sent is not sent. If it is cancelled while the request is being sent, the
	// cancellation follows the request.
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

	// A recalled turn has begun nevertheless: it is cancelled now, before the turns that wait for it.
	case turnAccepted:
		turn.accepted = true
		if turn.phase == recalling {
			turn.posted = make(chan struct{})
			s.cancelSent(turn, &do)
			do.posted = append(do.posted, turn.recalled)
		}

	// The same as turnCancelled for all turns at once. The peer is notified even if there are none.
	case sessionCancelled:
		do.withdraw = slices.Clone(s.questions)
		for _, turn := range s.outgoing {
			switch {
			case turn.phase == recalling:
				turn.phase = cancelling
				close(turn.recalled)
				do.after = append(do.after, turn.posted)
			case turn.posted != nil: // another goroutine tells the peer, or has told it
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

	// A turn is over with the notifications that were read before its end, and the last one in progress with the questions
	// that were asked in it: nobody must allow anything for a turn that has ended. It leaves the session when nothing
	// about it is being sent any more, so that no cancellation of it follows a message that its caller sends next.
	case turnEnded:
		turn.ended, turn.last = true, s.position()
		if !slices.ContainsFunc(s.outgoing, func(other *outgoingTurn) bool { return !other.ended }) {
			do.withdraw = slices.DeleteFunc(slices.Clone(s.questions), func(in *incoming) bool { return !in.during })
			for _, in := range do.withdraw {
				in.cancelled.Store(true)
			}
		}
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

// cancel cancels a turn of this side. The peer is notified once, by the first goroutine that cancels the turn; the
// others wait for it.
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
// cancelled. A turn that the peer holds until an earlier one ends is recalled instead, because a cancellation would
// apply to the earlier one. Only the answer tells whether that came in time: until then, later turns are not sent,
// because a cancellation would apply to them too.
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

// busy reports whether the session has a turn of the peer that prevents another one. cancelled selects whether turns
// count that were cancelled but have not ended yet.
func (s *session) busy(cancelled bool) bool {
	return !s.concurrent && slices.ContainsFunc(s.incoming, func(in *incoming) bool {
		return !in.freed && (cancelled || in.Err() == nil && !in.cancelled.Load())
	})
}

// cancelTurns marks the turns of the peer as cancelled, except those of which only the answer is still to be sent. It
// returns the latest one first: when a turn ends, a turn that waits for it must know of its own cancellation.
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

// holds reports whether the peer holds a turn of this side until an earlier one ends, as far as it has reported.
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
