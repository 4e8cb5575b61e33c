package remote

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/acpgo/sdk/internal/wire"
)

// DefaultPath is the usual path at which agents are served.
const DefaultPath = "/acp"

// The headers of the protocol.
const (
	// HeaderConnection identifies a connection. The server creates it, and the client returns it with every HTTP
	// request.
	HeaderConnection = "Acp-Connection-Id"
	// HeaderSession identifies the session that an HTTP request is about.
	HeaderSession = "Acp-Session-Id"
)

// The transports, as Peer.Transport names them.
const (
	WebSocket = "websocket"
	HTTP      = "http"
)

// headerProtocol lists the subprotocols that a client offers.
const headerProtocol = "Sec-Websocket-Protocol"

const (
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodFork       = "session/fork"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodClose      = "session/close"
	methodDelete     = "session/delete"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodUpdate     = "session/update"
)

// memberSession is the member of parameters that names a session.
const memberSession = "sessionId"

// answerFirst holds the methods whose messages must name a session, and whether a client may open the session's stream
// only once it has the answer.
var answerFirst = map[string]bool{
	methodPrompt: false, methodCancel: false,
	methodClose: true, methodDelete: true, methodFork: true, methodLoad: true, methodResume: true,
	"session/set_config_option": false, "session/set_mode": false, "session/set_model": false,
}

// ofProtocol is the prefix of the connection's own methods.
var ofProtocol = []byte("$/")

// maxID is the greatest length of the id of a connection or session.
const maxID = 1024

// Peer describes the client that opened a connection.
type Peer struct {
	// ConnectionID is the connection's id. It is not a secret, but is of no use to others.
	ConnectionID string
	// Principal is the principal that Authenticate returned, or "".
	Principal string
	// RemoteAddr is the address from which the connection came, which may be that of a proxy.
	RemoteAddr string
	// Transport is WebSocket or HTTP.
	Transport string
	// Header is the header of the request that opened the connection, without credentials: Authorization,
	// Proxy-Authorization, Cookie and the offered subprotocols.
	Header http.Header
}

var newline = []byte{'\n'}

// oneLine joins a message that may span several lines into one, in place. The result is empty if there is only white
// space.
func oneLine(text []byte) []byte {
	text = bytes.Trim(text, " \t\r\n")
	wire.ReplaceAll(text, '\n', ' ')
	return text
}

// offeredProtocols are the subprotocols that a client offers.
func offeredProtocols(r *http.Request) (offered []string) {
	for _, value := range r.Header.Values(headerProtocol) {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				offered = append(offered, name)
			}
		}
	}
	return offered
}
