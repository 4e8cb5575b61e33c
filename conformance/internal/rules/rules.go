// Package rules contains the rules, in one file for each page of the protocol's documents. A rule is a judge.Rule: its
// id, the messages that it applies to, and the function that checks one. Its level and text come from package
// requirement, its versions and what breaks it, with examples, from rules.txt. CONTRIBUTING.md lists what a new rule
// needs.
package rules

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

//go:embed rules.txt
var textOfRules string

// All returns the rules of all pages, with the fields that the table of requirements and rules.txt have.
var All = sync.OnceValue(func() []judge.Rule {
	versions, texts := map[string][]int{}, map[string]string{}
	for section := range strings.SplitSeq(textOfRules, "\n== ") {
		head, text, _ := strings.Cut(strings.TrimSpace(section), "\n")
		id, of, _ := strings.Cut(head, " | ")
		versions[id], texts[id] = map[string][]int{"": {1}, "2": {2}, "both": {1, 2}}[of], text
	}
	var all []judge.Rule
	for _, rules := range rulesOfPages {
		for _, rule := range rules {
			r := requirement.Find(rule.ID)
			if r == nil || versions[rule.ID] == nil {
				// a bug of this package, which its tests would find
				panic(fmt.Sprintf("conformance: rule %s is not a requirement, or not in rules.txt", rule.ID))
			}
			rule.Level, rule.Side, rule.Page, rule.Text = r.Level, r.Side, r.Page, r.Text
			rule.Versions = versions[rule.ID]
			breaks, examples, _ := strings.Cut(texts[rule.ID], "\n\nright:\n")
			right, wrong, _ := strings.Cut(examples, "\n\nwrong:\n")
			rule.Breaks, rule.Right, rule.Wrong = breaks, right, cmp.Or(rule.Wrong, wrong)
			all = append(all, rule)
		}
	}
	slices.SortFunc(all, func(a, b judge.Rule) int { return requirement.Places[a.ID] - requirement.Places[b.ID] })
	return all
})

// rulesOfPages has the rules of each page, which are in the file with the page's name.
var rulesOfPages = [][]judge.Rule{
	schemaRules,
	overviewRules, initializationRules, authenticationRules, sessionSetupRules, sessionListRules, sessionDeleteRules,
	sessionModesRules, configOptionRules, promptTurnRules, cancellationRules, contentRules, toolCallRules, fileSystemRules,
	terminalRules, agentPlanRules, slashCommandRules, elicitationRules, extensibilityRules,
	errorRules, schemaReferenceRules, additionsRules, version2Rules,
}

// Indexes returns the index of the rules of each protocol version.
var Indexes = sync.OnceValue(func() map[int]*judge.Index { return judge.NewIndexes(All()) })
