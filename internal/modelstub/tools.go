// Which of the agent's tools does what, and with which parameters.

package modelstub

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// plainName is the name of a tool or a parameter without what naming conventions add.
func plainName(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) { // mcp__server__tool
		name = name[i+2:]
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// tool finds the first tool that has one of the names.
func (c *conversation) tool(names ...string) *tool {
	for _, name := range names {
		for i := range c.tools {
			if plainName(c.tools[i].name) == name {
				return &c.tools[i]
			}
		}
	}
	return nil
}

// The names of tools, as agents call them.
var (
	readTools  = []string{"read", "readfile", "readtextfile", "viewfile", "openfile", "view", "cat"}
	editTools  = []string{"edit", "replace", "editfile", "strreplace", "strreplaceedit", "searchreplace", "replaceinfile"}
	writeTools = []string{"write", "writefile", "writetextfile", "createfile", "writetofile"}
	runTools   = []string{"bash", "run", "shell", "runshellcommand", "runcommand", "executecommand", "runterminalcmd",
		"execcommand", "localshell", "terminal", "exec"}
	planTools = []string{"todowrite", "writetodos", "updateplan", "updatetodos", "todo", "plan"}
	askTools  = []string{"askuserquestion", "askuser", "question", "askfollowupquestion"}
	// searchTools find tools that are not in the list.
	searchTools = []string{"toolsearch", "searchtools"}
	modeTools   = []string{"enterplanmode", "planenter", "switchmode"}
)

// read is the call that reads a file; nil if no tool can.
func (g *game) read(file string) *call {
	if t := g.tool(readTools...); t != nil {
		return t.call(values{path: file})
	}
	return g.run("cat "+shellWord(file), "Read a file")
}

// edit is the call that puts a line behind the last one of a file.
func (g *game) edit(file, before, line string) *call {
	if t := g.tool(editTools...); t != nil {
		return t.call(values{path: file, before: before, after: before + "\n" + line})
	}
	if t := g.tool(writeTools...); t != nil {
		return t.call(values{path: file, content: before + "\n" + line + "\n"})
	}
	return g.run("printf '%s\\n' "+shellWord(line)+" >>"+shellWord(file), "Edit a file")
}

// run is the call that runs a command.
func (g *game) run(command, why string) *call {
	return g.tool(runTools...).call(values{command: command, why: why})
}

// plan is the call that sets the states of a plan of three steps.
func (g *game) plan(states ...string) *call { return g.tool(planTools...).call(values{states: states}) }

// called finds the tool of an MCP server that has a name.
func (c *conversation) called(name string) *tool {
	for i := range c.tools {
		if strings.HasSuffix(plainName(c.tools[i].name), plainName(name)) {
			return &c.tools[i]
		}
	}
	return nil
}

// values are what a call is about.
type values struct {
	path, before, after, content  string
	command, why, question, query string
	states                        []string
}

// steps are the texts of a plan.
var steps = []string{"Open the file", "Read the file", "Tell what is in it"}

// schema is as much of JSON Schema as parameters of tools use.
type schema struct {
	Type       json.RawMessage
	Properties map[string]json.RawMessage
	Required   []string
	Items      json.RawMessage
	Enum       []json.RawMessage
	Const      json.RawMessage
	Default    json.RawMessage
	AnyOf      []json.RawMessage
	OneOf      []json.RawMessage
	MinItems   int
	Minimum    *json.Number
}

// kind is the first type of the schema, in small letters (Gemini has large ones).
func (s *schema) kind() string {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return strings.ToLower(one)
	}
	var several []string
	if json.Unmarshal(s.Type, &several) == nil {
		for _, t := range several {
			if !strings.EqualFold(t, "null") {
				return strings.ToLower(t)
			}
		}
	}
	if len(s.Properties) > 0 {
		return "object"
	}
	return ""
}

// call is the use of a tool for something: its parameters are told by their names, and what else it requires is filled
// in. It is nil if there is no tool.
func (t *tool) call(v values) *call {
	if t == nil {
		return nil
	}
	var s schema
	args := map[string]any{}
	if len(t.schema) > 0 && json.Unmarshal(t.schema, &s) == nil {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			var p schema
			if json.Unmarshal(s.Properties[name], &p) != nil {
				continue
			}
			if value, ok := v.parameter(plainName(name), &p); ok {
				args[name] = value
			} else if slices.Contains(s.Required, name) {
				args[name] = instance(s.Properties[name], 0)
			}
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		text = []byte("{}") // never: it holds what came from JSON
	}
	return &call{name: t.name, args: text}
}

// parameter is the value of a parameter, and whether it is about what the call is about.
func (v *values) parameter(name string, p *schema) (any, bool) {
	text := func(value string) (any, bool) {
		if value == "" {
			return nil, false
		}
		if p.kind() == "array" {
			if name == "command" || name == "cmd" {
				return []string{"sh", "-c", value}, true
			}
			return []string{value}, true
		}
		return value, true
	}
	switch name {
	case "path", "filepath", "absolutepath", "targetfile", "filename", "file", "paths", "relativeworkspacepath":
		return text(v.path)
	case "oldstring", "oldstr", "oldtext", "search", "find", "old":
		return text(v.before)
	case "newstring", "newstr", "newtext", "new", "replacement":
		return text(v.after)
	case "content", "contents", "filetext", "text", "body":
		return text(v.content)
	case "command", "cmd", "script":
		return text(v.command)
	case "description", "reason", "justification", "explanation":
		return text(v.why)
	case "instruction":
		if v.after != "" {
			return "Append a line to the file.", true
		}
	case "todos", "plan", "items", "steps", "tasks":
		if v.states != nil && p.kind() == "array" {
			return v.entries(p.Items), true
		}
	case "questions":
		if v.question != "" && p.kind() == "array" {
			return []any{v.formQuestion(p.Items)}, true
		}
	case "question":
		return text(v.question)
	case "query":
		return text(v.query)
	}
	return nil, false
}

// entries are the steps of a plan, as the schema of one wants them.
func (v *values) entries(item json.RawMessage) []any {
	var entries []any
	for i, state := range v.states {
		entries = append(entries, object(item, func(name string, p *schema) (any, bool) {
			switch name {
			case "status", "state":
				return pick(p, state), true
			case "content", "step", "description", "text", "task", "title", "activeform", "subject":
				return steps[i], true
			case "id":
				if p.kind() == "string" {
					return string(rune('1' + i)), true
				}
				return i + 1, true
			case "priority":
				return pick(p, "medium"), true
			}
			return nil, false
		}))
	}
	return entries
}

// formQuestion is the question of a form, as the schema of one wants it.
func (v *values) formQuestion(item json.RawMessage) any {
	return object(item, func(name string, p *schema) (any, bool) {
		switch name {
		case "question":
			return v.question, true
		case "header":
			return "Name", true
		case "multiselect", "multiple":
			return false, true
		case "options":
			var options []any
			for _, label := range []string{"Probe", "Somebody else"} {
				options = append(options, object(p.Items, func(name string, _ *schema) (any, bool) {
					switch name {
					case "label", "value":
						return label, true
					case "description":
						return "Answer " + label, true
					}
					return nil, false
				}))
			}
			return options, true
		}
		return nil, false
	})
}

// object is a value of a schema whose members are told by their names; what is required beside them is filled in.
func object(text json.RawMessage, value func(name string, p *schema) (any, bool)) any {
	var s schema
	if json.Unmarshal(text, &s) != nil || len(s.Properties) == 0 {
		return instance(text, 0)
	}
	o := map[string]any{}
	for name, member := range s.Properties {
		var p schema
		if json.Unmarshal(member, &p) != nil {
			continue
		}
		if x, ok := value(plainName(name), &p); ok {
			o[name] = x
		} else if slices.Contains(s.Required, name) {
			o[name] = instance(member, 0)
		}
	}
	return o
}

// pick is the value of the enumeration that is alike, or else its first one, or the value itself if there is none.
func pick(p *schema, want string) any {
	for _, text := range p.Enum {
		var value string
		if json.Unmarshal(text, &value) == nil && plainName(value) == plainName(want) {
			return value
		}
	}
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	return want
}

// instance is a value of a schema, as small as can be.
func instance(text json.RawMessage, depth int) any {
	var s schema
	if depth > 20 || json.Unmarshal(text, &s) != nil {
		return nil
	}
	switch {
	case s.Const != nil:
		return s.Const
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return instance(s.AnyOf[0], depth+1)
	case len(s.OneOf) > 0:
		return instance(s.OneOf[0], depth+1)
	}
	switch s.kind() {
	case "object":
		o := map[string]any{}
		for _, name := range s.Required {
			o[name] = instance(s.Properties[name], depth+1)
		}
		return o
	case "array":
		list := []any{}
		for range min(s.MinItems, 10) {
			list = append(list, instance(s.Items, depth+1))
		}
		return list
	case "number", "integer":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case "boolean":
		return false
	case "null":
		return nil
	}
	return "probe"
}
