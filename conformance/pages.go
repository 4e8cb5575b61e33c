// All rules, and what the pages' files share.

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// allRules are the rules of all pages. What the table of requirements says of a rule is filled in here, so that a page's
// file does not repeat it.
var allRules = sync.OnceValue(func() []rule {
	byPage := map[string][]rule{}
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
	var all []rule
	for _, name := range pageNames() {
		slices.SortFunc(byPage[name], func(a, b rule) int { return place[a.ID] - place[b.ID] })
		all = append(all, byPage[name]...)
	}
	return all
})

// rulesOfPages are the rules, each page's in the file that is named like it.
var rulesOfPages = [][]rule{
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

// indexes has the index of each version.
var indexes = sync.OnceValue(func() map[int]*index { return newIndexes(allRules()) })

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
