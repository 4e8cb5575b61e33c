package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/transcript"
	"github.com/acpgo/sdk/internal/plain"
)

// replayFlags are the flags of acp replay.
type replayFlags struct {
	as         oneOf
	speed      float64
	exact      bool
	patience   time.Duration
	silence    time.Duration
	replace    []string
	connection int
	hop        string
}

// clientSilence is how long a live agent may say nothing unless told otherwise: it may ask a model.
const clientSilence = 2 * time.Minute

// newReplayCommand is acp replay.
func newReplayCommand(p *program) *cobra.Command {
	f := &replayFlags{as: oneOf{values: []string{"agent", "client"}}}
	c := &cobra.Command{
		Use:   "replay [FLAGS] FILE --as agent\n  acp replay [FLAGS] FILE --as client -- AGENT [ARG...]",
		Short: "Play one side of a recording to a live program",
		Long: `Play one side of a recording to a live program, and say where that parts from the recording.

As the agent, it talks to the client that has started it, on standard input and output. As the client, it
starts the agent whose command follows. A message is sent when everything has come that came before it in the
recording. Ids that the live side chooses, of requests, sessions, terminals and others, take the place of the
recorded ones.

What is said are messages that are missing, additional, out of order, or of another structure. Texts, numbers,
lengths of lists, and in how many pieces a text comes are no difference, unless --exact is given. Requests that
are not in the recording are answered with an error.

Differences go to standard output, with --as agent to standard error. It ends with 0 if there is none, 1 if there
are some, and 3 if the recording could not be played.`,
		Example: `  acp replay run.jsonl --as client -- my-agent --acp
  acp replay run.jsonl --as client --replace /home/me/project="$PWD" -- my-agent
  my-editor --agent "acp replay run.jsonl --as agent"`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				files, command = args[:dash], args[dash:]
			}
			switch {
			case len(files) != 1:
				return usagef("want one recording, got %d", len(files))
			case f.as.value == "":
				return usagef("want --as agent, or --as client and the agent's command after --")
			case f.as.value == "client" && len(command) == 0:
				return usagef("want the agent's command after --")
			case f.as.value == "agent" && len(command) > 0:
				return usagef("--as agent takes no command")
			}
			return replay(p, f, files[0], command)
		},
	}
	flags := c.Flags()
	flags.Var(&f.as, "as", "the `SIDE` to play: agent or client")
	flags.BoolVar(&f.exact, "exact", false, "compare texts, numbers and lists too")
	flags.Float64Var(&f.speed, "speed", 0, "keep the recorded delays: 1 as they were, 2 half as long, a `NUMBER` (default no delays)")
	flags.StringArrayVar(&f.replace, "replace", nil, "in what is played, replace a text, such as a path: `OLD=NEW`; may be repeated")
	flags.DurationVar(&f.patience, "patience", time.Second, "how long a message is waited for after a later one")
	flags.DurationVar(&f.silence, "silence", 0, "how long the live side may say nothing, 0 is for ever (default "+clientSilence.String()+" with --as client)")
	flags.IntVar(&f.connection, "connection", 1, "the `NUMBER` of the connection to play, where the file has several")
	flags.StringVar(&f.hop, "hop", "", "of a conductor's trace, play what passed after this `COMPONENT` (default client)")
	complete(c, "as", f.as.values...)
	c.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if f.as.value == "client" && !cmd.Flags().Changed("silence") {
			f.silence = clientSilence
		}
		return nil
	}
	return c
}

func replay(p *program, f *replayFlags, name string, command []string) error {
	out, side := p.stdout, conformance.Client
	if f.as.value == "agent" {
		out, side = p.stderr, conformance.Agent
	}
	switch {
	case !(f.speed >= 0) || math.IsInf(f.speed, 0):
		return usagef("--speed %v: want 0 or more", f.speed)
	case f.patience < 0 || f.silence < 0:
		return usagef("--patience %v, --silence %v: want 0 or more", f.patience, f.silence)
	}
	options := &transcript.ReplayOptions{Speed: f.speed, Exact: f.exact, Patience: f.patience, Silence: f.silence}
	for _, pair := range f.replace {
		old, replacement, ok := strings.Cut(pair, "=")
		if !ok || old == "" {
			return usagef("--replace %s: want OLD=NEW", pair)
		}
		options.Replace = append(options.Replace, old, replacement)
	}
	options.OnDifference = func(d transcript.Difference) {
		fmt.Fprintln(out, plain.Sprintf("%s: %s", name, d.String()))
		for _, line := range []struct {
			what string
			text []byte
		}{{"live", d.Live}, {"recorded", d.Line}} {
			if line.text != nil {
				fmt.Fprintln(out, plain.Sprintf("    %-8s  %s", line.what, clip(line.text)))
			}
		}
	}
	recorded, err := readRecorded(p, f, name, side)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var transport rpc.Transport = rpc.Stdio()
	stderr := plain.NewWriter(p.stderr, "agent: ")
	if side == conformance.Client {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stderr = stderr
		transport = rpc.Command(cmd)
	}
	result, err := recorded.Replay(ctx, side, transport, options)
	if err := errors.Join(err, stderr.Flush()); err != nil {
		return err
	}
	if result.Ended != nil {
		fmt.Fprintln(out, plain.Sprintf("%s: the %s ended the connection: %v", name, side.Peer(), result.Ended))
	}
	summary := fmt.Sprintf("%s: %d messages sent, %d met, %s", name, result.Played, result.Met, count(result.Differences, "difference"))
	if result.Dropped > 0 {
		summary += fmt.Sprintf(", %d not sent", result.Dropped)
	}
	fmt.Fprintln(out, plain.Line(summary))
	if result.Differences > 0 || result.Dropped > 0 {
		return &exit{statusFindings, nil}
	}
	return nil
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// maxClip is how much of a message is shown.
const maxClip = 300

func clip(line []byte) string {
	if len(line) > maxClip {
		return fmt.Sprintf("%s… (%d bytes)", line[:maxClip], len(line))
	}
	return string(line)
}

// readRecorded reads what to play. What cannot be read of it is said on standard error.
func readRecorded(p *program, f *replayFlags, name string, side conformance.Side) (*transcript.Recorded, error) {
	var in io.Reader = p.stdin
	if name != "-" || side == conformance.Agent {
		file, err := input.Open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer file.Close()
		in = file
	} else if err := input.HasEnd(in); err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	reader := recording.NewReader(in, &recording.ReaderOptions{Hop: f.hop})
	return transcript.ReadRecorded(name, reader, f.connection, func(err error) {
		fmt.Fprintln(p.stderr, plain.Sprintf("acp: %v", err))
	})
}
