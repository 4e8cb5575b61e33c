package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
)

// program holds the files that the commands read from and write to.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	colors         bool // whether stdout shows colors

	interrupted atomic.Pointer[interruption] // set by a signal
}

// interruption is why a run ends early.
type interruption struct {
	status int
	why    string
}

func (e *interruption) Error() string { return e.why }

// signalled returns the interruption for a signal.
func signalled(s os.Signal) *interruption {
	number, _ := s.(syscall.Signal)
	why := "interrupted"
	if s != os.Interrupt {
		why = fmt.Sprintf("ended by a signal: %v", s)
	}
	return &interruption{statusBySignal + int(number), why}
}

// untilInterrupted returns a context that ends when a signal interrupts the program, which then exits with the status
// for that signal.
func (p *program) untilInterrupted() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			why := signalled(s)
			p.interrupted.Store(why)
			cancel(why)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}

// until returns what runs a command with a context as of untilInterrupted.
func (p *program) until(
	run func(context.Context, *cobra.Command, []string) error,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		ctx, stop := p.untilInterrupted()
		defer stop()
		return run(ctx, c, args)
	}
}

// The exit statuses. Commands that run in place of an agent end as the agent does.
const (
	statusOK       = 0
	statusFindings = 1
	statusUsage    = 2
	statusFailed   = 3
	statusBySignal = 128 // plus the number of the signal
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

// usage makes an error a usage error.
func usage(err error) error { return &exit{statusUsage, err} }

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
