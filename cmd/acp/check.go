package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/report"
)

// checkFlags are the flags of acp check.
type checkFlags struct {
	reportFlags
	level        levelFlag
	side         sideFlag
	only, ignore []string
	accepted     string
	protocol     oneOf
	stable       bool
	schema       string
	hop          string
	max          int
}

// newCheckCommand returns the command acp check.
func newCheckCommand(p *program) *cobra.Command {
	f := &checkFlags{
		level:    newLevelFlag(conformance.ShouldNot),
		side:     newSideFlag(),
		protocol: oneOf{values: protocolNames},
	}
	c := &cobra.Command{
		Use:   "check [FLAGS] [FILE...]",
		Short: "Check recordings against the protocol's requirements",
		Long: `Check recordings: whether each message conforms to the protocol's schema, and the conversation to the protocol.
Without a file, or with -, it judges standard input as it arrives.

It reads recordings of acp record, plain lines of JSON-RPC, and the logs of other tools, and detects which it is.
The exit status is 0 if everything conforms, 1 if there are findings, and 3 if something could not be read.

A file of accepted findings has one per line: the requirement, the method, optionally the place in the message,
and the reason after #. * matches anything. Accepted findings do not count, and those that did not occur are named:

  INI-5  initialize                     # agentInfo comes with our next release
  INI-6  session/update  /update/_old   # our old clients read it`,
		Example: `  acp check run.jsonl                          what in it breaks the protocol
  acp check --output junit=acp.xml *.jsonl     for a CI server, and for people
  tail -n +1 -f run.jsonl | acp check          while it is being recorded
  acp check --only SES,PRM-9 run.jsonl         one page and one requirement`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              func(_ *cobra.Command, args []string) error { return check(p, f, args) },
	}
	flags := c.Flags()
	f.reportFlags.add(c)
	flags.Var(&f.level, "level", "the lowest `LEVEL` that counts: must, should or advice")
	flags.Var(&f.side, "side", "only violations by this `SIDE`: client or agent")
	flags.StringSliceVar(&f.only, "only", nil, "judge only these requirements or pages: an `ID` such as SES-7 or SES")
	flags.StringSliceVar(&f.ignore, "ignore", nil,
		"do not judge these requirements or pages: an `ID` such as SES-7 or SES")
	flags.StringVar(&f.accepted, "accepted", "", "a `FILE` of accepted findings with reasons")
	flags.Var(&f.protocol, "protocol", "judge by this `VERSION`: "+config.OrList(protocolNames)+
		"; default: the version that initialize negotiates, with experimental features")
	flags.BoolVar(&f.stable, "stable", false, "judge by the stable schemas: anything experimental is a finding")
	flags.StringVar(&f.schema, "schema", "", "judge by the JSON Schema in this `FILE`")
	hopFlag(flags, &f.hop, "judge")
	flags.IntVar(&f.max, "max", 0,
		"show at most `N` findings for each requirement and count the rest; -1 shows all (default 10 different ones in "+
			"formats for people, 1000 in formats for programs)")
	c.MarkFlagsMutuallyExclusive("protocol", "schema", "stable")
	complete(c, "level", levelNames...)
	complete(c, "side", f.side.values...)
	complete(c, "protocol", protocolNames...)
	return c
}

// The names of the versions, and the schema of each.
var (
	protocolNames = []string{"1", "1-unstable", "2", "2-unstable"}
	protocols     = map[string]func() *conformance.Schema{
		"1": conformance.V1, "1-unstable": conformance.V1Unstable, "2": conformance.V2, "2-unstable": conformance.V2Unstable,
	}
)

// maxSchema and maxAccepted are the maximum sizes of the files in bytes.
const maxSchema, maxAccepted = 64 << 20, 16 << 20

// judgeBy returns the schema that the flags choose, or nil.
func (f *checkFlags) judgeBy() (*conformance.Schema, error) {
	if f.protocol.value != "" {
		return protocols[f.protocol.value](), nil
	}
	if f.stable {
		return conformance.Negotiated(conformance.V1(), conformance.V2()), nil
	}
	if f.schema == "" {
		return nil, nil
	}
	text, err := input.ReadFile(f.schema, maxSchema)
	if err != nil {
		return nil, err
	}
	schema, err := conformance.NewSchema(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.schema, err)
	}
	return schema, nil
}

// report returns an empty report with the options of the flags.
func (f *checkFlags) report() (*report.Report, error) {
	options := report.Options{Version: moduleVersion(), Level: f.level.level, Side: f.side.side, Only: f.only,
		Ignore: f.ignore, Keep: f.max}
	if f.accepted != "" {
		text, err := input.ReadFile(f.accepted, maxAccepted)
		if err != nil {
			return nil, err
		}
		if options.Accepted, err = report.ReadAccepted(f.accepted, bytes.NewReader(text)); err != nil {
			return nil, usagef("%w", err)
		}
	}
	r, err := report.New(options)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return r, nil
}

func check(p *program, f *checkFlags, files []string) error {
	writeFiles, err := f.files()
	if err != nil {
		return err
	}
	schema, err := f.judgeBy()
	if err != nil {
		return err
	}
	r, err := f.report()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	text := &report.TextOptions{Colors: p.colors, Max: f.max}
	write := func() error {
		if f.format.value == string(report.Text) {
			return r.WriteText(p.stdout, text)
		}
		return r.Write(p.stdout, report.Format(f.format.value))
	}
	options := report.CheckOptions{Schema: schema, Reader: &recording.ReaderOptions{Hop: f.hop}}
	if f.format.value == string(report.Text) && len(files) == 1 && files[0] == "-" {
		live := r.Live(p.stdout, text)
		options.OnFinding, write = live.Write, live.End
	}
	for _, name := range files {
		if err := checkFile(p, r, name, &options); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	if err := writeFiles(r.Write); err != nil {
		return err
	}
	switch {
	case !r.Readable():
		return &exit{statusFailed, nil}
	case r.Findings() > 0:
		return &exit{statusFindings, nil}
	}
	return nil
}

// checkFile judges one file. What cannot be read becomes part of the report.
func checkFile(p *program, r *report.Report, name string, options *report.CheckOptions) error {
	open, source := func() (io.ReadCloser, error) { return input.Open(name) }, name
	if name == "-" {
		open, source = p.recordingInput, "stdin"
	}
	s := r.Source(source)
	from, err := open()
	if err != nil {
		s.Problem(0, err.Error())
		return nil
	}
	defer from.Close()
	return s.Check(from, options)
}
