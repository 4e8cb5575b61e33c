package talk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acpgo/sdk/acp"
)

// ErrNoSetting says that a session does not have the setting or value.
var ErrNoSetting = errors.New("not offered by the agent")

// choice is something to choose: the agent's id for it, and the name that the user sees.
type choice struct{ id, name string }

// choose finds a choice by its id, or by its name regardless of case.
func choose(what, wanted string, choices []choice) (string, error) {
	var ids []string
	found := ""
	for _, c := range choices {
		if c.id == wanted {
			return c.id, nil
		}
		if found == "" && strings.EqualFold(c.name, wanted) {
			found = c.id
		}
		ids = append(ids, c.id)
	}
	if found != "" {
		return found, nil
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("%s: %w", what, ErrNoSetting)
	}
	return "", fmt.Errorf("%s %q: %w; it offers %s", what, wanted, ErrNoSetting, strings.Join(ids, ", "))
}

// ChooseMode sets the mode by its id or name. An agent may offer its modes as a config option.
func (s *Session) ChooseMode(ctx context.Context, mode string) error {
	now := s.state.Snapshot()
	var choices []choice
	for _, m := range now.Modes.Value().AvailableModes {
		choices = append(choices, choice{string(m.ID), m.Name})
	}
	if len(choices) == 0 {
		return s.chooseByCategory(ctx, "mode", acp.SessionConfigOptionCategoryMode, mode)
	}
	id, err := choose("mode", mode, choices)
	if err != nil {
		return err
	}
	return named("mode "+id, s.SetMode(ctx, acp.SessionModeID(id)))
}

// ChooseModel sets the model by its id or name: a value of the config option for models.
func (s *Session) ChooseModel(ctx context.Context, model string) error {
	return s.chooseByCategory(ctx, "model", acp.SessionConfigOptionCategoryModel, model)
}

// chooseByCategory sets a value of the first option of a category, or else of the option whose id is what.
func (s *Session) chooseByCategory(ctx context.Context, what string, category acp.SessionConfigOptionCategory,
	value string) error {
	options := s.state.Snapshot().ConfigOptions.Value()
	for i := range options {
		if options[i].Category.Value() == category {
			return s.chooseValue(ctx, what, &options[i], value)
		}
	}
	for i := range options {
		if string(options[i].ID) == what {
			return s.chooseValue(ctx, what, &options[i], value)
		}
	}
	return fmt.Errorf("%s: %w", what, ErrNoSetting)
}

// ChooseOption sets a config option. The option and the value are given by id or name.
func (s *Session) ChooseOption(ctx context.Context, option, value string) error {
	options := s.state.Snapshot().ConfigOptions.Value()
	var choices []choice
	for _, o := range options {
		choices = append(choices, choice{string(o.ID), o.Name})
	}
	id, err := choose("option", option, choices)
	if err != nil {
		return err
	}
	for i := range options {
		if string(options[i].ID) == id {
			return s.chooseValue(ctx, "option "+id, &options[i], value)
		}
	}
	return nil
}

func (s *Session) chooseValue(ctx context.Context, what string, option *acp.SessionConfigOption, value string) error {
	if v, ok := option.Variant.(*acp.SessionConfigOptionSelect); ok {
		id, err := choose(what, value, valuesOf(v))
		if err != nil {
			return err
		}
		value = id
	}
	return named(what+"="+value, s.SetOption(ctx, option.ID, value))
}

// named returns an error that says which setting it is about.
func named(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// valuesOf returns the values of an option, of all groups.
func valuesOf(option *acp.SessionConfigOptionSelect) (choices []choice) {
	values, _ := option.Options.All()
	for _, v := range values {
		choices = append(choices, choice{string(v.Value), v.Name})
	}
	return choices
}
