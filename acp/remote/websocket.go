package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	// frameBatch is how many bytes of frames are gathered before they are written.
	frameBatch = 256 << 10
	// longMessage is the longest message sent in one frame. Longer ones are sent in fragments, so that they need not be
	// gathered as a whole, and the answer to a ping need not wait for all of it.
	longMessage = 1 << 20
	// frameFlood bounds the gathered bytes: it is more than messages can take. The rest is for answers to pings of a
	// peer that does not read them.
	frameFlood = 4 << 20
	// bufferKept is the size up to which a buffer is kept for the next message.
	bufferKept = 64 << 10
)

// frames is the network connection below a WebSocket, as package websocket sees it. Writing to it gathers frames and
// never waits for the peer, so that the library does not hold a lock for long, and answers pings even while a message
// waits to be taken. A sender of messages holds frames back, and flushes many of them in one write.
type frames struct {
	conn      io.ReadWriteCloser
	in        io.Reader     // what conn receives
	received  atomic.Uint64 // how often data was received
	waiting   atomic.Bool   // a read of conn is in progress
	writers   sync.WaitGroup
	stall     time.Duration
	stalled   *time.Timer // fires when the peer has taken nothing for the duration stall
	closeOnce func() error

	mu   sync.Mutex
	wait func()    // called before conn is read; may be nil
	idle sync.Cond // signaled when no one is writing
	buf  []byte
	held bool // a sender of messages will flush
	busy bool // a goroutine is writing
	err  error
}

// newFrames gathers frames for conn, which is lost if the peer does not take bufferKept bytes of the written data, or
// its rest, within the duration stall. If readBuffer is greater than 0, that many bytes are read at once, for a side
// that receives much data.
func newFrames(conn io.ReadWriteCloser, stall time.Duration, readBuffer int) *frames {
	f := &frames{conn: conn, stall: stall, closeOnce: sync.OnceValue(conn.Close)}
	f.stalled = time.AfterFunc(stall, func() { f.fail(ErrStalled) })
	f.stalled.Stop()
	f.idle.L = &f.mu
	f.in = receiving{f}
	if readBuffer > 0 {
		f.in = bufio.NewReaderSize(f.in, readBuffer)
	}
	return f
}

func (f *frames) Read(p []byte) (int, error) { return f.in.Read(p) }

// receiving reads the connection below frames.
type receiving struct{ *frames }

func (f receiving) Read(p []byte) (int, error) {
	f.mu.Lock()
	wait := f.wait
	f.mu.Unlock()
	if wait != nil {
		wait()
	}
	f.waiting.Store(true)
	n, err := f.conn.Read(p)
	f.waiting.Store(false)
	f.received.Add(1)
	return n, err
}

// beforeWait sets the function that is called before the connection is read. The end of a WebSocket also reads, so a
// lock is needed.
func (f *frames) beforeWait(wait func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wait = wait
}

// Write gathers p. If frames are not being held back, a goroutine writes them: they are a ping, the answer to one, or
// the end.
func (f *frames) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	if len(f.buf)+len(p) > frameFlood {
		f.err = ErrStalled
		return 0, f.err
	}
	f.buf = append(f.buf, p...)
	if !f.held && !f.busy {
		f.busy = true
		f.writers.Go(func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.write()
		})
	}
	return len(p), nil
}

// hold keeps frames back until flush.
func (f *frames) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

// flush writes the gathered data, and returns when all of it is written. If more will follow, it does nothing unless
// there is enough for a batch, and frames are still held back afterwards.
func (f *frames) flush(more bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if more && len(f.buf) < frameBatch {
		return f.err
	}
	for f.busy {
		f.idle.Wait()
	}
	f.held = more
	f.busy = true
	f.write()
	return f.err
}

// write writes until nothing is left; mu is held, but released while it writes. The caller has set busy, and write
// clears it.
func (f *frames) write() {
	var spare []byte
	for f.err == nil && len(f.buf) > 0 {
		buf := f.buf
		f.buf = spare[:0]
		f.mu.Unlock()
		err := f.writeOut(buf)
		f.mu.Lock()
		spare = buf
		if err != nil && f.err == nil {
			f.err = err
		}
	}
	if cap(f.buf) < cap(spare) && len(f.buf) == 0 {
		f.buf = spare[:0]
	}
	if cap(f.buf) > bufferKept && len(spare) < bufferKept/4 { // after a burst
		f.buf = nil
	}
	f.busy = false
	f.idle.Broadcast()
}

// writeOut writes p, in parts that the peer must take in time.
func (f *frames) writeOut(p []byte) error {
	defer f.stalled.Stop()
	for len(p) > 0 {
		f.stalled.Reset(f.stall)
		n, err := f.conn.Write(p[:min(len(p), bufferKept)])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// fail makes writing fail with err, and closes the connection.
func (f *frames) fail(err error) {
	f.mu.Lock()
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
	// The error does not matter, because the connection is over.
	_ = f.closeOnce()
}

// failure returns the error of writing, or the one passed to fail.
func (f *frames) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// interrupt makes reading fail, until resume. It does nothing if reading has no deadlines.
func (f *frames) interrupt() { f.readUntil(time.Now().Add(-time.Second)) }

func (f *frames) resume() { f.readUntil(time.Time{}) }

func (f *frames) readUntil(t time.Time) {
	if d, ok := f.conn.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(t) // a closed connection is not read anyway
	}
}

// closeLinger is how long Close waits for the gathered data to be taken.
const closeLinger = 5 * time.Second

// Close closes the connection once the gathered data is written, which ends with the end of the WebSocket.
func (f *frames) Close() error {
	timer := time.AfterFunc(closeLinger, func() { f.fail(net.ErrClosed) })
	defer timer.Stop()
	f.mu.Lock()
	for f.busy {
		f.idle.Wait()
	}
	f.mu.Unlock()
	return f.closeOnce()
}

// stuck reports whether data is being written and not taken.
func (f *frames) stuck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy
}

// socketOptions are options for both sides.
type socketOptions struct {
	maxMessage   int
	keepAlive    time.Duration // 0 means never
	closeTimeout time.Duration
	log          *slog.Logger
	secrets      secrets // secrets that the peer may repeat
}

// socket is the stream of a WebSocket. It has one goroutine, which sends pings; close waits for it.
type socket struct {
	ws     *websocket.Conn
	frames *frames
	opts   socketOptions

	buf    bytes.Buffer // owned by the reader
	binary bool         // a binary message has been received; owned by the reader

	life    context.Context
	endLife context.CancelFunc
	pinging chan struct{} // closed when pings are no longer sent
	once    sync.Once
}

func newSocket(ws *websocket.Conn, f *frames, o socketOptions) *socket {
	s := &socket{ws: ws, frames: f, opts: o, pinging: make(chan struct{})}
	ws.SetReadLimit(int64(o.maxMessage))
	s.life, s.endLife = context.WithCancel(context.Background())
	if o.keepAlive > 0 {
		go s.ping()
	} else {
		close(s.pinging)
	}
	return s
}

// ping sends pings until close. A peer is lost if it does not react to two pings in a row while this side reads and the
// peer takes the pings. A side that does not read, because its agent is held up, sees no answers. A ping that is not
// taken waits for messages before it; frames bounds that time.
func (s *socket) ping() {
	defer close(s.pinging)
	for missed := 0; missed < 2; {
		if missed == 0 {
			select {
			case <-time.After(s.opts.keepAlive):
			case <-s.life.Done():
				return
			}
		}
		before := s.frames.received.Load()
		ctx, cancel := context.WithTimeout(s.life, s.opts.keepAlive)
		err := s.ws.Ping(ctx)
		cancel()
		switch {
		case s.life.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		case err == nil || s.frames.received.Load() != before || !s.frames.waiting.Load() || s.frames.stuck():
			missed = 0
		default:
			missed++
		}
	}
	s.frames.fail(ErrUnanswered)
}

// Read returns the next message, on one line.
func (s *socket) Read() ([]byte, error) { return s.ReadLine(nil) }

func (s *socket) ReadLine(beforeWait func()) ([]byte, error) {
	s.frames.beforeWait(beforeWait)
	defer s.frames.beforeWait(nil)
	for {
		kind, r, err := s.ws.Reader(context.Background())
		if err != nil {
			return nil, s.readError(err)
		}
		if kind != websocket.MessageText {
			if err := s.ignore(r); err != nil {
				return nil, s.readError(err)
			}
			continue
		}
		if s.buf.Reset(); s.buf.Cap() > 2*bufferKept { // after a long message
			s.buf = bytes.Buffer{}
		}
		if _, err := s.buf.ReadFrom(r); err != nil {
			return nil, s.readError(err)
		}
		if line := oneLine(s.buf.Bytes()); len(line) > 0 {
			return line, nil
		}
	}
}

// ignore skips a binary message.
func (s *socket) ignore(r io.Reader) error {
	n, err := io.Copy(io.Discard, r)
	level := slog.LevelWarn
	if s.binary {
		level = slog.LevelDebug
	}
	s.binary = true
	s.opts.log.Log(context.Background(), level, "acp: a binary message on a WebSocket was ignored", "bytes", n)
	return err
}

// readError returns the reason for the end of the input.
func (s *socket) readError(err error) error {
	closed, ok := errors.AsType[websocket.CloseError](err)
	switch {
	case ok:
		return &CloseError{Code: int(closed.Code), Reason: s.opts.secrets.line(closed.Reason)}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return &CloseError{Code: int(websocket.StatusMessageTooBig), Reason: "message too long",
			Err: fmt.Errorf("acp: message longer than %d bytes", s.opts.maxMessage)}
	}
	if failed := s.frames.failure(); failed != nil {
		err = failed
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // not an orderly end
	}
	return &CloseError{Code: int(websocket.StatusAbnormalClosure), Err: err}
}

// Write sends one message.
func (s *socket) Write(message []byte) error {
	s.frames.hold()
	return s.written(errors.Join(s.send(message), s.frames.flush(false)))
}

// WriteLines sends each line as a message, many in one write.
func (s *socket) WriteLines(lines []byte) error {
	s.frames.hold()
	var err error
	for len(lines) > 0 && err == nil {
		line, rest, _ := bytes.Cut(lines, newline)
		err, lines = s.send(line), rest
	}
	return s.written(errors.Join(err, s.frames.flush(false)))
}

// written returns the error for a failed send.
func (s *socket) written(err error) error {
	if err == nil {
		return nil
	}
	if failed := s.frames.failure(); failed != nil {
		err = failed
	}
	return fmt.Errorf("acp: WebSocket: %w", err)
}

// send gathers the frames of a message, and writes them if they are many.
func (s *socket) send(message []byte) error {
	if len(message) > longMessage {
		return s.sendParts(message)
	}
	if err := s.ws.Write(context.Background(), websocket.MessageText, message); err != nil {
		return err
	}
	return s.frames.flush(true)
}

// sendParts sends a long message in several frames.
func (s *socket) sendParts(message []byte) error {
	w, err := s.ws.Writer(context.Background(), websocket.MessageText)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(message, frameBatch) {
		if _, err := w.Write(part); err != nil {
			return err
		}
		if err := s.frames.flush(true); err != nil {
			return err
		}
	}
	return w.Close()
}

// Close ends the WebSocket with 1000.
func (s *socket) Close() error { return s.closeWith(websocket.StatusNormalClosure, "") }

// closeWith ends the WebSocket: earlier data is sent, then the code, and the peer has closeTimeout to answer. Only the
// first call counts.
func (s *socket) closeWith(code websocket.StatusCode, reason string) error {
	s.once.Do(func() {
		s.endLife()
		s.frames.resume()
		timer := time.AfterFunc(s.opts.closeTimeout, func() { s.frames.fail(net.ErrClosed) })
		// It is not a failure if the peer does not answer, or is gone, because nothing more is expected from it.
		if err := s.ws.Close(code, reason); err != nil {
			s.opts.log.Debug("acp: closing a WebSocket", "error", err)
		}
		timer.Stop()
		_ = s.frames.Close()
		s.frames.writers.Wait()
		<-s.pinging
	})
	return nil
}

// cut ends the WebSocket without a closing handshake.
func (s *socket) cut(why error) { s.frames.fail(why) }
