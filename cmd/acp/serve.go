package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/gateway"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
)

// serveFlags are the flags of acp serve.
type serveFlags struct {
	listen, path, health, metrics string
	tokenFile, tokenEnv           string
	noToken                       bool
	cert, key                     string
	env                           []string
	dir, state                    string
	endTime, shutdownTime         time.Duration
	logJSON, logDebug             bool
	keep                          int
	server                        remote.HandlerOptions
}

// newServeCommand returns the command acp serve.
func newServeCommand(p *program) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve [FLAGS] -- AGENT [ARG...]",
		Short: "Serve an agent over WebSocket and HTTP",
		Long: `Serve an agent over WebSocket and HTTP. Each connection that a client opens gets its own process of the agent,
which ends with the connection.

Anyone who can connect can do whatever the agent can. Without a token, acp serves on loopback addresses only. A
file of tokens has one per line; with a name before it, as in "ada TOKEN", connections of different names are kept
apart, and their agents have different homes: HOME and the variables for state, data, configuration and caches lead to a
directory of each name below --state. So each user has sessions and logins of their own, as far as the agent keeps them
there. Agents behind a token without a name have your home. All agents run as you, so an agent that runs
commands can read the files of another user's agent; run one server for each user, in a container, if that matters.

Without TLS, tokens and conversations are sent in the clear: use --tls-cert and --tls-key, or a proxy in front
of acp. A page in a browser may connect if its origin is this server's own or is listed in --allow-origin.

Standard error has a line for each connection that begins and ends, and what the agents write there. An
interrupt (Ctrl-C) or TERM stops the server: it accepts no more connections, agents read the end of their input and
may finish, and then it exits. A second one closes everything at once.`,
		Example: `  acp serve -- my-agent --acp                                   on http://127.0.0.1:8123/acp
  acp serve --listen :8443 --token-file tokens --tls-cert cert.pem --tls-key key.pem -- my-agent
  acp serve --allow-origin https://editor.example -- my-agent   for a page in a browser`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("expected the agent's command")
			case (f.cert == "") != (f.key == ""):
				return usagef("expected both --tls-cert and --tls-key, or neither")
			case f.keep < 0:
				return usagef("--keep must not be negative")
			case !strings.HasPrefix(f.path, "/"), f.health != "" && !strings.HasPrefix(f.health, "/"), f.health == f.path:
				return usagef("--path and --health must begin with / and differ")
			}
			return serveAgent(p, f, args)
		},
	}
	flags, o := c.Flags(), &f.server
	flags.SetInterspersed(false) // the agent's flags are its own
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8123",
		"the `ADDRESS` to listen on; port 0 chooses a free one, which is printed")
	flags.StringVar(&f.path, "path", remote.DefaultPath, "the `PATH` of the agent")
	flags.StringVar(&f.health, "health", "/healthz",
		"a `PATH` that answers 200, or 503 while the server shuts down; empty for none")
	flags.StringVar(&f.metrics, "metrics", "", "a separate `ADDRESS` that serves http://ADDRESS/metrics for Prometheus")
	addTokenFlags(flags, &f.tokenFile, &f.tokenEnv, "ACP_SERVE_TOKEN")
	flags.BoolVar(&f.noToken, "no-token", false, "accept connections without a token, on any address")
	flags.StringSliceVar(&o.AllowedOrigins, "allow-origin", nil,
		"an `ORIGIN` whose pages may connect, such as https://editor.example")
	flags.StringSliceVar(&o.AllowedHosts, "allow-host", nil, "on loopback: a `NAME` that a proxy passes on as Host")
	flags.StringVar(&o.TokenQuery, "token-query", "", "a `PARAMETER` of the URL that may contain the token of a WebSocket")
	flags.StringVar(&f.cert, "tls-cert", "", "the `FILE` of the certificate, in PEM")
	flags.StringVar(&f.key, "tls-key", "", "the `FILE` of its key, in PEM")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the agent, as `NAME=VALUE`")
	flags.StringVar(&f.state, "state", "",
		"the `DIR` of the homes of the agents behind named tokens; default: acp/serve in the user's state directory")
	flags.StringVar(&f.dir, "cwd", "", "the `DIR` in which the agents start; default: the current one")
	flags.BoolVar(&o.DisableWebSocket, "no-websocket", false, "serve only HTTP")
	flags.BoolVar(&o.DisableHTTP, "no-http", false, "serve only WebSocket")
	flags.IntVar(&o.MaxConnections, "max-connections", 100, "allow at most `N` connections, and so agents")
	flags.IntVar(&o.MaxConnectionsPerPrincipal, "max-connections-each", 0,
		"allow a named token at most `N` connections (default half of all)")
	flags.IntVar(&o.MaxMessage, "max-message", rpc.DefaultMaxMessage, "the maximum length of a message in `BYTES`")
	flags.DurationVar(&o.Expiry, "expiry", 5*time.Minute,
		"the `TIME` after which an HTTP connection ends whose client has gone")
	flags.IntVar(&f.keep, "keep", 1000,
		"keep the last `N` messages of each HTTP stream, at most 1 MiB, for clients that lose it and come back")
	flags.DurationVar(&o.Grace, "grace", 0, "how much `TIME` an agent has to continue working after its WebSocket is lost")
	flags.DurationVar(&o.KeepAlive, "keep-alive", 15*time.Second,
		"keep a connection alive that has been idle for this `TIME`")
	flags.DurationVar(&f.endTime, "end-timeout", 2*time.Second,
		"the `TIME` for each step of ending an agent: closed input, TERM, KILL")
	flags.DurationVar(&f.shutdownTime, "shutdown-timeout", 20*time.Second, "how much `TIME` all connections have to end")
	flags.BoolVar(&f.logJSON, "log-json", false, "log in JSON")
	flags.BoolVar(&f.logDebug, "log-debug", false, "log more")
	return c
}

// serveAgent serves the agent until it is interrupted.
func serveAgent(p *program, f *serveFlags, args []string) error {
	command, err := resolveAgent(args, f.dir)
	if err != nil {
		return err
	}
	tokens, err := agents.Tokens(f.tokenFile, f.tokenEnv)
	if err != nil {
		return err
	}
	if f.cert != "" {
		if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
			return err
		}
	}
	o := f.server
	switch {
	case len(tokens) > 0:
		o.Authenticate = remote.BearerToken(tokens)
	case f.noToken:
		o.AllowUnauthenticated = true
	}
	if f.keep > 0 {
		o.History = remote.MemoryHistory(f.keep, keptBytes)
	}
	o.Logger = f.logger(p.stderr)
	o.CloseTime = 4 * f.endTime // by then the agent has ended, whatever it does
	homes, err := f.homes(tokens)
	if err != nil {
		return err
	}
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, f.tokenEnv+"=") })
	g := gateway.New(gateway.Options{
		Command: func(peer *remote.Peer) *exec.Cmd {
			return &exec.Cmd{Path: command[0], Args: args, Dir: f.dir, Env: slices.Concat(environ, homes[peer.Principal], f.env)}
		},
		Path: f.path, Health: f.health, Server: o, EndTime: f.endTime, ShutdownTime: f.shutdownTime, Certificate: f.cert,
		Key: f.key,
	})
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	if err := g.Check(listener); err != nil {
		return &exit{statusUsage, fmt.Errorf("%w: expected --token-file or $%s, or --no-token",
			errors.Join(err, listener.Close()), f.tokenEnv)}
	}
	ctx, force, stop := untilSignals()
	defer stop()
	if f.metrics != "" {
		end, at, err := serveMetrics(f.metrics, g.Metrics())
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer end()
		o.Logger.Info("acp: metrics", "at", at)
	}
	fmt.Fprintf(p.stdout, "%s\n", f.url(listener.Addr()))
	return g.Serve(ctx, force, listener)
}

// homes returns the variables of the agents of each named principal.
func (f *serveFlags) homes(tokens map[string]string) (map[string][]string, error) {
	homes := map[string][]string{}
	for name := range tokens {
		if name == "" {
			continue
		}
		if f.state == "" {
			state, err := names.StateDir()
			if err != nil {
				return nil, fmt.Errorf("%w: expected --state", err)
			}
			f.state = filepath.Join(state, "serve")
		}
		dir, err := filepath.Abs(f.state)
		if err != nil {
			return nil, err
		}
		home, err := names.HomeOf(dir, name)
		if err != nil {
			return nil, fmt.Errorf("the home of %q: %w", name, err)
		}
		homes[name] = names.HomeVariables(home)
	}
	return homes, nil
}

// keptBytes is how many bytes of a stream are kept at most, whatever --keep says.
const keptBytes = 1 << 20

// resolveAgent finds the agent's program, so that a missing program is reported now and not when a client connects.
func resolveAgent(args []string, dir string) ([]string, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	if dir != "" {
		if err := input.Folder(dir); err != nil {
			return nil, err
		}
	}
	return append([]string{path}, args[1:]...), nil
}

// url returns the URL of the agent.
func (f *serveFlags) url(addr net.Addr) string {
	scheme := "http"
	if f.cert != "" {
		scheme = "https"
	}
	return scheme + "://" + addr.String() + f.path
}

func (f *serveFlags) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.logDebug {
		o.Level = slog.LevelDebug
	}
	if f.logJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// untilSignals returns a context that ends with the first interrupt or TERM, and one that ends with the second.
func untilSignals() (ctx, force context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	force, cancelForce := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for _, next := range []func(){cancel, cancelForce} {
			select {
			case <-signals:
				next()
			case <-force.Done():
			}
		}
	}()
	return ctx, force, func() {
		signal.Stop(signals)
		cancel()
		cancelForce()
	}
}

// serveMetrics serves metrics at a separate address.
func serveMetrics(address string, metrics http.Handler) (end func(), at string, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until the server is closed
	}()
	return func() {
		_ = server.Close() // the program ends
		<-served
	}, fmt.Sprintf("http://%s/metrics", listener.Addr()), nil
}

// addTokenFlags adds the flags for a token, which is never on the command line, where other users can see it.
func addTokenFlags(flags *pflag.FlagSet, file, variable *string, name string) {
	flags.StringVar(file, "token-file", "", "a `FILE` with the token")
	flags.StringVar(variable, "token-env", name, "the environment `VARIABLE` that has the token")
}
