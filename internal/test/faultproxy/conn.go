package faultproxy

import (
	"net"
	"sync"
)

// wrapListener wraps the sockets that it accepts.
type wrapListener struct {
	net.Listener
	proxy *Proxy
}

func (l *wrapListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.proxy.wrap(c), nil
}

// conn is a socket of the proxy, of either side.
type conn struct {
	net.Conn
	proxy  *Proxy
	closed chan struct{}
	close  func() error
}

func (p *Proxy) wrap(inner net.Conn) *conn {
	c := &conn{Conn: inner, proxy: p, closed: make(chan struct{})}
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
		return inner.Close()
	})
	p.mu.Lock()
	p.conns[c] = true
	p.mu.Unlock()
	if p.ctx.Err() != nil {
		c.reset() // net/http continues dialing for a request that has ended
	}
	return c
}

// Read reads, and hands over what it has read when the proxy is not frozen.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wait()
	return n, err
}

// Write writes when the proxy is not frozen.
func (c *conn) Write(b []byte) (int, error) {
	c.wait()
	return c.Conn.Write(b)
}

func (c *conn) wait() {
	thawed := c.proxy.thawed()
	select {
	case <-thawed:
		return
	default:
	}
	c.proxy.held.Add(1)
	defer c.proxy.held.Add(-1)
	select {
	case <-thawed:
	case <-c.closed:
	}
}

func (c *conn) Close() error { return c.close() }

// reset closes the socket so that the peer gets a reset.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is closed in the usual way
	}
	_ = c.close() // what it was in the middle of fails
}
