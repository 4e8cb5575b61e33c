package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/natsacp"
)

// gatewayFlags are the flags of a gateway.
type gatewayFlags struct {
	listen, path, tokenFile, cert, key string
	noToken                            bool
	name                               string
	keep                               int
	server                             remote.HandlerOptions
}

func (f *gatewayFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8123",
		"the `ADDRESS` for clients; port 0 chooses a free one, which is printed")
	flags.StringVar(&f.path, "path", remote.DefaultPath, "the `PATH` of the agent")
	flags.StringVar(&f.tokenFile, "token-file", "", "a `FILE` with a line for each user, NAME TOKEN")
	flags.BoolVar(&f.noToken, "no-token", false, "accept clients without a token, on any address")
	flags.StringVar(&f.cert, "tls-cert", "", "the `FILE` of the certificate, in PEM")
	flags.StringVar(&f.key, "tls-key", "", "the `FILE` of its key, in PEM")
	flags.IntVar(&f.keep, "keep", 1000,
		"keep the last `N` messages of each HTTP stream, at most 1 MiB, for clients that lose it and come back")
	flags.StringVar(&f.name, "gateway", "", "the `NAME` of the gateway in the fleet (default random)")
	flags.StringSliceVar(&f.server.AllowedOrigins, "allow-origin", nil,
		"an `ORIGIN` whose pages may connect, such as https://editor.example")
	flags.StringSliceVar(&f.server.AllowedHosts, "allow-host", nil, "on loopback: a `NAME` that a proxy passes on as Host")
	flags.IntVar(&f.server.MaxConnections, "max-connections", 10_000, "allow at most `N` connections")
}

// nodeFlags are the flags of a node.
type nodeFlags struct {
	dir       string
	drainTime time.Duration
	opts      natsacp.NodeOptions
}

func (f *nodeFlags) add(flags *pflag.FlagSet) {
	flags.SetInterspersed(false) // the agent's flags are its own
	flags.StringVar(&f.opts.Name, "node", "", "the `NAME` of the node in the fleet (default random)")
	flags.IntVar(&f.opts.MaxSessions, "max-sessions", 1000, "run at most `N` agents")
	flags.IntVar(&f.opts.MaxSessionsPerPrincipal, "max-sessions-each", 0,
		"run at most `N` agents for one user (default half of all)")
	flags.IntVar(&f.opts.Window, "window", 1<<20, "how many `BYTES` an agent may be ahead of its client")
	flags.DurationVar(&f.opts.Grace, "grace", 10*time.Minute,
		"how much `TIME` a turn has to end after its client has gone")
	flags.DurationVar(&f.drainTime, "drain-timeout", 5*time.Minute,
		"how much `TIME` turns have to end when the node is drained or stopped")
	flags.StringVar(&f.dir, "cwd", "", "the `DIR` in which the agents start; default: the current one")
}

func newGateway() *cobra.Command {
	f, g := &fleetFlags{}, &gatewayFlags{}
	c := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the agents of a fleet over WebSocket and HTTP",
		Long: `Serve the agents of a fleet over WebSocket and HTTP. Any number of gateways may serve a fleet: clients that lose one
continue at another.

Anyone who can connect can do whatever the agents can. Without tokens, a gateway serves on loopback addresses only.
/healthz answers while the process lives, and /readyz while it reaches NATS.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.serve(c, "gateway", func(fleet *natsacp.Fleet, log *slog.Logger, hooks rpc.Hooks) error {
				return g.run(c, fleet, log, hooks, nil)
			})
		},
	}
	f.add(c)
	g.add(c.Flags())
	return c
}

// serve is open for a process that serves, which exports telemetry.
func (f *fleetFlags) serve(c *cobra.Command, role string,
	do func(*natsacp.Fleet, *slog.Logger, rpc.Hooks) error) error {
	return f.open(c, role, func(fleet *natsacp.Fleet, log *slog.Logger) error {
		hooks, end, err := telemetry(c.Context(), log)
		if err != nil {
			return err
		}
		defer end()
		return do(fleet, log, hooks)
	})
}

// tokens returns the tokens by user.
func (f *gatewayFlags) tokens() (map[string]string, error) {
	if f.tokenFile == "" {
		return nil, nil
	}
	text, err := readSecret(f.tokenFile)
	if err != nil {
		return nil, err
	}
	tokens := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) != 2:
			return nil, fmt.Errorf("%s: expected NAME TOKEN on each line", f.tokenFile)
		default:
			tokens[fields[0]] = fields[1]
		}
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s has no token", f.tokenFile)
	}
	return tokens, nil
}

// run serves clients until the context ends. started is called when it does.
func (f *gatewayFlags) run(c *cobra.Command, fleet *natsacp.Fleet, log *slog.Logger, hooks rpc.Hooks,
	started func()) error {
	tokens, err := f.tokens()
	if err != nil {
		return err
	}
	if (f.cert == "") != (f.key == "") {
		return errors.New("expected both --tls-cert and --tls-key, or neither")
	}
	if f.cert != "" {
		if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
			return err
		}
	}
	o := f.server
	if o.Logger = log; tokens != nil {
		o.Authenticate = remote.BearerToken(tokens)
	}
	o.AllowUnauthenticated = f.noToken
	if f.keep > 0 {
		o.History = remote.MemoryHistory(f.keep, 1<<20)
	}
	gateway, err := fleet.StartGateway(c.Context(),
		&natsacp.GatewayOptions{Name: f.name, Server: &o, Hooks: hooks, Logger: log})
	if err != nil {
		return err
	}
	defer func() {
		if err := gateway.Close(); err != nil {
			log.Warn("the gateway is not unregistered", "error", err)
		}
	}()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	if err := gateway.CheckListener(listener); err != nil {
		return fmt.Errorf("%w: expected --token-file or --no-token", errors.Join(err, listener.Close()))
	}
	mux := health(gateway.Ready)
	mux.Handle(f.path, gateway)
	http := remote.NewHTTPServer(mux)
	scheme := "http"
	served := make(chan error, 1)
	if f.cert != "" {
		scheme = "https"
		go func() { served <- http.ServeTLS(listener, f.cert, f.key) }()
	} else {
		go func() { served <- http.Serve(listener) }()
	}
	fmt.Fprintf(c.OutOrStdout(), "%s://%s%s\n", scheme, listener.Addr(), f.path)
	if started != nil {
		started()
	}
	select {
	case err := <-served:
		return err
	case <-c.Context().Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = gateway.Shutdown(ctx)
	return errors.Join(err, http.Close())
}

// health returns a mux with the paths for health checks.
func health(ready func() bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

func newNode() *cobra.Command {
	f, n := &fleetFlags{}, &nodeFlags{}
	var healthListen string
	c := &cobra.Command{
		Use:   "node [FLAGS] -- AGENT [ARG...]",
		Short: "Run agents for sessions of a fleet",
		Long: `Run agents for sessions of a fleet: a process for each. The agent must keep its sessions where all nodes can load them,
and be able to load or resume them.

TERM, an interrupt (Ctrl-C) and "acp-fleet drain" move the sessions to other nodes, after their turns, and then the
process exits. A second signal ends it at once.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.serve(c, "node", func(fleet *natsacp.Fleet, log *slog.Logger, hooks rpc.Hooks) error {
				n.opts.Hooks = hooks
				node, err := n.start(c.Context(), fleet, log, args)
				if err != nil {
					return err
				}
				if healthListen != "" {
					listener, err := net.Listen("tcp", healthListen)
					if err != nil {
						return errors.Join(err, node.Close())
					}
					server := &http.Server{Handler: health(node.Ready), ReadHeaderTimeout: 10 * time.Second,
						ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
					go server.Serve(listener)
					defer server.Close()
				}
				fmt.Fprintf(c.OutOrStdout(), "node %s is ready\n", node.Name())
				select {
				case <-node.Drained():
				case <-c.Context().Done():
					log.Info("the node is drained")
					ctx, cancel := context.WithTimeout(context.Background(), n.drainTime)
					defer cancel()
					if err := node.Drain(ctx); err != nil {
						log.Warn("turns are interrupted", "error", err)
					}
				}
				return node.Close()
			})
		},
	}
	f.add(c)
	n.add(c.Flags())
	c.Flags().StringVar(&healthListen, "health", "", "an `ADDRESS` that serves /healthz and /readyz")
	return c
}

// start starts a node.
func (f *nodeFlags) start(ctx context.Context, fleet *natsacp.Fleet, log *slog.Logger, args []string) (*natsacp.Node,
	error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	f.opts.Logger = log
	return fleet.StartNode(ctx, func(string) rpc.Transport {
		command := rpc.Command(&exec.Cmd{Path: path, Args: args, Dir: f.dir, Stderr: os.Stderr})
		command.StopTime, command.KillTime = 2*time.Second, 2*time.Second
		return command
	}, &f.opts)
}

func newUp() *cobra.Command {
	f, g, n := &fleetFlags{}, &gatewayFlags{}, &nodeFlags{}
	var store, natsListen, cert, key string
	c := &cobra.Command{
		Use:   "up [FLAGS] -- AGENT [ARG...]",
		Short: "Run a fleet in one process, with its own NATS server",
		Long: `Run a fleet in one process: a NATS server, a gateway and a node. It is for trying a fleet out, and for small teams.
With --nats-listen, more nodes and gateways can join; they need the token in the file that is printed. Without TLS, the
NATS server listens on loopback addresses only.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, tokenFile, err := embed(store, natsListen, cert, key)
			if err != nil {
				return err
			}
			defer func() {
				s.Shutdown()
				s.WaitForShutdown()
			}()
			f.server, f.tokenFile = s, tokenFile
			return f.serve(c, "up", func(fleet *natsacp.Fleet, log *slog.Logger, hooks rpc.Hooks) error {
				n.opts.Name, n.opts.Hooks = cmp.Or(n.opts.Name, "first"), hooks
				node, err := n.start(c.Context(), fleet, log, args)
				if err != nil {
					return err
				}
				ended, closed := make(chan struct{}), make(chan error, 1)
				go func() {
					select {
					case <-node.Drained(): // the gateway continues
					case <-ended:
					}
					closed <- node.Close()
				}()
				err = g.run(c, fleet, log, hooks, func() {
					if natsListen != "" {
						fmt.Fprintf(c.OutOrStdout(), "join with --nats %s --nats-token-file %s\n", s.ClientURL(), tokenFile)
					}
				})
				close(ended)
				return errors.Join(err, <-closed)
			})
		},
	}
	f.addOptions(c)
	g.add(c.Flags())
	n.add(c.Flags())
	c.Flags().StringVar(&store, "store", "",
		"the `DIR` of the NATS server's data (default acp-fleet in the user's cache directory)")
	c.Flags().StringVar(&natsListen, "nats-listen", "",
		"an `ADDRESS` where other nodes and gateways reach the NATS server")
	c.Flags().StringVar(&cert, "nats-cert", "", "the `FILE` of the certificate of the NATS server, in PEM")
	c.Flags().StringVar(&key, "nats-key", "", "the `FILE` of its key, in PEM")
	return c
}

// embed starts a NATS server in this process. Its clients need the token in the file. With a certificate, it serves
// TLS.
func embed(dir, listen, cert, key string) (s *server.Server, tokenFile string, err error) {
	o := &server.Options{DontListen: listen == "", JetStream: true, NoSigs: true, NoLog: true}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, "", fmt.Errorf("--nats-cert and --nats-key: %w", err)
		}
		o.TLS, o.TLSTimeout, o.TLSConfig = true, 5, &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	if listen != "" {
		host, port, err := net.SplitHostPort(listen)
		if err != nil {
			return nil, "", fmt.Errorf("--nats-listen: %w", err)
		}
		if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() && !o.TLS {
			return nil, "", fmt.Errorf("--nats-listen %s: not a loopback address, such as 127.0.0.1:%s: expected --nats-cert "+
				"and --nats-key", listen, port)
		}
		if o.Port, err = strconv.Atoi(port); err != nil {
			return nil, "", fmt.Errorf("--nats-listen: %w", err)
		}
		if o.Host = host; o.Port == 0 {
			o.Port = server.RANDOM_PORT
		}
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, "", err
		}
		dir = filepath.Join(cache, "acp-fleet")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	tokenFile = filepath.Join(dir, "token")
	token, err := readSecret(tokenFile)
	if errors.Is(err, os.ErrNotExist) {
		token = rand.Text()
		err = os.WriteFile(tokenFile, []byte(token), 0o600)
	}
	if err != nil {
		return nil, "", err
	}
	o.StoreDir, o.Authorization = dir, token
	if s, err = server.NewServer(o); err != nil {
		return nil, "", err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return nil, "", errors.New("the NATS server does not start: another acp-fleet may use the directory " + dir)
	}
	return s, tokenFile, nil
}
