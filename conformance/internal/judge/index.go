package judge

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Rule is a requirement of the protocol whose violation can be seen in a stream of messages: a conformance.Rule
// together with the functions that judge it.
type Rule struct {
	ID    string
	Level finding.Level
	Side  finding.Side
	Page  string
	Text  string
	// Breaks, Right and Wrong explain it; see conformance.Rule.
	Breaks       string
	Right, Wrong string
	Versions     []int

	On    []Selector   // the messages that Check looks at; none if the schema judges the requirement
	Check func(*Event) // checks a message
	End   func(*Event) // checks the end of the connection; may be nil
}

// Selector selects messages by kind, by method and, for session/update, by the kind of update. An empty field selects
// all. The method of an answer is that of its request.
type Selector struct {
	Kind   finding.Kind
	Method string
	Update string // the kind of a session/update
}

// Index finds the rules of one version for a message.
type Index struct {
	// rules maps each selector that some rule has to its rules and those of the more general selectors, which come
	// first.
	rules map[Selector][]*Rule
	atEnd []*Rule
}

// NewIndexes returns an index for each version.
func NewIndexes(rules []Rule) map[int]*Index {
	all := map[int]*Index{}
	for i := range rules {
		for _, version := range rules[i].Versions {
			x := all[version]
			if x == nil {
				x = &Index{rules: map[Selector][]*Rule{}}
				all[version] = x
			}
			for _, s := range rules[i].On {
				x.rules[s] = nil
			}
			if rules[i].End != nil {
				x.atEnd = append(x.atEnd, &rules[i])
			}
		}
	}
	for version, x := range all {
		for s := range x.rules {
			for _, from := range s.broader() {
				for i := range rules {
					if slices.Contains(rules[i].Versions, version) && slices.Contains(rules[i].On, from) {
						x.rules[s] = append(x.rules[s], &rules[i])
					}
				}
			}
		}
	}
	return all
}

// broader returns s and the selectors that include it, the most general one first.
func (s Selector) broader() []Selector {
	all := []Selector{{}, {Kind: s.Kind}, {Kind: s.Kind, Method: s.Method}, s}
	return slices.Compact(all)
}

// rulesFor returns the rules for a message, the most general ones first.
func (x *Index) rulesFor(e *Event) []*Rule {
	all := [...]Selector{{e.Kind, e.Method, e.Update}, {Kind: e.Kind, Method: e.Method}, {Kind: e.Kind}}
	for _, s := range all {
		if rules, ok := x.rules[s]; ok {
			return rules
		}
	}
	return x.rules[Selector{}]
}

// apply runs the rules for a message.
func (x *Index) apply(e *Event) {
	for _, rule := range x.rulesFor(e) {
		if e.Rule = rule; e.judge.applies == nil || e.judge.applies(rule) {
			rule.Check(e)
		}
	}
}
