// Scenarios of params of wrong types, made from the schema.

package probe

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// property is what the schema says of a member of params.
type property struct {
	name     string
	required bool
	lenient  bool     // a wrong value counts as left out
	types    []string // of JSON, that it may have
}

// wrongTypes are the requests whose params are sent with wrong types: right params, of which one member at a time is
// replaced.
var wrongTypes = []struct {
	method, capability string
	params             string
	needs              string // what answers have to show for it: "modes" or "options"
}{
	{"session/new", "", newParams, ""},
	{"session/prompt", "", `{"sessionId":{session},"prompt":[{"type":"text","text":"Reply with OK."}]}`, ""},
	{"session/set_mode", "", `{"sessionId":{session},"modeId":"acp-probe"}`, "modes"},
	{"session/set_config_option", "", `{"sessionId":{session},"configId":"acp-probe","value":"acp-probe"}`, "options"},
	{"authenticate", "", `{"methodId":"acp-probe"}`, ""},
	{"session/load", loadSession, openParams, ""},
	{"session/resume", canResume, openParams, ""},
	{"session/list", canList, `{}`, ""},
	{"session/close", canClose, unknownSession, ""},
	{"session/delete", canDelete, unknownSession, ""},
}

// typeScenarios are the scenarios of wrong types, one for each method.
func typeScenarios() []Scenario {
	var all []Scenario
	for _, w := range wrongTypes {
		s := Scenario{
			Name:      "types-" + strings.NewReplacer("/", "-", "_", "-").Replace(w.method),
			Text:      "Params of " + w.method + " of every wrong type are refused with -32602, and the connection survives.",
			Exercises: []string{"ERR-4", "ADD-1", "SCH-17"},
			steps: []step{ready, func(p *play) {
				if w.needs != "" && !p.saw(w.needs) {
					p.stopf("the agent has no %s", w.needs)
				}
				if m := p.call(w.method, p.fillFor(noSession, w.params)); m.Code() == -32601 {
					p.stopf("the agent has no %s", w.method)
				}
				properties := propertiesOf(w.method)
				refuse := func(what, params string) {
					p.requireError("ERR-4", p.call(w.method, params), w.method+what, wrongParams...)
				}
				needed := slices.ContainsFunc(properties, func(q property) bool { return q.required })
				if needed {
					refuse(" without params", "")
				}
				for _, params := range []string{`[]`, `"text"`, `7`, `null`} {
					if needed || params != "null" {
						refuse(" with the params "+params, params)
					}
				}
				right := p.fill(w.params)
				for _, q := range properties {
					for _, value := range wrongValues(q) {
						m := p.call(w.method, replace(right, q.name, value))
						what := w.method + " with " + q.name + " " + value
						switch {
						case m == nil:
							p.failAt("OVW-3", conformance.Must, "%s", p.why(what+": no answer"))
							p.checkAlive("ADD-1", what)
						case q.lenient || value == "null" && !q.required:
							p.markExercised("SCH-17")
						default:
							p.requireError("ERR-4", m, what, wrongParams...)
						}
					}
					if q.required {
						refuse(" without "+q.name, replace(right, q.name, ""))
					}
				}
			}, continues("ADD-1", "params of wrong types")},
		}
		if w.capability != "" {
			s.Needs = []string{w.capability}
		}
		all = append(all, s)
	}
	return append(all, Scenario{
		Name: "types-notifications", quiet: true,
		Text:      "Notifications with params of wrong types are never answered, and the connection survives.",
		Exercises: []string{"OVW-4", "ADD-11", "ADD-1"},
		steps: []step{ready, func(p *play) {
			before := p.LastNumber()
			p.do(
				notify("session/cancel", "", `{}`, `[]`, `"text"`, `7`, `null`, `{"sessionId":7}`, `{"sessionId":null}`, `{"sessionId":{}}`),
				notify("$/cancel_request", "", `{}`, `[]`, `7`, `{"requestId":{}}`, `{"requestId":[]}`, `{"requestId":1.5}`, `{"requestId":true}`),
				continues("ADD-1", "notifications with params of wrong types"), silence, tries("OVW-4", "ADD-11"),
			)
			for _, m := range p.errorsSince(before) {
				if m.ID == "null" || m.ID == "" {
					p.fail("OVW-4", "the agent answered a notification: %s", player.AnswerText(m))
					break
				}
			}
		}},
	})
}

// propertiesOf reads the members of a request's params from the stable schema.
func propertiesOf(method string) []property {
	var found []property
	for name, d := range definitions() {
		if d.Method != method || d.Side != "agent" || strings.HasSuffix(name, "Response") {
			continue
		}
		for name, p := range d.Properties {
			if name == "_meta" {
				continue
			}
			found = append(found, property{
				name: name, required: slices.Contains(d.Required, name), lenient: p.OnError || p.OnNull, types: p.kinds(),
			})
		}
	}
	slices.SortFunc(found, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return found
}

// definition is as much of a schema's definition as is needed here.
type definition struct {
	Method     string                `json:"x-method"`
	Side       string                `json:"x-side"`
	Properties map[string]definition `json:"properties"`
	Required   []string              `json:"required"`
	OnError    bool                  `json:"x-deserialize-default-on-error"`
	OnNull     bool                  `json:"x-deserialize-default-on-null"`
	Type       json.RawMessage       `json:"type"`
	Ref        string                `json:"$ref"`
	AllOf      []definition          `json:"allOf"`
	AnyOf      []definition          `json:"anyOf"`
}

// kinds are the types that a value may have; none if anything goes.
func (d *definition) kinds() []string {
	var one string
	var list []string
	if json.Unmarshal(d.Type, &one) == nil && one != "" {
		list = append(list, one)
	} else if err := json.Unmarshal(d.Type, &list); err != nil {
		list = nil
	}
	if d.Ref != "" {
		if named, ok := definitions()[strings.TrimPrefix(d.Ref, "#/$defs/")]; ok {
			list = append(list, named.kinds()...)
		}
	}
	for _, parts := range [][]definition{d.AllOf, d.AnyOf} {
		for _, part := range parts {
			list = append(list, part.kinds()...)
		}
	}
	return list
}

// definitions are those of the stable schema.
var definitions = sync.OnceValue(func() map[string]definition {
	var root struct {
		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(sdk.SchemaV1()), &root); err != nil {
		panic("probe: the schema: " + err.Error()) // it is embedded; the tests read it
	}
	return root.Defs
})

// wrongValues are values of the types that a member may not have.
func wrongValues(q property) []string {
	if len(q.types) == 0 {
		return nil
	}
	var wrong []string
	for _, v := range []struct{ kind, text string }{
		{"null", "null"}, {"boolean", "true"}, {"number", "1.5"}, {"string", `"acp-probe"`}, {"array", `[1]`}, {"object", `{"acp":1}`},
	} {
		if !slices.Contains(q.types, v.kind) && (v.kind != "number" || !slices.Contains(q.types, "integer")) {
			wrong = append(wrong, v.text)
		}
	}
	return wrong
}

// replace returns params with another value of a member, or without it if the value is "".
func replace(params, name, value string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &members); err != nil {
		panic("probe: " + err.Error()) // they are this package's own
	}
	if value == "" {
		delete(members, name)
	} else {
		members[name] = json.RawMessage(value)
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic("probe: " + err.Error())
	}
	return string(text)
}
