package talk

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// slowStep is the time after which the user learns that a step of a start takes long.
const slowStep = 5 * time.Second

// step calls the agent's method for opening or setting up a session. It reports a call that takes long, and gives up
// when the agent has sent nothing for Options.ConnectTimeout, unless the user is being asked something.
func step[T any](ctx context.Context, c *Client, method string, call func(context.Context) (T, error)) (T, error) {
	limit := cmp.Or(c.opts.ConnectTimeout, defaultConnectTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	silent := fmt.Errorf("%s: no answer within %v: %w", method, limit, context.DeadlineExceeded)
	stop := c.slow(method, func() bool {
		if c.asking.Load() > 0 || time.Since(c.heardAt()) < limit {
			return false
		}
		cancel(silent)
		return true
	})
	result, err := call(ctx)
	stop()
	if context.Cause(ctx) == silent && err != nil {
		err = silent
	}
	cancel(nil)
	return result, err
}

const defaultConnectTimeout = 2 * time.Minute

// slow reports a call of the agent's method if it takes long, and then calls over every second until that is true.
func (c *Client) slow(method string, over func() bool) (stop func()) {
	c.heard.Store(time.Now().UnixNano())
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		report := time.After(slowStep)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-report:
				c.event(Event{Kind: Slow, Text: method, Wait: slowStep})
			case <-tick.C:
				if over() {
					return
				}
			}
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}

// heardAt is when the agent last sent a line, or a step began.
func (c *Client) heardAt() time.Time { return time.Unix(0, c.heard.Load()) }
