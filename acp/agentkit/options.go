// This file serves the modes and the config options of a session. Current clients show config options, and older ones
// modes: a session with modes has both, and a change of one is also reported for the other.

package agentkit

import (
	"context"
	"errors"
	"fmt"
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
	return s.changeStored(ctx, func(_ *sessionstore.Record, state *saved) { state.Mode = mode })
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

// Select adds a config option whose value the user chooses from values, which must not be empty; a value that is there
// twice counts once. *field is the current value; if it is not among the values, it is set to the first one. When the
// client sets the option, the value is checked, stored, and restored when the session is opened again. *field is set to
// it when the next turn begins, so it does not change during a turn.
//
// An option with the id of a category, such as "model", has that category. The option is the last element of
// ConfigOptions, where Config.Open may add a description or change the names of the values. Config.SetOption is not
// called for it. An agent changes the value itself with Session.SelectOption; *field then has that value from the next
// turn on.
func (o *Opening) Select(id acp.SessionConfigID, name string, field *string, values ...string) {
	if stored, ok := o.chosen[id]; ok {
		*field = stored
	}
	if !slices.Contains(values, *field) {
		*field = values[0]
	}
	var choices []acp.SessionConfigSelectOption
	for i, value := range values {
		if slices.Index(values, value) == i {
			choices = append(choices, acp.SelectValue(acp.SessionConfigValueID(value), value))
		}
	}
	option := acp.SelectOption(id, name, acp.SessionConfigValueID(*field), choices...)
	if category := acp.SessionConfigOptionCategory(id); category.Known() {
		option.Category = acp.Some(category)
	}
	o.bind(option, func(value string) { *field = value })
}

// SelectOption sets a config option of Opening.Select, or another one of the author's that is a selection, to one of
// its values, and reports it to the client. A field passed to Select is set to it when the next turn begins.
func (s *session) SelectOption(ctx context.Context, id acp.SessionConfigID, value string) error {
	s.mu.Lock()
	options := slices.Clone(s.options)
	s.mu.Unlock()
	i := slices.IndexFunc(options, func(o acp.SessionConfigOption) bool { return o.ID == id })
	if i < 0 {
		return fmt.Errorf("the session has no option %.64q", id)
	}
	req := acp.NewSetSessionConfigOptionRequestValueID(s.ID(), id, acp.SessionConfigValueID(value))
	changed, ok := withValue(options[i], &req)
	if !ok {
		return fmt.Errorf("the option %.64q has no value %.64q", id, value)
	}
	options[i] = changed
	return s.Update(ctx, acp.ConfigUpdate(options...))
}

// Toggle is like Select, for an option that is on or off. Clients that do not support boolean options get a select with
// the values "on" and "off".
func (o *Opening) Toggle(id acp.SessionConfigID, name string, field *bool) {
	if stored, ok := o.chosen[id]; ok {
		*field = stored == on
	}
	option := acp.BooleanOption(id, name, *field)
	if !o.booleans {
		option = acp.SelectOption(id, name, valueOf(option), acp.SelectValue(on, "On"), acp.SelectValue(off, "Off"))
	}
	o.bind(option, func(value string) { *field = value == on })
}

// The values of a Toggle in the store.
const on, off = "on", "off"

// bind adds an option that the kit itself serves.
func (o *Opening) bind(option acp.SessionConfigOption, set func(value string)) {
	if o.fields == nil {
		o.fields = map[acp.SessionConfigID]func(string){}
	}
	o.fields[option.ID] = set
	o.ConfigOptions = append(o.ConfigOptions, option)
}

// valueOf returns the current value of an option.
func valueOf(option acp.SessionConfigOption) acp.SessionConfigValueID {
	switch v := option.Variant.(type) {
	case *acp.SessionConfigOptionSelect:
		return v.CurrentValue
	case *acp.SessionConfigOptionBoolean:
		if v.CurrentValue {
			return on
		}
		return off
	default:
		return ""
	}
}

// withValue returns an option with the value of a request, or false if the option does not have that value.
func withValue(option acp.SessionConfigOption, req *acp.SetSessionConfigOptionRequest) (acp.SessionConfigOption, bool) {
	switch v := option.Variant.(type) {
	case *acp.SessionConfigOptionSelect:
		value, ok := req.Select()
		changed := *v
		changed.CurrentValue = value
		option.Variant = &changed
		values, known := v.Options.All()
		offered := func(o acp.SessionConfigSelectOption) bool { return o.Value == value }
		return option, ok && (!known || slices.ContainsFunc(values, offered))
	case *acp.SessionConfigOptionBoolean:
		value, ok := req.Bool()
		option.Variant = &acp.SessionConfigOptionBoolean{CurrentValue: value}
		return option, ok
	default:
		return option, true
	} // only the author knows options of this kind
}

// setOptions replaces the options, except those of Select and Toggle that the author has left out.
func (s *session) setOptions(options []acp.SessionConfigOption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(options)
	for _, old := range s.options {
		same := func(o acp.SessionConfigOption) bool { return o.ID == old.ID }
		if s.fields[old.ID] != nil && !slices.ContainsFunc(options, same) {
			all = append(all, old)
		}
	}
	s.options = all
}

// applyOptions sets the author's fields to the values of the options, when a turn begins.
func (s *session) applyOptions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, option := range s.options {
		if set := s.fields[option.ID]; set != nil {
			set(string(valueOf(option)))
		}
	}
}

// storeOptions stores the values of the options of Select and Toggle.
func (s *session) storeOptions(ctx context.Context) error {
	if len(s.fields) == 0 {
		return nil
	}
	values := map[acp.SessionConfigID]string{}
	s.mu.Lock()
	for _, option := range s.options {
		if s.fields[option.ID] != nil {
			values[option.ID] = string(valueOf(option))
		}
	}
	s.mu.Unlock()
	return s.changeStored(context.WithoutCancel(ctx), func(_ *sessionstore.Record, state *saved) {
		state.Options = values
	})
}

// chooseOption sets an option to the value of a request. Choices are made one at a time.
func (s *session) chooseOption(ctx context.Context, req *acp.SetSessionConfigOptionRequest) error {
	s.mu.Lock()
	options := s.options
	s.mu.Unlock()
	i := slices.IndexFunc(options, func(o acp.SessionConfigOption) bool { return o.ID == req.ConfigID })
	if i < 0 {
		return acp.InvalidParamsf("the session has no option %.64q", req.ConfigID)
	}
	changed, ok := withValue(options[i], req)
	if !ok {
		return acp.InvalidParamsf("the option %.64q has no such value", req.ConfigID)
	}
	if s.fields[req.ConfigID] != nil {
		options = slices.Clone(options)
		options[i] = changed
		s.setOptions(options)
		return s.storeOptions(ctx)
	}
	set := s.sessions.config.setOption
	if set == nil {
		return acp.InvalidParamsf("the option %.64q cannot be changed", req.ConfigID)
	}
	options, err := set(ctx, s, req)
	if err != nil {
		return err
	}
	s.setOptions(options)
	return nil
}
