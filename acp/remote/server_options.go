package remote

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// HandlerOptions configures how a [Server] serves. A nil *HandlerOptions, and the zero value of each field, mean the
// defaults. Sizes are in bytes.
type HandlerOptions struct {
	// Authenticate identifies the sender of a request: principal is the server's name for the sender, and becomes
	// Peer.Principal. It is called for every POST, GET, DELETE and upgrade, before anything else is done for the
	// request. A connection belongs to the principal that opened it, and does not exist for any other. An error is
	// answered with 401, or with 403 if it matches ErrForbidden; its text is not sent. See BearerToken for the usual
	// implementation.
	//
	// If Authenticate is nil, all senders are one principal, and only requests that arrive on a loopback address or a
	// Unix socket are served; others are answered with 403. See AllowUnauthenticated.
	Authenticate func(r *http.Request) (principal string, err error)
	// AllowUnauthenticated allows requests from other machines even though Authenticate is nil. Anyone who reaches the
	// server can then do whatever the agent can.
	AllowUnauthenticated bool

	// AllowedOrigins are the origins whose pages in a browser may connect, besides pages of the server's own host. They
	// must match exactly, such as https://example.com or http://localhost:5173. Responses to them have CORS headers. A
	// request with any other Origin is answered with 403. Programs other than browsers do not send an Origin.
	AllowedOrigins []string
	// AllowedHosts are the names, without port, under which the server may be reached on a loopback address, besides
	// localhost and the loopback addresses themselves: the names that a proxy on the same machine passes on as Host.
	// Any other name is answered with 403 there, because a page in a browser can make its own host name point to this
	// machine.
	AllowedHosts []string
	// TokenQuery is the name of a URL parameter, token for example, that may carry a token when a WebSocket is opened,
	// when browsers cannot set a header. Authenticate sees it as the header Authorization: Bearer TOKEN. By default
	// there is none, because URLs are often logged.
	TokenQuery string
	// TokenSubprotocol is like TokenQuery, but for a subprotocol that the client offers: the text after this prefix is
	// the token. It is never selected. By default there is none.
	TokenSubprotocol string
	// Subprotocols are the WebSocket subprotocols that are selected if a client offers them, besides those that begin
	// with acp.
	Subprotocols []string

	// DisableHTTP answers requests that are not for a WebSocket with 405, and DisableWebSocket answers an upgrade with
	// 426.
	DisableHTTP, DisableWebSocket bool
	// Compression allows compressing the messages of a WebSocket if the client offers it. It takes about 1.2 MB of
	// memory for each connection. The default is false.
	Compression bool

	// MaxMessage is the longest message accepted. A longer POST is answered with 413; a longer message on a WebSocket
	// closes it with 1009. The default is rpc.DefaultMaxMessage, 64 MiB.
	MaxMessage int
	// MaxConnections is the maximum number of connections; one more is answered with 503. The default is 10,000.
	MaxConnections int
	// MaxConnectionsPerPrincipal is how many of them one principal may have; one more is answered with 429. It does not
	// apply to the principal "". The default is half of MaxConnections, at most 1,000.
	MaxConnectionsPerPrincipal int
	// MaxStreams is how many streams a connection over HTTP may have: one for each session that has a reader, or that
	// has messages waiting. A GET for one more is answered with 429. The default is 1,024.
	MaxStreams int
	// MaxBuffered is how many bytes a connection over HTTP keeps for streams that do not accept data. When it is
	// reached, nothing more is read from the agent, and requests wait. A single message may exceed it. The default is
	// 64 MiB.
	MaxBuffered int
	// MaxQueued is how many bytes of messages a connection over HTTP keeps for an agent that does not read them. When
	// it is reached, POSTs of requests wait. Other messages do not wait; at four times as much they are answered with
	// 503. The default is 16 MiB.
	MaxQueued int

	// InitializeTimeout is how long the server waits for the first message on a WebSocket, and then for the agent's
	// answer to it on either transport. Over HTTP the client then gets 504. The default is 30 s.
	InitializeTimeout time.Duration
	// BodyTimeout is how long the body of a POST may take, even of one that is refused. The default is 60 s.
	BodyTimeout time.Duration
	// StallTimeout is how long a client may accept none of the data that is being sent to it before its connection
	// ends; over HTTP, this applies only if MaxBuffered is also reached. The default is 60 s.
	StallTimeout time.Duration
	// KeepAlive is how often an idle stream gets a comment, and a WebSocket a ping. A WebSocket on which two pings in a
	// row were not answered is closed. The default is 15 s; a negative value means never.
	KeepAlive time.Duration
	// Expiry is how long a connection over HTTP is kept while it has neither a stream nor a POST. The default is 5 min.
	Expiry time.Duration
	// Grace is how long the agent may continue to work after its WebSocket is lost, so that it can finish a turn that
	// is nearly done, and another connection can load the session. Messages that it sends in that time are dropped, and
	// counted in the log. The default is 0: its input ends at once.
	Grace time.Duration
	// CloseTime is how long an agent may keep running after its connection has ended, before the context that it was
	// given ends. The default is 10 s.
	CloseTime time.Duration
	// CloseTimeout is how long a client may take to answer the end of a WebSocket. The default is 5 s.
	CloseTimeout time.Duration

	// RejectSecondStream answers a GET for a stream that already has a reader with 409. By default the new reader takes
	// over and the old stream ends, because behind a proxy a broken stream can look alive for a long time.
	RejectSecondStream bool

	// History, if set, returns the history for each HTTP stream; session is "" for the connection's own stream. Events
	// then have an id, and a GET with the header Last-Event-ID gets the messages after that id, and then new ones; it
	// is answered with 409 if they are no longer kept. This is a draft of the protocol. The default is nil: the header
	// is ignored, and messages lost on their way are not sent again. The history of a session is dropped some time
	// after the session was closed or deleted. See MemoryHistory.
	History func(peer *Peer, session string) History

	// Logger gets a line for each connection that begins and ends, at level Info, and diagnostics. No token and no
	// message is ever logged. Nil means that warnings and errors go to slog.Default.
	Logger *slog.Logger
}

func (o *HandlerOptions) setDefaults() {
	o.MaxMessage = cmp.Or(o.MaxMessage, rpc.DefaultMaxMessage)
	o.MaxConnections = cmp.Or(o.MaxConnections, 10_000)
	o.MaxConnectionsPerPrincipal = cmp.Or(o.MaxConnectionsPerPrincipal, min(1000, max(1, o.MaxConnections/2)))
	o.MaxStreams = cmp.Or(o.MaxStreams, 1024)
	o.MaxBuffered = cmp.Or(o.MaxBuffered, 64<<20)
	o.MaxQueued = cmp.Or(o.MaxQueued, 16<<20)
	o.InitializeTimeout = cmp.Or(o.InitializeTimeout, 30*time.Second)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, time.Minute)
	o.StallTimeout = cmp.Or(o.StallTimeout, time.Minute)
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	o.Expiry = cmp.Or(o.Expiry, 5*time.Minute)
	o.CloseTime = cmp.Or(o.CloseTime, 10*time.Second)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)
	o.KeepAlive = max(0, o.KeepAlive)
	o.AllowedOrigins = slices.Clone(o.AllowedOrigins)
	for i, origin := range o.AllowedOrigins {
		o.AllowedOrigins[i] = strings.ToLower(origin)
	}
	o.AllowedHosts = slices.Clone(o.AllowedHosts)
	o.Subprotocols = slices.Clone(o.Subprotocols)
	o.Logger = cmp.Or(o.Logger, wire.DefaultLogger())
}

// BearerToken returns an Authenticate function for bearer tokens. The keys of tokens are the principals; a request with
// one of the tokens in its Authorization header comes from that principal. Tokens are compared in constant time,
// without surrounding white space. An empty token is ignored; a token that several principals have belongs to the first
// by name.
func BearerToken(tokens map[string]string) func(*http.Request) (principal string, err error) {
	// Comparing hashes of equal length leaks nothing, not even the length of a token.
	type known struct {
		principal string
		sum       [sha256.Size]byte
	}
	var all []known
	for _, principal := range slices.Sorted(maps.Keys(tokens)) {
		if token := strings.TrimSpace(tokens[principal]); token != "" {
			all = append(all, known{principal, sha256.Sum256([]byte(token))})
		}
	}
	return func(r *http.Request) (string, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", errors.New("no bearer token")
		}
		sum := sha256.Sum256([]byte(token))
		who, found := "", 0
		for _, k := range all {
			same := subtle.ConstantTimeCompare(sum[:], k.sum[:])
			if same&^found == 1 {
				who = k.principal
			}
			found |= same
		}
		if found == 0 {
			return "", errors.New("unknown bearer token")
		}
		return who, nil
	}
}
