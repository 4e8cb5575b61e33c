// Rules of the page cancellation.

package conformance

var cancellationRules = []rule{
	{
		ID:       "CAN-1",
		Versions: both,
		Breaks:   "A request that was cancelled with $/cancel_request and was never answered, when the side that should have answered closed the connection.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/work"}
			-> {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":10}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32800,"message":"cancelled"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/work"}
			-> {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":10}}`,
		end: func(e *event) {
			for _, r := range e.unanswered(e.closedBy) {
				if r.cancelled != nil && e.hasRead(r) {
					e.brokenAt(r.at, "never answered").because(r.cancelled, "its cancellation")
				}
			}
		},
	},
}
