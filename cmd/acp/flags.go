package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acpgo/sdk/conformance"
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
		return fmt.Errorf("expected %s", orList(f.values))
	}
	f.value = value
	return nil
}

// orList returns "a, b or c".
func orList(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
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

// hopFlag adds the flag that selects a connection of a conductor's trace.
func hopFlag(flags *pflag.FlagSet, hop *string, do string) {
	flags.StringVar(hop, "hop", "", "of a conductor's trace, "+do+" what passed after this `COMPONENT` (default client)")
}

// complete registers the possible values of a flag for completion.
func complete(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // no such flag, or twice
	}
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
