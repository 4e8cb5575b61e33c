// Package fastpath is the switch for code that only makes the usual case faster. Next to each place there is a complete
// path, and everything also works without the fast ones:
//
//   - internal/wire, begin: recognizes a usual message by its first bytes. The rest goes to TryRequest, TryNotification
//     and TryAnswered, which decode parameters and results without reading the message twice. parse, HandleRequest,
//     HandleNotification and Answered do the same for any message.
//   - internal/wire, fast: uses the methods of a FastStream. slow makes a FastStream of any Stream.
//
// The tests pass with and without them: go test -tags acp_nofast ./... disables all of them.
package fastpath
