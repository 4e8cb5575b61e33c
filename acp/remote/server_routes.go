package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ServeHTTP implements http.Handler. It ignores the path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// This also applies to a request that is refused: before net/http responds, it reads the rest of the body.
	r = boundBody(w, r, s.opts.BodyTimeout)
	if err := s.route(w, r); err != nil {
		s.refuse(w, r, err)
	}
}

// refuse responds to a request that is refused.
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
		// If it fails, the client is gone.
		_, _ = w.Write(text)
		return
	}
	http.Error(w, no.text, no.status)
}

// route checks the sender of a request, and dispatches it.
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
	upgrade := r.Method == http.MethodGet && headerHas(r.Header, "Connection", "upgrade") &&
		headerHas(r.Header, "Upgrade", "websocket")
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

func (s *Server) methods() []string {
	if s.opts.DisableHTTP {
		return []string{http.MethodGet} // for the upgrade
	}
	return []string{http.MethodPost, http.MethodGet, http.MethodDelete}
}

// admit checks where a request comes from, and returns its Origin if the options allow it.
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

// isLocal reports whether a request arrived at an address that other machines cannot reach, and whether that is a
// loopback address, which browsers can reach by a name.
func isLocal(r *http.Request) (local, loopback bool) {
	switch addr := r.Context().Value(http.LocalAddrContextKey).(type) {
	case nil:
		return false, false
	case *net.TCPAddr:
		return addr.IP.IsLoopback(), addr.IP.IsLoopback()
	case *net.UDPAddr: // HTTP/3
		return addr.IP.IsLoopback(), addr.IP.IsLoopback()
	default: // a Unix socket, or an in-process pipe
		return true, false
	}
}

// isOwnHost reports whether a Host names this machine, or is one of the allowed hosts.
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

// sameHost reports whether an origin has the host of the request. The scheme may differ: a proxy may have terminated
// TLS.
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

// withToken returns the request with its token moved to the header where Authenticate looks for it.
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

// boundBody returns the request with a body that must be read within limit. http.Server.ReadTimeout would end streams
// too.
func boundBody(w http.ResponseWriter, r *http.Request, limit time.Duration) *http.Request {
	if r.ContentLength == 0 {
		return r
	}
	if b, ok := r.Body.(*boundedBody); ok { // by NewHTTPServer
		_ = b.rc.SetReadDeadline(time.Now().Add(limit)) // it could be set before
		return r
	}
	b := &boundedBody{ReadCloser: r.Body, rc: http.NewResponseController(w)}
	if b.rc.SetReadDeadline(time.Now().Add(limit)) != nil {
		return r // inside a middleware without deadlines, the http.Server's limits apply
	}
	// net/http inspects the body of the original request.
	r = r.WithContext(r.Context())
	r.Body = b
	return r
}

// boundedBody is a body with a deadline, which is removed at its end.
type boundedBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{}) // it could be set before
	}
	return n, err
}

// CheckListener returns an error if the server has no authentication and other machines can reach the listener.
// Programs should call it before they serve.
func (s *Server) CheckListener(l net.Listener) error {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || s.opts.Authenticate != nil || s.opts.AllowUnauthenticated {
		return nil
	}
	return fmt.Errorf("acp: %s can be reached by other machines without authentication: %w", tcp, ErrForbidden)
}
