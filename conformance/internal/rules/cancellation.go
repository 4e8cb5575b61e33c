// Rules of the page cancellation.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var cancellationRules = []judge.Rule{
	{
		ID:       "CAN-1",
		Versions: both,
		Breaks: "A request that was cancelled with $/cancel_request and was never answered before the side that " +
			"should have " +
			"answered closed the connection.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/work"}
			-> {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":10}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32800,"message":"cancelled"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/work"}
			-> {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":10}}`,
		End: func(e *judge.Event) {
			for _, r := range e.Unanswered(e.ClosedBy) {
				if r.Cancelled != nil && e.HasRead(r) {
					e.BrokenAt(r.At, "the request was cancelled but never answered; a cancelled request still needs an answer").
						Because(r.Cancelled, "its cancellation")
				}
			}
		},
	},
}
