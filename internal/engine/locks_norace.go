//go:build !race

package engine

import "sync"

// The locks of each rank; see locks_race.go.
type (
	answerLock = sync.Mutex
	connLock   = sync.Mutex
	callsLock  = sync.Mutex
	queueLock  = sync.Mutex
	flowLock   = sync.Mutex
)
