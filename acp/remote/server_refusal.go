package remote

import (
	"fmt"
	"io"
	"net/http"

	"github.com/acpgo/sdk/internal/wire"
)

// A refusal is the answer to a request that is refused.
type refusal struct {
	status int
	text   string
	err    error // for the log; may contain text that is not for the client
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }
func (e *refusal) Unwrap() error { return e.err }

func refuse(status int, text string) *refusal { return &refusal{status: status, text: text} }

// rpcRefusal is a refusal whose body is a JSON-RPC response.
func rpcRefusal(status int, id wire.ID, failure *wire.Error) *refusal {
	return refuse(status, string(wire.ErrorLine(id, failure)))
}

func invalidRequest(id wire.ID, message string) *refusal {
	return rpcRefusal(http.StatusBadRequest, id, invalid(message))
}

func invalid(message string) *wire.Error {
	return &wire.Error{Code: codeInvalidRequest, Message: "Invalid request: " + message}
}

// The JSON-RPC codes of the server's own answers.
const (
	codeInvalidRequest = -32600
	codeInternal       = -32603
)

// errInitialize is why a connection ended that was never initialized.
var errInitialize = errorEOF("acp: the connection was not initialized")

// errorEOF is an end of input with a reason.
type errorEOF string

func (e errorEOF) Error() string { return string(e) }
func (e errorEOF) Unwrap() error { return io.EOF }

var errGone = refuse(http.StatusNotFound, "unknown connection")

// agentGone is the answer to requests that an agent has left unanswered.
var agentGone = &wire.Error{Code: codeInternal, Message: "Internal error: the agent has ended"}

// errDeleted is why a connection ended that its client deleted.
var errDeleted = errorEOF("acp: the client has ended the connection")

// errShutdown is why a connection ends when its server shuts down.
var errShutdown = fmt.Errorf("%w: %w", ErrServerClosed, io.EOF)
