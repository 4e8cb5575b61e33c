package mcpacp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
)

// maxBody is the most bytes of a request over HTTP, stallTime how long they, and each write of a response, may take,
// and maxHeader those of its headers. maxConns is how many connections a bridge has at a time: whoever opens more must
// not use up the files that this process may open.
const (
	maxBody   = 1 << 20
	stallTime = 30 * time.Second
	maxHeader = 64 << 10
	maxConns  = 256
)

// bridge serves the servers of one connection over HTTP.
type bridge struct {
	address string // of the listener
	secret  []byte // of the tokens
	find    func(id string) *Offer
	sdk     http.Handler
	server  *http.Server
	conns   conns
}

// listen starts a bridge. find returns the offer with an id, or nil.
func listen(find func(id string) *Offer, logger *slog.Logger) (*bridge, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bridge{address: listener.Addr().String(), secret: []byte(rand.Text()), find: find}
	b.sdk = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return r.Context().Value(activeCallKey{}).(*activeCall).offer.server
	}, &mcp.StreamableHTTPOptions{Stateless: true, Logger: logger})
	b.server = &http.Server{
		Handler: b, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn), ConnState: b.conns.changed,
		ConnContext: b.conns.context,
	}
	go func() {
		if err := b.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("mcpacp: the HTTP listener failed", "error", err)
		}
	}()
	return b, nil
}

// conns are the connections of a bridge. While there are maxConns, a new one takes the place of the oldest that has not
// shown a token: other programs of this machine must not keep the agent out.
type conns struct {
	mu   sync.Mutex
	open []*conn // the oldest first
}

type conn struct {
	net.Conn
	known bool // it has shown a token
}

type connKey struct{}

func (c *conns) context(ctx context.Context, n net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, n)
}

// known says that the connection of a request has shown a token.
func (c *conns) known(ctx context.Context) {
	n, _ := ctx.Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.open {
		one.known = one.known || one.Conn == n
	}
}

// changed is the hook of the server.
func (c *conns) changed(n net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open = append(c.open, &conn{Conn: n})
		if len(c.open) > maxConns {
			i := slices.IndexFunc(c.open, func(one *conn) bool { return !one.known })
			_ = c.open[i].Close() // the server notices, and reports StateClosed
			c.open = slices.Delete(c.open, i, i+1)
		}
	case http.StateClosed, http.StateHijacked:
		c.open = slices.DeleteFunc(c.open, func(one *conn) bool { return one.Conn == n })
	}
}

// declare returns the declaration of a server.
func (b *bridge) declare(name, id string) acp.MCPServer {
	return acp.NewMCPServerHTTP(acp.MCPServerHTTP{
		Name: name, URL: "http://" + b.address + routePrefix + id,
		Headers: []acp.HTTPHeader{{Name: "Authorization", Value: "Bearer " + b.token(id)}},
	})
}

// routePrefix is what stands before a server's id in its path.
const routePrefix = "/mcp-"

// token returns what a request to a server must know.
func (b *bridge) token(id string) string {
	mac := hmac.New(sha256.New, b.secret)
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// singular are the headers that must not be there twice: another program on the way could go by the other one.
var singular = []string{"Origin", "Authorization", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"}

// ServeHTTP implements http.Handler.
func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Also if the request is refused: then net/http reads the rest of its body. A recorder of tests has no deadlines.
	rc, limit := http.NewResponseController(w), time.Now().Add(stallTime)
	_, _ = rc.SetReadDeadline(limit), rc.SetWriteDeadline(limit)
	for _, name := range singular {
		if len(r.Header.Values(name)) > 1 {
			refuse(w, http.StatusBadRequest, mcp.CodeHeaderMismatch, "the header "+name+" is there twice")
			return
		}
	}
	if origin := r.Header.Get("Origin"); r.Host != b.address || origin != "" && origin != "http://"+b.address {
		refuse(w, http.StatusForbidden, jsonrpc.CodeInvalidRequest, "foreign Origin or Host")
		return
	}
	id, ok := strings.CutPrefix(r.URL.EscapedPath(), routePrefix)
	offer := b.find(id)
	if !ok || offer == nil {
		refuse(w, http.StatusNotFound, int64(outerNoServer), "no such MCP server")
		return
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(token), []byte(b.token(id))) == 0 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, jsonrpc.CodeInvalidRequest, "wrong token")
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, jsonrpc.CodeInvalidRequest, "expected POST")
		return
	}
	b.conns.known(r.Context())
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_, long := errors.AsType[*http.MaxBytesError](err)
	switch {
	case long:
		refuse(w, http.StatusRequestEntityTooLarge, int64(outerLimit), err.Error())
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the body is incomplete: "+err.Error())
		return
	case !json.Valid(body):
		refuse(w, http.StatusBadRequest, jsonrpc.CodeParseError, "the body is not JSON")
		return
	case bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")):
		refuse(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "expected one message, not a batch")
		return
	}
	_ = rc.SetReadDeadline(time.Time{})
	c, done, refused := offer.begin(r.Context(), r) // only now: a slow body must not take a place
	if refused != nil {
		status := http.StatusTooManyRequests
		if refused.Code == outerNoServer {
			status = http.StatusNotFound
		}
		refuse(w, status, int64(refused.Code), refused.Message)
		return
	}
	defer done()
	r = r.WithContext(c.within(r.Context()))
	if encoded, ok := strings.CutPrefix(r.Header.Get("Mcp-Name"), "=?base64?"); ok { // which the SDK does not decode
		if name, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(encoded, "?=")); err == nil {
			r.Header.Set("Mcp-Name", string(name))
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	alive := keepAlive(w, keepAliveTime)
	defer alive.stop()
	b.sdk.ServeHTTP(alive, r)
}

// refuse answers a request that does not reach the server.
func refuse(w http.ResponseWriter, status int, code int64, message string) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "error": jsonrpc.Error{Code: code, Message: message}})
	if err != nil {
		panic(err) // it holds a number and texts alone
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone does not need it
}

// keepAliveTime is the time after which a silent response shows that it is alive.
const keepAliveTime = 15 * time.Second

// keptAlive is a response that begins, and continues, with comments while the SDK writes nothing: HTTP clients give up
// on a response that is silent for minutes, and a tool may well ask the user something.
type keptAlive struct {
	w      http.ResponseWriter
	header http.Header // as the SDK sets it

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	sent    bool // the header
	early   bool // the header was sent with a comment
	framed  bool // what is written is not an event, but must become one, because the response is a stream of events
}

func keepAlive(w http.ResponseWriter, every time.Duration) *keptAlive {
	k := &keptAlive{w: w, header: http.Header{}}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(every, func() { k.comment(every) })
	return k
}

func (k *keptAlive) comment(every time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	if !k.sent {
		k.sent, k.early = true, true
		k.w.Header().Set("Content-Type", "text/event-stream")
		k.w.Header().Set("Cache-Control", "no-cache, no-transform")
	}
	k.bound()
	if _, err := io.WriteString(k.w, ": keep-alive\n\n"); err == nil && http.NewResponseController(k.w).Flush() == nil {
		k.timer.Reset(every)
	}
}

// stop ends the comments: the response must not be used afterwards.
func (k *keptAlive) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.timer.Stop()
}

// Header implements http.ResponseWriter.
func (k *keptAlive) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *keptAlive) WriteHeader(status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writeHeader(status)
}

func (k *keptAlive) writeHeader(status int) {
	if k.sent {
		k.framed = k.early
		return
	}
	k.sent = true
	maps.Copy(k.w.Header(), k.header)
	k.w.WriteHeader(status)
}

// Write implements http.ResponseWriter. The SDK writes an event, and a response of JSON, in one piece.
func (k *keptAlive) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.sent {
		k.writeHeader(http.StatusOK)
	}
	k.bound()
	if !k.framed {
		return k.w.Write(text)
	}
	if _, err := k.w.Write([]byte("event: message\ndata: " + string(text) + "\n\n")); err != nil {
		return 0, err
	}
	return len(text), nil
}

// FlushError is called by http.ResponseController.
func (k *keptAlive) FlushError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bound()
	return http.NewResponseController(k.w).Flush()
}

// bound bounds the next write: a client that does not read must not keep its place, and Offer.Close waiting, for ever.
func (k *keptAlive) bound() {
	_ = http.NewResponseController(k.w).SetWriteDeadline(time.Now().Add(stallTime)) // a recorder of tests has none
}
