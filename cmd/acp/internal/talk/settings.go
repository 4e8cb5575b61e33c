package talk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// ErrNoSetting says that a session does not have the setting or value.
var ErrNoSetting = errors.New("not offered by the agent")

// Setting is what a session lets the user choose: a config option or, if no option is for modes, the mode. Texts are
// the agent's.
type Setting struct {
	Choice

	Category acp.SessionConfigOptionCategory
	// Values are the values to choose from; nil if this client does not know the kind of option. Current is the ID of the
	// current value, which need not be one of them.
	Values  []Choice
	Current string
	// Boolean says that the values are "true" and "false".
	Boolean bool

	mode bool
}

// Choice is something to choose.
type Choice struct{ ID, Name, About string }

// Settings returns what a state of a session lets the user choose.
func Settings(s *view.Snapshot) (settings []Setting) {
	for _, o := range s.ConfigOptions.Value() {
		set := Setting{Choice: Choice{string(o.ID), o.Name, o.Description.Value()}, Category: o.Category.Value()}
		switch v := o.Variant.(type) {
		case *acp.SessionConfigOptionBoolean:
			set.Current, set.Boolean = strconv.FormatBool(v.CurrentValue), true
			set.Values = []Choice{{"true", "on", ""}, {"false", "off", ""}}
		case *acp.SessionConfigOptionSelect:
			set.Current = string(v.CurrentValue)
			values, _ := v.Options.All()
			for _, value := range values {
				set.Values = append(set.Values, Choice{string(value.Value), value.Name, value.Description.Value()})
			}
		default: // of a kind without values
		}
		settings = append(settings, set)
	}
	modes := s.Modes.Value()
	if modes.CurrentModeID == "" || SettingOf(settings, acp.SessionConfigOptionCategoryMode) != nil {
		return settings
	}
	mode := Setting{Choice: Choice{"mode", "Mode", ""}, Category: acp.SessionConfigOptionCategoryMode,
		Current: string(modes.CurrentModeID), mode: true}
	for _, m := range modes.AvailableModes {
		mode.Values = append(mode.Values, Choice{string(m.ID), m.Name, m.Description.Value()})
	}
	return append(settings, mode)
}

// SettingOf returns the first setting of a category, or else the one whose ID is the category's name; nil if there is
// none.
func SettingOf(settings []Setting, category acp.SessionConfigOptionCategory) *Setting {
	for _, is := range []func(Setting) bool{
		func(s Setting) bool { return s.Category == category },
		func(s Setting) bool { return s.ID == string(category) },
	} {
		if i := slices.IndexFunc(settings, is); i >= 0 {
			return &settings[i]
		}
	}
	return nil
}

// Set changes a setting to the value with an ID.
func (s *Session) Set(ctx context.Context, setting *Setting, value string) error {
	method := acp.MethodSetSessionConfigOption
	if setting.mode {
		method = acp.MethodSetSessionMode
	}
	current, err := s.conn.Live(ctx)
	if err != nil {
		return err
	}
	_, err = step(ctx, s.client, method, func(ctx context.Context) (struct{}, error) {
		switch {
		case setting.mode:
			return struct{}{}, current.SetMode(ctx, acp.SessionModeID(value))
		case setting.Boolean:
			return struct{}{}, current.SetBooleanConfigOption(ctx, acp.SessionConfigID(setting.ID), value == "true")
		}
		return struct{}{}, current.SetConfigOption(ctx, acp.SessionConfigID(setting.ID), acp.SessionConfigValueID(value))
	})
	if err == nil {
		s.state.SetSession(current)
	}
	return err
}

// find finds a choice by its id, or by its name regardless of case.
func find(what, wanted string, choices []Choice) (int, error) {
	found := slices.IndexFunc(choices, func(c Choice) bool { return c.ID == wanted })
	if found < 0 {
		found = slices.IndexFunc(choices, func(c Choice) bool { return strings.EqualFold(c.Name, wanted) })
	}
	if found >= 0 {
		return found, nil
	}
	if len(choices) == 0 {
		return 0, fmt.Errorf("%s: %w", what, ErrNoSetting)
	}
	var ids []string
	for _, c := range choices {
		ids = append(ids, c.ID)
	}
	return 0, fmt.Errorf("%s %q: %w; it offers %s", what, wanted, ErrNoSetting, strings.Join(ids, ", "))
}

// Choose sets the first setting of a category to the value with an id or name.
func (s *Session) Choose(ctx context.Context, category acp.SessionConfigOptionCategory, value string) error {
	setting := SettingOf(Settings(s.state.Snapshot()), category)
	if setting == nil {
		return fmt.Errorf("%s: %w", category, ErrNoSetting)
	}
	return s.choose(ctx, string(category), setting, value)
}

// ChooseOption sets a config option. The option and the value are given by id or name.
func (s *Session) ChooseOption(ctx context.Context, option, value string) error {
	settings := slices.DeleteFunc(Settings(s.state.Snapshot()), func(s Setting) bool { return s.mode })
	var choices []Choice
	for _, set := range settings {
		choices = append(choices, set.Choice)
	}
	i, err := find("option", option, choices)
	if err != nil {
		return err
	}
	return s.choose(ctx, "option "+settings[i].ID, &settings[i], value)
}

func (s *Session) choose(ctx context.Context, what string, setting *Setting, value string) error {
	i, err := find(what, value, setting.Values)
	if err != nil {
		return err
	}
	if err := s.Set(ctx, setting, setting.Values[i].ID); err != nil {
		return fmt.Errorf("%s=%s: %w", what, setting.Values[i].ID, err)
	}
	return nil
}
