package main

import (
	"context"
	"slices"

	"github.com/acpgo/sdk/acp"
)

// settings are the values of a session's options other than the mode.
type settings struct {
	Thoughts acp.SessionConfigValueID `json:"thoughts"`
	Usage    bool                     `json:"usage"`
}

// The modes.
const (
	modeAsk  acp.SessionModeID = "ask"
	modeAuto acp.SessionModeID = "auto"
)

// The config options other than the mode, and the values of the one that is not boolean.
const (
	optionThoughts acp.SessionConfigID = "thoughts"
	optionUsage    acp.SessionConfigID = "usage"

	thoughtsShown  acp.SessionConfigValueID = "shown"
	thoughtsHidden acp.SessionConfigValueID = "hidden"
)

var defaultSettings = settings{Thoughts: thoughtsShown, Usage: true}

var modes = []acp.SessionMode{
	{ID: modeAsk, Name: "Ask", Description: acp.Some("Asks before files are written or commands run.")},
	{ID: modeAuto, Name: "Auto", Description: acp.Some("Writes files and runs commands without asking.")},
}

var thoughts = []acp.SessionConfigSelectOption{
	acp.SelectValue(thoughtsShown, "Shown"),
	acp.SelectValue(thoughtsHidden, "Hidden"),
}

// options returns all config options except the mode, with their values (CFG-17, CFG-18), for the given client: boolean
// options must not be sent to a client that does not support them (CFG-3).
func (s settings) options(client *acp.AgentConn) []acp.SessionConfigOption {
	thought := acp.SelectOption(optionThoughts, "Thoughts", s.Thoughts, thoughts...)
	thought.Category = acp.Some(acp.SessionConfigOptionCategoryThoughtLevel)
	options := []acp.SessionConfigOption{thought}
	if client.SupportsBooleanConfig() {
		options = append(options, acp.BooleanOption(optionUsage, "Report usage", s.Usage))
	}
	return options
}

// setOption serves session/set_config_option, except for the mode.
func setOption(ctx context.Context, s *session,
	req *acp.SetSessionConfigOptionRequest) (options []acp.SessionConfigOption, err error) {
	err = change(ctx, s, func(state *state) error {
		err := state.Settings.set(s.Conn(), req)
		options = state.Settings.options(s.Conn())
		return err
	})
	return options, err
}

// set changes the config option that a request names.
func (s *settings) set(client *acp.AgentConn, req *acp.SetSessionConfigOptionRequest) error {
	switch v := req.Variant.(type) {
	case *acp.SetSessionConfigOptionRequestValueID:
		known := func(o acp.SessionConfigSelectOption) bool { return o.Value == v.Value }
		if req.ConfigID == optionThoughts && slices.ContainsFunc(thoughts, known) {
			s.Thoughts = v.Value
			return nil
		}
	case *acp.SetSessionConfigOptionRequestBoolean:
		if req.ConfigID == optionUsage && client.SupportsBooleanConfig() {
			s.Usage = v.Value
			return nil
		}
	default: // refused below
	}
	return acp.InvalidParamsf("option %q has no such value, or there is no such option", req.ConfigID)
}
