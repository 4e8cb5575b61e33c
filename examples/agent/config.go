// This file owns what the user can set in a session: the mode, which is a config option as well, and
// the other config options.

package main

import (
	"context"
	"slices"

	"github.com/acpgo/sdk/acp"
)

// settings are the values of a session's options.
type settings struct {
	Mode     acp.SessionModeID        `json:"mode"`
	Thoughts acp.SessionConfigValueID `json:"thoughts"`
	Usage    bool                     `json:"usage"`
}

// The modes.
const (
	modeAsk  acp.SessionModeID = "ask"
	modeAuto acp.SessionModeID = "auto"
)

// The config options, and the values of the one that is neither the mode nor boolean.
const (
	optionMode     acp.SessionConfigID = "mode"
	optionThoughts acp.SessionConfigID = "thoughts"
	optionUsage    acp.SessionConfigID = "usage"

	thoughtsShown  acp.SessionConfigValueID = "shown"
	thoughtsHidden acp.SessionConfigValueID = "hidden"
)

var defaultSettings = settings{Mode: modeAsk, Thoughts: thoughtsShown, Usage: true}

var modes = []acp.SessionMode{
	{ID: modeAsk, Name: "Ask", Description: acp.Some("Asks before files are written or commands run.")},
	{ID: modeAuto, Name: "Auto", Description: acp.Some("Writes files and runs commands without asking.")},
}

var thoughts = []acp.SessionConfigSelectOption{
	acp.SelectValue(thoughtsShown, "Shown"),
	acp.SelectValue(thoughtsHidden, "Hidden"),
}

func (s settings) modeState() acp.SessionModeState {
	return acp.SessionModeState{CurrentModeID: s.Mode, AvailableModes: modes}
}

// options are all config options with their values (CFG-17, CFG-18), for the client given: one that
// does not know boolean options must not see any (CFG-3).
func (s settings) options(client *acp.AgentConn) []acp.SessionConfigOption {
	var modeValues []acp.SessionConfigSelectOption
	for _, m := range modes {
		modeValues = append(modeValues, acp.SessionConfigSelectOption{
			Value: acp.SessionConfigValueID(m.ID), Name: m.Name, Description: m.Description,
		})
	}
	mode := acp.SelectOption(optionMode, "Mode", acp.SessionConfigValueID(s.Mode), modeValues...)
	mode.Category = acp.Some(acp.SessionConfigOptionCategoryMode)
	thought := acp.SelectOption(optionThoughts, "Thoughts", s.Thoughts, thoughts...)
	thought.Category = acp.Some(acp.SessionConfigOptionCategoryThoughtLevel)
	options := []acp.SessionConfigOption{mode, thought}
	if client.SupportsBooleanConfig() {
		options = append(options, acp.BooleanOption(optionUsage, "Report usage", s.Usage))
	}
	return options
}

// setMode changes the mode.
func (s *settings) setMode(id acp.SessionModeID) error {
	if !slices.ContainsFunc(modes, func(m acp.SessionMode) bool { return m.ID == id }) {
		return acp.InvalidParamsf("no mode %q", id)
	}
	s.Mode = id
	return nil
}

// set changes the config option that a request names.
func (s *settings) set(session *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) error {
	switch v := req.Variant.(type) {
	case *acp.SetSessionConfigOptionRequestValueID:
		known := func(o acp.SessionConfigSelectOption) bool { return o.Value == v.Value }
		switch {
		case req.ConfigID == optionMode:
			return s.setMode(acp.SessionModeID(v.Value))
		case req.ConfigID == optionThoughts && slices.ContainsFunc(thoughts, known):
			s.Thoughts = v.Value
			return nil
		}
	case *acp.SetSessionConfigOptionRequestBoolean:
		if req.ConfigID == optionUsage && session.Conn().SupportsBooleanConfig() {
			s.Usage = v.Value
			return nil
		}
	}
	return acp.InvalidParamsf("option %q has no such value, or there is no such option", req.ConfigID)
}

// setMode serves session/set_mode. Who shows the config options learns of it by an update (CFG-22).
func (a *agent) setMode(ctx context.Context, session *acp.AgentSession, req *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
	s, err := a.session(req.SessionID)
	if err != nil {
		return nil, err
	}
	now, err := s.configure(func(set *settings) error { return set.setMode(req.ModeID) })
	if err != nil {
		return nil, err
	}
	if err := session.Update(ctx, acp.ConfigUpdate(now.options(session.Conn())...)); err != nil {
		return nil, err
	}
	return &acp.SetSessionModeResponse{}, nil
}

// setConfigOption serves session/set_config_option. Who shows the modes learns of the mode by an update.
func (a *agent) setConfigOption(
	ctx context.Context, session *acp.AgentSession, req *acp.SetSessionConfigOptionRequest,
) (*acp.SetSessionConfigOptionResponse, error) {
	s, err := a.session(req.SessionID)
	if err != nil {
		return nil, err
	}
	now, err := s.configure(func(set *settings) error { return set.set(session, req) })
	if err != nil {
		return nil, err
	}
	if req.ConfigID == optionMode {
		if err := session.Update(ctx, acp.ModeUpdate(now.Mode)); err != nil {
			return nil, err
		}
	}
	return &acp.SetSessionConfigOptionResponse{ConfigOptions: now.options(session.Conn())}, nil
}
