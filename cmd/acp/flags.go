package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
)

// oneOf is a flag that takes one of several values.
type oneOf struct {
	value  string
	values []string
}

func (f *oneOf) String() string { return f.value }
func (f *oneOf) Type() string   { return "NAME" }

func (f *oneOf) Set(value string) error {
	if !slices.Contains(f.values, value) {
		return fmt.Errorf("expected %s", config.OrList(f.values))
	}
	f.value = value
	return nil
}

// sideFlag is a flag that names one of the two sides.
type sideFlag struct {
	oneOf
	side conformance.Side // 0 if there is none
}

func newSideFlag() sideFlag {
	return sideFlag{oneOf: oneOf{values: []string{conformance.Client.String(), conformance.Agent.String()}}}
}

func (f *sideFlag) Set(value string) error {
	if err := f.oneOf.Set(value); err != nil {
		return err
	}
	f.side = conformance.Client
	if value == conformance.Agent.String() {
		f.side = conformance.Agent
	}
	return nil
}

// levelFlag is a flag that names the lowest level that counts.
type levelFlag struct {
	oneOf
	level conformance.Level
}

// The names of the levels. Each stands for the lower of the protocol's words in capitals: "must" covers MUST and MUST
// NOT.
var (
	levelNames = []string{"must", "should", "advice"}
	levels     = []conformance.Level{conformance.MustNot, conformance.ShouldNot, conformance.Advice}
)

func newLevelFlag(level conformance.Level) levelFlag {
	return levelFlag{oneOf{levelNames[slices.Index(levels, level)], levelNames}, level}
}

func (f *levelFlag) Set(value string) error {
	if err := f.oneOf.Set(value); err != nil {
		return err
	}
	f.level = levels[slices.Index(levelNames, value)]
	return nil
}

// trafficFlags are the flags of a conversation with an agent that concern its traffic.
type trafficFlags struct {
	record        string
	noMask, check bool
	level         levelFlag
}

// add adds the flags. report says what --check does with findings.
func (f *trafficFlags) add(c *cobra.Command, report string) {
	f.level = newLevelFlag(conformance.ShouldNot)
	flags := c.Flags()
	flags.StringVar(&f.record, "record", "",
		"record the traffic in a `FILE`, for acp check and acp show; %a in its name stands for the agent's name, %t for "+
			"the time, %p for the process id")
	flags.BoolVar(&f.noMask, "no-mask", false, "with --record: do not mask secrets")
	flags.BoolVar(&f.check, "check", false, "judge the traffic, and "+report)
	flags.Var(&f.level, "level", "with --check: the lowest `LEVEL` that counts: must, should or advice")
	complete(c, "level", levelNames...)
}

func (f *trafficFlags) valid() error {
	if f.noMask && f.record == "" {
		return usagef("--no-mask needs --record")
	}
	return nil
}

// hopFlag adds the flag that selects a connection of a conductor's trace.
func hopFlag(flags *pflag.FlagSet, hop *string, do string) {
	flags.StringVar(hop, "hop", "", "of a conductor's trace, "+do+" what passed after this `COMPONENT` (default client)")
}

// complete registers the possible values of a flag for completion.
func complete(c *cobra.Command, flag string, values ...string) {
	completeBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy registers what completes the values of a flag.
func completeBy(c *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // no such flag, or twice
	}
}

// reportFlags are the flags for the formats of a report.
type reportFlags struct {
	format  oneOf
	outputs []string
}

func (f *reportFlags) add(c *cobra.Command) {
	f.format = oneOf{value: string(report.Text), values: formatNames()}
	c.Flags().Var(&f.format, "format", "text, json, junit (XML), sarif (2.1.0) or markdown")
	c.Flags().StringSliceVar(&f.outputs, "output", nil,
		"also write a `FORMAT=FILE`, such as junit=acp.xml; may be repeated")
	complete(c, "format", f.format.values...)
}

// formatNames returns the names of the formats.
func formatNames() []string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	return names
}

// files returns what writes the files of --output.
func (f *reportFlags) files() (func(write func(io.Writer, report.Format) error) error, error) {
	type output struct {
		format report.Format
		name   string
	}
	var outputs []output
	for _, o := range f.outputs {
		format, name, found := strings.Cut(o, "=")
		if !found || name == "" || !slices.Contains(formatNames(), format) {
			return nil, usagef("--output %s: expected FORMAT=FILE, and %s as the format", o, config.OrList(formatNames()))
		}
		outputs = append(outputs, output{report.Format(format), name})
	}
	return func(write func(io.Writer, report.Format) error) error {
		for _, o := range outputs {
			file, err := os.Create(o.name)
			if err != nil {
				return err
			}
			if err := errors.Join(write(file, o.format), file.Close()); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// splitArgs splits the arguments of a command at --. Behind it, if it is there, must be an agent's command.
func splitArgs(cmd *cobra.Command, args []string) (before, command []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil, nil
	}
	if dash == len(args) {
		return nil, nil, usagef("expected a command after --")
	}
	return args[:dash], args[dash:], nil
}
