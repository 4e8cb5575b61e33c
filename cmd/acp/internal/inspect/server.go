package inspect

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/inspect/page"
)

// Server serves an inspection to browsers of this machine. Whoever has its URL, with the token in it, may act as the
// user.
//
// A page is not known by a cookie: a browser sends cookies to all ports of a host, and so to other programs.
type Server struct {
	in     *Inspection
	host   string // of the URL
	secret string // that a page gets for its token
	tap    string // the secret of taps; "" if there are none
	http   *http.Server

	mu        sync.Mutex
	tokens    map[string]bool // not yet used
	strangers []net.Conn      // connections that have not shown a secret, the oldest first
}

// Serve returns a server on a listener, which must be on a loopback address. tapSecret is the secret by which taps
// authenticate; "" refuses them.
func (in *Inspection) Serve(listener net.Listener, tapSecret string) *Server {
	s := &Server{in: in, host: listener.Addr().String(), secret: rand.Text(), tap: tapSecret, tokens: map[string]bool{}}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ConnState: s.connState,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	in.running.Go(func() { _ = s.http.Serve(listener) }) // until Close
	return s
}

// connKey is the key of a request's connection.
type connKey struct{}

// maxStrangers bounds the connections that have not shown a secret. The oldest makes room for a new one: the first
// request of a page does not take long.
const maxStrangers = 64

// connState follows the connections that have not shown a secret.
func (s *Server) connState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.mu.Lock()
		s.strangers = append(s.strangers, conn)
		var oldest net.Conn
		if len(s.strangers) > maxStrangers {
			oldest = s.strangers[0]
			s.strangers = s.strangers[1:]
		}
		s.mu.Unlock()
		if oldest != nil {
			_ = oldest.Close() // its reader notices
		}
	case http.StateClosed:
		s.forget(conn)
	}
}

// forget takes a connection from the strangers: it has shown a secret, or has ended.
func (s *Server) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strangers = slices.DeleteFunc(s.strangers, func(c net.Conn) bool { return c == conn })
}

// connOf returns the connection of a request.
func connOf(r *http.Request) net.Conn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn) // nil only without our server
	return conn
}

// URL returns a new URL of the page. It can be opened once; the page then has the secret.
func (s *Server) URL() string {
	token := rand.Text()
	s.mu.Lock()
	s.tokens[token] = true
	s.mu.Unlock()
	return "http://" + s.host + "/#" + token // browsers do not send the fragment
}

// Close ends all connections to pages and taps.
func (s *Server) Close() error {
	s.in.cancel() // the connections of pages end, saying so
	return s.http.Close()
}

// policy lets the page load and reach nothing but this server, and no page show it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// ServeHTTP serves the page, what the page asks for, and taps.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "no-referrer",
		"Cache-Control":   "no-store", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		h.Set(name, value)
	}
	switch {
	// A name that leads to this address, but is another site's, has a Host of its own.
	case r.Host != s.host:
		http.Error(w, "acp inspect: this server has only the address http://"+s.host, http.StatusForbidden)
	case r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+s.host:
		http.Error(w, "acp inspect: pages of other sites are refused", http.StatusForbidden)
	case r.Method != http.MethodGet:
		http.Error(w, "acp inspect: only GET", http.StatusMethodNotAllowed)
	case r.URL.Path == tapPath:
		s.serveTap(w, r)
	case r.URL.Path == "/ws":
		s.serveWebSocket(w, r) // which wants a secret in the first message
	case static[r.URL.Path].name != "":
		file := static[r.URL.Path]
		body, err := page.Files.ReadFile("dist/" + file.name)
		writeBody(w, file.kind, body, err)
	case !s.isSecret(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")):
		http.Error(w, "acp inspect: only for the page", http.StatusForbidden)
	default:
		s.forget(connOf(r))
		s.serve(w, r)
	}
}

// static are the files that everybody gets, which tell nothing about the inspection, with their types.
var static = map[string]struct{ name, kind string }{
	"/": {"index.html", "text/html; charset=utf-8"}, "/app.js": {"app.js", "text/javascript; charset=utf-8"},
	"/app.css": {"app.css", "text/css; charset=utf-8"},
}

// writeBody answers a request.
func writeBody(w http.ResponseWriter, kind string, body []byte, err error) {
	if err != nil {
		http.Error(w, "acp inspect: "+err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // the page has gone
}

// isSecret reports whether a page has the secret.
func (s *Server) isSecret(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.secret)) == 1
}

// admits reports whether a page has the secret, or the token of a URL, which is then used.
func (s *Server) admits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	unused := s.tokens[key]
	delete(s.tokens, key)
	return unused || s.isSecret(key)
}

// serve serves a request of the page.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	text := func(kind string, body []byte, err error) { writeBody(w, kind, body, err) }
	n, _ := strconv.Atoi(query.Get("n")) // 0 is no row
	source := s.in.find(query.Get("source"))
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/schema/"):
		version, _ := strconv.Atoi(strings.TrimPrefix(path, "/schema/")) // 0 is no version
		schema, ok := schemaFor(version)
		if !ok {
			http.NotFound(w, r)
			return
		}
		text("application/json", []byte(schema), nil)
	case path == "/find":
		found, err := s.in.search(r.Context(), query.Get("q"))
		var body []byte
		if err == nil {
			body, err = json.Marshal(found)
		}
		text("application/json", body, err)
	case source == nil:
		http.NotFound(w, r)
	case path == "/raw":
		line, err := source.line(n)
		text("application/octet-stream", line, err)
	case path == "/export":
		s.export(w, source, query.Get("as"))
	default:
		http.NotFound(w, r)
	}
}

// export sends a download.
func (s *Server) export(w http.ResponseWriter, source *source, as string) {
	e, ok := exports[as]
	if !ok {
		http.Error(w, "acp inspect: there is no such export", http.StatusNotFound)
		return
	}
	out := &started{w: w, header: func() {
		w.Header().Set("Content-Type", e.contentType)
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", e.file))
	}}
	err := e.write(s.in, source, out)
	switch {
	case err != nil && !out.begun:
		http.Error(w, "acp inspect: "+err.Error(), http.StatusConflict)
	case err != nil:
		panic(http.ErrAbortHandler) // the browser sees that the file is not complete
	}
}

// started sets the header before the first byte, so that an error before it can be reported as one.
type started struct {
	w      http.ResponseWriter
	header func()
	begun  bool
}

func (s *started) Write(b []byte) (int, error) {
	if !s.begun {
		s.begun = true
		s.header()
	}
	return s.w.Write(b)
}

// The rhythm of a connection to a page.
const (
	batchSize  = 512 << 10              // bytes of events in a message
	stateTime  = 250 * time.Millisecond // between two states
	flushTime  = 50 * time.Millisecond  // between two messages
	writeTime  = time.Minute            // after which a page that does not read has gone
	helloTime  = 10 * time.Second       // in which it attaches
	maxAttach  = 4 << 10                // bytes of a message of which it is not known who sends it
	maxCommand = 2 * rpc.DefaultMaxMessage
)

// serveWebSocket serves a connection of a page. A page that is slow falls behind in the log, and delays no one.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") == "" {
		http.Error(w, "acp inspect: only pages connect here", http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, r, nil) // which compares Origin and Host again
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxAttach)
	defer s.forget(connOf(r))
	if !s.in.enter() {
		return
	}
	defer s.in.running.Done()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	stop := context.AfterFunc(s.in.context, func() {
		_ = conn.Close(websocket.StatusGoingAway, "acp has ended") // the page may have gone
		cancel(errClosed)
	})
	defer stop()
	p := &pageConn{in: s.in, conn: conn, ctx: ctx}
	attach, err := p.readCommand(helloTime)
	if err != nil || attach.Do != "attach" {
		_ = conn.Close(websocket.StatusPolicyViolation, "expected attach") // the page may have gone
		return
	}
	if !slices.ContainsFunc(attach.Keys, s.admits) {
		_ = conn.Close(websocket.StatusPolicyViolation, "no valid key") // the page may have gone
		return
	}
	s.forget(connOf(r))
	conn.SetReadLimit(maxCommand)
	go func() { cancel(p.commands()) }()
	if err := p.follow(attach, s.secret); err != nil && ctx.Err() == nil {
		reason := err.Error()
		// the page may have gone
		_ = conn.Close(websocket.StatusInternalError, strings.ToValidUTF8(reason[:min(len(reason), 100)], ""))
	}
}

// pageConn is the connection to a page.
type pageConn struct {
	in   *Inspection
	conn *websocket.Conn
	ctx  context.Context
}

func (p *pageConn) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, writeTime)
	defer cancel()
	return p.conn.Write(ctx, websocket.MessageText, text)
}

func (p *pageConn) readCommand(limit time.Duration) (*command, error) {
	ctx := p.ctx
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	_, text, err := p.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	c := &command{}
	return c, json.Unmarshal(text, c)
}

// commands does what the page asks, until the connection ends.
func (p *pageConn) commands() error {
	for {
		c, err := p.readCommand(0)
		if err != nil {
			return err
		}
		answer := &reply{Is: "reply", ID: c.ID}
		if answer.Sent, err = p.in.do(c); err != nil {
			answer.Error = err.Error()
		}
		if err := p.send(answer); err != nil {
			return err
		}
	}
}

// follow sends the log from where the page is, and the state.
func (p *pageConn) follow(attach *command, secret string) error {
	hello := p.in.hello()
	hello.Secret = secret
	if err := p.send(hello); err != nil {
		return err
	}
	at := attach.Since
	if attach.Run != p.in.run {
		at = 0
	}
	var last []byte
	var lastTime time.Time
	for {
		changed := p.in.log.next()
		for _, s := range p.in.all() {
			s.flush()
		}
		events, to, end, err := p.in.log.read(at, batchSize)
		if err != nil {
			return err
		}
		if len(events) > 0 || at == 0 {
			if err := p.send(&logMessage{Is: "log", Cursor: to, CaughtUp: end, Events: events}); err != nil {
				return err
			}
		}
		at = to
		if !end {
			continue
		}
		wait := time.Duration(0)
		if since := time.Since(lastTime); since >= stateTime {
			state, err := p.in.state()
			if err != nil {
				return err
			}
			if string(state) != string(last) {
				if err := p.send(json.RawMessage(state)); err != nil {
					return err
				}
			}
			last, lastTime = state, time.Now()
		} else {
			wait = stateTime - since
		}
		var later <-chan time.Time
		if wait > 0 {
			later = time.After(wait)
		}
		select {
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		case <-later:
			continue
		case <-changed:
		}
		select { // more will follow
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		case <-time.After(flushTime):
		}
	}
}

// state returns the State as JSON.
func (in *Inspection) state() ([]byte, error) {
	state := struct {
		Is      string            `json:"is"`
		Sources []json.RawMessage `json:"sources"`
	}{Is: "state", Sources: []json.RawMessage{}}
	for _, s := range in.all() {
		text, err := s.state()
		if err != nil {
			return nil, err
		}
		state.Sources = append(state.Sources, text)
	}
	return json.Marshal(state)
}

// do does a command. It returns the id of a request that was sent.
func (in *Inspection) do(c *command) (sent string, err error) {
	if c.Do == "match" {
		return match(c.Pattern, c.Text), nil
	}
	if in.options.Agent == nil {
		return "", errors.New("there is no agent to talk to: start acp inspect with one")
	}
	if c.Do == "start" {
		_, err := in.start()
		return "", err
	}
	l, err := in.connected(c.Source)
	if err != nil {
		return "", err
	}
	switch c.Do {
	case "send":
		return l.request(c)
	case "raw":
		return "", l.raw(c)
	case "kill":
		return "", l.kill(c.How)
	case "answers":
		if c.Answers == nil {
			return "", errors.New("expected answers")
		}
		return "", l.setAnswers(c.Answers)
	case "seen":
		l.seen(c.Row)
		return "", nil
	case "choose":
		return "", l.choose(c)
	}
	return "", fmt.Errorf("there is no command %q", c.Do)
}

// The longest pattern and text that are compared.
const (
	maxPattern = 1000
	maxMatched = 64 << 10
)

// match reports as "no" that a text does not match a pattern of an agent's form. The page asks instead of comparing
// them itself because an expression of JavaScript can take forever, which one of Go cannot. Patterns that Go does not
// know are left to the agent.
func match(pattern, text string) string {
	if len(pattern) > maxPattern || len(text) > maxMatched {
		return ""
	}
	if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(text) {
		return "no"
	}
	return ""
}
