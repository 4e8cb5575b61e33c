package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// Dial returns a transport to the agent at a URL. The scheme selects the transport: ws and wss are WebSocket, http and
// https streamable HTTP. Each Connect opens a separate connection. If a URL cannot be used, Connect returns an error.
//
// The agent is not a process of the user: a client that serves it files or terminals should ask about each write and
// each command, as with local.Asking.
func Dial(rawURL string, o *DialOptions) rpc.Transport {
	d := &dialer{cursors: map[string][]byte{}, opts: *cmp.Or(o, &DialOptions{})}
	d.defaults()
	d.url, d.bad = d.check(rawURL)
	d.client, d.release = d.makeClient()
	return d
}

func (d *dialer) defaults() {
	o := &d.opts
	o.MaxMessage = cmp.Or(max(o.MaxMessage, 0), rpc.DefaultMaxMessage)
	o.MaxQueued = cmp.Or(max(o.MaxQueued, 0), 16<<20)
	o.StreamTimeout = cmp.Or(o.StreamTimeout, 10*time.Second)
	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, time.Minute)
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, time.Minute)
	o.StallTimeout = cmp.Or(o.StallTimeout, time.Minute)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)
	o.MinBackoff = cmp.Or(o.MinBackoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.ReopenTime = cmp.Or(o.ReopenTime, 6*time.Minute)
	d.log = cmp.Or(o.Logger, wire.DefaultLogger())
}

// check parses the URL. Errors do not repeat the URL, because it may contain a token.
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
		return nil, fmt.Errorf("acp: unsupported scheme %q, expected http, https, ws or wss", u.Scheme)
	}
	return u, nil
}

// loopback reports whether a host is this machine. Other spellings of localhost, and names below it, do not count: the
// network resolves them, and a proxy from the environment gets the requests.
func loopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return host == "localhost"
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
		// Without this, HTTP/2 would not notice that a connection ended while the machine was asleep.
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
		c.Transport = t
		release = t.CloseIdleConnections
	}
	if c.Jar == nil {
		// New fails only with options.
		c.Jar, _ = cookiejar.New(nil)
	}
	c.Timeout = 0
	follow := c.CheckRedirect
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		first := via[0]
		if len(via) >= 10 || req.Method != first.Method || origin(req.URL) != origin(first.URL) {
			return http.ErrUseLastResponse // then the status is the error
		}
		if follow != nil {
			return follow(req, via)
		}
		return nil
	}
	return &c, release
}

// origin returns the scheme, host and port.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

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

func (d *dialer) connectHTTP() *httpStream {
	s := &httpStream{
		d:       d,
		decode:  codec.NewDecoder(nil),
		encode:  codec.NewDecoder(nil),
		wake:    make(chan struct{}, 1),
		calls:   map[rpc.ID]*call{},
		asked:   map[rpc.ID]string{},
		streams: map[string]*eventStream{},
		lanes:   map[lane][]*post{},
		flying:  map[*post]context.CancelCauseFunc{},
		prompts: map[string]*post{},
		cancels: map[string]*post{},
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}
