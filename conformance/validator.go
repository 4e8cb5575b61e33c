package conformance

import (
	"sync"

	"github.com/acpgo/sdk/conformance/internal/schema"
)

// Validator checks the messages of one connection, in the order in which they were written. It remembers only the
// unanswered requests. Its methods are safe for concurrent use, but each request must be checked before its answer,
// which is the case if messages are checked before they are written.
type Validator struct {
	mu         sync.Mutex
	connection *schema.Connection
}

// NewValidator returns a validator for a new connection.
func NewValidator(s *Schema) *Validator {
	return &Validator{connection: schema.NewConnection(s)}
}

// Message checks one message. The line may end with a newline, and is not retained. Message returns no findings for a
// correct message, and never more than a few dozen.
func (v *Validator) Message(direction Direction, line []byte) []Finding {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.connection.Check(direction, line).Findings
}
