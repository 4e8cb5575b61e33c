// Which messages a rule looks at.

package rules

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

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

// setupMethods are those that begin or continue a session in a directory.
var setupMethods = []string{judge.MethodNew, judge.MethodLoad, judge.MethodResume, "session/fork"}

// offersOptions are the messages that may have configuration options.
var offersOptions = anyOf(results(judge.MethodNew, judge.MethodLoad, judge.MethodResume, "session/fork", judge.MethodSetOption), updates("config_option_update"))
