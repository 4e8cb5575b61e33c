package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/acpgo/sdk/codec"
)

// repaired reports the leniencies of the last decoding.
func (c *Conn) repaired(method string, d *codec.Decoder) {
	for _, r := range d.Repairs() {
		c.ReportRepair(method, r)
	}
}

// ReportRepair reports to the owner of a connection that a part of a message was wrong and was dropped, replaced or
// kept anyway.
func (c *Conn) ReportRepair(method string, r codec.Repair) {
	c.opts.Logger.Debug("repaired", "method", method, "at", r.Pointer, "what", r.Msg)
	if c.opts.Repair != nil {
		c.opts.Repair(method, r)
	}
}

// ReportFailure reports a failure to the owner of a connection, once: as a warning if the peer does not see the reason.
func (c *Conn) ReportFailure(ctx context.Context, message, method string, err error) {
	_, hidden := c.opts.Errors.Visible(err)
	c.reportFailure(ctx, message, method, err, hidden)
}

// reportFailure reports the failure of a handler to the owner of a connection, once: as a warning if no one else learns
// the reason. It does not report that the handler was cancelled or the connection has ended.
func (c *Conn) reportFailure(ctx context.Context, message, method string, err error, hidden bool) {
	if _, ok := errors.AsType[*panicError](err); ok {
		return // guard has reported it
	}
	level := slog.LevelDebug
	expected := errors.Is(err, ErrClosed) ||
		ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
	if hidden && !expected {
		level = slog.LevelWarn
	}
	c.opts.Logger.Log(ctx, level, message, "method", method, "error", err)
}

// panicError is a handler's panic.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

// guard runs code of a handler; a panic is reported and becomes an error. A handler that ends its goroutine ends it.
func (c *Conn) guard(method string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			// It is part of the message, because the default logger writes attributes on one line.
			c.opts.Logger.Error(fmt.Sprintf("handler panicked: %v\n%s", v, stack), "method", method)
			if c.opts.Panic != nil {
				c.opts.Panic(method, v, stack)
			}
			err = &panicError{v}
		}
	}()
	return f()
}
