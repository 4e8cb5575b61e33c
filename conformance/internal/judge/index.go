// Rules: what one is, how it says which messages it looks at, and the index that finds the rules for a message.

package judge

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Rule is one requirement of the protocol that a stream of messages can show to be broken: a conformance.Rule, and how it
// is judged.
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

	On    []Selector   // which messages Check looks at; none if the schema judges the requirement
	Check func(*Event) // reports what the message breaks
	End   func(*Event) // reports what the end of the connection breaks; may be nil
}

// Selector chooses messages by kind, by method and, of session/update, by the kind of update. Empty members choose all.
// The method of an answer is that of its request.
type Selector struct {
	Kind   finding.Kind
	Method string
	Update string // the kind of a session/update
}

// Index finds the rules of one version for a message.
type Index struct {
	// rules are, for each selector that some rule has, those of it and of the more general ones, which come first.
	rules map[Selector][]*Rule
	atEnd []*Rule
}

// NewIndexes returns the index of each version.
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

// broader are the selectors that choose what a selector chooses, the most general one first.
func (s Selector) broader() []Selector {
	all := []Selector{{}, {Kind: s.Kind}, {Kind: s.Kind, Method: s.Method}, s}
	return slices.Compact(all)
}

// rulesFor returns the rules for a message, the general ones first.
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
