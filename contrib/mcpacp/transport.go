package mcpacp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
)

// link is the transport to one server. It keeps the connection, because the MCP SDK does not always close it when it
// returns an error.
type link struct {
	transport mcp.Transport
	conn      mcp.Connection // after Connect
	// abort ends the connection at once: reads and writes that wait fail.
	abort func()
	// polite says that the connection has a goodbye to send before it is aborted.
	polite bool
	// ended is the reason why the connection has ended, if it knows a better one than the MCP SDK, or nil.
	ended func() error
}

func (l *link) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := l.transport.Connect(ctx)
	l.conn = conn
	return conn, err
}

// dial returns the link to a server. Nothing is started before it connects.
func (v *server) dial() (*link, error) {
	switch config := v.config.Variant.(type) {
	case *acp.MCPServerStdio:
		cmd := exec.Command(config.Command, config.Args...)
		cmd.Dir = v.set.session.Cwd()
		cmd.Env = agentkit.Environ()
		for _, e := range config.Env {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
		process := rpc.Command(cmd)
		process.MaxMessage, process.StderrTail = v.set.opts.MaxMessage, stderrTail
		process.StopTime, process.KillTime = stopTime, stopTime
		conn := newStreamConn(v)
		t := transportFunc(func(ctx context.Context) (mcp.Connection, error) { return conn, conn.open(ctx, process) })
		return &link{transport: t, abort: func() { _ = conn.Close() }, ended: conn.reason}, nil
	case *acp.MCPServerHTTP:
		l, client, err := v.httpLink(config.URL, config.Headers)
		l.transport = &mcp.StreamableClientTransport{Endpoint: config.URL, HTTPClient: client,
			MaxEventSize: v.set.opts.MaxMessage}
		l.polite = true
		return l, err
	case *acp.MCPServerSSE:
		l, client, err := v.httpLink(config.URL, config.Headers)
		l.transport = &mcp.SSEClientTransport{Endpoint: config.URL, HTTPClient: client,
			MaxEventSize: v.set.opts.MaxMessage}
		return l, err
	case *acp.MCPServerACP:
		conn := newACPConn(v.set.session.Conn(), config.ServerID)
		conn.to = v
		t := transportFunc(func(context.Context) (mcp.Connection, error) { return conn, nil })
		return &link{transport: t, abort: func() { _ = conn.Close() }, ended: conn.reason}, nil
	default:
		return nil, errors.New("its type is not known")
	}
}

type transportFunc func(context.Context) (mcp.Connection, error)

func (f transportFunc) Connect(ctx context.Context) (mcp.Connection, error) { return f(ctx) }

const (
	stopTime   = 500 * time.Millisecond // for a process to end with its input, and again when it is asked to
	stderrTail = 1 << 10
)

// streamConn is a connection to a process. That of the MCP SDK fails on a banner, and leaves children of the process
// running.
type streamConn struct {
	server *server
	stream rpc.Stream // nil until it is open
	out    chan []byte
	closed chan struct{}
	once   sync.Once
	ends   sync.WaitGroup // the writer
	pace   pace           // the reader's
	batch  *json.Decoder  // of messages that are not read yet, or nil
	writes atomic.Int32   // that wait

	mu  sync.Mutex
	err error
}

func newStreamConn(v *server) *streamConn {
	return &streamConn{server: v, out: make(chan []byte), closed: make(chan struct{})}
}

// open opens the stream, unless Close was called before.
func (c *streamConn) open(ctx context.Context, transport rpc.Transport) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return rpc.ErrClosed
	default:
	}
	stream, err := transport.Connect(ctx)
	if err != nil {
		return err
	}
	c.stream = stream
	c.ends.Go(c.write)
	return nil
}

// write writes the messages in a goroutine of its own, because Write must return when its context ends.
func (c *streamConn) write() {
	for {
		select {
		case message := <-c.out:
			if err := c.stream.Write(message); err != nil {
				c.fail(err)
				go c.Close() // a process that no longer reads may still write
				return
			}
		case <-c.closed:
			return
		}
	}
}

// maxWrites is how many messages may wait to be written. A process that reads nothing could have the MCP SDK answer any
// number of its requests.
const maxWrites = 256

func (c *streamConn) Write(ctx context.Context, m jsonrpc.Message) error {
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	defer c.writes.Add(-1)
	if c.writes.Add(1) > maxWrites {
		go c.Close()
		return c.fail(errors.New("it does not read its input"))
	}
	select {
	case c.out <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return rpc.ErrClosed
	}
}

func (c *streamConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := c.next()
		if err != nil {
			return nil, c.fail(err)
		}
		c.pace.wait(messageCost, c.closed)
		if len(line) == 0 || line[0] != '{' { // a banner, or a log
			continue
		}
		m, err := jsonrpc.DecodeMessage(c.server.repair(line))
		if err == nil {
			return m, nil
		}
		if isStray(line) {
			c.server.ignore(string(line))
			continue
		}
		var log struct {
			JSONRPC, Result, Error json.RawMessage
			ID                     any
		}
		if json.Unmarshal(line, &log) == nil && log.JSONRPC == nil {
			if id, err := jsonrpc.MakeID(log.ID); err == nil && id.IsValid() && (log.Result != nil || log.Error != nil) {
				return &jsonrpc.Response{ID: id, Error: errNoVersion}, nil // or the call would wait
			}
			continue
		}
		return nil, c.fail(fmt.Errorf("it sent an invalid message: %.100q", line))
	}
}

var errNoVersion = errors.New(`its answer has no member "jsonrpc"`)

// next returns the next line, or the next message of a line that is a batch: servers of MCP 2025-03-26 may send them.
func (c *streamConn) next() ([]byte, error) {
	if c.batch == nil {
		line, err := c.stream.Read()
		if line = bytes.TrimSpace(line); err != nil || !bytes.HasPrefix(line, []byte("[")) || !json.Valid(line) {
			return slices.Clone(line), err
		}
		c.batch = json.NewDecoder(bytes.NewReader(slices.Clone(line)))
		if _, err := c.batch.Token(); err != nil {
			return nil, err
		}
	}
	if !c.batch.More() {
		c.batch = nil
		return nil, nil
	}
	var message json.RawMessage
	err := c.batch.Decode(&message)
	return message, err
}

// fail keeps the first reason why the connection has ended.
func (c *streamConn) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed: // errors after Close have no meaning
	default:
		if c.err == nil {
			c.err = err
		}
	}
	return err
}

func (c *streamConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *streamConn) Close() (err error) {
	c.once.Do(func() {
		c.mu.Lock()
		close(c.closed)
		stream := c.stream
		c.mu.Unlock()
		if stream != nil {
			err = stream.Close()
			c.ends.Wait()
		}
	})
	return err
}

func (c *streamConn) SessionID() string { return "" }

// pace limits how fast a server is read, because the MCP SDK queues messages without a bound. It lets a second's worth
// of messages through at once.
type pace struct{ next time.Time }

// What is read costs time, so that there are no more than a thousand messages a second: an event has two lines at
// least.
const (
	messageCost = time.Millisecond
	lineCost    = messageCost / 2 // of a stream of events
	// to open such a stream again: the server says how long the MCP SDK waits before it does
	streamCost = 100 * time.Millisecond
)

func (p *pace) wait(cost time.Duration, stop <-chan struct{}) {
	const burst = time.Second
	now := time.Now()
	if earliest := now.Add(-burst); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(cost)
	if p.next.Before(now) {
		return
	}
	timer := time.NewTimer(p.next.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}

// httpLink returns a link without a transport, and its client, whose requests end with abort, have the declared
// headers, and whose responses are bounded. ended is why a request was not sent to another origin, which the MCP SDK
// does not say in each case.
func (v *server) httpLink(endpoint string, headers []acp.HTTPHeader) (*link, *http.Client, error) {
	target, err := url.Parse(endpoint)
	base := &http.Transport{Proxy: http.ProxyFromEnvironment}
	ctx, cancel := context.WithCancel(context.Background())
	t := &roundTripper{server: v, base: base, ctx: ctx, target: target, headers: http.Header{},
		max: int64(v.set.opts.MaxMessage)}
	for _, h := range headers {
		t.headers.Add(h.Name, h.Value)
	}
	abort := func() {
		cancel()
		base.CloseIdleConnections()
	}
	foreign := func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.foreign
	}
	return &link{abort: abort, ended: foreign}, &http.Client{Transport: t}, err
}

type roundTripper struct {
	server  *server
	base    http.RoundTripper
	ctx     context.Context // of all requests: the MCP SDK makes some with a context that does not end
	target  *url.URL
	headers http.Header
	max     int64

	mu      sync.Mutex
	pace    pace // of streams that are opened
	foreign error
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() {
		stop()
		cancel()
	}
	res, id, err := t.send(ctx, req)
	if err != nil {
		end()
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	res.Body = &body{
		server: t.server, ReadCloser: res.Body, id: id, end: end, stop: ctx.Done(), left: t.max, max: t.max,
		events: kind == "text/event-stream", json: kind == "application/json",
	}
	return res, nil
}

// send sends a request, and again if the server has refused it for the moment. id is that of the call in it, if it is
// one.
func (t *roundTripper) send(ctx context.Context, req *http.Request) (_ *http.Response, id jsonrpc.ID, _ error) {
	// by a redirect, or an event of SSE
	if req.URL.Scheme != t.target.Scheme || !strings.EqualFold(req.URL.Host, t.target.Host) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.foreign = fmt.Errorf("it leads to another origin than the declared one, %s (%s)", req.URL.Host, req.URL.Scheme)
		return nil, id, t.foreign
	}
	var message []byte
	if req.Body != nil {
		var err error
		if message, err = io.ReadAll(req.Body); err != nil {
			return nil, id, errors.Join(err, req.Body.Close())
		}
		if err := req.Body.Close(); err != nil {
			return nil, id, err
		}
		if m, err := jsonrpc.DecodeMessage(message); err != nil {
			return nil, id, err
		} else if call, ok := m.(*jsonrpc.Request); ok {
			id = call.ID
		}
	}
	for tries := range maxTries {
		if req.Method == http.MethodGet {
			t.mu.Lock()
			t.pace.wait(streamCost, ctx.Done())
			t.mu.Unlock()
		}
		again := req.Clone(ctx)
		if req.Body != nil {
			again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
			again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(message)), int64(len(message))
		}
		for name, values := range t.headers {
			if again.Header[name] == nil {
				again.Header[name] = values
			}
		}
		posted, _ := ctx.Value(postedKey{}).(*atomic.Bool)
		if !id.IsValid() { // the rest of its answer is asked for, or it is cancelled
			posted = nil
		}
		if posted != nil {
			posted.Store(true)
		}
		res, err := t.base.RoundTrip(again)
		pause, reason := t.refusal(res, err, again)
		if posted != nil && errors.Is(reason, errNotRun) { // the connection may end before it is sent again
			posted.Store(false)
		}
		pause <<= tries
		final := pause == 0 || pause > maxPause || tries == maxTries-1 || req.Method == http.MethodDelete
		if final && req.Method != http.MethodPost { // a server need not have a stream of events
			reason = err
		}
		switch {
		case final && err == nil && req.Method == http.MethodPost &&
			!id.IsValid(): // nothing waits for an answer, whatever it says
			if res.StatusCode >= 300 {
				t.server.ignore(res.Status)
			}
			err = res.Body.Close()
			res.StatusCode, res.Status, res.Body, res.ContentLength = http.StatusAccepted, "202 Accepted", http.NoBody, 0
			res.Header.Del("Content-Type")
			return res, id, err
		case reason == nil:
			return res, id, nil
		}
		if err == nil {
			_ = res.Body.Close() // reason is why
		}
		if final {
			return nil, id, reason
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, id, reason
		}
	}
	panic("unreachable")
}

// maxTries is how often a request is sent that is refused for the moment, and maxPause the longest pause before it is
// sent again.
const (
	maxTries = 4
	maxPause = 5 * time.Second
)

// errNotRun says that the server has certainly not carried out a request, and errForgotten that it no longer knows the
// session.
var (
	errNotRun    = errors.New("it did not accept the request")
	errForgotten = fmt.Errorf("%w: it does not know the session any more", errNotRun)
)

// forgotText matches how servers say so where they do not answer with status 404.
var forgotText = regexp.MustCompile(`(?i)\b(session|server)\b[\w\s-]{0,20}\b(not found|not exist|not initiali[sz]ed|unknown|expired|invalid|terminated)|(no|unknown|invalid|expired|missing) (valid )?session`)

// codeForgotten is the error code with which the MCP SDKs say so.
const codeForgotten = -32001

// forgotten reports whether a request failed because the server no longer knows the session.
func forgotten(err error) bool {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	return errors.Is(err, errForgotten) || ok && answer.Code == codeForgotten && forgotText.MatchString(answer.Message)
}

// refusal returns why a server has not carried out a request, or why that is not known, or nil. If the request may be
// sent again, pause is positive.
func (t *roundTripper) refusal(res *http.Response, err error, req *http.Request) (pause time.Duration, reason error) {
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
		if t.server.connected() { // it may be starting again
			pause = time.Second
		}
		return pause, fmt.Errorf("%w: %w", errNotRun, err)
	} else if err != nil {
		return 0, err
	}
	_, overSSE := t.server.config.Variant.(*acp.MCPServerSSE)
	session := overSSE || req.Header.Get("Mcp-Session-Id") != ""
	reason = fmt.Errorf("%w: %s", errNotRun, res.Status)
	seconds, wrong := strconv.Atoi(res.Header.Get("Retry-After"))
	after := max(time.Duration(min(seconds, 60))*time.Second, time.Second)
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized: // perhaps a token was just replaced
		return 100 * time.Millisecond, reason
	case status == http.StatusForbidden:
		return 0, reason
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable &&
		wrong == nil: // otherwise it may be of a gateway
		return after, reason
	case status == http.StatusNotFound && session:
		return 0, errForgotten
	case status == http.StatusBadRequest && session:
		text, err := io.ReadAll(io.LimitReader(res.Body, t.max))
		if err != nil {
			return 0, err
		}
		if forgotText.Match(text) {
			return 0, errForgotten
		}
		res.Body = lineCloser{bytes.NewReader(text), res.Body}
	}
	return 0, nil
}

// body is the body of a response, whose messages are repaired. A stream of events is paced, because each event is
// bounded by the MCP SDK; others are bounded.
type body struct {
	server *server
	io.ReadCloser
	id           jsonrpc.ID // of the call that it answers, if any
	end          func()
	stop         <-chan struct{}
	left, max    int64
	events, json bool
	pace         pace
	lines        *bufio.Reader // of events
	within       bool          // the last line was data of an event
	rest         []byte        // repaired, and not read yet
	whole        bool          // of JSON: it is in rest
}

func (b *body) Read(p []byte) (int, error) {
	if len(b.rest) == 0 && (b.events || b.json && !b.whole) {
		if err := b.fill(); err != nil && len(b.rest) == 0 {
			return 0, err
		}
	}
	if len(b.rest) > 0 {
		n := copy(p, b.rest)
		b.rest = b.rest[n:]
		return n, nil
	}
	if b.whole {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.tooLong()
	}
	return n, err
}

func (b *body) tooLong() error { return fmt.Errorf("a message is longer than %d bytes", b.max) }

// fill reads the next line of events, or the whole of JSON.
func (b *body) fill() error {
	if !b.events {
		text, err := io.ReadAll(io.LimitReader(b.ReadCloser, b.max+1))
		if int64(len(text)) > b.max {
			return b.tooLong()
		}
		b.rest, b.whole = b.server.received(b.id, text, false), true
		return err
	}
	if b.lines == nil {
		b.lines = bufio.NewReader(b.ReadCloser)
	}
	var line []byte
	for {
		part, err := b.lines.ReadSlice('\n')
		line = append(line, part...)
		if int64(len(line)) > b.max { // the MCP SDK refuses it
			b.rest, b.events, b.ReadCloser = line, false, lineCloser{b.lines, b.ReadCloser}
			b.left = math.MaxInt64
			return err
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if len(part) > 0 && part[len(part)-1] == '\n' {
			b.pace.wait(lineCost, b.stop)
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			text := bytes.TrimSpace(data)
			if json.Valid(text) && !b.within { // otherwise it is a part of a message
				if fixed := b.server.received(b.id, text, true); !bytes.Equal(fixed, text) {
					line = append(append([]byte("data: "), fixed...), '\n')
				}
			}
			b.within = true
		} else {
			b.within = b.within && len(bytes.TrimSpace(line)) > 0
		}
		b.rest = line
		return err
	}
}

// lineCloser reads the rest of a body.
type lineCloser struct {
	io.Reader
	io.Closer
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
