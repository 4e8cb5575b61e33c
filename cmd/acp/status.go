package main

import (
	"errors"
	"fmt"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
)

// The exit statuses. Commands that run in place of an agent end as the agent does.
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
  3  something could not be read or run; what could be read is still judged
`

// exit is an error that ends the program with a status. Nothing is printed if err is nil.
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

// usagef returns an error about how the program was called.
func usagef(format string, args ...any) error {
	return &exit{statusUsage, fmt.Errorf(format, args...)}
}

// isUsage reports whether an error is about what the user gave: the configuration, or a name that no agent has.
func isUsage(err error) bool {
	_, wrong := errors.AsType[*config.Error](err)
	_, ambiguous := errors.AsType[*registry.AmbiguousError](err)
	_, unknown := errors.AsType[*agents.UnknownError](err)
	return wrong || ambiguous || unknown
}

// failed gives an error the status for what could not be read or run, unless it has a status.
func failed(err error) error {
	if _, has := errors.AsType[*exit](err); err == nil || has {
		return err
	}
	if isUsage(err) {
		return &exit{statusUsage, err}
	}
	return &exit{statusFailed, err}
}
