package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/wire"
)

// A Side is one of the two sides of a proxy.
type Side int

// The sides.
const (
	Client Side = iota // the client, or the proxy before this one
	Agent              // the agent, or the proxy after this one
)

// String returns "client" or "agent".
func (s Side) String() string {
	if s == Client {
		return "client"
	}
	return "agent"
}

// Options tunes a proxy. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// MaxHeld is how many bytes of messages may wait for hooks, from each side. When there are more, nothing is read
	// from that side. The same number bounds the requests whose hooks run; more are refused. The default is
	// rpc.DefaultMaxMessage.
	MaxHeld int
	// DrainTime is how long the agent may take to end after the client has, before it is closed. The default is 1 s.
	DrainTime time.Duration
	// CloseTime is how long hooks may take to return at the end, after their contexts have ended. Serve then returns
	// rpc.ErrStuck. The default is 5 s.
	CloseTime time.Duration
	// Logger receives diagnostics, such as errors of hooks that the sender does not see. The default is slog.Default.
	Logger *slog.Logger
	// Message is called with every message that a side sends, before anything else is done with it. It is called
	// concurrently for the two sides, and must neither keep nor change the message, nor block.
	Message func(from Side, message []byte)
}

func (o *Options) setDefaults() {
	o.MaxHeld = cmp.Or(o.MaxHeld, rpc.DefaultMaxMessage)
	o.DrainTime = cmp.Or(o.DrainTime, time.Second)
	o.CloseTime = cmp.Or(o.CloseTime, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
}

func newPrefix() string { return "proxy-" + rand.Text()[:8] }

// Serve connects up, the transport to the client, and down, the transport to the agent, and passes messages on until
// one of them ends. Both connections are closed when it returns. If down is nil, up leads to a conductor, which starts
// the proxy with proxy/initialize and connects it with its successor.
//
// When the client ends its side, so does Serve towards the agent, which may still answer for Options.DrainTime; Serve
// then returns nil. When the agent ends first, the client's open requests are answered with an error that gives the
// reason, and Serve returns the reason, which for a subprocess is an [rpc.ExitError]. When ctx ends, Serve closes both
// connections and returns the cause.
func Serve(ctx context.Context, up, down rpc.Transport, hooks Hooks, opts *Options) error {
	p, err := newRelay(hooks, opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.ctx = ctx
	client, agent := p.ends[Client], p.ends[Agent]
	if down != nil {
		stream, err := down.Connect(ctx)
		if err != nil {
			return err
		}
		agent.End = hop.NewEnd(stream)
	}
	stream, err := up.Connect(ctx)
	if err != nil {
		if down != nil {
			err = errors.Join(err, agent.Stream.Close())
		}
		return err
	}
	client.End = hop.NewEnd(stream)
	if down == nil {
		p.conductor, agent.wrapped, agent.End = true, true, client.End
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		p.mu.Lock()
		p.changed.Broadcast()
		p.mu.Unlock()
		// The errors are reported when Serve closes them again.
		_ = agent.Stream.Close()
		_ = client.Stream.Close()
	})
	if p.conductor {
		err = p.serveConductor(cancel)
	} else {
		err = p.serve(cancel)
	}
	if !stop() {
		<-closed
	}
	return err
}

// errEnded is the cause of the contexts of hooks when the connection has ended.
var errEnded = fmt.Errorf("acp/proxy: the connection has ended: %w", context.Canceled)

func (p *relay) serve(cancel context.CancelCauseFunc) error {
	client, agent := p.ends[Client], p.ends[Agent]
	var clientEnded atomic.Bool
	var clientErr error
	clientDone := make(chan struct{})
	go func() {
		defer close(clientDone)
		var reading bool
		reading, clientErr = p.read(client, func(line []byte) error { return p.receive(client, line) })
		clientEnded.Store(reading)
		if reading {
			p.lost(client, ended("client", clientErr))
		}
		drained := time.AfterFunc(p.opts.DrainTime, func() { _ = agent.Stream.Close() }) // serve closes it again
		context.AfterFunc(p.ctx, func() { drained.Stop() })
		p.settle(client)
		if err := agent.CloseWrite(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			p.log.Debug("acp/proxy: cannot end the agent's input", "error", err)
		}
	}()
	reading, agentErr := p.read(agent, func(line []byte) error { return p.receive(agent, line) })
	early := reading && !clientEnded.Load() && p.ctx.Err() == nil
	p.settle(agent)
	p.lost(agent, ended("agent", agentErr))
	if early {
		p.disown(agent)
	}
	cause := context.Cause(p.ctx)
	err := p.finish(cancel)
	err = errors.Join(err, agent.Stream.Close(), client.Stream.Close())
	<-clientDone
	switch {
	case cause != nil:
		return errors.Join(cause, err)
	case !reading && !clientEnded.Load(): // writing to the client has failed
		return errors.Join(agentErr, err)
	case early:
		return errors.Join(fmt.Errorf("the agent has ended: %w", agentErr), err)
	case !errors.Is(clientErr, io.EOF) && clientEnded.Load():
		return errors.Join(clientErr, err)
	}
	return err
}

// ended returns the error of requests to a side that has ended. It includes how a subprocess ended.
func ended(who string, err error) *rpc.Error {
	if exit, ok := errors.AsType[*rpc.ExitError](err); ok {
		return rpc.ErrInternal.WithMessagef("the %s has ended: %v", who, exit)
	}
	return rpc.ErrInternal.WithMessagef("the %s has ended", who)
}

func (p *relay) serveConductor(cancel context.CancelCauseFunc) error {
	client := p.ends[Client]
	d := codec.NewDecoder(nil)
	reading, err := p.read(client, func(line []byte) error { return p.conduct(d, line) })
	if !p.initialized && p.ctx.Err() == nil {
		err = fmt.Errorf("no conductor has sent %s: %w", acp.MethodInitializeProxy, err)
	} else if errors.Is(err, io.EOF) || !reading { // the conductor has ended, or takes nothing more
		err = nil
	}
	for _, e := range p.ends {
		p.settle(e)
		p.lost(e, ended("conductor", err))
	}
	cause := context.Cause(p.ctx)
	return errors.Join(cmp.Or(cause, err), p.finish(cancel), client.Stream.Close())
}

// read calls pass with every message of e, until it cannot read any more, or until pass fails: then reading is false.
func (p *relay) read(e *end, pass func(line []byte) error) (reading bool, err error) {
	lost := func(u wire.Unread) {
		if u.Response {
			p.log.Warn("acp/proxy: a message is not passed on", "from", e.side, "error", u.Err)
		} else {
			_ = e.Send(u.Answer()) // if it fails, e has ended, which the next read reports
		}
	}
	return e.Pass(e.other.End, lost, func(line []byte) error {
		p.makeRoom(e)
		if p.conductor {
			p.makeRoom(e.other)
		}
		return pass(line)
	})
}

// await waits until done reports true, or for d, and returns what it reports then. The caller holds p.mu.
func (p *relay) await(d time.Duration, done func() bool) bool {
	expired := false
	timer := time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		expired = true
		p.changed.Broadcast()
	})
	defer timer.Stop()
	for !done() && !expired {
		p.changed.Wait()
	}
	return done()
}

// settle waits until the messages that e has sent are passed on, for a bounded time.
func (p *relay) settle(e *end) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.await(p.opts.DrainTime, func() bool { return len(e.lanes) == 0 || p.ctx.Err() != nil })
}

// finish waits for the hooks. After Options.DrainTime it ends their contexts.
func (p *relay) finish(cancel context.CancelCauseFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := func() bool { return p.running == 0 }
	defer func() { p.closed = true }()
	if p.await(p.opts.DrainTime, done) {
		return nil
	}
	cancel(errEnded)
	if p.await(p.opts.CloseTime, done) {
		return nil
	}
	return rpc.ErrStuck
}
