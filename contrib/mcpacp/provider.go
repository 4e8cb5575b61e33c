package mcpacp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
)

// protocolVersion is the one version of MCP that goes over ACP: it has no state between requests.
const protocolVersion = "2026-07-28"

// messageMCP is the handler of mcp/message. It serves one request of MCP in a session of its own.
func (p *Provider) messageMCP(ctx context.Context, conn *acp.ClientConn,
	req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
	o := p.offer(conn.RPC(), string(req.ServerID))
	if o == nil {
		return nil, noOffer(string(req.ServerID))
	}
	c, done, refused := o.begin(ctx, req.RequestID)
	if refused != nil {
		return nil, refused
	}
	if inner := checkMeta(req.Params.Value()); inner != nil {
		done()
		res := acp.NewMessageMCPResponseError(*inner)
		return &res, nil
	}
	s := &single{ctx: c.ctx, conn: conn, req: req, incoming: make(chan jsonrpc.Message), over: make(chan struct{})}
	params, err := json.Marshal(req.Params.Value())
	var session *mcp.ServerSession
	if err == nil {
		session, err = o.server.Connect(c.within(c.ctx), s, nil)
	}
	if err != nil {
		done()
		return nil, outerFailed.WithMessagef("the MCP server cannot be reached: %v", err)
	}
	handled := make(chan struct{})
	go func() {
		_ = session.Wait() // for the handler; what failed is in the answer
		done()
		close(handled)
	}()
	res, err := s.outcome(params)
	select {
	case <-handled: // now the agent may use the id again
	case <-c.ctx.Done():
	}
	return res, err
}

// checkMeta returns the error of a request that does not have what the version of MCP requires, or nil.
func checkMeta(params map[string]json.RawMessage) *acp.MCPError {
	missing := func(key string) *acp.MCPError {
		return &acp.MCPError{Code: jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("Invalid params: no %s in params._meta", key)}
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(params["_meta"], &meta) // what is not an object has no members
	var version *string
	if err := json.Unmarshal(meta[mcp.MetaKeyProtocolVersion], &version); err != nil || version == nil {
		return missing(mcp.MetaKeyProtocolVersion)
	}
	if *version != protocolVersion {
		data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: []string{protocolVersion},
			Requested: *version})
		if err != nil {
			panic(err) // it holds texts alone
		}
		return &acp.MCPError{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version", Data: data}
	}
	var capabilities map[string]json.RawMessage
	if err := json.Unmarshal(meta[mcp.MetaKeyClientCapabilities], &capabilities); err != nil || capabilities == nil {
		return missing(mcp.MetaKeyClientCapabilities)
	}
	return nil
}

// single is the transport, and the connection, of a server's session that has one request.
type single struct {
	ctx  context.Context // of the request
	conn *acp.ClientConn
	req  *acp.MessageMCPRequest

	incoming chan jsonrpc.Message // the request, and refusals of the server's own ones
	over     chan struct{}        // closed when nothing is sent any more

	mu       sync.Mutex // is held while something is sent, to keep the order
	ended    bool       // over is closed
	response *acp.MessageMCPResponse
	err      error // why there is no response
}

// outcome serves the request with the given params, and waits for its end. Once it has returned, nothing is sent.
func (s *single) outcome(params json.RawMessage) (*acp.MessageMCPResponse, error) {
	id, err := jsonrpc.MakeID(string(s.req.RequestID))
	if err != nil {
		panic(err) // a text is an id
	}
	s.give(&jsonrpc.Request{ID: id, Method: s.req.Method, Params: params})
	select {
	case <-s.over:
	case <-s.ctx.Done():
		_ = s.Close() // never fails
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.response != nil:
		return s.response, nil
	case s.err != nil:
		return nil, outerFailed.WithMessagef("the MCP server's answer is invalid: %v", s.err)
	case s.ctx.Err() != nil:
		return nil, acp.ErrRequestCancelled
	}
	return nil, outerFailed.WithMessagef("the MCP server did not answer")
}

// Connect implements mcp.Transport.
func (s *single) Connect(context.Context) (mcp.Connection, error) { return s, nil }

// SupportsProtocolVersion implements mcp.ProtocolVersionSupporter.
func (s *single) SupportsProtocolVersion(version string) bool { return version == protocolVersion }

// SessionID implements mcp.Connection.
func (s *single) SessionID() string { return "" }

// Read implements mcp.Connection. Its end cancels the handler, if that still runs.
func (s *single) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.incoming:
		return m, nil
	case <-s.over:
		return nil, io.EOF
	}
}

// Write implements mcp.Connection.
func (s *single) Write(ctx context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Response:
		return s.answer(m)
	case *jsonrpc.Request:
		if !m.IsCall() {
			return s.notify(ctx, m)
		}
		refusal := &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{
			Code: jsonrpc.CodeMethodNotFound, Message: "MCP servers over ACP make no requests",
		}}
		s.give(refusal)
		return nil
	}
	return nil // there are no other messages
}

// give has the server read a message.
func (s *single) give(m jsonrpc.Message) {
	select {
	case s.incoming <- m:
	case <-s.over:
	}
}

var errOver = errors.New("mcpacp: request already finished")

// Close implements mcp.Connection.
func (s *single) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
	return nil
}

func (s *single) endLocked() {
	if !s.ended {
		s.ended = true
		close(s.over)
	}
}

func (s *single) answer(m *jsonrpc.Response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.ctx.Err() != nil { // an answer to a cancelled request may say anything
		return errOver
	}
	defer s.endLocked()
	if m.Error == nil {
		res := acp.NewMessageMCPResponseResult(m.Result)
		s.response = &res
		return nil
	}
	// The SDK knows how an error of Go becomes one of MCP.
	text, err := jsonrpc.EncodeMessage(m)
	var decoded struct{ Error acp.MCPError }
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		s.err = err
		return err
	}
	res := acp.NewMessageMCPResponseError(decoded.Error)
	s.response = &res
	return nil
}

func (s *single) notify(ctx context.Context, m *jsonrpc.Request) error {
	if s.req.Method != "subscriptions/listen" && strings.HasSuffix(m.Method, "/list_changed") {
		return nil // the SDK sends these to all sessions that have just begun
	}
	n := &acp.MessageMCPNotification{ServerID: s.req.ServerID, RequestID: s.req.RequestID, Method: m.Method}
	if len(m.Params) > 0 {
		var params map[string]json.RawMessage
		if err := json.Unmarshal(m.Params, &params); err != nil {
			return err
		}
		if params != nil {
			n.Params = acp.Some(params)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errOver
	}
	// The SDK's context may be that of no request.
	sending, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return s.conn.MessageMCPNotification(sending, n)
}
