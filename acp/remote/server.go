package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
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

// HandlerOptions configures how a [Server] serves. A nil *HandlerOptions, and the zero value of each field, mean the
// defaults. Sizes are in bytes.
type HandlerOptions struct {
	// Authenticate identifies the sender of a request: the principal is your name for the sender, which becomes
	// Peer.Principal. It is called for every POST, GET, DELETE and upgrade, before anything else is done for the
	// request. A connection belongs to the principal who opened it, and does not exist for any other. An error is
	// answered with 401, or with 403 if it matches ErrForbidden; its text is not sent. See BearerToken for the usual
	// implementation.
	//
	// Nil lets everyone in, as one principal, and is allowed only for requests that arrive on a loopback address, or on
	// a Unix socket; others are answered with 403. See AllowUnauthenticated.
	Authenticate func(r *http.Request) (principal string, err error)
	// AllowUnauthenticated allows requests from other machines even though Authenticate is nil. Anyone who reaches the
	// server can then do whatever the agent can.
	AllowUnauthenticated bool

	// AllowedOrigins are the origins whose pages in a browser may connect, besides pages of the server's own host. They
	// must match exactly, such as https://example.com or http://localhost:5173. They get the CORS headers. A request
	// with any other Origin is answered with 403. Programs other than browsers send none.
	AllowedOrigins []string
	// AllowedHosts are the names, without port, under which the server may be reached on a loopback address, besides
	// localhost and the loopback addresses themselves: the names that a proxy on the same machine passes on as Host.
	// Any other is answered with 403 there, because a page in a browser can make its own name point to this machine.
	AllowedHosts []string
	// TokenQuery is the name of a URL parameter, token for example, that may carry a token when a WebSocket is opened,
	// because browsers cannot set a header then. Authenticate sees it as the header Authorization: Bearer TOKEN. There
	// is none by default, because URLs are often logged.
	TokenQuery string
	// TokenSubprotocol is like TokenQuery, but for a subprotocol that the client offers: the text after this prefix is
	// the token. It is never selected. There is none by default.
	TokenSubprotocol string
	// Subprotocols are the WebSocket subprotocols that are selected if a client offers them, besides those that begin
	// with acp.
	Subprotocols []string

	// DisableHTTP answers requests that are not for a WebSocket with 405, and DisableWebSocket answers an upgrade with
	// 426.
	DisableHTTP, DisableWebSocket bool
	// Compression lets a client have the messages of a WebSocket compressed. It takes about 1.2 MB of memory for each
	// connection. The default is false.
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
	// has messages waiting. A GET of one more is answered with 429. The default is 1,024.
	MaxStreams int
	// MaxBuffered is how much a connection over HTTP keeps for streams that do not accept data. When it is reached,
	// nothing more is read from the agent, and requests wait. A single message may exceed it. The default is 64 MiB.
	MaxBuffered int
	// MaxQueued is how much a connection over HTTP keeps of the messages to an agent that does not read them. When it
	// is reached, POSTs of requests wait. Other messages do not; at four times as much they are answered with 503. The
	// default is 16 MiB.
	MaxQueued int

	// InitializeTimeout is how long the server waits for the first message on a WebSocket, and then for the agent's
	// answer to it on either transport. Over HTTP the client then gets 504. The default is 30 s.
	InitializeTimeout time.Duration
	// BodyTimeout is how long the body of a POST may take, even of one that is refused. The default is 60 s.
	BodyTimeout time.Duration
	// StallTimeout is how long a client may accept none of the data to be sent to it before its connection ends; over
	// HTTP, only if MaxBuffered is also reached. The default is 60 s.
	StallTimeout time.Duration
	// KeepAlive is how often an idle stream gets a comment, and a WebSocket a ping. A WebSocket on which two pings in a
	// row were not answered is closed. The default is 15 s; a negative value means never.
	KeepAlive time.Duration
	// Expiry is how long a connection over HTTP lives on while it has neither a stream nor a POST. The default is 5
	// min.
	Expiry time.Duration
	// Grace is how long the agent may continue to work after its WebSocket was lost, so that a turn that is nearly done
	// is finished, and can be loaded by another connection. Messages that it sends then are dropped, and counted in the
	// log. The default is 0: its input ends at once.
	Grace time.Duration
	// CloseTime is how long an agent may keep running after its connection has ended, before the context that it was
	// given ends. The default is 10 s.
	CloseTime time.Duration
	// CloseTimeout is how long a client may take to answer the end of a WebSocket. The default is 5 s.
	CloseTimeout time.Duration

	// RejectSecondStream answers a GET for a stream that already has a reader with 409. By default the new reader takes
	// over and the old stream ends, because behind a proxy a broken stream can look alive for a long time.
	RejectSecondStream bool

	// History, if set, makes the history of each HTTP stream, with session "" for the connection's own stream. Events
	// then have an id, and a GET with the header Last-Event-ID gets the messages after that id, and then new ones; it
	// is answered with 409 if they are not kept. It is a draft of the protocol. The default is nil: the header is
	// ignored, and messages lost on their way are not sent again. The history of a session is dropped some time after
	// the session was closed or deleted. See MemoryHistory.
	History func(peer *Peer, session string) History

	// Logger gets a line for each connection that begins and ends, at level Info, and diagnostics. No token and no
	// message is ever logged. Nil means that warnings and errors go to slog.Default.
	Logger *slog.Logger
}

// Peer describes the client that opened a connection.
type Peer struct {
	// ConnectionID is the connection's id. It is not a secret, but of no use to anyone else either.
	ConnectionID string
	// Principal is the principal that Authenticate returned, or "".
	Principal string
	// RemoteAddr is the address that the connection came from, which may be that of a proxy.
	RemoteAddr string
	// Transport is WebSocket or HTTP.
	Transport string
	// Header is the header of the request that opened the connection, without credentials: Authorization,
	// Proxy-Authorization, Cookie and the offered subprotocols.
	Header http.Header
}

func (o *HandlerOptions) setDefaults() {
	setDefault(&o.MaxMessage, rpc.DefaultMaxMessage)
	setDefault(&o.MaxConnections, 10_000)
	setDefault(&o.MaxConnectionsPerPrincipal, min(1000, max(1, o.MaxConnections/2)))
	setDefault(&o.MaxStreams, 1024)
	setDefault(&o.MaxBuffered, 64<<20)
	setDefault(&o.MaxQueued, 16<<20)
	setDefault(&o.InitializeTimeout, 30*time.Second)
	setDefault(&o.BodyTimeout, time.Minute)
	setDefault(&o.StallTimeout, time.Minute)
	setDefault(&o.KeepAlive, 15*time.Second)
	setDefault(&o.Expiry, 5*time.Minute)
	setDefault(&o.CloseTime, 10*time.Second)
	setDefault(&o.CloseTimeout, 5*time.Second)
	o.KeepAlive = max(0, o.KeepAlive)
	o.AllowedOrigins = slices.Clone(o.AllowedOrigins)
	for i, origin := range o.AllowedOrigins {
		o.AllowedOrigins[i] = strings.ToLower(origin)
	}
	o.AllowedHosts = slices.Clone(o.AllowedHosts)
	o.Subprotocols = slices.Clone(o.Subprotocols)
	if o.Logger == nil {
		o.Logger = slog.New(warnings{})
	}
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// warnings passes warnings and errors on to slog.Default.
type warnings struct{ attrs []slog.Attr }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && slog.Default().Enabled(ctx, level)
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(w.attrs...)
	return slog.Default().Handler().Handle(ctx, r)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{slices.Concat(w.attrs, attrs)}
}

func (w warnings) WithGroup(string) slog.Handler { return w }

// BearerToken returns an Authenticate function for tokens, given by principal: the sender of one of these tokens in the
// header Authorization is its principal. Tokens are compared in constant time, without surrounding white space. An
// empty token is ignored; a token of several principals belongs to the first by name.
func BearerToken(tokens map[string]string) func(*http.Request) (principal string, err error) {
	// Of sums of the same length the comparison tells nothing, not even how long a token is.
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

// A Server is an [http.Handler] that passes each connection that a client opens to a function. It works with any mux,
// middleware and http.Server, with HTTP/1.1, HTTP/2, and HTTP/2 without TLS if that http.Server allows it. All methods
// are safe for concurrent use.
type Server struct {
	serve func(ctx context.Context, t rpc.Transport, peer *Peer) error
	opts  HandlerOptions
	work  sync.WaitGroup // connections

	mu          sync.Mutex
	connections map[string]*connection
	count       int            // of connections, and of those to be
	principals  map[string]int // how many of them each has
	opened      map[string]uint64
	refused     map[int]uint64
	closed      bool

	streams  atomic.Int64
	buffered atomic.Int64
	bytesIn  atomic.Uint64
	bytesOut atomic.Uint64
}

// Handler returns a Server. It calls serve for each connection, in a separate goroutine. t is the connection, and must
// be connected once; the context ends when serve must return at once, CloseTime after the connection has ended. When
// serve returns, the connection ends, and requests that the client still waits for are answered with an error. An error
// of serve, or a panic, is logged, and not sent.
func Handler(serve func(ctx context.Context, t rpc.Transport, peer *Peer) error, o *HandlerOptions) *Server {
	s := &Server{
		serve:       serve,
		connections: map[string]*connection{},
		principals:  map[string]int{},
		opened:      map[string]uint64{},
		refused:     map[int]uint64{},
	}
	if o != nil {
		s.opts = *o
	}
	s.opts.setDefaults()
	return s
}

// A refusal is the answer to a request that is refused.
type refusal struct {
	status int
	text   string
	err    error // for the log: what is not for the client
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }
func (e *refusal) Unwrap() error { return e.err }

func refuse(status int, text string) *refusal { return &refusal{status: status, text: text} }

// ServeHTTP implements http.Handler. The path does not matter.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// This also applies to a request that is refused: before net/http answers, it reads the rest of the body.
	r = boundBody(w, r, s.opts.BodyTimeout)
	if err := s.route(w, r); err != nil {
		s.refuse(w, r, err)
	}
}

// refuse answers a request that is refused.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	no, ok := errors.AsType[*refusal](err)
	if !ok {
		no = &refusal{http.StatusInternalServerError, "internal error", err}
	}
	s.mu.Lock()
	s.refused[no.status]++
	s.mu.Unlock()
	s.opts.Logger.Debug("acp: request refused", "method", r.Method, "status", no.status, "why", no.text, "error", no.err,
		"remote", r.RemoteAddr)
	switch no.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="acp"`)
	}
	if text := []byte(no.text); text[0] == '{' {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(no.status)
		// If it fails, the client has gone.
		_, _ = w.Write(text)
		return
	}
	http.Error(w, no.text, no.status)
}

// route checks who sends the request, and what it is for.
func (s *Server) route(w http.ResponseWriter, r *http.Request) error {
	origin, err := s.admit(r)
	if err != nil {
		return err
	}
	if origin != "" {
		s.allowOrigin(w.Header(), origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(w, r)
			return nil
		}
	}
	upgrade := r.Method == http.MethodGet && headerHas(r.Header, "Connection", "upgrade") && headerHas(r.Header, "Upgrade", "websocket")
	switch allowed := s.methods(); {
	case upgrade && s.opts.DisableWebSocket:
		return refuse(http.StatusUpgradeRequired, "no WebSocket here")
	case upgrade:
		r = s.withToken(r)
	case !slices.Contains(allowed, r.Method), s.opts.DisableHTTP:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return refuse(http.StatusMethodNotAllowed, "method not allowed")
	}
	principal, err := s.authenticate(r)
	if err != nil {
		return err
	}
	for _, name := range []string{HeaderConnection, HeaderSession} {
		if len(r.Header.Get(name)) > maxID {
			return refuse(http.StatusBadRequest, name+" is too long")
		}
	}
	switch {
	case upgrade:
		return s.upgrade(w, r, principal)
	case r.Method == http.MethodPost:
		return s.post(w, r, principal)
	case r.Method == http.MethodGet:
		return s.stream(w, r, principal)
	default:
		return s.delete(w, r, principal)
	}
}

// maxID is how long an id of a connection or session may be.
const maxID = 1024

// methods are those that are allowed.
func (s *Server) methods() []string {
	if s.opts.DisableHTTP {
		return []string{http.MethodGet} // the upgrade
	}
	return []string{http.MethodPost, http.MethodGet, http.MethodDelete}
}

// admit checks where a request comes from, and returns its Origin if that is allowed by the options.
func (s *Server) admit(r *http.Request) (allowed string, err error) {
	local, loopback := isLocal(r)
	if !local && s.opts.Authenticate == nil && !s.opts.AllowUnauthenticated {
		s.opts.Logger.Error("acp: a request from another machine was refused, because there is no authentication",
			"remote", r.RemoteAddr)
		return "", refuse(http.StatusForbidden, "this server is for its own machine only")
	}
	if loopback && !s.isOwnHost(r.Host) {
		return "", refuse(http.StatusForbidden, "unknown host")
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return "", nil
	}
	for _, allowed := range s.opts.AllowedOrigins {
		if len(origins) == 1 && strings.ToLower(origins[0]) == allowed {
			return origins[0], nil
		}
	}
	if u, err := url.Parse(origins[0]); err == nil && len(origins) == 1 && u.Host != "" && sameHost(u, r.Host) {
		return "", nil
	}
	return "", refuse(http.StatusForbidden, "foreign origin")
}

// isLocal reports whether a request came in by an address that other machines do not reach, and whether that is one
// that browsers reach by a name.
func isLocal(r *http.Request) (local, loopback bool) {
	switch addr := r.Context().Value(http.LocalAddrContextKey).(type) {
	case nil:
		return false, false
	case *net.TCPAddr:
		return addr.IP.IsLoopback(), addr.IP.IsLoopback()
	case *net.UDPAddr: // HTTP/3
		return addr.IP.IsLoopback(), addr.IP.IsLoopback()
	default: // a Unix socket, or a pipe within the process
		return true, false
	}
}

// isOwnHost reports whether a Host is one of this machine's, or one of those allowed.
func (s *Server) isOwnHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(s.opts.AllowedHosts, func(allowed string) bool { return strings.EqualFold(host, allowed) })
}

// sameHost reports whether an origin is of the host that was asked. The scheme may be another one: a proxy can have
// ended TLS.
func sameHost(origin *url.URL, host string) bool {
	if strings.EqualFold(origin.Host, host) {
		return true
	}
	port := map[string]string{"http": "80", "https": "443"}[origin.Scheme]
	return port != "" && origin.Port() == "" && strings.EqualFold(net.JoinHostPort(origin.Hostname(), port), host)
}

// allowOrigin lets pages of an origin read the answers.
func (s *Server) allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", HeaderConnection+", "+HeaderSession)
}

// preflight answers a browser's preflight request for another origin.
func preflight(w http.ResponseWriter, r *http.Request) {
	allowed := []string{"Content-Type", "Accept", "Authorization", "Last-Event-ID", HeaderConnection, HeaderSession}
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if strings.HasPrefix(name, "Acp-") && len(name) < 100 && !slices.Contains(allowed, name) && len(allowed) < 20 {
			allowed = append(allowed, name)
		}
	}
	w.Header().Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	w.Header().Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// headerHas reports whether a header lists a token.
func headerHas(h http.Header, name, token string) bool {
	for _, value := range h.Values(name) {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}

// withToken returns the request with the token where Authenticate looks for it, and nowhere else.
func (s *Server) withToken(r *http.Request) *http.Request {
	query, prefix := s.opts.TokenQuery, s.opts.TokenSubprotocol
	if query == "" && prefix == "" {
		return r
	}
	r = r.Clone(r.Context())
	token := ""
	if values := r.URL.Query(); query != "" && values.Has(query) {
		token = values.Get(query)
		values.Del(query)
		r.URL.RawQuery = values.Encode()
		r.RequestURI = ""
	}
	if prefix != "" {
		var others []string
		for _, offered := range offeredProtocols(r) {
			if t, ok := strings.CutPrefix(offered, prefix); ok {
				token = t
			} else {
				others = append(others, offered)
			}
		}
		r.Header.Del(headerProtocol)
		if len(others) > 0 {
			r.Header.Set(headerProtocol, strings.Join(others, ", "))
		}
	}
	if token != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// authenticate identifies the sender of a request.
func (s *Server) authenticate(r *http.Request) (principal string, err error) {
	if s.opts.Authenticate == nil {
		return "", nil
	}
	principal, err = s.opts.Authenticate(r)
	switch {
	case errors.Is(err, ErrForbidden):
		return "", &refusal{http.StatusForbidden, "forbidden", err}
	case err != nil:
		return "", &refusal{http.StatusUnauthorized, "unauthorized", err}
	}
	return principal, nil
}

// A connection is one that a client has opened, and the agent that it has.
type connection struct {
	server *Server
	peer   *Peer
	log    *slog.Logger
	began  time.Time
	link   link

	ctx    context.Context // serve's
	cancel context.CancelCauseFunc
	ending *time.Timer // ends ctx some time after the connection's end; see endsSoon
	once   sync.Once   // of endsSoon
}

// A link is a connection as its transport knows it.
type link interface {
	rpc.FastStream
	// endInput ends the agent's input, for that reason. Messages that it still sends go to the client.
	endInput(why error)
	// finish ends the connection when serve has returned, or has closed its stream: requests in progress are answered
	// with an error. Calls after the first do nothing.
	finish(err error)
	// cut ends the connection at once.
	cut(why error)
}

// add makes a connection, if there may be one more. It must be registered before it is run, and removed.
func (s *Server) add(r *http.Request, principal, transport string) (*connection, error) {
	header := r.Header.Clone()
	for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie", headerProtocol} {
		header.Del(secret)
	}
	c := &connection{
		server: s,
		peer: &Peer{
			ConnectionID: rand.Text(),
			Principal:    principal,
			RemoteAddr:   r.RemoteAddr,
			Transport:    transport,
			Header:       header,
		},
		began: time.Now(),
	}
	c.log = s.opts.Logger.With("connection", c.peer.ConnectionID, "transport", transport)
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(r.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, refuse(http.StatusServiceUnavailable, "the server is shutting down")
	case s.count >= s.opts.MaxConnections:
		return nil, refuse(http.StatusServiceUnavailable, "too many connections")
	case principal != "" && s.principals[principal] >= s.opts.MaxConnectionsPerPrincipal:
		return nil, refuse(http.StatusTooManyRequests, "too many connections")
	}
	s.count++
	s.principals[principal]++
	s.work.Add(1)
	return c, nil
}

// register makes a connection known, whose link is that.
func (c *connection) register(l link) {
	s := c.server
	c.link = l
	s.mu.Lock()
	s.connections[c.peer.ConnectionID] = c
	s.opened[c.peer.Transport]++
	closed := s.closed
	s.mu.Unlock()
	if closed { // meanwhile; Shutdown has not seen it
		l.endInput(errShutdown)
	}
}

// errShutdown is why a connection ends whose server does.
var errShutdown = fmt.Errorf("%w: %w", ErrServerClosed, io.EOF)

// remove forgets a connection.
func (c *connection) remove() {
	s := c.server
	c.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c.peer.ConnectionID)
	s.count--
	if s.principals[c.peer.Principal]--; s.principals[c.peer.Principal] == 0 {
		delete(s.principals, c.peer.Principal)
	}
	s.work.Done()
}

// lookup finds a connection of a principal.
func (s *Server) lookup(id, principal string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections[id]
	if c == nil || c.peer.Principal != principal {
		return nil
	}
	return c
}

// isClosed reports whether the server is shutting down.
func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// run serves the connection, and returns when it is over.
func (c *connection) run() {
	c.log.Info("acp: connection opened", "remote", c.peer.RemoteAddr, "principal", c.peer.Principal)
	err := c.serve()
	c.link.finish(err)
	c.endsSoon()
	c.ending.Stop()
	level := slog.LevelInfo
	if err != nil && c.ctx.Err() == nil {
		level = slog.LevelWarn
	}
	c.log.Log(c.ctx, level, "acp: connection ended", "after", time.Since(c.began).Round(time.Millisecond), "error", err)
}

// serve calls the author's function.
func (c *connection) serve() (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error(fmt.Sprintf("acp: panic: %v\n%s", v, debug.Stack()))
			err = fmt.Errorf("acp: panic: %v", v)
		}
	}()
	return c.server.serve(c.ctx, &transport{link: c.link}, c.peer)
}

// endsSoon ends the context of serve some time after the connection has ended.
func (c *connection) endsSoon() {
	c.once.Do(func() {
		c.ending = time.AfterFunc(c.server.opts.CloseTime, func() { c.cancel(rpc.ErrClosed) })
	})
}

// transport is the connection as the agent gets it.
type transport struct {
	link link
	used atomic.Bool
}

func (t *transport) Connect(context.Context) (rpc.Stream, error) {
	if t.used.Swap(true) {
		return nil, errors.New("acp: transport already connected")
	}
	return t.link, nil
}

// Shutdown ends all connections and accepts no more. Agents read the end of their input and may finish requests in
// progress; then the streams end, WebSockets with 1001. Shutdown waits until every call of serve has returned. If ctx
// ends, the contexts of serve end and the connections are cut; Shutdown then waits for CloseTime more, and returns the
// cause of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	open := slices.Collect(maps.Values(s.connections))
	s.mu.Unlock()
	for _, c := range open {
		c.link.endInput(errShutdown)
		c.endsSoon()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range open {
		c.cancel(context.Cause(ctx))
		c.link.cut(errShutdown)
	}
	timer := time.NewTimer(s.opts.CloseTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	return context.Cause(ctx)
}

// Stats holds numbers about a Server, for metrics.
type Stats struct {
	// Connections is the current number of connections, by Peer.Transport.
	Connections map[string]int
	// Opened is the number of connections that were opened, by Peer.Transport.
	Opened map[string]uint64
	// Streams is how many streams currently have a reader.
	Streams int
	// Refused is how many requests were refused, by status.
	Refused map[int]uint64
	// BytesIn and BytesOut count messages, without framing.
	BytesIn, BytesOut uint64
	// Buffered is how many bytes are currently kept for clients.
	Buffered int
}

// Stats returns the current numbers.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{
		Connections: map[string]int{},
		Opened:      maps.Clone(s.opened),
		Streams:     int(s.streams.Load()),
		Refused:     maps.Clone(s.refused),
		BytesIn:     s.bytesIn.Load(),
		BytesOut:    s.bytesOut.Load(),
		Buffered:    int(s.buffered.Load()),
	}
	for _, c := range s.connections {
		stats.Connections[c.peer.Transport]++
	}
	return stats
}

// NewHTTPServer returns an http.Server for handler, a mux for example, with suitable settings for streams: HTTP/1.1 and
// HTTP/2, with and without TLS, 10 s for the header of a request and 64 KiB for all of it, 1 min for its body, even if
// handler does not read it, 2 min for idle TCP connections, and no timeout for requests as a whole.
func NewHTTPServer(handler http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, boundBody(w, r, time.Minute))
		}),
		Protocols:         &protocols,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		IdleTimeout:       2 * time.Minute,
	}
}

// boundBody returns the request with a body that takes not longer than that. http.Server.ReadTimeout would end streams too.
func boundBody(w http.ResponseWriter, r *http.Request, limit time.Duration) *http.Request {
	if r.ContentLength == 0 {
		return r
	}
	if b, ok := r.Body.(*boundedBody); ok { // by NewHTTPServer
		_ = b.rc.SetReadDeadline(time.Now().Add(limit)) // as it was set
		return r
	}
	b := &boundedBody{ReadCloser: r.Body, rc: http.NewResponseController(w)}
	if b.rc.SetReadDeadline(time.Now().Add(limit)) != nil {
		return r // below a middleware without deadlines it takes as long as the http.Server lets it
	}
	// Of the request itself net/http looks at the body.
	r = r.WithContext(r.Context())
	r.Body = b
	return r
}

// boundedBody is a body with a deadline, which is taken back at its end.
type boundedBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{}) // as it was set
	}
	return n, err
}

// CheckListener returns an error if the server has no authentication, and other machines can reach the listener.
// Programs call it before they serve.
func (s *Server) CheckListener(l net.Listener) error {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || s.opts.Authenticate != nil || s.opts.AllowUnauthenticated {
		return nil
	}
	return fmt.Errorf("acp: %s can be reached by other machines without authentication: %w", tcp, ErrForbidden)
}
