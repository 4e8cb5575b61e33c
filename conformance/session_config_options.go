// Rules of the page session-config-options.

package conformance

import (
	"slices"
	"strings"
)

// offersOptions are the messages that may have configuration options.
var offersOptions = on(results(methodNew, methodLoad, methodResume, "session/fork", methodSetOption), updates("config_option_update"))

var configOptionRules = []rule{
	{
		ID:     "CFG-3",
		Breaks: "An option of type boolean for a client that does not state session.configOptions.boolean. (In version 2 every client has them.)",
		Right: connected(`{"session":{"configOptions":{"boolean":{}}}}`) + `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"brief","name":"Brief","type":"boolean","currentValue":true}]}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"brief","name":"Brief","type":"boolean","currentValue":true}]}}}`,
		on:    offersOptions,
		check: func(e *event) {
			for i, option := range items(e.configOptions()) {
				if text(option, "type") == "boolean" && !e.client.can("session.configOptions.boolean") {
					e.broken(element(e.optionsPointer(), i)+"/type", "the client does not state session.configOptions.boolean").
						because(e.client.at, "its capabilities")
				}
			}
		},
	},
	{
		ID:       "CFG-7",
		Versions: both,
		Breaks:   "A category that is none of mode, model, model_config, thought_level and does not begin with an underscore.",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"style","name":"Style","category":"_style","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"style","name":"Style","category":"style","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}}}`,
		on:       offersOptions,
		check: func(e *event) {
			for i, option := range items(e.configOptions()) {
				switch category := text(option, "category"); {
				case !isText(member(option, "category")), strings.HasPrefix(category, "_"), slices.Contains(categories, category):
				default:
					e.broken(element(e.optionsPointer(), i)+"/category", "%q is no category of the protocol", clip(category))
				}
			}
		},
	},
	{
		ID:       "CFG-14",
		Versions: both,
		Breaks:   "A select whose currentValue is none of its options, grouped or not.",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"group":"all","name":"All","options":[{"value":"large","name":"Large"}]}]}]}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"Large","options":[{"value":"large","name":"Large"}]}]}}}`,
		on:       offersOptions,
		check: func(e *event) {
			for i, option := range items(e.configOptions()) {
				where := element(e.optionsPointer(), i)
				read := readOption(&offer{}, option)
				if read.values != nil && isText(member(option, "currentValue")) && !read.values[read.current] && e.sound(where) {
					e.broken(where+"/currentValue", "%q is none of the options", clip(text(option, "currentValue")))
				}
			}
		},
	},
	{
		ID:       "CFG-16",
		Versions: both,
		Breaks:   "session/set_config_option with an option or a value that the session never had, or with a value of another type than the option's.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/set_config_option","params":{"sessionId":"s","configId":"model","value":"small"}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/set_config_option","params":{"sessionId":"s","configId":"model","value":"tiny"}}`,
		on: requests(methodSetOption),
		// All that was ever offered counts: the client may not have seen the last change yet.
		check: func(e *event) {
			s, id, value := e.session, e.text("configId"), member(e.content, "value")
			if s == nil || s.options == nil || s.options.more || s.settable.forgot || id == "" || !e.sound("/value") {
				return
			}
			had := func(what ...string) bool { _, ok := s.settable.get(couldBe(id, what...)); return ok }
			kind := ""
			if now := s.options.items[short(id)]; now != nil {
				kind = now.kind
			}
			switch {
			case !had():
				e.broken("/configId", "the session has no option %q", clip(id)).because(s.options.at, "the options of the session")
			case kind == "select" && !had("boolean") && !isText(value),
				kind == "boolean" && !had("select") && (isText(value) || e.text("type") != "boolean"):
				e.broken("/value", "no value for an option of type %s", kind).because(s.options.at, "the options of the session")
			case kind == "select" && !had("boolean") && !had("select", text(value)):
				e.broken("/value", "%q is none of the values of %q", clip(text(value)), clip(id)).because(s.options.at, "the options of the session")
			}
		},
	},
	{
		ID:       "CFG-17",
		Versions: both,
		Breaks: "An answer to session/set_config_option without the option that was set, or with another value of it while nothing else goes on in the session; " +
			"and (less than a MUST: the others may have gone) one with that option alone where there were three or more.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/set_config_option","params":{"sessionId":"s","configId":"model","value":"small"}}
			<- {"jsonrpc":"2.0","id":10,"result":{"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"small","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}]}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/set_config_option","params":{"sessionId":"s","configId":"model","value":"small"}}
			<- {"jsonrpc":"2.0","id":10,"result":{"configOptions":[]}}`,
		on: results(methodSetOption),
		check: func(e *event) {
			s, list := e.session, e.configOptions()
			id, value := text(e.request.params, "configId"), member(e.request.params, "value")
			if s == nil || id == "" || !isArray(list) || !e.sound("/configOptions") {
				return
			}
			for i, option := range items(list) {
				if text(option, optionKey(e.content)) != id {
					continue
				}
				now := member(option, "currentValue")
				same := isText(now) && isText(value) && text(now) == text(value) || !isText(now) && !isText(value) && truth(now) == truth(value)
				if kind := text(option, "type"); (kind == "select" || kind == "boolean") && !same && !e.busy(s) {
					e.broken(element("/configOptions", i)+"/currentValue", "not the value that was set").because(e.request.at, "the request")
				}
				e.onlyOne(Should)
				return
			}
			e.broken("/configOptions", "lacks the option %q that was set", clip(id)).because(e.request.at, "the request")
		},
	},
	{
		ID:       "CFG-18",
		Versions: both,
		Breaks:   "A config_option_update with a single option in a session that had three or more. (Advice: the others may have gone.)",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"}]}]}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"}]},{"id":"mode","name":"Mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"}]},{"id":"style","name":"Style","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"}]}]}}}`,
		on:    updates("config_option_update"),
		check: func(e *event) { e.onlyOne(Advice) },
	},
	{
		ID:     "CFG-19",
		Breaks: "An answer to session/new, session/load or session/resume with modes and no option of the category mode, or the other way round.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]},"configOptions":[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"}]}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}}}`,
		on: results(methodNew, methodLoad, methodResume),
		check: func(e *event) {
			modes := e.has("modes", "availableModes")
			_, options := e.modeOption()
			if !e.sound("/modes") || !e.sound("/configOptions") {
				return
			}
			switch {
			case modes && options == 0 && length(e.content, "modes", "availableModes") > 0:
				e.broken("/configOptions", "has no option of the category mode beside the modes")
			case !modes && options > 0:
				e.broken("/modes", "is left out beside an option of the category mode")
			}
		},
	},
	{
		ID:     "CFG-22",
		Breaks: "An answer whose modes have another mode in force than its option of the category mode, whose values are the modes' ids.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]},"configOptions":[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"}]}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"auto","name":"Auto"}]},"configOptions":[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"auto","options":[{"value":"ask","name":"Ask"},{"value":"auto","name":"Auto"}]}]}}`,
		on: results(methodNew, methodLoad, methodResume),
		// Both come in one message: the agent knew what it said. Of later messages one may be late.
		check: func(e *event) {
			i, count := e.modeOption()
			mode := e.text("modes", "currentModeId")
			if count != 1 || mode == "" || !e.sound("/configOptions") {
				return
			}
			for k, option := range items(e.configOptions()) {
				if read := readOption(&offer{}, option); k == i && read.values[short(mode)] && read.current != short(mode) {
					e.broken(element("/configOptions", i)+"/currentValue", "is %q, and the mode is %q", clip(text(option, "currentValue")), clip(mode))
				}
			}
		},
	},
}

// categories are those of the protocol.
var categories = []string{"mode", "model", "model_config", "thought_level"}

// configOptions are those of a message.
func (e *event) configOptions() value {
	if e.method == methodUpdate {
		return member(e.content, "update", "configOptions")
	}
	return member(e.content, "configOptions")
}

// optionsPointer is the place of configOptions.
func (e *event) optionsPointer() string {
	if e.method == methodUpdate {
		return "/update/configOptions"
	}
	return "/configOptions"
}

// modeOption is the index of the last option of the category mode, and how many there are.
func (e *event) modeOption() (last, count int) {
	for i, option := range items(e.configOptions()) {
		if text(option, "category") == "mode" {
			last = i
			count++
		}
	}
	return last, count
}

// onlyOne reports a single option in a session that had more, which looks like a change and not like the whole.
func (e *event) onlyOne(level Level) {
	const many = 3
	if s := e.session; s != nil && s.options != nil && length(e.configOptions()) == 1 && len(s.options.items) >= many && e.sound(e.optionsPointer()) {
		e.broken(e.optionsPointer(), "has one option, where there were %d", len(s.options.items)).
			because(s.options.at, "the options before").mildly(level)
	}
}

// busy reports whether anything but the request that is answered may have changed the options of its session since: a turn,
// another such request, or the agent by itself. In version 2 the agent may always be at work.
func (e *event) busy(s *session) bool {
	return e.inForce != 1 || len(s.turns) > 0 || s.lost || s.setting > 1 || s.touched > e.request.at.Number
}
