// Package rules contains the rules, in one file for each page of the protocol's documents. A rule is a judge.Rule: its
// id, the messages that it applies to, and the function that checks one. Its level and text come from package
// requirement; rules.txt says what breaks it, with examples. CONTRIBUTING.md lists what a new rule needs.
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

// All returns the rules of all pages. It fills in the fields that the table of requirements has, so that the files of
// the pages do not repeat them.
var All = sync.OnceValue(func() []judge.Rule {
	texts := map[string]string{}
	for section := range strings.SplitSeq(textOfRules, "\n== ") {
		id, text, _ := strings.Cut(strings.TrimSpace(section), "\n")
		texts[id] = text
	}
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
				// a bug of this package, which its tests would find
				panic(fmt.Sprintf("conformance: rule %s is not a requirement", rule.ID))
			}
			rule.Level, rule.Side, rule.Page = r.Level(), r.Side, page
			if rule.Text == "" {
				rule.Text = r.Text
			}
			if rule.Versions == nil {
				rule.Versions = []int{1}
			}
			breaks, examples, _ := strings.Cut(texts[rule.ID], "\n\nright:\n")
			right, wrong, _ := strings.Cut(examples, "\n\nwrong:\n")
			rule.Breaks, rule.Right, rule.Wrong = breaks, right, cmp.Or(rule.Wrong, wrong)
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
