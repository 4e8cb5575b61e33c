// Package fastpath is the switch for code that only makes the usual case faster. Each place has a complete path beside it,
// and everything works without these:
//
//   - internal/wire, begin: recognizes a usual message by its first bytes. The parts behind it go to TryRequest,
//     TryNotification and TryAnswered, which decode parameters and results without reading the message twice. parse,
//     HandleRequest, HandleNotification and Answered do the same for any message.
//   - internal/wire, fast: uses the methods of a FastStream. slow makes one of any Stream.
//   - conformance, precheck: accepts a value that every schema accepts. The schema library judges all others.
//
// The tests pass with and without them: go test -tags acp_nofast ./... turns all of them off.
package fastpath
