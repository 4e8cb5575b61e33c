package rules

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

// anyOf returns the union of several selections.
func anyOf(selections ...[]judge.Selector) []judge.Selector { return slices.Concat(selections...) }

// requests selects the requests of the given methods, or all requests if none is given. The functions below do the same
// for other kinds of messages.
func requests(methods ...string) []judge.Selector { return choose(finding.Request, methods) }

// notifications selects notifications.
func notifications(methods ...string) []judge.Selector { return choose(finding.Notification, methods) }

// results selects answers with a result.
func results(methods ...string) []judge.Selector { return choose(finding.Response, methods) }

// failures selects answers with an error.
func failures(methods ...string) []judge.Selector { return choose(finding.ErrorReply, methods) }

// answers selects answers with a result or an error.
func answers(methods ...string) []judge.Selector {
	return anyOf(results(methods...), failures(methods...))
}

// updates selects the session/update notifications of the given kinds of update, or all of them if none is given.
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

// setupMethods has the methods that begin or continue a session in a directory.
var setupMethods = []string{judge.MethodNew, judge.MethodLoad, judge.MethodResume, "session/fork"}

// offersOptions selects the messages that may have configuration options.
var offersOptions = anyOf(results(judge.MethodNew, judge.MethodLoad, judge.MethodResume, "session/fork",
	judge.MethodSetOption), updates("config_option_update"))

// offersCommands selects the messages that may have commands.
var offersCommands = anyOf(results(setupMethods...), updates("available_commands_update"))
