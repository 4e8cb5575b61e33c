package main

import (
	"fmt"
	"io"
	"path"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/plain"
)

// newShowCommand returns the command acp show.
func newShowCommand(p *program) *cobra.Command {
	format := oneOf{value: "text", values: []string{"text", "json"}}
	from := newSideFlag()
	var filter show.Filter
	var stats, full, turns bool
	var hop string
	c := &cobra.Command{
		Use:   "show [FLAGS] [FILE]",
		Short: "Show a recording, one line per message",
		Long: `Show a recording, one line per message: its line in the file, the seconds since the first message, who wrote it
(-> the client, <- the agent), the method, the id, for a response how long it took, the beginning of the session's
id, and the payload without long values. Without a file, or with -, it shows standard input as it arrives.`,
		Example: `  acp show run.jsonl
  acp show --turns run.jsonl            the conversation
  acp show --method 'session/*' --from client run.jsonl
  acp show --finding any run.jsonl      the findings, with their messages
  acp show --stats run.jsonl            counts, delays, tokens`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := path.Match(filter.Method, ""); err != nil {
				return usagef("--method %s: %w", filter.Method, err)
			}
			if turns && (full || stats || format.value == "json") {
				return usagef("--turns prints text and cannot be combined with --full or --stats")
			}
			filter.Sender = from.side
			name, open := "stdin", p.recordingInput
			if len(args) == 1 && args[0] != "-" {
				name, open = args[0], func() (io.ReadCloser, error) { return input.Open(args[0]) }
			}
			in, err := open()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			defer in.Close()
			var printer show.Printer = show.NewText(p.stdout, p.colors, full)
			switch {
			case format.value == "json":
				printer = show.NewJSON(p.stdout)
			case turns:
				printer = show.NewTurns(p.stdout, p.colors)
			}
			return showRecording(p, in, hop, &filter, printer, stats, format.value == "json")
		},
	}
	flags := c.Flags()
	flags.Var(&format, "format", "text or json (one document)")
	flags.StringVar(&filter.Session, "session", "", "only the session whose `ID` begins with this")
	flags.StringVar(&filter.Method, "method", "",
		"only this `METHOD` and its responses; * matches any text without a slash")
	flags.Var(&from, "from", "only what this `SIDE` wrote: client or agent")
	flags.StringVar(&filter.Findings, "finding", "",
		"only messages that break this requirement, an `ID` such as SES-7, or any")
	hopFlag(flags, &hop, "show")
	flags.BoolVar(&full, "full", false, "show whole payloads")
	flags.BoolVar(&turns, "turns", false,
		"show turns as text: messages joined from their chunks, changes of tool calls, plans, permissions")
	flags.BoolVar(&stats, "stats", false,
		"show counts and bytes by method, response times, and the tokens and cost of sessions as far as reported")
	complete(c, "format", format.values...)
	complete(c, "from", from.values...)
	return c
}

// showRecording prints the messages, or counts them.
func showRecording(p *program, in io.Reader, hop string, filter *show.Filter, printer show.Printer, count,
	asJSON bool) error {
	stats, unreadable := show.NewStats(), 0
	err := show.Read(in, &show.Options{
		Judge:  filter.Findings != "",
		Reader: &recording.ReaderOptions{Hop: hop},
		OnMessage: func(m *show.Message) error {
			if !filter.Match(m) {
				return nil
			}
			if count {
				stats.Add(m)
				return nil
			}
			return printer.Message(m, filter.Of(m.Findings))
		},
		OnFinding: func(line int, f conformance.Finding) error {
			if count || len(filter.Of([]conformance.Finding{f})) == 0 {
				return nil
			}
			return printer.Finding(line, f)
		},
		OnProblem: func(line int, text string, usable bool) error {
			if !usable {
				unreadable++
			}
			_, err := fmt.Fprintf(p.stderr, "acp: %s\n", plain.Sprintf("line %d: %s", line, text))
			return err
		},
	})
	if err != nil {
		return err
	}
	switch {
	case !count:
		err = printer.End()
	case asJSON:
		err = stats.WriteJSON(p.stdout)
	default:
		err = stats.WriteText(p.stdout)
	}
	if err == nil && unreadable > 0 {
		return &exit{statusFailed, nil}
	}
	return err
}
