package engine

import (
	"fmt"
)

// Sessions are the sessions that a connection knows, and how much is going on in each.
func Sessions(c *Conn) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]int{}
	for id, s := range c.sessions {
		all[id] = len(s.outgoing) + len(s.incoming) + len(s.questions) + s.nested
	}
	return all
}

// Left says what a connection that is over still holds beside its sessions.
func Left(c *Conn) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	c.reserving.mu.Lock()
	defer c.reserving.mu.Unlock()
	bytes, workers, nested := c.load.bytes.Load(), c.load.workers.Load(), c.load.nested.Load()
	waits := int(c.calls.waits.Load())
	requested, reserved, loops := c.requested.Load(), c.reserving.held, c.loops.bytes.Load()
	n := len(c.inbound) + c.serving + len(c.calls.nested) + len(c.calls.stalled) + waits + len(c.reserving.waiting)
	if n == 0 && bytes|workers|nested|requested|reserved|loops == 0 {
		return ""
	}
	return fmt.Sprintf("%d requests, %d being served, %d calls nested, %d callers; load: %d bytes, %d workers, %d calls; "+
		"budget: %d bytes of requests, %d reserved, %d waiting, %d for loops",
		len(c.inbound), c.serving, len(c.calls.nested), waits, bytes, workers, nested,
		requested, reserved, len(c.reserving.waiting), loops)
}

// AwaitHandled waits until what a session has queued was handled.
func AwaitHandled(c *Conn, id string) {
	c.mu.Lock()
	s := c.sessions[id]
	c.mu.Unlock()
	if s != nil {
		<-s.reached(s.position(), false)
	}
}
