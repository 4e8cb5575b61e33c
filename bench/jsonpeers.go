package main

// The conversations by encoding/json with the types of encodingjson.go: a raw loop over bufio, and sourcegraph/jsonrpc2
// with its default stream. Both handle notifications on their reader, which keeps their order, and requests by a
// goroutine each, which lets handlers call back.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/acpgo/sdk/acp"
)

// jsonConn is one side of a connection.
type jsonConn interface {
	Call(ctx context.Context, method string, params, result any) error
	Notify(ctx context.Context, method string, params any) error
	// Done is closed when the other side is gone.
	Done() <-chan struct{}
}

// jsonHandler handles what comes. The result of a notification is nothing.
type jsonHandler func(ctx context.Context, c jsonConn, method string, params json.RawMessage) (any, error)

type jsonDial func(ctx context.Context, l *link, h jsonHandler) jsonConn

func serveRaw(ctx context.Context, l *link) error { return serveJSON(ctx, l, dialRaw) }
func serveStream(ctx context.Context, l *link) error {
	return serveJSON(ctx, l, dialStream(requestsAsync))
}

func connectRaw(ctx context.Context, l *link, c *consumer) (client, error) {
	return connectJSON(ctx, l, c, dialRaw)
}

func connectStream(ctx context.Context, l *link, c *consumer) (client, error) {
	return connectJSON(ctx, l, c, dialStream(requestsAsync))
}

func connectAsync(ctx context.Context, l *link, c *consumer) (client, error) {
	return connectJSON(ctx, l, c, dialStream(jsonrpc2.AsyncHandler))
}

// The agent.

func serveJSON(ctx context.Context, l *link, dial jsonDial) error {
	<-dial(ctx, l, func(ctx context.Context, c jsonConn, method string, params json.RawMessage) (any, error) {
		switch method {
		case acp.MethodInitialize:
			return initializeResult{ProtocolVersion: 1}, nil
		case acp.MethodNewSession:
			return newSessionResult{newSessionID()}, nil
		case acp.MethodPrompt:
			var p promptParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, err
			}
			text, ok := p.Prompt[0].variant.(*textContent)
			if !ok {
				return nil, errors.New("not a text")
			}
			if err := play(ctx, text.Text, jsonVoice{c, p.SessionID}); err != nil {
				return nil, err
			}
			return promptResult{"end_turn"}, nil
		}
		return nil, errors.New("unknown method " + method)
	}).Done()
	return nil
}

type jsonVoice struct {
	conn    jsonConn
	session string
}

func (v jsonVoice) Chunk(text string) any {
	return update{&messageChunk{"agent_message_chunk", content{&textContent{"text", text}}}}
}

func (v jsonVoice) Send(ctx context.Context, chunk any) error {
	return v.conn.Notify(ctx, acp.MethodSessionUpdate, notification{v.session, chunk.(update)})
}

func (v jsonVoice) Read(ctx context.Context) (string, error) {
	var res readResult
	err := v.conn.Call(ctx, acp.MethodReadTextFile, readParams{v.session, filePath}, &res)
	return res.Content, err
}

func (v jsonVoice) Ask(ctx context.Context) (string, error) {
	var res permissionResult
	err := v.conn.Call(ctx, acp.MethodRequestPermission, permissionParams{
		v.session, toolCallID{"call_1"},
		[]permissionOption{{allowed, "Allow", "allow_once"}, {"reject", "Reject", "reject_once"}},
	}, &res)
	return res.Outcome.OptionID, err
}

// The client.

type jsonClient struct {
	conn jsonConn
	link *link
}

func connectJSON(ctx context.Context, l *link, consumer *consumer, dial jsonDial) (client, error) {
	if err := l.start(); err != nil {
		return nil, err
	}
	c := jsonClient{link: l}
	c.conn = dial(context.WithoutCancel(ctx), l, func(_ context.Context, _ jsonConn, method string, params json.RawMessage) (any, error) {
		switch method {
		case acp.MethodSessionUpdate:
			var n notification
			if err := json.Unmarshal(params, &n); err != nil {
				return nil, err
			}
			chunk, ok := n.Update.variant.(*messageChunk)
			if !ok {
				return nil, errors.New("not a chunk")
			}
			text, ok := chunk.Content.variant.(*textContent)
			if !ok {
				return nil, errors.New("not a text")
			}
			consumer.update(n.SessionID, text.Text)
			return nil, nil
		case acp.MethodReadTextFile:
			var p readParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, err
			}
			return readResult{fileContent}, nil
		case acp.MethodRequestPermission:
			var p permissionParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, err
			}
			return permissionResult{permissionOutcome{"selected", p.Options[0].OptionID}}, nil
		}
		return nil, errors.New("unknown method " + method)
	})
	return c, c.conn.Call(ctx, acp.MethodInitialize, initializeParams{1, clientCapabilities{fsCapabilities{true}}}, new(initializeResult))
}

func (c jsonClient) NewSession(ctx context.Context) (string, error) {
	var res newSessionResult
	err := c.conn.Call(ctx, acp.MethodNewSession, newSessionParams{"/", []struct{}{}}, &res)
	return res.SessionID, err
}

func (c jsonClient) Prompt(ctx context.Context, session, text string) error {
	return c.conn.Call(ctx, acp.MethodPrompt, promptParams{session, []content{{&textContent{"text", text}}}}, new(promptResult))
}

func (c jsonClient) Close() error { return c.link.Close() }

// sourcegraph/jsonrpc2.

type streamConn struct{ *jsonrpc2.Conn }

func (c streamConn) Call(ctx context.Context, method string, params, result any) error {
	return c.Conn.Call(ctx, method, params, result)
}

func (c streamConn) Notify(ctx context.Context, method string, params any) error {
	return c.Conn.Notify(ctx, method, params)
}

func (c streamConn) Done() <-chan struct{} { return c.DisconnectNotify() }

func dialStream(concurrent func(jsonrpc2.Handler) jsonrpc2.Handler) jsonDial {
	return func(ctx context.Context, l *link, h jsonHandler) jsonConn {
		handler := jsonrpc2.HandlerWithError(func(ctx context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
			return h(ctx, streamConn{c}, req.Method, *req.Params)
		})
		return streamConn{jsonrpc2.NewConn(ctx, jsonrpc2.NewPlainObjectStream(streamLink{l.r, l.w}), concurrent(handler),
			jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))}
	}
}

// streamLink leaves closing to the client.
type streamLink struct {
	io.Reader
	io.Writer
}

func (streamLink) Close() error { return nil }

// requestsAsync is jsonrpc2.AsyncHandler for requests alone: notifications lose their order by that.
func requestsAsync(h jsonrpc2.Handler) jsonrpc2.Handler {
	return handlerFunc(func(ctx context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) {
		if req.Notif {
			h.Handle(ctx, c, req)
			return
		}
		go h.Handle(ctx, c, req)
	})
}

type handlerFunc func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request)

func (f handlerFunc) Handle(ctx context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) {
	f(ctx, c, req)
}

// The raw loop.

type rawConn struct {
	w    io.Writer
	done chan struct{}

	mu    sync.Mutex // also of w
	last  int64
	calls map[int64]chan rawMessage
}

type rawMessage struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *int64          `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rawError       `json:"error,omitempty"`
}

type rawError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rawError) Error() string { return e.Message }

func dialRaw(ctx context.Context, l *link, h jsonHandler) jsonConn {
	c := &rawConn{w: l.w, done: make(chan struct{}), calls: map[int64]chan rawMessage{}}
	go c.read(ctx, bufio.NewReaderSize(l.r, 64<<10), h)
	return c
}

func (c *rawConn) Done() <-chan struct{} { return c.done }

func (c *rawConn) read(ctx context.Context, r *bufio.Reader, h jsonHandler) {
	defer close(c.done)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m rawMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return
		}
		switch {
		case m.Method == "":
			c.mu.Lock()
			call := c.calls[*m.ID]
			delete(c.calls, *m.ID)
			c.mu.Unlock()
			call <- m
		case m.ID == nil:
			if _, err := h(ctx, c, m.Method, m.Params); err != nil {
				return
			}
		default:
			go c.answer(ctx, m, h)
		}
	}
}

func (c *rawConn) answer(ctx context.Context, m rawMessage, h jsonHandler) {
	answer := rawMessage{ID: m.ID}
	result, err := h(ctx, c, m.Method, m.Params)
	if err == nil {
		answer.Result, err = json.Marshal(result)
	}
	if err != nil {
		answer.Error = &rawError{-32603, err.Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.write(answer) // the reader finds the connection closed
}

// write writes a message; mu is held.
func (c *rawConn) write(m rawMessage) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = c.w.Write(append(line, '\n'))
	return err
}

func (c *rawConn) Notify(_ context.Context, method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(rawMessage{Method: method, Params: raw})
}

func (c *rawConn) Call(_ context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	call := make(chan rawMessage, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.calls[id] = call
	err = c.write(rawMessage{ID: &id, Method: method, Params: raw})
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case m := <-call:
		if m.Error != nil {
			return m.Error
		}
		return json.Unmarshal(m.Result, result)
	case <-c.done:
		return io.ErrUnexpectedEOF
	}
}
