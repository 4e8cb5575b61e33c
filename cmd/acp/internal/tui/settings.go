package tui

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// settingOf returns the name of the current value of the first setting of a category; "" if there is none.
func settingOf(s *view.Snapshot, category acp.SessionConfigOptionCategory) string {
	if set := talk.SettingOf(talk.Settings(s), category); set != nil {
		return valueOf(set)
	}
	return ""
}

// valueOf returns the name of the current value of a setting.
func valueOf(s *talk.Setting) string {
	for _, v := range s.Values {
		if v.ID == s.Current {
			return clean(v.Name)
		}
	}
	return clean(s.Current)
}

// showSetting asks the user to choose the value of the first setting of a category.
func showSetting(category acp.SessionConfigOptionCategory) func(*Model) tea.Cmd {
	return ofChat(func(m *Model, c *chat) tea.Cmd {
		set := talk.SettingOf(talk.Settings(c.snapshot), category)
		if set == nil {
			m.tellHere("The agent does not let you choose a " + string(category) + ".")
			return nil
		}
		return m.showValues(c, set)
	})
}

// nextMode switches to the next mode.
func (m *Model) nextMode(c *chat) tea.Cmd {
	set := talk.SettingOf(talk.Settings(c.snapshot), acp.SessionConfigOptionCategoryMode)
	if set == nil || len(set.Values) == 0 {
		m.tellHere("The agent has no modes.")
		return nil
	}
	i := slices.IndexFunc(set.Values, func(v talk.Choice) bool { return v.ID == set.Current })
	return m.set(c, set, set.Values[(i+1)%len(set.Values)].ID)
}

// showOptions asks the user to choose a setting and then its value.
func (m *Model) showOptions(c *chat) tea.Cmd {
	if len(talk.Settings(c.snapshot)) == 0 {
		m.tellHere("The agent has no options.")
		return nil
	}
	p := newPicker("Options", nil, func(m *Model, _ *picker, it item) tea.Cmd {
		set := it.value.(*talk.Setting)
		if set.Boolean {
			return m.set(c, set, map[string]string{"true": "false", "false": "true"}[set.Current])
		}
		return m.showValues(c, set)
	})
	p.refresh = func(*Model) []item {
		items := []item{}
		for _, set := range talk.Settings(c.snapshot) {
			items = append(items, item{label: clean(set.Name) + ": " + valueOf(&set), about: clean(set.About), value: &set})
		}
		return items
	}
	m.push(p)
	return nil
}

// showValues asks the user to choose the value of a setting.
func (m *Model) showValues(c *chat, set *talk.Setting) tea.Cmd {
	if len(set.Values) == 0 {
		m.tellHere("This client does not support this kind of option.")
		return nil
	}
	var items []item
	for _, v := range set.Values {
		items = append(items, item{label: clean(v.Name), about: clean(v.About), current: v.ID == set.Current, value: v.ID})
	}
	return pick(m, clean(set.Name), items, func(m *Model, value string) tea.Cmd { return m.set(c, set, value) })
}

func (m *Model) set(c *chat, set *talk.Setting, value string) tea.Cmd {
	return m.call(clean(set.Name)+" was not changed",
		func(ctx context.Context) error { return c.session.Set(ctx, set, value) }, nil)
}

// commandAbout describes a command of the agent.
func commandAbout(c acp.AvailableCommand) string {
	about := clean(c.Description)
	if input, ok := c.Input.Get(); ok {
		if v, ok := input.Variant.(*acp.AvailableCommandInputUnstructured); ok && v.Hint != "" {
			about = "[" + clean(v.Hint) + "] " + about
		}
	}
	return about
}

// showActions asks the user to choose from all actions.
func (m *Model) showActions() tea.Cmd {
	var items []item
	for _, a := range actions() {
		if a.name == "" || a.run == nil {
			continue
		}
		label := a.about
		if len(a.keys) > 0 {
			label += fmt.Sprintf(" (%s)", keyName(a.keys[0]))
		}
		items = append(items, item{label: a.name + ": " + label, value: a.run})
	}
	return pick(m, "Actions", items, func(m *Model, run func(*Model) tea.Cmd) tea.Cmd { return run(m) })
}
