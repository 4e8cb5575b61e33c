// What the agent offers in a session: modes, configuration options, commands; and its plans.

package judge

import (
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// AgentPlan is the last state of a plan.
type AgentPlan struct {
	At      *finding.Evidence
	Entries map[string]string // the status of each entry, by its content
	More    bool              // there were too many to keep
}

// Offer is a list of things that the agent offers by id.
type Offer struct {
	At     *finding.Evidence
	values int // the number of values of all options
	Items  map[string]*Offered
	More   bool // there were too many to keep
}

// Offered is one item of an offer: a mode, a configuration option or a command.
type Offered struct {
	Kind    string          // the type of a configuration option
	Current string          // the value of a select
	Values  map[string]bool // the values of a select; nil for other items, and if there were too many
}

// newOffer reads a list of items that are identified by the member key.
func newOffer(e *Event, list *schema.Value, key string, read func(*Offer, *schema.Value) *Offered) *Offer {
	if !list.IsArray() {
		return nil
	}
	o := &Offer{At: e.evidence(), Items: map[string]*Offered{}}
	for _, item := range list.Items() {
		if len(o.Items) >= maxNames {
			o.More = true
			break
		}
		thing := &Offered{}
		if read != nil {
			thing = read(o, item)
		}
		o.Items[Short(item.Text(key))] = thing
	}
	return o
}

// Has reports whether an item is offered. If the list was too long to keep, it reports true for everything.
func (o *Offer) Has(id string) bool { return o.More || o.Items[Short(id)] != nil }

// noteOffers records the offers in the result of session/new, session/load or session/resume.
func (s *Session) noteOffers(e *Event) {
	if modes := e.Content.Member("modes"); modes.IsObject() {
		s.Modes = newOffer(e, modes.Member("availableModes"), "id", nil)
	}
	s.noteOptions(e, e.Content)
	if commands := newOffer(e, e.Content.Member("availableCommands"), "name", nil); commands != nil {
		s.Commands = commands
	}
}

// noteOptions records the configuration options of a message, if it has any.
func (s *Session) noteOptions(e *Event, from *schema.Value) {
	if options := newOffer(e, from.Member("configOptions"), OptionKey(from), ReadOption); options != nil {
		s.Options = options
		for id, option := range options.Items {
			s.noteSettable(id, option)
		}
	}
}

// noteSettable adds an option to Settable.
func (s *Session) noteSettable(id string, option *Offered) {
	s.Settable.put(SettableKey(id), true)
	s.Settable.put(SettableKey(id, option.Kind), true)
	if option.Kind == "select" && option.Values == nil {
		s.Settable.Forgot = true
	}
	for value := range option.Values {
		s.Settable.put(SettableKey(id, "select", value), true)
	}
}

// SettableKey returns the key in Session.Settable of an option, of one of its types, or of a value of a select.
func SettableKey(id string, more ...string) string {
	for i := range more {
		more[i] = Short(more[i])
	}
	return strings.Join(append([]string{Short(id)}, more...), "\x00")
}

// NewAgentPlan reads the entries of a plan.
func NewAgentPlan(e *Event, from *schema.Value) *AgentPlan {
	p := &AgentPlan{At: e.evidence(), Entries: map[string]string{}}
	for _, entry := range from.Items("entries") {
		if len(p.Entries) >= maxPlanEntries {
			p.More = true
			break
		}
		p.Entries[Short(entry.Text("content"))] = Short(entry.Text("status"))
	}
	return p
}

// OptionKey returns the name of the member that identifies options, which differs in version 2.
func OptionKey(from *schema.Value) string {
	for _, option := range from.Items("configOptions") {
		if option.Present("configId") {
			return "configId"
		}
	}
	return "id"
}

// ReadOption reads a configuration option, whose values may be in groups.
func ReadOption(o *Offer, option *schema.Value) *Offered {
	thing := &Offered{Kind: Short(option.Text("type")),
		Current: Short(option.Text("currentValue"))}
	if thing.Kind != "select" {
		return thing
	}
	thing.Values = map[string]bool{}
	var add func(list *schema.Value)
	add = func(list *schema.Value) {
		for _, v := range list.Items() {
			if group := v.Member("options"); group.IsArray() {
				add(group)
			} else if o.values++; o.values > maxNames {
				thing.Values = nil
				return
			} else if thing.Values != nil {
				thing.Values[Short(v.Text("value"))] = true
			}
		}
	}
	add(option.Member("options"))
	return thing
}
