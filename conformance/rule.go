// Rules: what one is, how it says which messages it looks at, and the index that finds the rules for a message.

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Rule is one requirement of the protocol that a stream of messages can show to be broken.
type Rule struct {
	ID    string // "SES-7"
	Level Level
	Side  Side   // who must comply; 0 for both
	Page  string // of the protocol's documents: "session-setup"
	Text  string // the requirement, in our own words
	// Breaks says what breaks it.
	Breaks string
	// Right and Wrong are examples: a message a line, with "->" before what the client writes and "<-" before
	// what the agent writes. They begin after what they need, such as initialize, and leave out what does not matter.
	Right, Wrong string
	// Versions are the versions of the protocol that it is for.
	Versions []int

	on    []selector   // which messages check looks at; none if the validator judges the requirement
	check func(*event) // reports what the message breaks
	end   func(*event) // reports what the end of the connection breaks; may be nil
}

// Rules returns all rules, in the order of the pages, with the requirements that the schema and JSON-RPC judge.
func Rules() []Rule { return slices.Clone(allRules()) }

// allRules are the rules of all pages. What the table of requirements says of a rule is filled in here, so that a page's
// file does not repeat it.
var allRules = sync.OnceValue(func() []Rule {
	byPage := map[string][]Rule{}
	place := map[string]int{} // of each requirement on its page
	for _, p := range pages {
		for i, r := range p.requirements {
			place[r.id] = i
		}
	}
	for _, rules := range rulesOfPages {
		for _, rule := range rules {
			r, page := requirementOf(rule.ID)
			if r == nil {
				panic(fmt.Sprintf("conformance: rule %s is not a requirement", rule.ID)) // of this package; its tests look at all
			}
			rule.Level, rule.Side, rule.Page = r.level(), r.side, page
			if rule.Text == "" {
				rule.Text = r.text
			}
			if rule.Versions == nil {
				rule.Versions = []int{1}
			}
			rule.Right, rule.Wrong = dedent(rule.Right), dedent(rule.Wrong)
			byPage[page] = append(byPage[page], rule)
		}
	}
	var all []Rule
	for _, name := range pageNames() {
		slices.SortFunc(byPage[name], func(a, b Rule) int { return place[a.ID] - place[b.ID] })
		all = append(all, byPage[name]...)
	}
	return all
})

// rulesOfPages are the rules, each page's in the file that is named like it.
var rulesOfPages = [][]Rule{
	schemaRules,
	overviewRules, initializationRules, authenticationRules, sessionSetupRules, sessionListRules, sessionDeleteRules,
	sessionModesRules, configOptionRules, promptTurnRules, cancellationRules, contentRules, toolCallRules, fileSystemRules,
	terminalRules, agentPlanRules, slashCommandRules, elicitationRules, extensibilityRules,
	errorRules, schemaReferenceRules, additionsRules, version2Rules,
}

// dedent removes the indentation of an example in a page's file.
func dedent(example string) string {
	var lines []string
	for line := range strings.Lines(example) {
		if line = strings.Trim(line, "\t\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// connected begins examples: a client with the given capabilities, and the session s.
func connected(capabilities string) string {
	return `
		-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":` + capabilities + `}}
		<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"agentCapabilities":{}}}
		-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
		<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}
`
}

// both are the versions of a rule that holds in versions 1 and 2.
var both = []int{1, 2}

// selector chooses messages by kind, by method and, of session/update, by the kind of update. Empty members choose all.
// The method of an answer is that of its request.
type selector struct {
	kind   Kind
	method string
	update string
}

// on puts selections together.
func on(selections ...[]selector) []selector { return slices.Concat(selections...) }

// requests chooses the requests of methods, or all without any; the others likewise.
func requests(methods ...string) []selector { return choose(Request, methods) }

// notifications chooses notifications.
func notifications(methods ...string) []selector { return choose(Notification, methods) }

// results chooses the answers with a result.
func results(methods ...string) []selector { return choose(Response, methods) }

// failures chooses the answers with an error.
func failures(methods ...string) []selector { return choose(ErrorReply, methods) }

// answers chooses all answers.
func answers(methods ...string) []selector { return on(results(methods...), failures(methods...)) }

// updates chooses the session/update notifications of some kinds of update, or all without any.
func updates(kinds ...string) []selector {
	if len(kinds) == 0 {
		return notifications(methodUpdate)
	}
	var chosen []selector
	for _, kind := range kinds {
		chosen = append(chosen, selector{Notification, methodUpdate, kind})
	}
	return chosen
}

func choose(kind Kind, methods []string) []selector {
	if len(methods) == 0 {
		return []selector{{kind: kind}}
	}
	var chosen []selector
	for _, method := range methods {
		chosen = append(chosen, selector{kind: kind, method: method})
	}
	return chosen
}

// index finds the rules of one version for a message.
type index struct {
	// rules are, for each selector that some rule has, those of it and of the more general ones, which come first.
	rules map[selector][]*Rule
	atEnd []*Rule
}

// indexes has the index of each version.
var indexes = sync.OnceValue(func() map[int]*index {
	all := map[int]*index{}
	rules := allRules()
	for i := range rules {
		for _, version := range rules[i].Versions {
			x := all[version]
			if x == nil {
				x = &index{rules: map[selector][]*Rule{}}
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
})

// broader are the selectors that choose what a selector chooses, the most general one first.
func (s selector) broader() []selector {
	all := []selector{{}, {kind: s.kind}, {kind: s.kind, method: s.method}, s}
	return slices.Compact(all)
}

// of returns the rules for a message, the general ones first.
func (x *index) of(e *event) []*Rule {
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

// levelOf is the level of a requirement.
func levelOf(id string) Level {
	if r, _ := requirementOf(id); r != nil {
		return r.level()
	}
	return Advice
}
