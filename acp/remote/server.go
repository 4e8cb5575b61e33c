// This file owns the server: its options, which connections there are, and who may have one.

package remote

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// DefaultPath is where agents are served unless there is a reason for another path.
const DefaultPath = "/acp"

// The headers of the protocol.
const (
	// HeaderConnection names a connection. The server makes it, the client returns it with every request of HTTP.
	HeaderConnection = "Acp-Connection-Id"
	// HeaderSession names the session that a request of HTTP is about.
	HeaderSession = "Acp-Session-Id"
)

// The transports, as Peer.Transport names them.
const (
	WebSocket = "websocket"
	HTTP      = "http"
)

// HandlerOptions say how a [Server] serves. Nil, and the zero value of each field, mean the defaults. Sizes are in
// bytes.
type HandlerOptions struct {
	// Authenticate says who sends a request: the principal is a name of yours for it, which goes to Peer.Principal. It is
	// asked for every POST, GET, DELETE and upgrade, before anything else is done for it; a connection belongs to the
	// principal who opened it, and is not there for any other. An error is answered with 401, or with 403 if it matches
	// ErrForbidden; its text is not sent. See BearerToken for the usual one.
	//
	// Nil lets everybody in, as one principal, and is allowed only for requests that come in on a loopback address, or
	// on a Unix socket; others are answered with 403. See AllowUnauthenticated.
	Authenticate func(r *http.Request) (principal string, err error)
	// AllowUnauthenticated allows requests from other machines though Authenticate is nil. Whoever reaches the server
	// can then do whatever the agent can.
	AllowUnauthenticated bool

	// AllowedOrigins are the origins whose pages in a browser may connect, besides pages of the server's own host: exact,
	// as https://example.com or http://localhost:5173. They get the headers of CORS. A request with any other Origin is
	// answered with 403. Programs that are no browsers send none.
	AllowedOrigins []string
	// AllowedHosts are the names, without port, under which the server may be reached on a loopback address, besides
	// localhost and the loopback addresses themselves: what a proxy on the same machine passes on as Host. Any other is
	// answered with 403 there, because a page in a browser can make its own name point to this machine.
	AllowedHosts []string
	// TokenQuery is the name of a parameter of the URL, token for example, that may bring a token when a WebSocket is
	// opened: browsers cannot set a header then. Authenticate sees it as the header Authorization: Bearer TOKEN. Default
	// none, because URLs are often logged.
	TokenQuery string
	// TokenSubprotocol is TokenQuery for a subprotocol that the client offers: what is behind this prefix is the token.
	// It is never selected. Default none.
	TokenSubprotocol string
	// Subprotocols are those of WebSocket that are selected if a client offers them, besides those that begin with acp.
	Subprotocols []string

	// DisableHTTP answers what is no WebSocket with 405, and DisableWebSocket an upgrade with 426.
	DisableHTTP, DisableWebSocket bool
	// Compression lets a client have the messages of a WebSocket compressed. It takes some 1.2 MB of memory for each
	// connection. Default no.
	Compression bool

	// MaxMessage is the longest message accepted. A longer POST is answered with 413, a longer message on a WebSocket
	// closes it with 1009. Default rpc.DefaultMaxMessage, 64 MiB.
	MaxMessage int
	// MaxConnections is how many connections there may be; one more is answered with 503. Default 10,000.
	MaxConnections int
	// MaxConnectionsPerPrincipal is how many of them one principal may have; one more is answered with 429. It does not
	// count for the principal "". Default 1,000.
	MaxConnectionsPerPrincipal int
	// MaxStreams is how many streams a connection over HTTP may have: one for each session that somebody reads, or that
	// there is something to read for. A GET of one more is answered with 429. Default 1,024.
	MaxStreams int
	// MaxBuffered is how much a connection over HTTP keeps for streams that do not take it. When it is reached, nothing more
	// is taken from the agent, and requests wait. A single message may exceed it. Default 64 MiB.
	MaxBuffered int
	// MaxQueued is how much a connection over HTTP keeps of what was sent to an agent that does not take it. When it is
	// reached, POSTs of requests wait. Other messages do not; at four times as much they are answered with 503. Default
	// 16 MiB.
	MaxQueued int

	// InitializeTimeout is how long the first message may be awaited on a WebSocket, and then the agent's answer to it on
	// either transport. Over HTTP the client then gets 504. Default 30 s.
	InitializeTimeout time.Duration
	// BodyTimeout is how long the body of a POST may take. Default 60 s.
	BodyTimeout time.Duration
	// StallTimeout is for how long a client may take nothing of what is to be sent to it before its connection ends; over
	// HTTP when also MaxBuffered is reached. Default 60 s.
	StallTimeout time.Duration
	// KeepAlive is how often an idle stream gets a comment, and a WebSocket a ping. A WebSocket on which two pings in a row
	// were not answered is closed. Default 15 s; less than 0 is never.
	KeepAlive time.Duration
	// Expiry is how long a connection over HTTP lives on while it has neither a stream nor a POST. Default 5 min.
	Expiry time.Duration
	// Grace is how long the agent may work on after its WebSocket was lost; what it sends then is dropped and counted.
	// Turns end only behind it. Default 0: it learns at once.
	Grace time.Duration
	// CloseTime is how long an agent may still run after its connection has ended, before the context that it was given
	// ends. Default 10 s.
	CloseTime time.Duration

	// RejectSecondStream answers a GET for a stream that somebody reads with 409. Default: the new one takes over and the
	// old one ends, because behind a proxy a stream that was cut looks alive for long.
	RejectSecondStream bool

	// Logger gets a line for each connection that begins and ends, at level Info, and diagnostics. No token and no
	// message is ever logged. Nil means that warnings and errors go to slog.Default.
	Logger *slog.Logger
}

// Peer is who has opened a connection.
type Peer struct {
	// ConnectionID is the connection's id. It is no secret, but no use to anybody else either.
	ConnectionID string
	// Principal is what Authenticate has returned, or "".
	Principal string
	// RemoteAddr is the address that the connection came from: perhaps that of a proxy.
	RemoteAddr string
	// Transport is WebSocket or HTTP.
	Transport string
	// Header is the header of the request that opened the connection, without what authenticates it: Authorization,
	// Proxy-Authorization, Cookie and the offered subprotocols.
	Header http.Header
}

// BearerToken makes an Authenticate of tokens, by principal: who sends a token of these in the header Authorization is
// its principal. Tokens are compared in constant time. An empty one is no token.
func BearerToken(tokens map[string]string) func(*http.Request) (principal string, err error) {
	return func(*http.Request) (string, error) { return "", errors.ErrUnsupported }
}

// A Server is an [http.Handler] that gives each connection which clients open to a function. It fits any mux,
// middleware and http.Server, with HTTP/1.1, HTTP/2, and HTTP/2 without TLS if that allows it. All methods are safe for
// concurrent use.
type Server struct {
	serve func(ctx context.Context, t rpc.Transport, peer *Peer) error
	opts  HandlerOptions
}

// Handler returns a Server. For each connection it calls serve, in a goroutine of its own: t is to be connected once,
// and is the connection; the context ends when serve is to return at once, CloseTime after the connection has ended.
// When serve returns, the connection ends: what the client still waits for is answered with an error. An error of serve is
// logged, and not sent.
func Handler(serve func(ctx context.Context, t rpc.Transport, peer *Peer) error, o *HandlerOptions) *Server {
	s := &Server{serve: serve}
	if o != nil {
		s.opts = *o
	}
	return s
}

// ServeHTTP implements http.Handler. The path does not matter.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "Not Implemented", http.StatusNotImplemented)
}

// Shutdown ends all connections and lets no more begin. Agents read the end of their input and may finish what is in
// progress; then the streams end, WebSockets with 1001. It waits until every call of serve has returned. When ctx ends,
// the contexts of serve end and the connections are cut; then it waits still, and returns the cause of ctx.
func (s *Server) Shutdown(ctx context.Context) error { return nil }

// Stats are numbers about a Server, for metrics.
type Stats struct {
	// Connections is how many there are now, by Peer.Transport.
	Connections map[string]int
	// Opened is how many there were, by Peer.Transport.
	Opened map[string]uint64
	// Streams is how many streams are read now.
	Streams int
	// Refused is how many requests were refused, by status.
	Refused map[int]uint64
	// BytesIn and BytesOut count messages, without framing.
	BytesIn, BytesOut uint64
	// Buffered is how many bytes are kept for clients now.
	Buffered int
}

// Stats returns the numbers.
func (s *Server) Stats() Stats { return Stats{} }

// NewHTTPServer returns an http.Server for handler, a mux for example, with what a server of streams needs: HTTP/1.1
// and HTTP/2, with and without TLS, 10 s for the header of a request and 64 KiB for all of it, and no timeout for
// requests as a whole.
func NewHTTPServer(handler http.Handler) *http.Server { return &http.Server{Handler: handler} }
