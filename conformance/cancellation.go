// Rules of the page cancellation.

package conformance

import "slices"

var cancellationRules = []Rule{
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

// unanswered are the requests to a side that it has not answered, in their order.
func (l *ledger) unanswered(by Side) []*request {
	var all []*request
	for _, r := range l.open {
		if r.direction.Sender().Peer() == by {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *request) int { return a.at.Number - b.at.Number })
	return all
}

// hasRead reports whether the side that closed the connection had read a request. A client may close at any time, before
// it has read what is on the way; one that has answered a later request has read this one.
func (l *ledger) hasRead(r *request) bool {
	return l.closedBy == Agent || r.at.Number < l.read[Client]
}
