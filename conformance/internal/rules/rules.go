// Package rules has the rules, in a file for each page of the protocol's documents. A rule is a judge.Rule: its id, what breaks
// it, a right and a wrong example, which messages it looks at, and the function that checks one. What the table of
// requirements says of it, such as its level, is filled in. To add one, write it in the file of its page, and its
// requirement in package requirement.
package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// All returns the rules of all pages. What the table of requirements says of a rule is filled in here, so that a page's
// file does not repeat it.
var All = sync.OnceValue(func() []judge.Rule {
	byPage := map[string][]judge.Rule{}
	place := map[string]int{} // of each requirement on its page
	for _, p := range requirement.Pages {
		for i, r := range p.Requirements {
			place[r.ID] = i
		}
	}
	for _, rules := range rulesOfPages {
		for _, rule := range rules {
			r, page := requirement.Find(rule.ID)
			if r == nil {
				panic(fmt.Sprintf("conformance: rule %s is not a requirement", rule.ID)) // of this package; its tests look at all
			}
			rule.Level, rule.Side, rule.Page = r.Level(), r.Side, page
			if rule.Text == "" {
				rule.Text = r.Text
			}
			if rule.Versions == nil {
				rule.Versions = []int{1}
			}
			rule.Right, rule.Wrong = dedent(rule.Right), dedent(rule.Wrong)
			byPage[page] = append(byPage[page], rule)
		}
	}
	var all []judge.Rule
	for _, p := range requirement.Pages {
		slices.SortFunc(byPage[p.Name], func(a, b judge.Rule) int { return place[a.ID] - place[b.ID] })
		all = append(all, byPage[p.Name]...)
	}
	return all
})

// rulesOfPages are the rules, each page's in the file that is named like it.
var rulesOfPages = [][]judge.Rule{
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

// Indexes returns the index of each version.
var Indexes = sync.OnceValue(func() map[int]*judge.Index { return judge.NewIndexes(All()) })

// anyOf puts selections together.
func anyOf(selections ...[]judge.Selector) []judge.Selector { return slices.Concat(selections...) }

// requests chooses the requests of methods, or all without any; the others likewise.
func requests(methods ...string) []judge.Selector { return choose(finding.Request, methods) }

// notifications chooses notifications.
func notifications(methods ...string) []judge.Selector { return choose(finding.Notification, methods) }

// results chooses the answers with a result.
func results(methods ...string) []judge.Selector { return choose(finding.Response, methods) }

// failures chooses the answers with an error.
func failures(methods ...string) []judge.Selector { return choose(finding.ErrorReply, methods) }

// answers chooses all answers.
func answers(methods ...string) []judge.Selector {
	return anyOf(results(methods...), failures(methods...))
}

// updates chooses the session/update notifications of some kinds of update, or all without any.
func updates(kinds ...string) []judge.Selector {
	if len(kinds) == 0 {
		return notifications(judge.MethodUpdate)
	}
	var chosen []judge.Selector
	for _, kind := range kinds {
		chosen = append(chosen, judge.Selector{Kind: finding.Notification, Method: judge.MethodUpdate, Update: kind})
	}
	return chosen
}

func choose(kind finding.Kind, methods []string) []judge.Selector {
	if len(methods) == 0 {
		return []judge.Selector{{Kind: kind}}
	}
	var chosen []judge.Selector
	for _, method := range methods {
		chosen = append(chosen, judge.Selector{Kind: kind, Method: method})
	}
	return chosen
}
