package faultproxy

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// exchange is one request and what comes back.
type exchange struct {
	proxy *Proxy
	w     http.ResponseWriter
	req   Request

	// What happens to the response, or to what the server sends after an upgrade: then, when limit bytes have passed
	// (-1: never), or nothing passes for the time idle, or when is closed.
	limit  int
	idle   time.Duration
	when   <-chan struct{}
	then   ending
	buffer <-chan struct{} // when it is closed the response passes; nil: at once
}

// ending is what becomes of a response.
type ending int

const (
	breaks ending = iota // without an end
	ends                 // as if it were whole
	stalls               // nothing passes, and the connection stays
)

// abort breaks the connection to the client; in HTTP/2 its stream.
func (x *exchange) abort() { panic(http.ErrAbortHandler) }

// wait waits for an event, and breaks the connection when the client or the proxy ends before.
func (x *exchange) wait(event <-chan struct{}) {
	x.proxy.held.Add(1)
	defer x.proxy.held.Add(-1)
	select {
	case <-event:
	case <-x.req.Context().Done():
		x.abort()
	case <-x.proxy.ctx.Done():
		x.abort()
	}
}

// answer answers in place of the server.
func (x *exchange) answer(status int, header http.Header, text string) {
	maps.Copy(x.w.Header(), header)
	x.w.WriteHeader(status)
	_, _ = io.WriteString(x.w, text) // a client that is gone
}

// send sends the request to the server. The caller closes the response's body.
func (x *exchange) send(ctx context.Context) *http.Response {
	r := x.req.Clone(ctx)
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host = "http", x.proxy.target
	r.Body, r.ContentLength = http.NoBody, 0
	if len(x.req.Body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(x.req.Body)), int64(len(x.req.Body))
	}
	way := x.proxy.http1
	if r.ProtoMajor == 2 {
		way = x.proxy.http2
	}
	res, err := way.RoundTrip(r)
	if err != nil {
		x.abort() // the server is not there, or has broken it
	}
	return res
}

// pass sends the request, and passes on what comes back.
func (x *exchange) pass() {
	ctx, cancel := context.WithCancel(x.req.Context())
	defer cancel()
	defer context.AfterFunc(x.proxy.ctx, cancel)()
	res := x.send(ctx)
	defer res.Body.Close()
	if x.buffer != nil {
		x.wait(x.buffer)
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		x.tunnel(ctx, cancel, res)
		return
	}
	maps.Copy(x.w.Header(), res.Header)
	x.w.WriteHeader(res.StatusCode)
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		x.abort()
	}
	out := x.bounded(ctx, cancel, flusher{x.w})
	defer out.stop()
	if _, err := io.Copy(out, res.Body); err != nil && !(out.tripped.Load() && x.then == ends) {
		x.abort()
	}
}

// tunnel passes on both directions of an upgraded connection, until one of them ends.
func (x *exchange) tunnel(ctx context.Context, cancel context.CancelFunc, res *http.Response) {
	server, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		x.abort()
	}
	client, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.abort()
	}
	out := x.bounded(ctx, cancel, client)
	defer out.stop()
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close() // both ends break, whichever was first
		if c, ok := client.(*conn); ok && out.tripped.Load() && x.then == breaks {
			c.reset()
		}
		_ = client.Close()
	})
	defer stop()
	var up sync.WaitGroup
	defer up.Wait()
	defer cancel()
	res.Body = nil
	if res.Write(client) != nil {
		return // the client is gone
	}
	up.Go(func() {
		defer cancel()
		_, _ = io.Copy(touching{out, server}, buffered) // its end is the end of the tunnel
	})
	_, _ = io.Copy(out, server) // likewise
}

// bounded is a way to the client that ends as the exchange says.
type bounded struct {
	*exchange
	ctx     context.Context
	cancel  context.CancelFunc
	w       io.Writer
	tripped atomic.Bool
	timer   *time.Timer // nil: no bound in time
	stopped chan struct{}
	waiting sync.WaitGroup
}

func (x *exchange) bounded(ctx context.Context, cancel context.CancelFunc, w io.Writer) *bounded {
	b := &bounded{exchange: x, ctx: ctx, cancel: cancel, w: w, stopped: make(chan struct{})}
	if x.idle > 0 {
		b.timer = time.AfterFunc(x.idle, b.trip)
	}
	if x.limit == 0 {
		b.trip()
	}
	select {
	case <-x.when:
		b.trip()
	default:
		if x.when != nil {
			b.waiting.Go(func() {
				select {
				case <-x.when:
					b.trip()
				case <-b.stopped:
				}
			})
		}
	}
	return b
}

// stop releases what waits to end it.
func (b *bounded) stop() {
	close(b.stopped)
	b.waiting.Wait()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// trip ends it.
func (b *bounded) trip() {
	b.tripped.Store(true)
	if b.then != stalls {
		b.cancel()
	}
}

func (b *bounded) Write(text []byte) (n int, err error) {
	b.touch()
	if !b.tripped.Load() {
		all := b.limit < 0 || len(text) < b.limit
		pass := text
		if !all {
			pass = text[:b.limit]
		}
		n, err = b.w.Write(pass)
		if b.limit > 0 {
			b.limit -= n
		}
		if all || err != nil {
			return n, err
		}
		b.trip()
	}
	if b.then == stalls {
		b.proxy.held.Add(1)
		defer b.proxy.held.Add(-1)
		<-b.ctx.Done()
	}
	return n, io.ErrShortWrite
}

// touch says that something passes.
func (b *bounded) touch() {
	if b.timer != nil && b.timer.Stop() {
		b.timer.Reset(b.idle)
	}
}

// touching tells a bounded of what passes the other way.
type touching struct {
	*bounded
	w io.Writer
}

func (t touching) Write(b []byte) (int, error) {
	t.touch()
	return t.w.Write(b)
}

// flusher flushes each write, so that events pass one by one.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}
