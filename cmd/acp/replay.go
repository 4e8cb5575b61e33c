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

// clientSilence is the default of --silence when the live side is an agent, which may have to wait for a model.
const clientSilence = 2 * time.Minute

// newReplayCommand returns the command acp replay.
func newReplayCommand(p *program) *cobra.Command {
	f := &replayFlags{as: oneOf{values: []string{"agent", "client"}}}
	c := &cobra.Command{
		Use:   "replay [FLAGS] FILE --as agent\n  acp replay [FLAGS] FILE --as client -- AGENT [ARG...]",
		Short: "Replay one side of a recording to a live program",
		Long: `Replay one side of a recording to a live program, and report where the program departs from the recording.

As the agent, it talks on standard input and output to the client that started it. As the client, it starts the
agent whose command follows. Each message is sent once everything that precedes it in the recording has arrived.
Ids that the live side chooses, such as those of requests, sessions and terminals, replace the recorded ones.

Differences are messages that are missing, additional, out of order, or of another structure. Texts, numbers,
lengths of lists, and how a text is split into chunks do not count, unless --exact is given. Requests that are not
in the recording are answered with an error.

Differences are printed on standard output, with --as agent on standard error. The exit status is 0 if there are
none, 1 if there are some, and 3 if the recording could not be played.`,
		Example: `  acp replay run.jsonl --as client -- my-agent --acp
  acp replay run.jsonl --as client --replace /home/me/project="$PWD" -- my-agent
  my-editor --agent "acp replay run.jsonl --as agent"`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, command, err := splitArgs(cmd, args)
			switch {
			case err != nil:
				return err
			case len(files) != 1:
				return usagef("expected one recording, got %d", len(files))
			case f.as.value == "":
				return usagef("expected --as agent, or --as client and the agent's command after --")
			case f.as.value == "client" && len(command) == 0:
				return usagef("expected the agent's command after --")
			case f.as.value == "agent" && len(command) > 0:
				return usagef("--as agent takes no command")
			}
			return replay(p, f, files[0], command)
		},
	}
	flags := c.Flags()
	flags.Var(&f.as, "as", "the `SIDE` to play: agent or client")
	flags.BoolVar(&f.exact, "exact", false, "also compare texts, numbers and lists")
	flags.Float64Var(&f.speed, "speed", 0,
		"keep the recorded delays, divided by this `NUMBER`: 1 as recorded, 2 half as long (default no delays)")
	flags.StringArrayVar(&f.replace, "replace", nil,
		"replace a text, such as a path, in the messages that are sent: `OLD=NEW`; may be repeated")
	flags.DurationVar(&f.patience, "patience", time.Second, "how long to wait for a message after a later one has arrived")
	flags.DurationVar(&f.silence, "silence", 0, "how long the live side may be silent; 0 means forever (default "+
		clientSilence.String()+" with --as client)")
	flags.IntVar(&f.connection, "connection", 1, "the `NUMBER` of the connection to play, if the file has several")
	hopFlag(flags, &f.hop, "play")
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
		return usagef("--speed %v: expected 0 or more", f.speed)
	case f.patience < 0 || f.silence < 0:
		return usagef("--patience %v, --silence %v: expected 0 or more", f.patience, f.silence)
	}
	options := &transcript.ReplayOptions{Speed: f.speed, Exact: f.exact, Patience: f.patience, Silence: f.silence}
	for _, pair := range f.replace {
		old, replacement, ok := strings.Cut(pair, "=")
		if !ok || old == "" {
			return usagef("--replace %s: expected OLD=NEW", pair)
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
	summary := fmt.Sprintf("%s: %d messages sent, %d matched, %s", name, result.Played, result.Met,
		count(result.Differences, "difference"))
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

// maxClip is the number of bytes of a message that are shown.
const maxClip = 300

func clip(line []byte) string {
	if len(line) > maxClip {
		return fmt.Sprintf("%s… (%d bytes)", line[:maxClip], len(line))
	}
	return string(line)
}

// readRecorded reads the recording. It reports on standard error what cannot be read.
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
