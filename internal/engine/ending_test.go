//go:build unix

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// endsWith is a transport whose stream ends with an error of the test's.
type endsWith struct {
	Transport
	err error
}

func (e endsWith) Connect(ctx context.Context) (Stream, error) {
	s, err := e.Transport.Connect(ctx)
	return endingStream{s, e.err}, err
}

type endingStream struct {
	Stream
	err error
}

func (s endingStream) Read() ([]byte, error) {
	line, err := s.Stream.Read()
	if err == io.EOF {
		err = s.err
	}
	return line, err
}

// Wait says whether the end was an orderly one, and Close, which many defer, does not change that.
func TestHowAConnectionEnded(t *testing.T) {
	ended := func(err error) Transport {
		a, b := rpc.Pipe()
		stream, _ := b.Connect(t.Context()) // never fails
		stream.Close()
		return endsWith{a, err}
	}
	shell := func(script string) Transport { return rpc.Command(exec.Command("sh", "-c", script)) }
	for name, test := range map[string]struct {
		transport Transport
		orderly   bool
		cause     error
	}{
		"end of input":           {ended(io.EOF), true, io.EOF},
		"end of input, wrapped":  {ended(fmt.Errorf("the peer left: %w", io.EOF)), true, io.EOF},
		"broken stream":          {ended(io.ErrUnexpectedEOF), false, io.ErrUnexpectedEOF},
		"subprocess is done":     {shell("exit 0"), true, io.EOF},
		"subprocess has failed":  {shell("exit 3"), false, io.EOF},
		"subprocess was stopped": {shell("kill -9 $$"), false, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(t.Context(), test.transport, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"before Close", "after Close"} {
				err := wait(c)
				if orderly := err == nil; orderly != test.orderly {
					t.Errorf("%s: %v", when, err)
				}
				if err != nil && (!errors.Is(err, rpc.ErrClosed) || !errors.Is(err, test.cause)) {
					t.Errorf("%s: %v", when, err)
				}
				_, err = echoMethod.Call(t.Context(), c, nil)
				_, exit := errors.AsType[*rpc.ExitError](err)
				_, command := test.transport.(*rpc.CommandTransport)
				if !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, test.cause) || exit != command {
					t.Errorf("a call %s: %v", when, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestHowAConnectionWasEnded(t *testing.T) {
	p, c := newPeer(t, nil, nil)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	p.w.Close()
	if err := wait(c); err != nil {
		t.Error(err)
	}
	if _, err := echoMethod.Call(t.Context(), c, nil); !errors.Is(err, rpc.ErrClosed) || errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

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
				receive(t, c.Done())
				close(release)
			})
		})
	}
}

// Requests are answered after the end of input for DrainTime; then their handlers are told. The default is well below the two
// seconds after which clients kill an agent.
func TestHandlerThatOutlastsDrainTime(t *testing.T) {
	for drain, opts := range map[time.Duration]*Options{3 * time.Second: {DrainTime: 3 * time.Second}, time.Second: nil} {
		outlastDrainTime(t, drain, opts)
	}
}

func outlastDrainTime(t *testing.T, drain time.Duration, opts *Options) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		p, c := newPeer(t, []Route{echoMethod.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return p, nil
		})}, opts)
		start := time.Now()
		p.send(request(1, "echo", `{}`))
		p.w.Close()
		if err := receive(t, causes); !errors.Is(err, rpc.ErrClosed) {
			t.Error(err)
		}
		if d := time.Since(start); d != drain {
			t.Errorf("the handler was told after %v", d)
		}
		if err := wait(c); err != nil {
			t.Error(err)
		}
	})
}
