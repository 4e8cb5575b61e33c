// Acp-fleet runs the sessions of an agent on many machines, with NATS. See docs/fleet.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/plain"
	"github.com/acpgo/sdk/internal/secretfile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	root := newRoot(os.Stdout, os.Stderr)
	root.SetArgs(os.Args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "acp-fleet: %s\n", plain.Text(err.Error()))
		os.Exit(1)
	}
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "acp-fleet",
		Short: "Run the sessions of an agent on many machines, with NATS",
		Long: `Acp-fleet runs the sessions of an agent of the Agent Client Protocol on many machines. Nodes run an agent for each
session; gateways serve clients over WebSocket and HTTP; NATS with JetStream connects them and keeps the records.`,
		Example: `  acp-fleet up -- my-agent                                    everything in one process
  acp-fleet node --nats nats://nats:4222 -- my-agent          on each machine that runs agents
  acp-fleet gateway --nats nats://nats:4222 --listen :8443    on each machine that clients reach`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newUp(), newGateway(), newNode(), newSessions(), newNodes(), newDrain())
	return root
}

// fleetFlags say where the fleet is.
type fleetFlags struct {
	url, creds        string
	user, tokenFile   string
	ca, cert, key     string
	opts              natsacp.Options
	logJSON, logDebug bool
	connectTime       time.Duration
	server            nats.InProcessConnProvider // in this process, or nil
}

func (f *fleetFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.url, "nats", nats.DefaultURL, "the `URL` of a NATS server; several are separated by commas")
	flags.StringVar(&f.creds, "creds", "", "a `FILE` with NATS credentials")
	flags.StringVar(&f.user, "nats-user", "", "the `NAME` of a user of NATS, whose password is in --nats-token-file")
	flags.StringVar(&f.tokenFile, "nats-token-file", "", "a `FILE` with a token for NATS, or a password")
	flags.StringVar(&f.ca, "nats-ca", "", "a `FILE` with the certificates that NATS servers are verified with")
	flags.StringVar(&f.cert, "nats-cert", "", "a `FILE` with a certificate for NATS")
	flags.StringVar(&f.key, "nats-key", "", "the `FILE` of its key")
	flags.DurationVar(&f.connectTime, "connect-timeout", 30*time.Second,
		"how much `TIME` the first connection to NATS may take")
	f.addOptions(c)
}

// addOptions adds the flags that up has too.
func (f *fleetFlags) addOptions(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.opts.Name, "fleet", "acp", "the `NAME` of the fleet")
	flags.IntVar(&f.opts.Replicas, "replicas", 1, "keep each piece of data on `N` servers; for a fleet that is created")
	flags.DurationVar(&f.opts.Lease, "lease", 15*time.Second,
		"the `TIME` after which a silent node is dead; for a fleet that is created")
	flags.DurationVar(&f.opts.LogAge, "log-age", time.Hour,
		"keep agents' messages for this `TIME`; for a fleet that is created")
	flags.Int64Var(&f.opts.LogBytes, "log-bytes", 1<<30,
		"keep at most this many `BYTES` of them; for a fleet that is created")
	flags.BoolVar(&f.logJSON, "log-json", false, "log in JSON")
	flags.BoolVar(&f.logDebug, "log-debug", false, "log more")
}

func (f *fleetFlags) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.logDebug {
		o.Level = slog.LevelDebug
	}
	if f.logJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// connect connects to NATS. Each role has inboxes of its own, so that permissions can keep others from them.
func (f *fleetFlags) connect(ctx context.Context, role string, log *slog.Logger) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name("acp-fleet"),
		nats.CustomInboxPrefix("_INBOX." + role),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.PingInterval(5 * time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is not connected", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("NATS is connected again", "url", nc.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription,
			err error) {
			log.Warn("NATS reports an error", "error", err)
		}),
	}
	if f.server != nil {
		options = append(options, nats.InProcessServer(f.server))
	}
	if f.creds != "" {
		options = append(options, nats.UserCredentials(f.creds))
	}
	if f.tokenFile != "" {
		token, err := readSecret(f.tokenFile)
		if err != nil {
			return nil, err
		}
		if token = strings.TrimSpace(token); f.user != "" {
			options = append(options, nats.UserInfo(f.user, token))
		} else {
			options = append(options, nats.Token(token))
		}
	} else if f.user != "" {
		return nil, errors.New("expected --nats-token-file with the password of --nats-user")
	}
	if f.ca != "" {
		options = append(options, nats.RootCAs(f.ca))
	}
	if f.cert != "" {
		options = append(options, nats.ClientCert(f.cert, f.key))
	}
	end := time.Now().Add(f.connectTime)
	for {
		nc, err := nats.Connect(f.url, options...)
		if err == nil || time.Now().After(end) || errors.Is(err, nats.ErrAuthorization) {
			if err != nil {
				err = fmt.Errorf("connecting to NATS: %w", err)
			}
			return nc, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// readSecret reads a file that others must not be able to read or change.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = secretfile.Check(path, info)
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// open connects to the fleet in a role, while do runs.
func (f *fleetFlags) open(c *cobra.Command, role string, do func(*natsacp.Fleet, *slog.Logger) error) error {
	log := f.logger(c.ErrOrStderr())
	nc, err := f.connect(c.Context(), role, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	fleet, err := natsacp.Open(c.Context(), nc, &f.opts)
	if err != nil {
		return err
	}
	return do(fleet, log)
}

// listing adds what commands have that print a list: as JSON, or as a table.
func listing(c *cobra.Command,
	read func(context.Context, *natsacp.Fleet) (list any, rows [][]string, err error)) *cobra.Command {
	f := &fleetFlags{}
	var asJSON bool
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.open(c, "operator", func(fleet *natsacp.Fleet, _ *slog.Logger) error {
			list, rows, err := read(c.Context(), fleet)
			if err != nil {
				return err
			}
			if !asJSON {
				return printTable(c.OutOrStdout(), rows)
			}
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(list)
		})
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newSessions() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of a fleet",
		Long:  "List the sessions of a fleet: where each is, and what became of its last prompt. Session ids are secrets.",
	}, func(ctx context.Context, fleet *natsacp.Fleet) (any, [][]string, error) {
		all, err := fleet.Sessions(ctx)
		rows := [][]string{{"SESSION", "PRINCIPAL", "NODE", "EPOCH", "TURN", "STATE", "CWD"}}
		for _, s := range all {
			rows = append(rows, []string{
				s.ID, s.Principal, s.Node, fmt.Sprint(s.Epoch), fmt.Sprint(s.Turn.Number), string(s.Turn.State), s.Cwd,
			})
		}
		return all, rows, err
	})
}

func newNodes() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "nodes",
		Short: "List the nodes and gateways that are alive",
	}, func(ctx context.Context, fleet *natsacp.Fleet) (any, [][]string, error) {
		nodes, err := fleet.Nodes(ctx)
		if err != nil {
			return nil, nil, err
		}
		gateways, err := fleet.Gateways(ctx)
		rows := [][]string{{"NAME", "ROLE", "SESSIONS", "MAX", "STATE", "SINCE", "PROTOCOL"}}
		for _, n := range nodes {
			state := "ready"
			if n.Draining {
				state = "draining"
			}
			protocol := "-" // no agent has answered yet
			if n.Protocol > 0 {
				protocol = fmt.Sprint(n.Protocol)
			}
			rows = append(rows, []string{
				n.Name, "node", fmt.Sprint(n.Sessions), fmt.Sprint(n.Max), state, n.Since.Format(time.DateTime), protocol,
			})
		}
		for _, g := range gateways {
			rows = append(rows, []string{g.Name, "gateway", fmt.Sprint(g.Sessions), "", "ready", g.Since.Format(time.DateTime),
				"1, 2"})
		}
		return map[string]any{"nodes": nodes, "gateways": gateways}, rows, err
	})
}

func newDrain() *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use:   "drain NODE",
		Short: "Move the sessions of a node elsewhere, and end it",
		Long: `Move the sessions of a node elsewhere, and end it. It takes no new sessions; running turns end first. Clients notice
only a delay. Drain prints how many sessions are left, and returns when the node has ended.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.open(c, "operator", func(fleet *natsacp.Fleet, _ *slog.Logger) error {
				ctx, told, drained := c.Context(), -1, false
				for {
					nodes, err := fleet.Nodes(ctx)
					if err != nil {
						return err
					}
					at := slices.IndexFunc(nodes, func(n natsacp.Member) bool { return n.Name == args[0] })
					if !drained { // it may end before it is seen again
						if err := fleet.Drain(ctx, args[0]); err != nil {
							return err
						}
						drained = true
					} else if at < 0 {
						_, err := fmt.Fprintf(c.OutOrStdout(), "node %s has ended\n", plain.Line(args[0]))
						return err
					}
					if at >= 0 && nodes[at].Sessions != told {
						told = nodes[at].Sessions
						if _, err := fmt.Fprintf(c.OutOrStdout(), "node %s is draining, sessions left: %d\n", plain.Line(args[0]),
							told); err != nil {
							return err
						}
					}
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-time.After(250 * time.Millisecond):
					}
				}
			})
		},
	}
	f.add(c)
	return c
}

func printTable(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = plain.Line(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}
