package acp

import (
	"context"
	"fmt"
	"slices"
)

// SetConfigOption chooses a value of one of the session's config options (session/set_config_option). Afterwards
// ConfigOptions holds the agent's answer. It fails with ErrInvalidParams, without sending anything, if option is not
// one of the session's options, or value is not one of the option's values, as far as this connection knows them.
func (s *ClientSession) SetConfigOption(ctx context.Context, option SessionConfigID, value SessionConfigValueID) error {
	_, err := s.conn.SetSessionConfigOption(ctx, &SetSessionConfigOptionRequest{
		SessionID: s.id, ConfigID: option, Variant: &configValue{Value: value},
	})
	return err
}

// SetBooleanConfigOption switches one of the session's boolean config options on or off
// (session/set_config_option); see SetConfigOption.
func (s *ClientSession) SetBooleanConfigOption(ctx context.Context, option SessionConfigID, on bool) error {
	req := NewSetSessionConfigOptionRequestBoolean(s.id, option, on)
	_, err := s.conn.SetSessionConfigOption(ctx, &req)
	return err
}

// SetSessionConfigOption sets the value of one of a session's config options (session/set_config_option). See
// ClientSession.SetConfigOption.
func (c *ClientConn) SetSessionConfigOption(
	ctx context.Context, req *SetSessionConfigOptionRequest,
) (*SetSessionConfigOptionResponse, error) {
	req = orEmpty(req)
	if err := c.check(MethodSetSessionConfigOption, req); err != nil {
		return nil, err
	}
	id := req.SessionID
	return callThen(ctx, c.rpc, methodSetSessionConfigOption, req, func(res *SetSessionConfigOptionResponse) {
		if s := c.sessions.get(id); s != nil {
			s.configure(res.ConfigOptions)
		}
	})
}

// checkConfigOption refuses options and values that the session does not have, as far as this connection
// knows them.
func (c *ClientConn) checkConfigOption(req *SetSessionConfigOptionRequest) *flaw {
	s := c.sessions.get(req.SessionID)
	if s == nil || missing(req.Variant) {
		return nil
	}
	options, known := s.knownConfigOptions()
	if !known {
		return nil
	}
	switch v := req.Variant.(type) {
	case *configValue:
		return checkConfigValue(options, req.ConfigID, v.Value)
	case *SetSessionConfigOptionRequestBoolean:
		return checkConfigBoolean(options, req.ConfigID)
	default:
		return nil
	}
}

// checkConfigIDs refuses config options with an empty or a duplicate id.
func checkConfigIDs(pointer string, options []SessionConfigOption) *flaw {
	for i := range options {
		switch id := configID(&options[i]); {
		case id == "":
			return &flaw{fmt.Sprintf("%s/%d", pointer, i), "its id must not be empty"}
		case configOption(options[:i], id) != nil:
			return &flaw{fmt.Sprintf("%s/%d", pointer, i), "another option has its id"}
		}
	}
	return nil
}

// configOption finds an option, or returns nil.
func configOption(options []SessionConfigOption, id SessionConfigID) *SessionConfigOption {
	for i := range options {
		if configID(&options[i]) == id {
			return &options[i]
		}
	}
	return nil
}

// noConfigOption says that the session does not have a config option.
func noConfigOption(options []SessionConfigOption, id SessionConfigID) *flaw {
	ids := make([]SessionConfigID, len(options))
	for i := range ids {
		ids[i] = configID(&options[i])
	}
	return notOffered("/configId", id, "a config option of the session", ids)
}

// checkConfigValue refuses a value that is not one of the option's.
func checkConfigValue(options []SessionConfigOption, id SessionConfigID, value SessionConfigValueID) *flaw {
	option := configOption(options, id)
	if option == nil {
		return noConfigOption(options, id)
	}
	switch o := option.Variant.(type) {
	case *SessionConfigOptionBoolean:
		return &flaw{"/value", "the option is a boolean one"}
	case *SessionConfigOptionSelect:
		all, ok := o.Options.All()
		values := make([]SessionConfigValueID, len(all))
		for i := range all {
			values[i] = all[i].Value
		}
		if ok && !slices.Contains(values, value) {
			return notOffered("/value", value, fmt.Sprintf("a value of the option %.64q", string(id)), values)
		}
	default: // the agent checks values of other kinds
	}
	return nil
}

// checkConfigBoolean refuses a boolean for an option that is not boolean.
func checkConfigBoolean(options []SessionConfigOption, id SessionConfigID) *flaw {
	option := configOption(options, id)
	if option == nil {
		return noConfigOption(options, id)
	}
	if _, selects := option.Variant.(*SessionConfigOptionSelect); selects {
		return &flaw{"/value", "the option is not a boolean one"}
	}
	return nil
}

// All returns the values of all groups; ok is false for options of an unknown kind.
func (x SessionConfigSelectOptions) All() (values []SessionConfigSelectOption, ok bool) {
	switch list := x.Variant.(type) {
	case SessionConfigSelectOptionsUngrouped:
		return list, true
	case SessionConfigSelectOptionsGrouped:
		for _, group := range list {
			values = append(values, group.Options...)
		}
		return values, true
	default:
		return nil, false
	}
}

// SelectOption returns a config option whose value the user chooses from a list; current is its current value.
func SelectOption(
	id SessionConfigID, name string, current SessionConfigValueID, values ...SessionConfigSelectOption,
) SessionConfigOption {
	return NewSessionConfigOptionSelect(id, name, SessionConfigSelect{
		CurrentValue: current, Options: NewSessionConfigSelectOptionsUngrouped(values),
	})
}

// SelectValue returns one of the values of a SelectOption.
func SelectValue(value SessionConfigValueID, name string) SessionConfigSelectOption {
	return SessionConfigSelectOption{Value: value, Name: name}
}

// BooleanOption returns a config option that is on or off. In version 1 it is only for clients that advertised support
// for such options; sending it to others is refused.
func BooleanOption(id SessionConfigID, name string, on bool) SessionConfigOption {
	return NewSessionConfigOptionBoolean(id, name, SessionConfigBoolean{CurrentValue: on})
}
