// This file serves the modes and the config options of a session. Current clients show config options, and older ones
// modes: a session with modes has both, and a change of one is also reported for the other.

package agentkit

import (
	"context"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// modeOption is the id of the config option that selects the mode.
const modeOption acp.SessionConfigID = "mode"

// Mode returns the session's current mode, or "" if it has no modes.
func (s *session) Mode() acp.SessionModeID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// ConfigOptions returns the session's config options as the client knows them, including the one that selects the mode.
// The result must not be changed.
func (s *session) ConfigOptions() []acp.SessionConfigOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.showsModes() {
		return s.options
	}
	values := make([]acp.SessionConfigSelectOption, len(s.modes))
	for i, mode := range s.modes {
		values[i] = acp.SessionConfigSelectOption{Value: acp.SessionConfigValueID(mode.ID), Name: mode.Name,
			Description: mode.Description}
	}
	option := acp.SelectOption(modeOption, "Mode", acp.SessionConfigValueID(s.mode), values...)
	option.Category = acp.Some(acp.SessionConfigOptionCategoryMode)
	return append([]acp.SessionConfigOption{option}, s.options...)
}

// showsModes reports whether the kit adds an option for the modes to the author's; mu is held.
func (s *session) showsModes() bool {
	return len(s.modes) > 0 && !slices.ContainsFunc(s.options, func(o acp.SessionConfigOption) bool {
		return o.ID == modeOption || o.Category.Value() == acp.SessionConfigOptionCategoryMode
	})
}

// setModes sets the modes and options that Config.Open provided.
func (s *session) setModes(o *Opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modes, s.mode, s.options, s.fields = o.Modes, o.Mode, o.ConfigOptions, o.fields
	if !s.hasMode(s.mode) {
		s.mode = ""
		if len(s.modes) > 0 {
			s.mode = s.modes[0].ID
		}
	}
}

func (s *session) hasMode(id acp.SessionModeID) bool {
	return slices.ContainsFunc(s.modes, func(m acp.SessionMode) bool { return m.ID == id })
}

func (s *session) modeState() (state acp.Opt[acp.SessionModeState]) {
	if len(s.modes) == 0 {
		return state
	}
	return acp.Some(acp.SessionModeState{CurrentModeID: s.Mode(), AvailableModes: s.modes})
}

func (s *session) optionState() (state acp.Opt[[]acp.SessionConfigOption]) {
	options := s.ConfigOptions()
	if options == nil {
		return state
	}
	return acp.Some(options)
}

// switchMode makes a mode the current one, and stores it.
func (s *session) switchMode(ctx context.Context, mode acp.SessionModeID) error {
	s.mu.Lock()
	s.mode = mode
	s.mu.Unlock()
	if s.said.store == nil {
		return nil
	}
	return s.changeStored(ctx, func(_ *sessionstore.Record, state *saved) error {
		state.Mode = mode
		return nil
	})
}

// send sends an update, and any other messages that the client must get with it; out is held.
func (s *session) send(ctx context.Context, update acp.SessionUpdate) error {
	switch update.Variant.(type) {
	case *acp.SessionUpdateCurrentModeUpdate:
		return errors.Join(s.AgentSession.Update(ctx, update), s.sendModeOption(ctx))
	case *acp.SessionUpdateConfigOptionUpdate:
		update = acp.ConfigUpdate(s.ConfigOptions()...)
	default: // sent as it is
	}
	return s.AgentSession.Update(ctx, update)
}

// sendModeOption sends the options to the client if the one for the modes has changed; out is held.
func (s *session) sendModeOption(ctx context.Context) error {
	s.mu.Lock()
	shows := s.showsModes()
	s.mu.Unlock()
	if !shows {
		return nil
	}
	return s.AgentSession.Update(ctx, acp.ConfigUpdate(s.ConfigOptions()...))
}

// oneChoice lets one request at a time change the mode or an option, so that the last value passed to the author's hook
// is the one that is stored and shown. done must be called.
func (s *session) oneChoice(ctx context.Context) (done func(), err error) {
	select {
	case s.choosing <- struct{}{}:
		return func() { <-s.choosing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// choose makes a mode the current one at the client's request, and sends updates about anything else that has changed.
func (s *session) choose(ctx context.Context, mode acp.SessionModeID, tell func(context.Context) error) error {
	if set := s.sessions.config.setMode; set != nil {
		if err := set(ctx, s, mode); err != nil {
			return err
		}
	}
	s.out.Lock()
	defer s.out.Unlock()
	return errors.Join(s.switchMode(context.WithoutCancel(ctx), mode), tell(ctx))
}

// setMode serves session/set_mode.
func (ss *sessions) setMode(
	ctx context.Context, s *session, req *acp.SetSessionModeRequest,
) (*acp.SetSessionModeResponse, error) {
	if !s.hasMode(req.ModeID) {
		return nil, acp.InvalidParamsf("the session has no mode %.64q", req.ModeID)
	}
	done, err := s.oneChoice(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return &acp.SetSessionModeResponse{}, s.choose(ctx, req.ModeID, s.sendModeOption)
}

// setOption serves session/set_config_option.
func (ss *sessions) setOption(
	ctx context.Context, s *session, req *acp.SetSessionConfigOptionRequest,
) (*acp.SetSessionConfigOptionResponse, error) {
	done, err := s.oneChoice(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s.mu.Lock()
	ours := req.ConfigID == modeOption && s.showsModes()
	s.mu.Unlock()
	switch {
	case ours:
		value, ok := req.Variant.(*acp.SetSessionConfigOptionRequestValueID)
		if !ok || !s.hasMode(acp.SessionModeID(value.Value)) {
			return nil, acp.InvalidParamsf("the session has no such mode")
		}
		mode := acp.SessionModeID(value.Value)
		err := s.choose(ctx, mode, func(ctx context.Context) error {
			return s.AgentSession.Update(ctx,
				acp.ModeUpdate(mode))
		})
		if err != nil {
			return nil, err
		}
	default:
		if err := s.chooseOption(ctx, req); err != nil {
			return nil, err
		}
	}
	return &acp.SetSessionConfigOptionResponse{ConfigOptions: s.ConfigOptions()}, nil
}
