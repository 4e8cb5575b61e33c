package remote

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// DialOptions configures how a client connects. A nil *DialOptions, and the zero value of each field, mean the
// defaults. Sizes are in bytes.
type DialOptions struct {
	// HTTPClient makes every request and opens the WebSocket, with its own proxy, TLS, RoundTripper and cookies. Its
	// Timeout is not used, because streams are long-lived; and a redirect to another origin is never followed, whatever
	// its CheckRedirect says. If it has no Jar it gets one, which all connections of the transport share. By default a
	// client is created for the transport.
	HTTPClient *http.Client
	// Header returns additional headers for every request, a token for example. It is called for each request, so that
	// a token may be refreshed, and once more after a 401 or 403, with a context for which Refused returns that error.
	// An error fails the request.
	Header func(ctx context.Context) (http.Header, error)
	// AllowInsecure allows sending the headers that Header returns, and passwords and tokens in the URL, over a
	// connection without TLS to another machine.
	AllowInsecure bool
	// Subprotocols are offered when a WebSocket is opened. By default none are: some servers select none, and then
	// opening fails.
	Subprotocols []string
	// Compression offers to compress the messages of a WebSocket. The default is false.
	Compression bool

	// MaxMessage is the longest message accepted. The default is rpc.DefaultMaxMessage, 64 MiB. A longer message over
	// HTTP is skipped; a longer one on a WebSocket closes it with 1009.
	MaxMessage int
	// MaxQueued is how much data may wait to be sent over HTTP. The default is 16 MiB. A single message may exceed it.
	MaxQueued int
	// StreamTimeout bounds the time until the headers of a stream, and the time to read the rest of a response without
	// a message. The default is 10 s.
	StreamTimeout time.Duration
	// AnswerTimeout is how long the client waits for an answer if it is not known whether the server received the
	// request, counted from the last message of its session; see OutcomeError. The default is 60 s.
	AnswerTimeout time.Duration
	// KeepAlive is how often a WebSocket is pinged; it is lost if two pings in a row are not answered. The default is
	// 15 s; a negative value means never.
	KeepAlive time.Duration
	// IdleTimeout is how long an HTTP stream may be silent, without even a comment, before it counts as lost. The
	// default is 60 s; servers send a comment every 15 s. A negative value means forever.
	IdleTimeout time.Duration
	// StallTimeout is how long the server may accept no data on a WebSocket that has data to send before the WebSocket
	// is lost. The default is 60 s.
	StallTimeout time.Duration
	// CloseTimeout is how long the DELETE, or the closing handshake, that ends a connection may take. The default is 5
	// s.
	CloseTimeout time.Duration
	// MinBackoff and MaxBackoff bound the wait before a lost stream is reopened: it starts at 1 s, grows by half each
	// time, up to 30 s, and a random part of it is used. The server may ask for a longer time.
	MinBackoff, MaxBackoff time.Duration
	// ReopenTime is how long the client tries to reopen a lost stream before the connection is lost. The default is 6
	// min: longer than a server keeps a connection without streams, which is 5 min with the Server of this package.
	ReopenTime time.Duration
	// Resume asks the server, with Last-Event-ID, to continue after the last event when a lost stream is reopened, or when
	// another connection of this transport resumes the session with session/resume. This is a draft of the protocol;
	// servers that do not support it ignore it.
	Resume bool

	// OnGap is called after a lost stream has been reopened, if messages may have been lost in between: session is its
	// session, or "" for the connection's stream, and err is the error that ended the stream. It must be quick.
	OnGap func(session string, err error)
	// OnUnsent is called when a notification, or an answer to the agent, could not be sent, despite retries. method is
	// that of the notification, or "". It must be quick.
	OnUnsent func(session, method string, err error)
	// Logger receives diagnostics. No token and no message is ever logged. Nil means that warnings and errors go to
	// slog.Default.
	Logger *slog.Logger
}
