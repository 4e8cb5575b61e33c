package main

import (
	"errors"
	"fmt"

	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
)

// The exit statuses. Commands that run an agent in place of itself end as the agent does.
const (
	statusOK       = 0
	statusFindings = 1
	statusUsage    = 2
	statusFailed   = 3
)

const statusHelp = `Exit status:
  0  what was judged conforms
  1  there are findings of the chosen level or above
  2  wrong usage
  3  something could not be read or run; what was readable is judged all the same
`

// exit is an error that ends the program with a status. Without an error nothing is printed.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usagef is an error of whoever calls the program.
func usagef(format string, args ...any) error {
	return &exit{statusUsage, fmt.Errorf(format, args...)}
}

// isUsage reports whether an error is about what the user has said: the configuration, or a name that no agent has.
func isUsage(err error) bool {
	_, wrong := errors.AsType[*config.Error](err)
	_, ambiguous := errors.AsType[*agents.AmbiguousError](err)
	_, unknown := errors.AsType[*agents.UnknownError](err)
	return wrong || ambiguous || unknown
}

// failed gives an error of a command the status for what could not be read or run, unless it has another.
func failed(err error) error {
	if _, has := errors.AsType[*exit](err); err == nil || has {
		return err
	}
	if isUsage(err) {
		return &exit{statusUsage, err}
	}
	return &exit{statusFailed, err}
}
