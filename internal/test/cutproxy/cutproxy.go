// Package cutproxy is a TCP proxy whose connections a test cuts, as a network does that fails.
package cutproxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// A Proxy passes connections to one server.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond        // held or closed
	conns  map[net.Conn]bool // of both sides
	held   bool
	closed bool
	limit  int
	times  int
	cuts   int
}

// New starts a proxy on a free port of 127.0.0.1, for the server at target, which is HOST:PORT.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cutproxy: %w", err)
	}
	p := &Proxy{target: target, listener: l, conns: map[net.Conn]bool{}}
	p.change = sync.NewCond(&p.mu)
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			p.running.Go(func() { p.pass(client) })
		}
	})
	return p, nil
}

// Addr is the HOST:PORT at which the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Limit cuts connections when the server has sent more than bytes on one of them, and no more than times of them.
func (p *Proxy) Limit(bytes, times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.times = bytes, times
}

// Cuts returns how many connections Limit has cut.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Hold keeps back what both sides send, without an end of a connection, until it is called again.
func (p *Proxy) Hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	p.change.Broadcast()
}

// Cut resets every connection, on both sides. New ones can be opened.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

// reset closes a socket so that the peer gets a reset.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0) // else it is closed in the usual way
	_ = c.Close()                     // what it was in the middle of fails
}

// Close ends the proxy and its connections, and waits for its goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.change.Broadcast()
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.running.Wait()
	return err
}

// add registers a socket, unless Close has begun.
func (p *Proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = true
	}
	return !p.closed
}

func (p *Proxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close() // it may be closed already
}

// pass passes both directions of a connection, until one of them breaks.
func (p *Proxy) pass(client net.Conn) {
	defer p.remove(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	defer p.remove(server)
	if !p.add(client) || !p.add(server) {
		return
	}
	var up sync.WaitGroup
	defer up.Wait()
	up.Go(func() {
		_, err := io.Copy(holding{p, server}, client)
		if err != nil || server.(*net.TCPConn).CloseWrite() != nil {
			reset(server)
		}
	})
	if _, err := io.Copy(&limited{p: p, w: holding{p, client}}, server); err != nil {
		reset(server)
		reset(client)
		return
	}
	_ = client.Close() // the server has ended the connection
}

// holding is one direction of a connection.
type holding struct {
	p *Proxy
	io.Writer
}

func (h holding) Write(b []byte) (int, error) {
	h.p.mu.Lock()
	for h.p.held && !h.p.closed {
		h.p.change.Wait()
	}
	h.p.mu.Unlock()
	return h.Writer.Write(b)
}

// limited is the way to a client.
type limited struct {
	p *Proxy
	w io.Writer
	n int // bytes that have passed
}

var errCut = errors.New("cutproxy: cut")

func (l *limited) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	cut := l.p.times > 0 && l.n+len(b) > l.p.limit
	if cut {
		l.p.times--
		l.p.cuts++
		b = b[:max(0, l.p.limit-l.n)]
	}
	l.p.mu.Unlock()
	n, err := l.w.Write(b)
	l.n += n
	if cut && err == nil {
		err = errCut
	}
	return n, err
}
