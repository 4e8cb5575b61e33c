//go:build unix

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// The end of a connection cannot end a handler that ignores its context, and does not wait for it for longer than it
// says, nor twice. The handler's answer goes nowhere.
func TestHandlersThatDoNotEnd(t *testing.T) {
	const drain, grace = 2 * time.Second, time.Second
	for name, test := range map[string]struct {
		end  func(p *rawPeer, c *Conn) error
		time time.Duration
	}{
		"Close": {func(_ *rawPeer, c *Conn) error { return c.Close() }, grace},
		"Wait": {func(p *rawPeer, c *Conn) error {
			p.w.Close()
			return wait(c)
		}, drain + grace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				p, c := newPeer(t, []Route{
					echoMethod.Handle(func(context.Context, *echoParams) (*echoParams, error) {
						<-release
						return &echoParams{}, nil
					}),
					updateMethod.Handle(func(context.Context, *updateParams) error {
						<-release
						return nil
					}),
				}, &Options{DrainTime: drain, CloseTime: grace})
				p.send(request(1, "echo", `{}`), note("update", `{"sessionId":"s"}`), note("update", `{"sessionId":"s"}`))
				synctest.Wait()
				start := time.Now()
				if err := test.end(p, c); !errors.Is(err, rpc.ErrStuck) || !strings.Contains(err.Error(), "do not end: echo") {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != test.time {
					t.Errorf("it took %v, want %v", d, test.time)
				}
				<-c.Done()
				close(release)
			})
		})
	}
}
