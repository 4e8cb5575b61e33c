package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// upgrade opens a connection over WebSocket.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, principal string) error {
	c, err := s.add(r, principal, WebSocket)
	if err != nil {
		return err
	}
	l := &socketLink{c: c, decode: codec.NewDecoder(nil), sent: codec.NewDecoder(nil), requests: map[wire.ID]bool{},
		ended: make(chan struct{})}
	accept := &websocket.AcceptOptions{InsecureSkipVerify: true} // admit has checked the origin
	for _, name := range offeredProtocols(r) {
		if strings.HasPrefix(strings.ToLower(name), "acp") || containsFold(s.opts.Subprotocols, name) {
			accept.Subprotocols = append(accept.Subprotocols, name)
		}
	}
	if s.opts.Compression {
		accept.CompressionMode = websocket.CompressionContextTakeover
	}
	// The library already sends the header of w, but not for a connection that it refuses.
	hijacker := &hijacker{ResponseWriter: w, stall: s.opts.StallTimeout}
	w.Header().Set(HeaderConnection, c.peer.ConnectionID)
	ws, err := websocket.Accept(hijacker, r, accept)
	if err != nil {
		c.remove()
		s.opts.Logger.Debug("acp: no WebSocket", "error", err, "remote", r.RemoteAddr)
		return nil // a response was sent
	}
	l.socket = newSocket(ws, hijacker.frames, socketOptions{
		maxMessage:   s.opts.MaxMessage,
		keepAlive:    s.opts.KeepAlive,
		closeTimeout: s.opts.CloseTimeout,
		log:          c.log,
	})
	c.register(l)
	go func() {
		defer c.remove()
		l.run()
	}()
	return nil
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return strings.EqualFold(item, name) })
}

// hijacker gives the TCP connection to package websocket, with gathered frames.
type hijacker struct {
	http.ResponseWriter
	stall  time.Duration
	frames *frames
}

// Hijack implements http.Hijacker, through middleware.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.frames = newFrames(conn, h.stall, 0)
	rw.Writer.Reset(h.frames)
	return &gathered{conn, h.frames}, rw, nil
}

// gathered is a TCP connection that is written through frames.
type gathered struct {
	net.Conn
	frames *frames
}

func (g *gathered) Read(p []byte) (int, error)  { return g.frames.Read(p) }
func (g *gathered) Write(p []byte) (int, error) { return g.frames.Write(p) }
func (g *gathered) Close() error                { return g.frames.Close() }

// socketLink is the stream of an agent whose client uses WebSocket.
type socketLink struct {
	c *connection
	*socket
	decode *codec.Decoder // owned by the reader
	sent   *codec.Decoder // owned by the writer
	first  []byte         // initialize, until the agent has read it; owned by the reader

	mu       sync.Mutex
	initID   wire.ID
	phase    phase
	answered chan struct{}    // closed when phase is no longer initializing
	tooLate  *time.Timer      // fires when the answer to initialize is late
	requests map[wire.ID]bool // the client's requests in progress
	inEnd    error            // why the agent can read no more
	lost     error            // why there is no longer a WebSocket
	dropped  int              // messages that the agent has sent since then
	ended    chan struct{}    // closed when inEnd is set
	finished bool
}

// phase determines which messages a client may send.
type phase int

const (
	uninitialized phase = iota // only initialize
	initializing               // any message, but it waits
	initialized
)

// run serves the connection, from the client's first message on.
func (l *socketLink) run() {
	timer := time.AfterFunc(l.c.server.opts.InitializeTimeout, func() {
		l.closeWith(websocket.StatusPolicyViolation, "no initialize")
	})
	first, err := l.readLine(nil)
	timer.Stop()
	if err != nil {
		l.c.log.Debug("acp: a WebSocket ended before its first message", "error", err)
		l.closeWith(websocket.StatusNormalClosure, "")
		return
	}
	// It refers to the socket's buffer, but the next read comes after the agent's answer to it.
	l.first = first
	l.c.run()
}

func (l *socketLink) Read() ([]byte, error) { return l.ReadLine(nil) }

func (l *socketLink) ReadLine(beforeWait func()) ([]byte, error) {
	if line := l.first; line != nil {
		l.first = nil
		return line, nil
	}
	if err := l.awaitAnswer(beforeWait); err != nil {
		return nil, err
	}
	line, err := l.readLine(beforeWait)
	if err != nil {
		return nil, l.readEnd(err)
	}
	return line, nil
}

// awaitAnswer waits until initialize has been answered; later messages wait for that.
func (l *socketLink) awaitAnswer(beforeWait func()) error {
	l.mu.Lock()
	answered := l.answered
	waiting := l.phase == initializing
	l.mu.Unlock()
	if !waiting {
		return nil
	}
	if beforeWait != nil {
		beforeWait()
	}
	select {
	case <-answered:
		return nil
	case <-l.ended:
		return l.inEnd
	}
}

// readEnd returns the reason for the end of the input, for the agent.
func (l *socketLink) readEnd(err error) error {
	l.mu.Lock()
	if l.inEnd != nil {
		defer l.mu.Unlock()
		return l.inEnd
	}
	l.lost = err
	l.mu.Unlock()
	defer l.c.endsSoon()
	grace := l.c.server.opts.Grace
	if closed, ok := errors.AsType[*CloseError](err); grace <= 0 || ok && closed.wanted() {
		return err
	}
	l.c.log.Info("acp: a WebSocket was lost; its agent continues to work", "for", grace, "error", err)
	select {
	case <-time.After(grace):
	case <-l.ended:
	case <-l.c.ctx.Done():
	}
	return err
}

// readLine returns the next message that is for the agent.
func (l *socketLink) readLine(beforeWait func()) ([]byte, error) {
	for {
		line, err := l.socket.ReadLine(beforeWait)
		if err != nil {
			return nil, err
		}
		l.c.server.bytesIn.Add(uint64(len(line)))
		pass, err := l.check(line)
		if err != nil {
			return nil, err
		}
		if pass {
			return line, nil
		}
	}
}

// check reports whether a message is for the agent, and answers it if not.
func (l *socketLink) check(line []byte) (pass bool, err error) {
	l.mu.Lock()
	phase := l.phase
	l.mu.Unlock()
	if phase == initialized {
		return l.checkUsual(line)
	}
	m := wire.Parse(l.decode, line)
	switch {
	case m.Kind == wire.KindInvalid:
		return false, l.refuse(m.ID, m.Failure)
	case m.Kind == wire.KindResponse:
		return false, nil
	case m.Kind != wire.KindRequest || string(m.Method) != methodInitialize || m.ID.IsNull():
		l.closeWith(websocket.StatusProtocolError, "the first message is not initialize")
		return false, fmt.Errorf("acp: the first message is %.100q, expected initialize", m.Method)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase, l.initID, l.answered = initializing, m.ID, make(chan struct{})
	l.requests[m.ID] = true
	l.tooLate = time.AfterFunc(l.c.server.opts.InitializeTimeout, func() {
		l.endInput(errInitialize)
		l.closeWith(websocket.StatusInternalError, "the agent did not answer")
	})
	return true, nil
}

// checkUsual is check for initialized connections. The agent itself reports errors.
func (l *socketLink) checkUsual(line []byte) (pass bool, err error) {
	m := wire.Peek(l.decode, line)
	if m.Kind != wire.KindRequest {
		return true, nil
	}
	if string(m.Method) == methodInitialize {
		return false, l.refuse(m.ID, invalid("the connection is initialized already"))
	}
	if m.ID.IsNull() {
		return true, nil
	}
	l.mu.Lock()
	twice, full := l.requests[m.ID], len(l.requests) >= maxRequests
	if !full {
		l.requests[m.ID] = true
	}
	l.mu.Unlock()
	switch {
	case twice:
		return false, l.refuse(m.ID, invalid("a request with this id is in progress"))
	case full:
		return false, l.refuse(m.ID,
			&wire.Error{Code: codeInternal, Message: "Internal error: too many requests in progress"})
	}
	return true, nil
}

// refuse answers messages that are not for the agent.
func (l *socketLink) refuse(id wire.ID, failure *wire.Error) error {
	return l.socket.Write(wire.ErrorLine(id, failure))
}

func (l *socketLink) Write(message []byte) error {
	return l.WriteLines(append(wire.AppendLine(nil, message), '\n'))
}

// WriteLines sends each line as a message. Messages sent while the WebSocket is lost and the agent continues to work
// are dropped.
func (l *socketLink) WriteLines(lines []byte) error {
	messages := l.note(lines)
	err := l.socket.WriteLines(lines)
	if err == nil {
		l.c.server.bytesOut.Add(uint64(len(lines) - messages))
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c.server.opts.Grace <= 0 || l.finished {
		return err
	}
	l.dropped += messages
	return nil
}

// note records which requests are answered, and counts messages.
func (l *socketLink) note(lines []byte) (messages int) {
	for ; len(lines) > 0; messages++ {
		end := bytes.IndexByte(lines, '\n')
		line := lines[:end]
		lines = lines[end+1:]
		m := wire.Peek(l.sent, line)
		if m.Kind != wire.KindResponse {
			continue
		}
		l.mu.Lock()
		delete(l.requests, m.ID)
		if l.phase == initializing && m.ID == l.initID {
			if l.phase = initialized; m.Failure != nil {
				l.phase = uninitialized
			}
			close(l.answered)
			l.tooLate.Stop()
		}
		l.mu.Unlock()
	}
	return messages
}

// endInput implements link: the agent reads the end, and can still write.
func (l *socketLink) endInput(why error) {
	l.mu.Lock()
	if l.inEnd == nil {
		l.inEnd = why
		close(l.ended)
		l.c.endsSoon()
	}
	started := l.phase != uninitialized
	l.mu.Unlock()
	if !started {
		l.closeWith(websocket.StatusGoingAway, "the server is shutting down")
		return
	}
	l.frames.interrupt()
}

// Close ends the connection for the agent.
func (l *socketLink) Close() error {
	l.finish(nil)
	return nil
}

func (l *socketLink) finish(err error) {
	l.mu.Lock()
	if l.finished {
		l.mu.Unlock()
		return
	}
	l.finished = true
	if l.tooLate != nil {
		l.tooLate.Stop()
	}
	lost, dropped := l.lost, l.dropped
	var unanswered []wire.ID
	for id := range l.requests {
		unanswered = append(unanswered, id)
	}
	l.mu.Unlock()
	if dropped > 0 {
		l.c.log.Warn("acp: messages of the agent were dropped, because its WebSocket was lost", "messages", dropped)
	}
	if lost != nil {
		l.closeWith(websocket.StatusNormalClosure, "")
		return
	}
	for _, id := range unanswered {
		if werr := l.refuse(id, agentGone); werr != nil {
			break // the peer is gone
		}
	}
	switch {
	case l.c.server.isClosed():
		l.closeWith(websocket.StatusGoingAway, "the server is shutting down")
	case err != nil || len(unanswered) > 0:
		l.closeWith(websocket.StatusInternalError, "the agent has ended")
	default:
		l.closeWith(websocket.StatusNormalClosure, "")
	}
}

func (l *socketLink) cut(why error) { l.socket.cut(why) }
