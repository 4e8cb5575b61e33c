package tui

import (
	"context"
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// modeOf returns the name of the current mode.
func modeOf(s *view.Snapshot) string {
	if name := optionOf(s, acp.SessionConfigOptionCategoryMode); name != "" {
		return name
	}
	modes := s.Modes.Value()
	for _, mode := range modes.AvailableModes {
		if mode.ID == modes.CurrentModeID {
			return clean(mode.Name)
		}
	}
	return clean(string(modes.CurrentModeID))
}

// optionOf returns the name of the value of the first option of a category.
func optionOf(s *view.Snapshot, category acp.SessionConfigOptionCategory) string {
	for _, o := range s.ConfigOptions.Value() {
		if o.Category.Value() == category {
			return valueOf(o)
		}
	}
	return ""
}

// valueOf describes the value of an option.
func valueOf(o acp.SessionConfigOption) string {
	switch v := o.Variant.(type) {
	case *acp.SessionConfigOptionBoolean:
		if v.CurrentValue {
			return "on"
		}
		return "off"
	case *acp.SessionConfigOptionSelect:
		for _, s := range selectOptions(v.Options) {
			if s.Value == v.CurrentValue {
				return clean(s.Name)
			}
		}
		return clean(string(v.CurrentValue))
	default:
		return "?"
	}
}

// selectOptions returns the values of an option without their groups.
func selectOptions(o acp.SessionConfigSelectOptions) []acp.SessionConfigSelectOption {
	switch v := o.Variant.(type) {
	case acp.SessionConfigSelectOptionsUngrouped:
		return v
	case acp.SessionConfigSelectOptionsGrouped:
		var all []acp.SessionConfigSelectOption
		for _, g := range v {
			for _, s := range g.Options {
				s.Name = g.Name + ": " + s.Name
				all = append(all, s)
			}
		}
		return all
	default:
		return nil
	}
}

// optionIn returns the first option of a category, or nil.
func optionIn(s *view.Snapshot, category acp.SessionConfigOptionCategory) *acp.SessionConfigOption {
	options := s.ConfigOptions.Value()
	for i := range options {
		if options[i].Category.Value() == category {
			return &options[i]
		}
	}
	return nil
}

// showModes asks the user to choose a mode.
func (m *Model) showModes(c *chat) tea.Cmd {
	if o := optionIn(c.snapshot, acp.SessionConfigOptionCategoryMode); o != nil {
		return m.showValues(*o)
	}
	modes := c.snapshot.Modes.Value()
	if len(modes.AvailableModes) == 0 {
		m.tellHere("The agent has no modes.")
		return nil
	}
	var items []item
	for _, mode := range modes.AvailableModes {
		items = append(items, item{label: clean(mode.Name), about: clean(mode.Description.Value()),
			current: mode.ID == modes.CurrentModeID, value: mode.ID})
	}
	return pick(m, "Mode", items, (*Model).setMode)
}

func (m *Model) setMode(id acp.SessionModeID) tea.Cmd {
	c := m.chat
	return m.call("The mode was not changed", func(ctx context.Context) error { return c.session.SetMode(ctx, id) }, nil)
}

// nextMode switches to the next mode.
func (m *Model) nextMode(c *chat) tea.Cmd {
	if o := optionIn(c.snapshot, acp.SessionConfigOptionCategoryMode); o != nil {
		if v, ok := o.Variant.(*acp.SessionConfigOptionSelect); ok {
			values := selectOptions(v.Options)
			for i, s := range values {
				if s.Value == v.CurrentValue {
					return m.setOption(o.ID, string(values[(i+1)%len(values)].Value))
				}
			}
		}
	}
	modes := c.snapshot.Modes.Value()
	for i, mode := range modes.AvailableModes {
		if mode.ID == modes.CurrentModeID {
			return m.setMode(modes.AvailableModes[(i+1)%len(modes.AvailableModes)].ID)
		}
	}
	m.tellHere("The agent has no modes.")
	return nil
}

// showModels has the user choose a model.
func (m *Model) showModels(c *chat) tea.Cmd {
	if o := optionIn(c.snapshot, acp.SessionConfigOptionCategoryModel); o != nil {
		return m.showValues(*o)
	}
	m.tellHere("The agent does not let you choose a model.")
	return nil
}

// showOptions asks the user to choose an option and then its value.
func (m *Model) showOptions(c *chat) tea.Cmd {
	if len(c.snapshot.ConfigOptions.Value()) == 0 {
		m.tellHere("The agent has no options.")
		return nil
	}
	p := newPicker("Options", nil, func(m *Model, _ *picker, it item) tea.Cmd {
		o := it.value.(acp.SessionConfigOption)
		if v, ok := o.Variant.(*acp.SessionConfigOptionBoolean); ok {
			return m.setOption(o.ID, strconv.FormatBool(!v.CurrentValue))
		}
		return m.showValues(o)
	})
	p.refresh = func(*Model) []item {
		items := []item{}
		for _, o := range c.snapshot.ConfigOptions.Value() {
			items = append(items, item{label: clean(o.Name) + ": " + valueOf(o), about: clean(o.Description.Value()), value: o})
		}
		return items
	}
	m.push(p)
	return nil
}

// showValues asks the user to choose the value of an option.
func (m *Model) showValues(o acp.SessionConfigOption) tea.Cmd {
	var items []item
	switch v := o.Variant.(type) {
	case *acp.SessionConfigOptionSelect:
		for _, s := range selectOptions(v.Options) {
			items = append(items, item{label: clean(s.Name), about: clean(s.Description.Value()),
				current: s.Value == v.CurrentValue, value: string(s.Value)})
		}
	case *acp.SessionConfigOptionBoolean:
		items = []item{{label: "on", current: v.CurrentValue, value: "true"},
			{label: "off", current: !v.CurrentValue, value: "false"}}
	default:
		m.tellHere("This client does not support this kind of option.")
		return nil
	}
	return pick(m, clean(o.Name), items, func(m *Model, value string) tea.Cmd { return m.setOption(o.ID, value) })
}

func (m *Model) setOption(id acp.SessionConfigID, value string) tea.Cmd {
	c := m.chat
	return m.call("The option was not changed",
		func(ctx context.Context) error { return c.session.SetOption(ctx, id, value) }, nil)
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

// showCommands asks the user to choose a command of the agent.
func (m *Model) showCommands(c *chat) tea.Cmd {
	if len(c.snapshot.Commands) == 0 {
		m.tellHere("The agent has no commands.")
		return nil
	}
	var items []item
	for _, c := range c.snapshot.Commands {
		if !harmless(c.Name) {
			continue
		}
		items = append(items, item{label: "/" + clean(c.Name), about: commandAbout(c), value: "/" + c.Name + " "})
	}
	return pick(m, "Commands", items, func(m *Model, command string) tea.Cmd {
		e := m.editor()
		e.area.MoveToBegin()
		e.area.InsertString(command)
		e.area.MoveToEnd()
		return nil
	})
}

// showFiles asks the user to choose a file.
func (m *Model) showFiles(c *chat) tea.Cmd {
	dir := c.session.Cwd()
	p := newPicker("Files", nil, func(m *Model, p *picker, it item) tea.Cmd {
		m.pop(p)
		m.editor().area.InsertString(it.value.(string) + " ")
		return nil
	})
	shown := -1
	p.refresh = func(m *Model) []item {
		if items := m.filesOf(dir); len(items) != shown {
			shown = len(items)
			return items
		}
		return nil
	}
	m.push(p)
	return nil
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
