package main

// The conversation as a hand-written loop on this module's codec, without a JSON-RPC library, queue, limits,
// cancellation or error handling. It shows the cost of the guarantees of this module's runtime.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// handConn is one side of a connection. Its reader handles notifications; each request has its own goroutine.
type handConn struct {
	lines  handLines
	out    handWriter
	handle func(c *handConn, method string, d *codec.Decoder) (answer func() codec.Value, err error)

	mu    sync.Mutex
	last  int64
	calls map[int64]*handCall
}

type handCall struct {
	result codec.Value
	done   chan error
}

func (c *handConn) call(method string, params, result codec.Value) error {
	call := &handCall{result, make(chan error, 1)}
	c.mu.Lock()
	c.last++
	id := c.last
	c.calls[id] = call
	c.mu.Unlock()
	err := c.out.append(true, func(dst []byte) ([]byte, error) {
		dst = append(dst, `{"jsonrpc":"2.0","id":`...)
		dst = strconv.AppendInt(dst, id, 10)
		return appendMethod(append(dst, ','), method, params)
	})
	if err != nil {
		return err
	}
	return <-call.done
}

func (c *handConn) notify(method string, params codec.Value) error {
	return c.out.append(false, func(dst []byte) ([]byte, error) {
		return appendMethod(append(dst, `{"jsonrpc":"2.0",`...), method, params)
	})
}

func appendMethod(dst []byte, method string, params codec.Value) ([]byte, error) {
	dst = append(append(append(dst, `"method":"`...), method...), `","params":`...)
	dst, err := codec.Append(dst, params)
	return append(dst, '}'), err
}

// read is the reader's loop. It reads an envelope and its content in one pass, and relies on the order of members that
// all libraries in this program use.
func (c *handConn) read() error {
	d := codec.NewDecoder(nil)
	for {
		line, err := c.lines.next()
		if err != nil {
			return c.end(err)
		}
		d.Reset(line)
		var id int64
		var method string
		var answer func() codec.Value
		for o := d.Object(); o.Next(); {
			switch string(o.Name()) {
			case "id":
				id = d.Int(64)
			case "method":
				method = d.Intern()
			case "params":
				if answer, err = c.handle(c, method, d); err != nil {
					return c.end(err)
				}
			case "result":
				c.resolve(id, d)
			default:
				d.Skip()
			}
		}
		if err := d.End(); err != nil {
			return c.end(err)
		}
		if answer != nil {
			go c.answer(id, answer)
		}
	}
}

func (c *handConn) resolve(id int64, d *codec.Decoder) {
	c.mu.Lock()
	call := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	call.result.DecodeJSON(d)
	call.done <- d.Err()
}

func (c *handConn) answer(id int64, answer func() codec.Value) {
	result := answer()
	err := c.out.append(true, func(dst []byte) ([]byte, error) {
		dst = append(dst, `{"jsonrpc":"2.0","id":`...)
		dst = strconv.AppendInt(dst, id, 10)
		dst, err := codec.Append(append(dst, `,"result":`...), result)
		return append(dst, '}'), err
	})
	if err != nil {
		c.end(err)
	}
}

// end fails all calls.
func (c *handConn) end(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, call := range c.calls {
		delete(c.calls, id)
		call.done <- err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// handLines splits a stream into lines.
type handLines struct {
	r                   io.Reader
	buf                 []byte
	start, scanned, end int
}

func (l *handLines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.scanned+i]
			l.start = l.scanned + i + 1
			l.scanned = l.start
			return line, nil
		}
		l.scanned = l.end
		if l.end == len(l.buf) {
			if l.start == 0 {
				l.buf = append(l.buf, make([]byte, max(64<<10, len(l.buf)))...)
			} else {
				l.end = copy(l.buf, l.buf[l.start:l.end])
				l.start, l.scanned = 0, l.end
			}
		}
		n, err := l.r.Read(l.buf[l.end:])
		if l.end += n; err != nil {
			return nil, err
		}
	}
}

const (
	handHighWater = 256 << 10
	handQuiet     = 20 * time.Microsecond
	handLarge     = 16 << 10
)

// handWriter batches messages: those that arrive during a write are written with the next one. The sender writes a
// message if no write is in progress. Notifications in quick succession are left to a goroutine, so that they
// accumulate, and so are large messages, so that the next one can be encoded meanwhile.
type handWriter struct {
	w              io.Writer
	mu             sync.Mutex
	room           sync.Cond
	pending, spare []byte
	busy           bool
	last           time.Time
	wake           chan struct{}
	err            error
}

func (w *handWriter) append(urgent bool, fill func([]byte) ([]byte, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) > handHighWater && w.err == nil {
		w.room.Wait()
	}
	if w.err != nil {
		return w.err
	}
	first := len(w.pending) == 0
	lines, err := fill(w.pending)
	if err != nil {
		return err
	}
	w.pending = append(lines, '\n')
	if w.busy {
		return nil
	}
	if !urgent {
		now := time.Now()
		quiet := now.Sub(w.last) > handQuiet && len(lines) < handLarge
		w.last = now
		if !quiet {
			if first {
				select {
				case w.wake <- struct{}{}:
				default:
				}
			}
			return nil
		}
	}
	w.flush()
	return w.err
}

// flush writes until nothing is pending; mu is held.
func (w *handWriter) flush() {
	w.busy = true
	for len(w.pending) > 0 && w.err == nil {
		lines := w.pending
		w.pending = w.spare[:0]
		w.mu.Unlock()
		_, err := w.w.Write(lines)
		w.mu.Lock()
		w.spare, w.err = lines, err
		w.room.Broadcast()
	}
	w.busy = false
}

// run is the goroutine.
func (w *handWriter) run(ctx context.Context) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		if !w.busy {
			w.flush()
		}
		w.mu.Unlock()
	}
}

func newHandConn(ctx context.Context, r io.Reader, w io.Writer,
	handle func(*handConn, string, *codec.Decoder) (func() codec.Value, error)) *handConn {
	c := &handConn{lines: handLines{r: r}, handle: handle, calls: map[int64]*handCall{}}
	c.out.w, c.out.wake = w, make(chan struct{}, 1)
	c.out.room.L = &c.out.mu
	go c.out.run(ctx)
	return c
}

// polled makes the runtime's poller wait for a standard file that is a pipe.
func polled(f *os.File) *os.File {
	fd := int(f.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func serveByHand(ctx context.Context, l *link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Reader(l.r), io.Writer(l.w)
	if l.r == os.Stdin {
		r, w = polled(os.Stdin), polled(os.Stdout)
	}
	c := newHandConn(ctx, r, w, func(c *handConn, method string, d *codec.Decoder) (func() codec.Value, error) {
		switch method {
		case acp.MethodInitialize:
			d.Skip()
			return func() codec.Value { return &acp.InitializeResponse{ProtocolVersion: acp.Version} }, nil
		case acp.MethodNewSession:
			d.Skip()
			return func() codec.Value { return &acp.NewSessionResponse{SessionID: acp.SessionID(newSessionID())} }, nil
		case acp.MethodPrompt:
			req := new(acp.PromptRequest)
			req.DecodeJSON(d)
			return func() codec.Value {
				text := req.Prompt[0].Text()
				if err := play(ctx, text, &handVoice{c, req.SessionID}); err != nil {
					return &acp.PromptResponse{StopReason: acp.StopReasonRefusal}
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
			}, d.Err()
		}
		return nil, errors.New("unknown method " + method)
	})
	return c.read()
}

type handVoice struct {
	conn    *handConn
	session acp.SessionID
}

func (v *handVoice) Chunk(text string) any { return acp.AgentMessageText(text) }

func (v *handVoice) Send(_ context.Context, chunk any) error {
	return v.conn.notify(acp.MethodSessionUpdate,
		&acp.SessionNotification{SessionID: v.session, Update: chunk.(acp.SessionUpdate)})
}

func (v *handVoice) Read(context.Context) (string, error) {
	var res acp.ReadTextFileResponse
	err := v.conn.call(acp.MethodReadTextFile, &acp.ReadTextFileRequest{SessionID: v.session, Path: filePath}, &res)
	return res.Content, err
}

func (v *handVoice) Ask(context.Context) (string, error) {
	var res acp.RequestPermissionResponse
	err := v.conn.call(acp.MethodRequestPermission, &acp.RequestPermissionRequest{
		SessionID: v.session,
		ToolCall:  acp.ToolCallUpdate{ToolCallID: "call_1"},
		Options: []acp.PermissionOption{
			{OptionID: allowed, Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionID: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		},
	}, &res)
	option, _ := res.Outcome.Selected()
	return string(option), err
}

type handClient struct {
	conn *handConn
	link *link
	stop context.CancelFunc
}

func connectByHand(_ context.Context, l *link, consumer *consumer) (client, error) {
	if err := l.start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := newHandConn(ctx, l.r, l.w, func(_ *handConn, method string, d *codec.Decoder) (func() codec.Value, error) {
		switch method {
		case acp.MethodSessionUpdate:
			n := new(acp.SessionNotification)
			n.DecodeJSON(d)
			chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk)
			if !ok {
				return nil, errors.New("not a chunk")
			}
			text := chunk.Content.Text()
			consumer.update(string(n.SessionID), text)
			return nil, d.Err()
		case acp.MethodReadTextFile:
			req := new(acp.ReadTextFileRequest)
			req.DecodeJSON(d)
			return func() codec.Value { return &acp.ReadTextFileResponse{Content: fileContent} }, d.Err()
		case acp.MethodRequestPermission:
			req := new(acp.RequestPermissionRequest)
			req.DecodeJSON(d)
			return func() codec.Value {
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}
			}, d.Err()
		}
		return nil, errors.New("unknown method " + method)
	})
	go c.read()
	var res acp.InitializeResponse
	err := c.call(acp.MethodInitialize, &acp.InitializeRequest{
		ProtocolVersion:    acp.Version,
		ClientCapabilities: acp.ClientCapabilities{FS: acp.FileSystemCapabilities{ReadTextFile: true}},
	}, &res)
	return &handClient{c, l, cancel}, err
}

func (c *handClient) NewSession(context.Context) (string, error) {
	var res acp.NewSessionResponse
	err := c.conn.call(acp.MethodNewSession, &acp.NewSessionRequest{Cwd: "/"}, &res)
	return string(res.SessionID), err
}

func (c *handClient) Prompt(_ context.Context, session, text string) error {
	var res acp.PromptResponse
	req := &acp.PromptRequest{SessionID: acp.SessionID(session), Prompt: []acp.ContentBlock{acp.TextBlock(text)}}
	if err := c.conn.call(acp.MethodPrompt, req, &res); err != nil {
		return err
	}
	if res.StopReason != acp.StopReasonEndTurn {
		return errors.New("the turn failed")
	}
	return nil
}

func (c *handClient) Close() error {
	err := c.link.Close()
	c.stop()
	return err
}
