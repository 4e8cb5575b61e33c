package translate

import "bytes"

// setModes remembers the modes of an agent of version 1.
func (sess *session) setModes(modes object) {
	sess.modes, sess.mode = nil, ""
	if mode := modes.str("currentModeId"); len(mode) <= maxID {
		sess.mode = mode
	}
	if len(modes.list("availableModes")) > 0 && len(modes.text()) <= maxOptions {
		sess.modes = modes.clone()
	}
}

// optionsTo2 translates config options, and adds one for the modes unless there is one.
func (s *State) optionsTo2(sess *session, options []raw) raw {
	sess.option = ""
	names := map[string]bool{}
	all := editObjects(options, func(o *object) bool {
		o.rename("id", "configId")
		names[o.str("configId")] = true
		if id := o.str("configId"); o.str("category") == "mode" && len(id) <= maxID {
			sess.option = id
		}
		groups := editObjects(o.list("options"), func(group *object) bool {
			group.rename("group", "groupId")
			return !group.has("options") || len(group.list("options")) > 0
		})
		if o.has("options") {
			o.set("options", groups)
		}
		return !o.has("options") || len(list(groups)) > 0
	})
	sess.keepOptions(all)
	s.measure(sess)
	if sess.option != "" || sess.modes == nil {
		if sess.option != "" {
			sess.modes = nil
		}
		return all
	}
	for sess.option = "mode"; names[sess.option]; sess.option += "_" {
	}
	return array(append([]raw{sess.modeOption()}, list(all)...)...)
}

// keepOptions remembers the options, to send them with a changed mode.
func (sess *session) keepOptions(options raw) {
	sess.options = nil
	if len(options) <= maxOptions {
		sess.options = bytes.Clone(options)
	}
}

// modeOption returns the modes as an option.
func (sess *session) modeOption() raw {
	values := editObjects(sess.modes.list("availableModes"), func(mode *object) bool {
		mode.rename("id", "value")
		return true
	})
	return obj("configId", sess.option, "name", "Mode", "category", "mode", "type", "select",
		"currentValue", sess.mode, "options", values).text()
}

// allOptions returns all options, in version 2.
func (sess *session) allOptions() raw {
	options := list(sess.options)
	if sess.modes != nil {
		options = append([]raw{sess.modeOption()}, options...)
	} else if sess.option != "" {
		options = list(editObjects(options, func(o *object) bool {
			if o.str("configId") == sess.option {
				o.set("currentValue", quote(sess.mode))
			}
			return true
		}))
	}
	return array(options...)
}

// setOption1 is session/set_config_option. For the mode of an agent without that option it is session/set_mode.
func (s *State) setOption1(m *message) *fault {
	id, value := m.str("sessionId"), m.params.get("value")
	sess := s.session(id)
	if sess.modes != nil && m.str("configId") == sess.option {
		mode := unquote(value)
		if mode == "" {
			return errParams("a mode without id")
		}
		params := append(object{}, m.params...)
		params.drop("configId", "type", "value")
		params.set("modeId", quote(mode))
		return s.send(m, "session/set_mode", params, func(answer *message) {
			if result := s.result(answer); result != nil {
				if len(mode) <= maxID {
					sess.mode = mode
				}
				result.set("configOptions", sess.allOptions())
				s.reply(answer, result)
			}
		})
	}
	params := append(object{}, m.params...)
	switch kind := m.str("type"); {
	case kind == "id" || kind == "" && len(value) > 0 && value[0] == '"':
		params.drop("type")
	case kind != "boolean":
		return errParams("version 1 of the protocol has no values of type %q", kind)
	}
	return s.send(m, m.method, params, func(answer *message) {
		if result := s.result(answer); result != nil {
			result.set("configOptions", s.optionsTo2(sess, result.list("configOptions")))
			s.reply(answer, result)
		}
	})
}

// optionsTo1 translates config options, and remembers the modes among them.
func (s *State) optionsTo1(sess *session, options []raw) raw {
	defer s.measure(sess)
	sess.modes, sess.option, sess.mode = nil, "", ""
	return editObjects(options, func(o *object) bool {
		o.rename("configId", "id")
		switch o.str("type") {
		case "boolean":
			return s.client.booleans
		case "select":
		default:
			return false
		}
		var modes []raw
		o.set("options", editObjects(o.list("options"), func(entry *object) bool {
			entry.rename("groupId", "group")
			values := []raw{entry.text()}
			if entry.has("options") {
				values = entry.list("options")
			}
			modes = append(modes, list(editObjects(values, func(mode *object) bool {
				mode.rename("value", "id")
				return true
			}))...)
			return true
		}))
		id, mode := o.str("id"), o.str("currentValue")
		if o.str("category") == "mode" && sess.option == "" && len(modes) > 0 && len(id) <= maxID && len(mode) <= maxID {
			sess.option, sess.mode = id, mode
			if sess.modes = obj("currentModeId", sess.mode, "availableModes",
				array(modes...)); len(sess.modes.text()) > maxOptions {
				sess.modes = nil
			} else {
				sess.modes = sess.modes.clone()
			}
		}
		return true
	})
}

// setMode2 is session/set_mode, which is an option in version 2.
func (s *State) setMode2(m *message) *fault {
	id := m.str("sessionId")
	if id == "" || m.str("modeId") == "" {
		return errParams("a mode without session or id")
	}
	sess := s.sessions.get(short(id))
	if sess == nil || !sess.opened {
		return errNoSession(id)
	}
	if sess.option == "" {
		return errParams("the session has no modes")
	}
	params := append(object{}, m.params...)
	params.drop("modeId")
	params.put(obj("configId", sess.option, "type", "id", "value", m.str("modeId")))
	return s.send(m, "session/set_config_option", params, func(answer *message) {
		if result := s.result(answer); result != nil {
			options := s.optionsTo1(sess, result.list("configOptions"))
			result.drop("configOptions")
			s.reply(answer, result)
			s.update(id, obj("sessionUpdate", "config_option_update", "configOptions", options))
		}
	})
}

// setOption2 is session/set_config_option, whose values have types in version 2.
func (s *State) setOption2(m *message) *fault {
	sess, params := s.session(m.str("sessionId")), append(object{}, m.params...)
	if params.str("type") != "boolean" {
		params.set("type", quote("id"))
	}
	return s.send(m, m.method, params, func(answer *message) {
		if result := s.result(answer); result != nil {
			before := sess.mode
			result.set("configOptions", s.optionsTo1(sess, result.list("configOptions")))
			s.reply(answer, result)
			s.modeChanged(sess, before)
		}
	})
}

// modeChanged tells a client of version 1 about a changed mode.
func (s *State) modeChanged(sess *session, before string) {
	if sess.modes != nil && sess.mode != before {
		s.update(sess.id, obj("sessionUpdate", "current_mode_update", "currentModeId", sess.mode))
	}
}
