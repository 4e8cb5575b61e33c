// Package permission reads the options of permission requests, for whoever chooses one or shows them.
package permission

import (
	"slices"

	"github.com/acpgo/sdk/acp"
)

// Ambiguous reports whether an option of another kind has the id of option. The answer is an id, so that the agent may
// mean the other one.
func Ambiguous(options []acp.PermissionOption, option acp.PermissionOption) bool {
	return slices.ContainsFunc(options, func(other acp.PermissionOption) bool {
		return other.OptionID == option.OptionID && other.Kind != option.Kind
	})
}

// OfKind returns the first option of a kind, or nil, and how many there are. Ambiguous ones do not count.
func OfKind(options []acp.PermissionOption, kind acp.PermissionOptionKind) (first *acp.PermissionOption, n int) {
	for i := range options {
		if options[i].Kind == kind && !Ambiguous(options, options[i]) {
			if n++; n == 1 {
				first = &options[i]
			}
		}
	}
	return first, n
}
