// Package ledger keeps the account of a JSON-RPC connection: which requests each side has sent, and how
// often each was answered. Package conformance and the tests of the other packages use it. It imports
// nothing of this module, so that every package can.
package ledger

import (
	"iter"
	"maps"
	"slices"
)

// Requests is the account of the requests that one side has sent. V is what its user wants to know of a
// request when the answer comes. The zero value is an empty account. It is not safe for concurrent use.
type Requests[V any] struct {
	// Forget drops a request when it is answered: memory is then bounded by the requests that are open,
	// and a second answer cannot be told from an answer to no request.
	Forget bool

	byID                     map[string]*Entry[V]
	asked, answered, unasked int
}

// Entry is what is known of the requests with one id.
type Entry[V any] struct {
	Asked    int // requests
	Answered int // those of them that were answered
	Unasked  int // further answers, for which no request was open
	About    V   // what was said of the last request
}

// Open is how many of the requests are not answered.
func (e Entry[V]) Open() int { return e.Asked - e.Answered }

// Ask notes a request and returns how many requests with this id were open before it: a sender that uses
// an id again before its answer is wrong. Ids are compared as texts.
func (r *Requests[V]) Ask(id string, about V) (open int) {
	e := r.entry(id)
	open = e.Open()
	e.Asked++
	e.About = about
	r.asked++
	return open
}

// Answer notes an answer, and returns what is known of the request and whether one was open.
func (r *Requests[V]) Answer(id string) (about V, wasOpen bool) {
	e := r.byID[id]
	switch {
	case e == nil && r.Forget:
		r.unasked++
		return about, false
	case e == nil || e.Open() == 0:
		e = r.entry(id)
		e.Unasked++
		r.unasked++
		return e.About, false
	}
	e.Answered++
	r.answered++
	if r.Forget && e.Open() == 0 {
		delete(r.byID, id)
	}
	return e.About, true
}

func (r *Requests[V]) entry(id string) *Entry[V] {
	e := r.byID[id]
	if e == nil {
		if r.byID == nil {
			r.byID = map[string]*Entry[V]{}
		}
		e = &Entry[V]{}
		r.byID[id] = e
	}
	return e
}

// Get returns what is known of the requests with an id, which is nothing when there were none.
func (r *Requests[V]) Get(id string) Entry[V] {
	if e := r.byID[id]; e != nil {
		return *e
	}
	return Entry[V]{}
}

// Asked is how many requests there were.
func (r *Requests[V]) Asked() int { return r.asked }

// Answered is how many of the requests were answered.
func (r *Requests[V]) Answered() int { return r.answered }

// Open is how many of the requests were not answered.
func (r *Requests[V]) Open() int { return r.asked - r.answered }

// Unasked is how many answers came for which no request was open.
func (r *Requests[V]) Unasked() int { return r.unasked }

// All are the ids, in their order as texts, with what is known of each.
func (r *Requests[V]) All() iter.Seq2[string, Entry[V]] {
	return func(yield func(string, Entry[V]) bool) {
		for _, id := range slices.Sorted(maps.Keys(r.byID)) {
			if !yield(id, *r.byID[id]) {
				return
			}
		}
	}
}

// Ledger is the account of both sides: the requests that this side has sent and those that it has
// received. Who only watches a connection decides which side is this one. It is not safe for concurrent
// use.
type Ledger[V any] struct {
	Sent, Received Requests[V]
}

// Request notes a request that this side sent, or received; see Requests.Ask.
func (l *Ledger[V]) Request(sent bool, id string, about V) (open int) {
	return l.Of(sent).Ask(id, about)
}

// Answer notes an answer that this side sent, or received; see Requests.Answer.
func (l *Ledger[V]) Answer(sent bool, id string) (about V, wasOpen bool) {
	return l.Of(!sent).Answer(id)
}

// Of returns the account of the requests that this side has sent, or received.
func (l *Ledger[V]) Of(sent bool) *Requests[V] {
	if sent {
		return &l.Sent
	}
	return &l.Received
}
