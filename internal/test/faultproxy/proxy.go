package faultproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxBody is how long the body of a request may be: longer ones are a mistake of the test.
const maxBody = 256 << 20

// A Proxy passes requests to one server. Its rules may be changed at any time.
type Proxy struct {
	target string
	server *http.Server
	http1  *http.Transport
	http2  *http.Transport
	served chan error
	ctx    context.Context
	stop   context.CancelFunc

	mu       sync.Mutex
	addr     string
	listener net.Listener // nil while connections are refused
	rules    []*Rule
	requests []Request
	conns    map[*conn]bool
	thaw     chan struct{} // closed unless frozen
	passing  int           // requests that are being served
	closed   bool          // Close waits for the requests
	running  sync.WaitGroup
	held     atomic.Int32 // how many reads, writes and responses wait
	dialed   atomic.Int32 // how many sockets to the server were opened
}

// Request is a request that came, with its whole body.
type Request struct {
	*http.Request
	Body []byte
	// RPC is the method of the JSON-RPC message in the body, or "".
	RPC string
	// Number is the number of earlier requests.
	Number int
}

// New starts a proxy on a free port of 127.0.0.1, for the server at target, which is HOST:PORT.
func New(target string, rules ...*Rule) (*Proxy, error) {
	p := &Proxy{target: target, served: make(chan error, 1), conns: map[*conn]bool{}, rules: rules, thaw: make(chan struct{})}
	close(p.thaw)
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.http1, p.http2 = p.transport(false), p.transport(true)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), Protocols: protocols, ReadHeaderTimeout: time.Minute}
	if err := p.Accept(); err != nil {
		return nil, err
	}
	return p, nil
}

// transport makes the way to the server. Each has sockets that Cut and Freeze reach.
func (p *Proxy) transport(http2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	dialer := &net.Dialer{}
	return &http.Transport{
		Protocols:           protocols,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, p.target)
			if err != nil {
				return nil, err
			}
			p.dialed.Add(1)
			return p.wrap(c), nil
		},
	}
}

// Addr is the HOST:PORT at which the proxy listens, which does not change.
func (p *Proxy) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr
}

// Add appends rules. The first rule that matches a request, and is not used up, applies.
func (p *Proxy) Add(rules ...*Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rules...)
}

// Clear removes all rules. Their effects on current requests continue.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Requests returns the requests so far, in order.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// Passing returns the number of requests that are being served.
func (p *Proxy) Passing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passing
}

// Dialed returns the number of sockets that the proxy has opened to the server.
func (p *Proxy) Dialed() int32 { return p.dialed.Load() }

// Conns returns the number of open sockets, on both sides.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Cut resets every socket, on both sides, as a network that changes does. New ones can be opened.
func (p *Proxy) Cut() {
	p.mu.Lock()
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
}

// Freeze lets nothing pass any more, in either direction, on every socket, without closing one: they are half-open. New
// ones are accepted, and get no answer.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thaw:
		p.thaw = make(chan struct{})
	default:
	}
}

// Thaw ends Freeze, and lets the held bytes pass.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thaw:
	default:
		close(p.thaw)
	}
}

func (p *Proxy) thawed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thaw
}

// Refuse closes the listener: new connections are refused, and open ones continue.
func (p *Proxy) Refuse() error {
	p.mu.Lock()
	listener := p.listener
	p.listener = nil
	p.mu.Unlock()
	if listener == nil {
		return nil
	}
	err := listener.Close()
	<-p.served // it says only that the listener was closed
	return err
}

// Accept ends Refuse: the proxy listens at the same address again.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	addr := p.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("faultproxy: %w", err)
	}
	p.listener, p.addr = listener, listener.Addr().String()
	go func() { p.served <- p.server.Serve(&wrapListener{listener, p}) }()
	return nil
}

// Close ends the proxy and all its connections, and waits for its goroutines.
func (p *Proxy) Close() error {
	p.stop()
	p.Thaw()
	err := p.Refuse()
	p.Cut()
	if e := p.server.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
		err = errors.Join(err, e)
	}
	p.http1.CloseIdleConnections()
	p.http2.CloseIdleConnections()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
	p.Cut()
	return err
}

// enter counts a request, unless Close has begun: the server may still start handlers then, and Add must not run beside
// Wait.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	return true
}

// serve passes on one request as the first rule that matches says.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.running.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	x := &exchange{proxy: p, w: w, req: Request{Request: r, Body: body, RPC: rpcMethod(body)}, limit: -1}
	p.mu.Lock()
	x.req.Number = len(p.requests)
	p.requests = append(p.requests, x.req)
	p.passing++
	do := Pass
	for _, rule := range p.rules {
		if rule.takes(x.req) {
			do = rule.Do
			break
		}
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.passing--
	}()
	do(x)
}

// rpcMethod is the method of a message.
func rpcMethod(body []byte) string {
	var m struct{ Method string }
	if json.Unmarshal(body, &m) != nil {
		return "" // no message
	}
	return m.Method
}
