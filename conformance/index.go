// Rules: what one is, how it says which messages it looks at, and the index that finds the rules for a message.

package conformance

import "slices"

// rule is one requirement of the protocol that a stream of messages can show to be broken: a conformance.Rule, and how it
// is judged.
type rule struct {
	ID    string
	Level Level
	Side  Side
	Page  string
	Text  string
	// Breaks, Right and Wrong explain it; see conformance.Rule.
	Breaks       string
	Right, Wrong string
	Versions     []int

	on    []selector   // which messages check looks at; none if the validator judges the requirement
	check func(*event) // reports what the message breaks
	end   func(*event) // reports what the end of the connection breaks; may be nil
}

// selector chooses messages by kind, by method and, of session/update, by the kind of update. Empty members choose all.
// The method of an answer is that of its request.
type selector struct {
	kind   Kind
	method string
	update string
}

// index finds the rules of one version for a message.
type index struct {
	// rules are, for each selector that some rule has, those of it and of the more general ones, which come first.
	rules map[selector][]*rule
	atEnd []*rule
}

// newIndexes returns the index of each version.
func newIndexes(rules []rule) map[int]*index {
	all := map[int]*index{}
	for i := range rules {
		for _, version := range rules[i].Versions {
			x := all[version]
			if x == nil {
				x = &index{rules: map[selector][]*rule{}}
				all[version] = x
			}
			for _, s := range rules[i].on {
				x.rules[s] = nil
			}
			if rules[i].end != nil {
				x.atEnd = append(x.atEnd, &rules[i])
			}
		}
	}
	for version, x := range all {
		for s := range x.rules {
			for _, from := range s.broader() {
				for i := range rules {
					if slices.Contains(rules[i].Versions, version) && slices.Contains(rules[i].on, from) {
						x.rules[s] = append(x.rules[s], &rules[i])
					}
				}
			}
		}
	}
	return all
}

// broader are the selectors that choose what a selector chooses, the most general one first.
func (s selector) broader() []selector {
	all := []selector{{}, {kind: s.kind}, {kind: s.kind, method: s.method}, s}
	return slices.Compact(all)
}

// of returns the rules for a message, the general ones first.
func (x *index) of(e *event) []*rule {
	all := [...]selector{{e.kind, e.method, e.update}, {kind: e.kind, method: e.method}, {kind: e.kind}}
	for _, s := range all {
		if rules, ok := x.rules[s]; ok {
			return rules
		}
	}
	return x.rules[selector{}]
}

// judge runs the rules for a message.
func (x *index) judge(e *event) {
	for _, rule := range x.of(e) {
		if e.rule = rule; e.judge.applies == nil || e.judge.applies(rule) {
			rule.check(e)
		}
	}
}
