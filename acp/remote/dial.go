// This file owns the client: its options, and which transport a URL means.

package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// DialOptions say how a client connects. Nil, and the zero value of each field, mean the defaults. Sizes are in bytes.
type DialOptions struct {
	// HTTPClient makes every request, and opens the WebSocket: proxy, TLS, RoundTripper and cookies are its own. It must have
	// no Timeout, because streams last. Default: one made for the connection, with cookies.
	HTTPClient *http.Client
	// Header returns what is sent in addition with every request, a token for example. It is called for each request, so
	// that a token may be refreshed, and once again after a 401 or 403. An error fails the request.
	Header func(ctx context.Context) (http.Header, error)
	// AllowInsecure allows an Authorization header over plain HTTP to another machine.
	AllowInsecure bool
	// Subprotocols are offered when a WebSocket is opened. Default none: some servers select none, and then it fails.
	Subprotocols []string
	// Compression offers to compress the messages of a WebSocket. Default no.
	Compression bool

	// MaxMessage is the longest message accepted. Default rpc.DefaultMaxMessage, 64 MiB.
	MaxMessage int
	// StreamTimeout is how long the headers of a stream may take. Default 10 s.
	StreamTimeout time.Duration
	// AnswerTimeout is how long an answer is awaited when it is not known whether the server took the request; see
	// OutcomeError. Default 60 s.
	AnswerTimeout time.Duration
	// KeepAlive is how often a WebSocket is pinged; it is lost when two in a row are not answered. Default 15 s; less
	// than 0 is never.
	KeepAlive time.Duration
	// StallTimeout is for how long the server may take nothing of what is to be sent on a WebSocket before that is lost.
	// Default 60 s.
	StallTimeout time.Duration
	// CloseTimeout is how long the DELETE, or the closing handshake, may take that ends a connection. Default 5 s.
	CloseTimeout time.Duration
	// MinBackoff and MaxBackoff bound how long is waited before a lost stream is opened again: 1 s, half as much again
	// each time, up to 30 s, and of that a random part.
	MinBackoff, MaxBackoff time.Duration

	// OnGap is called when a stream was lost and opened again, and messages may have been lost between: session is its
	// session, or "" for the connection's stream, err what ended it. It must be quick.
	OnGap func(session string, err error)
	// Logger gets diagnostics. No token and no message is ever logged. Nil means that warnings and errors go to
	// slog.Default.
	Logger *slog.Logger
}

// Dial returns a transport to the agent at a URL, whose scheme says by which way: ws and wss are WebSocket, http and
// https streamable HTTP. Each Connect opens a connection of its own. A URL that cannot be used is an error of Connect.
func Dial(rawURL string, o *DialOptions) rpc.Transport {
	d := &dialer{}
	if o != nil {
		d.opts = *o
	}
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		// The error of Parse repeats the URL, in which there may be a token.
		d.bad = errors.New("acp: the URL cannot be read")
	case u.Host == "":
		d.bad = errors.New("acp: the URL has no host")
	}
	d.url = u
	return d
}

type dialer struct {
	url  *url.URL
	bad  error // what is wrong with the URL
	opts DialOptions
}

// Connect implements rpc.Transport.
func (d *dialer) Connect(ctx context.Context) (rpc.Stream, error) {
	if d.bad != nil {
		return nil, d.bad
	}
	switch d.url.Scheme {
	case "ws", "wss":
		return d.connectWebSocket(ctx)
	case "http", "https":
		return d.connectHTTP(ctx)
	default:
		return nil, fmt.Errorf("acp: scheme %q is none of http, https, ws and wss", d.url.Scheme)
	}
}
