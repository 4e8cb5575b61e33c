// Rules of the page cancellation.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var cancellationRules = []judge.Rule{
	{ID: "CAN-1", End: func(e *judge.Event) {
		for _, r := range e.Unanswered(e.ClosedBy) {
			if r.Cancelled != nil && e.HasRead(r) {
				e.BrokenAt(r.At, "the request was cancelled but never answered; a cancelled request still needs an answer").
					Because(r.Cancelled, "its cancellation")
			}
		}
	}},
}
