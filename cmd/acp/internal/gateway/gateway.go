package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/internal/plain"
)

// Options configure a Gateway.
type Options struct {
	// Command returns the command for the agent of a connection.
	Command func(peer *remote.Peer) *exec.Cmd
	// Path is the path of the agent. Health is a path that reports whether the gateway accepts connections, with status
	// 200 or 503; it is not served if empty.
	Path, Health string
	// Server configures the remote.Handler.
	Server remote.HandlerOptions
	// EndTime is how long each step of ending an agent may take: the end of its input, TERM, KILL.
	EndTime time.Duration
	// ShutdownTime is how long connections may take to end.
	ShutdownTime time.Duration
	// Certificate and Key are the files for TLS, which is not used if they are empty.
	Certificate, Key string
}

// Gateway serves an agent over HTTP and WebSocket.
type Gateway struct {
	options Options
	log     *slog.Logger
	agent   *remote.Server

	running  sync.WaitGroup // goroutines that pass messages
	draining atomic.Bool
	numbers  numbers
}

// numbers are counters for the metrics.
type numbers struct {
	processes                                  atomic.Int64
	started, failedToStart, failedLater, noise atomic.Uint64
}

// New returns a Gateway.
func New(o Options) *Gateway {
	g := &Gateway{options: o, log: cmp.Or(o.Server.Logger, slog.New(slog.DiscardHandler))}
	g.agent = remote.Handler(g.serve, &o.Server)
	return g
}

// ServeHTTP serves the agent and the health path.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case g.options.Path:
		g.agent.ServeHTTP(w, r)
	case cmp.Or(g.options.Health, g.options.Path):
		if g.draining.Load() {
			http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	default:
		http.NotFound(w, r)
	}
}

// Check reports whether the gateway may serve requests from a listener.
func (g *Gateway) Check(l net.Listener) error { return g.agent.CheckListener(l) }

// Serve serves until ctx ends, and closes the listener. Then it accepts no more connections, ends the open ones
// together with their agents, and returns. When force ends, they are closed at once.
func (g *Gateway) Serve(ctx, force context.Context, listener net.Listener) error {
	if err := g.Check(listener); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := remote.NewHTTPServer(g)
	server.ErrorLog = slog.NewLogLogger(g.log.Handler(), slog.LevelDebug)
	served := make(chan error, 1)
	go func() {
		if g.options.Certificate != "" {
			served <- server.ServeTLS(listener, g.options.Certificate, g.options.Key)
		} else {
			served <- server.Serve(listener)
		}
	}()
	var err error
	stopped := false
	select {
	case err = <-served: // the server failed
		stopped = true
	case <-ctx.Done():
	}
	g.draining.Store(true)
	bound, cancel := context.WithTimeout(force, g.options.ShutdownTime)
	defer cancel()
	var ending sync.WaitGroup
	ending.Go(func() {
		// Shutdown returns when all streams have ended, or with bound.
		if e := server.Shutdown(bound); e != nil {
			_ = server.Close() // closes what is left
		}
	})
	err = errors.Join(err, g.agent.Shutdown(bound))
	ending.Wait()
	g.running.Wait()
	if !stopped {
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// serve serves one connection: it starts the agent and passes messages in both directions.
func (g *Gateway) serve(ctx context.Context, t rpc.Transport, peer *remote.Peer) (err error) {
	log := g.log.With("connection", peer.ConnectionID)
	client, err := t.Connect(ctx)
	if err != nil {
		return err
	}
	cmd := g.options.Command(peer)
	said := &input.Lines{Most: maxLogged, Line: func(line string, lost int) {
		attrs := []any{"text", line}
		if lost > 0 {
			attrs = append(attrs, "lost", lost)
		}
		log.Info("agent", attrs...)
	}}
	cmd.Stderr = said
	command := rpc.Command(cmd)
	command.StopTime, command.KillTime = g.options.EndTime, g.options.EndTime
	command.MaxMessage = g.options.Server.MaxMessage
	agent, err := translate.Transport(command, translate.ClientSide, 0, nil).Connect(ctx)
	if err != nil {
		g.numbers.failedToStart.Add(1)
		return fmt.Errorf("cannot start the agent: %w", err)
	}
	g.numbers.started.Add(1)
	g.numbers.processes.Add(1)
	b := newBridge(client, agent)
	b.noise = func(line []byte) {
		g.numbers.noise.Add(1)
		log.Debug("the agent printed something that is not a message", "text", plain.Line(string(line)))
	}
	ended, why := b.run(ctx)
	if ended == b.client {
		b.finish(ctx, g.options.EndTime)
	}
	if e := agent.Close(); e != nil {
		err = fmt.Errorf("ending the agent: %w", e)
	}
	g.numbers.processes.Add(-1)
	said.Flush()
	<-b.down
	// The other direction ends with the connection, which ends after this function has returned.
	g.running.Go(func() { <-b.up })
	log.Debug("the agent has ended", "pid", cmd.Process.Pid, "state", cmd.ProcessState.String())
	if ended == b.agent {
		g.numbers.failedLater.Add(1)
		return errors.Join(fmt.Errorf("the agent ended before its client: %w", why), err)
	}
	return err
}

// maxLogged is how many bytes of a line of an agent's standard error are logged.
const maxLogged = 4 << 10

// Connect does the reverse: it passes messages between a client, usually on standard input and output, and an agent,
// until one of them ends. The error says how the agent ended.
func Connect(ctx context.Context, toAgent, toClient rpc.Transport) error {
	agent, err := toAgent.Connect(ctx)
	if err != nil {
		return err
	}
	client, err := toClient.Connect(ctx)
	if err != nil {
		return errors.Join(err, agent.Close())
	}
	b := newBridge(client, agent)
	ended, why := b.run(ctx)
	closed := errors.Join(agent.Close(), client.Close())
	<-b.up
	<-b.down
	switch {
	case ended == nil, ended == b.client && orderly(why):
		return closed
	case orderly(why):
		return errors.Join(errors.New("the agent closed the connection"), closed)
	default:
		return fmt.Errorf("the %s: %w", ended.name, why)
	}
}
