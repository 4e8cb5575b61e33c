package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// DialOptions configures how a client connects. A nil *DialOptions, and the zero value of each field, mean the
// defaults. Sizes are in bytes.
type DialOptions struct {
	// HTTPClient makes every request, and opens the WebSocket, with its own proxy, TLS, RoundTripper and cookies. Its
	// Timeout is not used, because streams last; and a redirect to another origin is not followed, whatever its
	// CheckRedirect says. If it has no Jar it gets one, which all connections of the transport share. By default a
	// client is created for the transport.
	HTTPClient *http.Client
	// Header returns additional headers for every request, a token for example. It is called for each request, so that
	// a token may be refreshed, and once again after a 401 or 403, with a context for which Refused returns that error.
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
	// StreamTimeout is how long the headers of a stream may take, and the rest of an answer that has no message. The
	// default is 10 s.
	StreamTimeout time.Duration
	// AnswerTimeout is how long the client waits for an answer if it is not known whether the server received the
	// request, counted from the last message of its session; see OutcomeError. The default is 60 s.
	AnswerTimeout time.Duration
	// KeepAlive is how often a WebSocket is pinged; it is lost if two pings in a row are not answered. The default is
	// 15 s; a negative value means never.
	KeepAlive time.Duration
	// IdleTimeout is how long nothing, not even a comment, may arrive on an HTTP stream before it counts as lost. The
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
	// Resume asks the server, with Last-Event-ID, to continue after the last event when a lost stream is reopened: a
	// draft of the protocol, and ignored by servers that do not support it.
	Resume bool

	// OnGap is called when a stream was lost and reopened, and messages may have been lost in between: session is its
	// session, or "" for the connection's stream, and err is the error that ended it. It must be quick.
	OnGap func(session string, err error)
	// OnUnsent is called when a notification, or an answer to the agent, could not be sent, despite retries. method is
	// that of the notification, or "". It must be quick.
	OnUnsent func(session, method string, err error)
	// Logger receives diagnostics. No token and no message is ever logged. Nil means that warnings and errors go to
	// slog.Default.
	Logger *slog.Logger
}

// Dial returns a transport to the agent at a URL. The scheme selects the transport: ws and wss are WebSocket, http and
// https streamable HTTP. Each Connect opens a separate connection. If a URL cannot be used, Connect returns an error.
func Dial(rawURL string, o *DialOptions) rpc.Transport {
	d := &dialer{}
	if o != nil {
		d.opts = *o
	}
	d.defaults()
	d.url, d.bad = d.check(rawURL)
	d.client, d.release = d.makeClient()
	return d
}

// dialer is the transport of a client.
type dialer struct {
	url     *url.URL
	bad     error // what is wrong with the URL
	opts    DialOptions
	client  *http.Client
	release func() // closes connections that nobody uses
	log     *slog.Logger
}

func (d *dialer) defaults() {
	o := &d.opts
	o.MaxMessage = cmp.Or(max(o.MaxMessage, 0), rpc.DefaultMaxMessage)
	o.MaxQueued = cmp.Or(max(o.MaxQueued, 0), 16<<20)
	setDefault(&o.StreamTimeout, 10*time.Second)
	setDefault(&o.AnswerTimeout, time.Minute)
	setDefault(&o.KeepAlive, 15*time.Second)
	setDefault(&o.IdleTimeout, time.Minute)
	setDefault(&o.StallTimeout, time.Minute)
	setDefault(&o.CloseTimeout, 5*time.Second)
	setDefault(&o.MinBackoff, time.Second)
	setDefault(&o.MaxBackoff, 30*time.Second)
	setDefault(&o.ReopenTime, 6*time.Minute)
	d.log = o.Logger
	if d.log == nil {
		d.log = slog.New(warnings{})
	}
}

// check reads the URL. No error repeats it, because there may be a token in it.
func (d *dialer) check(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return nil, errors.New("acp: invalid URL")
	case u.Host == "":
		return nil, errors.New("acp: the URL has no host")
	}
	u.Fragment = ""
	switch u.Scheme {
	case "https", "wss":
	case "http", "ws":
		if !d.opts.AllowInsecure && !loopback(u.Hostname()) && (d.opts.Header != nil || hasSecrets(u)) {
			return nil, fmt.Errorf("%w to %s", ErrInsecure, u.Hostname())
		}
	default:
		return nil, fmt.Errorf("acp: unsupported scheme %q, want http, https, ws or wss", u.Scheme)
	}
	return u, nil
}

// loopback reports whether a host is this machine. Other ways to write localhost, and names below it, are not: the
// network resolves them, and a proxy that the environment names gets the requests.
func loopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return host == "localhost"
}

// hasSecrets reports whether a URL seems to contain credentials.
func hasSecrets(u *url.URL) bool {
	return u.User != nil || slices.ContainsFunc(slices.Collect(maps.Keys(u.Query())), secretName)
}

// secretName reports whether a URL parameter seems to contain credentials.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "key", "secret", "auth", "pass", "ticket"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// makeClient returns the client that makes the requests, and a function that releases its resources.
func (d *dialer) makeClient() (client *http.Client, release func()) {
	c := http.Client{}
	release = func() {}
	if d.opts.HTTPClient != nil {
		c = *d.opts.HTTPClient
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 16
		t.ReadBufferSize = eventChunk
		t.ResponseHeaderTimeout = 0
		// Of a connection that sleeps with its machine HTTP/2 would not notice the end.
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
		c.Transport = t
		release = t.CloseIdleConnections
	}
	if c.Jar == nil {
		// It fails only with options.
		c.Jar, _ = cookiejar.New(nil)
	}
	c.Timeout = 0
	follow := c.CheckRedirect
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		first := via[0]
		if len(via) >= 10 || req.Method != first.Method || origin(req.URL) != origin(first.URL) {
			return http.ErrUseLastResponse // whose status is the error
		}
		if follow != nil {
			return follow(req, via)
		}
		return nil
	}
	return &c, release
}

// origin is scheme, host and port.
func origin(u *url.URL) string {
	scheme, port := u.Scheme, u.Port()
	switch scheme {
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Connect implements rpc.Transport.
func (d *dialer) Connect(ctx context.Context) (rpc.Stream, error) {
	if d.bad != nil {
		return nil, d.bad
	}
	switch d.url.Scheme {
	case "ws", "wss":
		return d.connectWebSocket(ctx)
	}
	return d.connectHTTP(), nil
}

type refusedKey struct{}

// Refused returns, for the context that DialOptions.Header is given, why Header is called again: a *StatusError with
// 401 or 403. It returns nil when a request is made for the first time.
func Refused(ctx context.Context) *StatusError {
	refused, _ := ctx.Value(refusedKey{}).(*StatusError)
	return refused
}

// twice makes a request by try, and once more with another header if the answer is 401 or 403. The context that try gets is
// for the request.
func (d *dialer) twice(ctx context.Context, try func(context.Context, http.Header) (*http.Response, error)) (*http.Response, error) {
	for {
		header := http.Header{}
		if d.opts.Header != nil {
			own, err := d.opts.Header(ctx)
			if err != nil {
				return nil, &unsentError{fmt.Errorf("acp: the header of a request: %w", err)}
			}
			header = own.Clone()
			if header == nil {
				header = http.Header{}
			}
		}
		secret := secretsIn(d.url, header)
		resp, err := try(secret.with(ctx), header)
		err = secret.hideIn(err)
		if resp == nil || d.opts.Header == nil || Refused(ctx) != nil ||
			resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		ctx = context.WithValue(ctx, refusedKey{}, statusError(resp, 0))
	}
}

// do makes a request. The caller closes the body. An *unsentError says that the server has not seen it.
func (d *dialer) do(ctx context.Context, method string, body []byte, set func(http.Header)) (*http.Response, error) {
	return d.twice(ctx, func(ctx context.Context, header http.Header) (*http.Response, error) {
		var sought, found bool
		trace := &httptrace.ClientTrace{
			GetConn: func(string) { sought = true },
			GotConn: func(httptrace.GotConnInfo) { found = true },
		}
		inner, cancel := context.WithCancel(ctx)
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(inner, trace), method, d.url.String(), bytes.NewReader(body))
		if err != nil {
			cancel()
			return nil, &unsentError{withoutURL(err)}
		}
		if body == nil {
			req.Body, req.GetBody = nil, nil
		}
		req.Header = header
		if set != nil {
			set(header)
		}
		if name := unsendable(header); name != "" {
			cancel()
			return nil, &unsentError{fmt.Errorf("acp: header %s: %w", name, errHeader)}
		}
		resp, err := d.client.Do(req)
		if err != nil {
			cancel()
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			err = withoutURL(err)
			if dial := (*net.OpError)(nil); sought && !found || errors.As(err, &dial) && dial.Op == "dial" || untrusted(err) {
				err = &unsentError{err}
			}
			return nil, err
		}
		if resp.Request == nil { // made up by a RoundTripper
			resp.Request = req
		}
		resp.Body = boundRest(resp, cancel, d.opts.StreamTimeout)
		return resp, nil
	})
}

// boundRest returns the body of a response, which cancel ends. Only that of 200 has messages; for what else a server says
// nobody waits longer than limit.
func boundRest(resp *http.Response, cancel func(), limit time.Duration) io.ReadCloser {
	if resp.StatusCode == http.StatusOK {
		return &responseBody{resp.Body, cancel}
	}
	timer := time.AfterFunc(limit, cancel)
	return &responseBody{resp.Body, func() {
		timer.Stop()
		cancel()
	}}
}

// responseBody is a body with something to be done when it is closed.
type responseBody struct {
	io.ReadCloser
	closed func()
}

func (b *responseBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// errHeader says that a value, of the id of a session for example, is not text that HTTP can send.
var errHeader = errors.New("invalid value")

// unsendable returns the name of a header whose value cannot be sent.
func unsendable(header http.Header) string {
	for name, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, unsendableRune) {
				return name
			}
		}
	}
	return ""
}

func unsendableRune(r rune) bool { return r < ' ' && r != '\t' || r == '\x7f' }

// untrusted reports whether the server did not pass as the one that was meant.
func untrusted(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return bad || unknown || plain
}

// unsentError says that a request did not reach the server.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }

func (e *unsentError) Unwrap() error { return e.err }

// withoutURL is an error without the URL, in which there may be a token.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// maxText is how many bytes of a server's words are kept.
const maxText = 1 << 10

// statusError makes an error of a response that is none of success, and closes it. size is how long the body of the
// request was.
func statusError(resp *http.Response, size int) *StatusError {
	defer resp.Body.Close()
	// Text that cannot be read is left out.
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
	e := &StatusError{
		Status:     resp.StatusCode,
		Text:       secretsOf(resp).line(string(text)),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
	}
	if e.Status == http.StatusRequestEntityTooLarge {
		e.Size = size
	}
	return e
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(value string) time.Duration {
	if s, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
