package mcpacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Enable advertises that the agent connects to MCP servers over HTTP and SSE. If opts enables acp.FeatureMCPOverACP, it
// also advertises MCP over ACP, and installs the handler for its notifications. Use it as agentkit.Config.Extend.
// Without Enable, clients offer servers on stdio only.
func Enable(handlers *acp.AgentHandlers, opts *acp.AgentOptions) {
	opts.MCP.HTTP, opts.MCP.SSE = true, true
	if opts.Experimental&acp.FeatureMCPOverACP != 0 {
		opts.MCP.ACP = true
		handlers.MessageMCPNotification = notified
	}
}

// active holds the requests over ACP that have not been answered, by connection and ids. A request is added before it
// is sent and removed when its call returns, so nothing remains when a connection has ended.
var active sync.Map // callKey → *acpConn

type callKey struct {
	conn   *acp.AgentConn
	server acp.MCPServerACPID
	id     acp.MCPRequestID
}

// requests numbers the requests of this process. Two sessions of a connection may use the same server.
var requests atomic.Int64

// notified handles a notification of MCP over ACP. One that belongs to no active request is dropped.
func notified(ctx context.Context, conn *acp.AgentConn, n *acp.MessageMCPNotification) error {
	c, ok := active.Load(callKey{conn, n.ServerID, n.RequestID})
	if !ok {
		return nil
	}
	params, err := json.Marshal(n.Params)
	if err != nil {
		return err
	}
	if !n.Params.Present() {
		params = nil
	}
	c.(*acpConn).deliver(ctx, &jsonrpc.Request{Method: n.Method, Params: params})
	return nil
}

// acpConn is a connection to an MCP server of the client: MCP over ACP. Only requests go to the server, and only
// answers and the notifications of requests come from it.
type acpConn struct {
	to     *server // whose results are repaired
	conn   *acp.AgentConn
	server acp.MCPServerACPID
	in     chan jsonrpc.Message
	ctx    context.Context // of all requests
	cancel context.CancelFunc
	calls  sync.WaitGroup
	pace   pace // the reader's

	mu      sync.Mutex
	cancels map[jsonrpc.ID]context.CancelFunc // of the requests that are active
	refused error                             // the answer to server/discover
	err     error
}

func newACPConn(conn *acp.AgentConn, server acp.MCPServerACPID) *acpConn {
	c := &acpConn{conn: conn, server: server, in: make(chan jsonrpc.Message), cancels: map[jsonrpc.ID]context.CancelFunc{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *acpConn) SessionID() string { return "" }

func (c *acpConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		c.pace.wait(messageCost, c.ctx.Done())
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ctx.Done():
		return nil, cmp.Or(c.reason(), io.EOF)
	}
}

// deliver has Read return a message.
func (c *acpConn) deliver(ctx context.Context, m jsonrpc.Message) {
	select {
	case c.in <- m:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
}

func (c *acpConn) Write(_ context.Context, m jsonrpc.Message) error {
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return nil // an answer to a request, which the protocol does not have here
	}
	if !req.IsCall() {
		return c.notify(req)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return rpc.ErrClosed
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.cancels[req.ID] = cancel
	c.calls.Go(func() {
		c.call(ctx, req)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, req.ID)
		cancel()
	})
	return nil
}

// notify carries out the notifications that mean something here: a cancellation, which is that of the ACP request.
func (c *acpConn) notify(req *jsonrpc.Request) error {
	if req.Method != "notifications/cancelled" {
		return nil
	}
	var params struct {
		RequestID any `json:"requestId"`
	}
	if err := json.Unmarshal(req.Params, &params); err != nil {
		return err
	}
	id, err := jsonrpc.MakeID(params.RequestID)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.cancels[id]; cancel != nil {
		cancel()
	}
	return nil
}

func (c *acpConn) call(ctx context.Context, req *jsonrpc.Request) {
	result, err := c.ask(ctx, req)
	if ctx.Err() != nil && c.ctx.Err() == nil {
		return // it was cancelled, and nothing waits for its answer
	}
	if errors.Is(err, errNoServer) {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		c.cancel()
		return
	}
	c.deliver(c.ctx, &jsonrpc.Response{ID: req.ID, Result: result, Error: err})
}

// errNoServer says that the client does not have the server any more.
var errNoServer = errors.New("the client does not have the server")

// codeNoServer is the code of ACP errors that say so.
const codeNoServer = -33001

func (c *acpConn) ask(ctx context.Context, req *jsonrpc.Request) (json.RawMessage, error) {
	if req.Method == "initialize" { // the MCP SDK tries it when server/discover has failed
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, cmp.Or(c.refused, errors.New("MCP over ACP has no initialize"))
	}
	message := &acp.MessageMCPRequest{
		ServerID: c.server, RequestID: acp.MCPRequestID(strconv.FormatInt(requests.Add(1), 10)), Method: req.Method,
	}
	if len(req.Params) > 0 {
		var params map[string]json.RawMessage
		if err := json.Unmarshal(req.Params, &params); err != nil {
			return nil, err
		}
		message.Params = acp.Some(params)
	}
	key := callKey{c.conn, c.server, message.RequestID}
	active.Store(key, c)
	defer active.Delete(key)
	res, err := c.conn.MessageMCP(ctx, message)
	if err == nil {
		switch v := res.Variant.(type) {
		case *acp.MessageMCPResponseResult:
			return c.to.repairResult(v.Result), nil
		case *acp.MessageMCPResponseError:
			err = &jsonrpc.Error{Code: int64(v.Error.Code), Message: v.Error.Message, Data: v.Error.Data}
		default:
			err = fmt.Errorf("mcpacp: an answer of an unknown kind: %w", acp.ErrUnsupported)
		}
	} else if outer, ok := errors.AsType[*acp.Error](err); ok && outer.Code == codeNoServer {
		err = errNoServer
	} else if errors.Is(err, acp.ErrClosed) {
		err = fmt.Errorf("%w: the connection has ended", errNoServer)
	}
	if req.Method == "server/discover" {
		c.mu.Lock()
		c.refused = err
		c.mu.Unlock()
	}
	return nil, err
}

func (c *acpConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *acpConn) Close() error {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.calls.Wait()
	return nil
}

var _ mcp.Connection = (*acpConn)(nil)
