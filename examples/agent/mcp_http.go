package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/acpgo/sdk/acp"
)

// maxMCPAnswer bounds the size of an answer, in bytes.
const maxMCPAnswer = 1 << 20

// httpPeer is a connection to an MCP server over HTTP. Calls are made one at a time.
type httpPeer struct {
	config  *acp.MCPServerHTTP
	client  http.Client
	session string // if the server has assigned one
	version string // the negotiated version of MCP
	calls   int64
}

type mcpMessage struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *int64          `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *acp.Error      `json:"error,omitempty"`
}

func (p *httpPeer) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p.calls++
	id := p.calls
	res, err := p.send(ctx, http.MethodPost, &mcpMessage{JSONRPC: "2.0", ID: &id, Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := findAnswer(res, id)
	if err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	if method == "initialize" {
		var agreed struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if err := json.Unmarshal(answer.Result, &agreed); err != nil {
			return nil, err
		}
		p.session, p.version = res.Header.Get("Mcp-Session-Id"), agreed.ProtocolVersion
	}
	return answer.Result, nil
}

func (p *httpPeer) notify(ctx context.Context, method string) error {
	res, err := p.send(ctx, http.MethodPost, &mcpMessage{JSONRPC: "2.0", Method: method})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// close ends the server's session, if the server has sessions and can end them.
func (p *httpPeer) close() error {
	if p.session == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), mcpStopTime)
	defer cancel()
	res, err := p.send(ctx, http.MethodDelete, nil)
	if status, ok := errors.AsType[statusError](err); ok && status == http.StatusMethodNotAllowed {
		return nil
	}
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// A statusError is an HTTP status other than success.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

func (p *httpPeer) send(ctx context.Context, method string, m *mcpMessage) (*http.Response, error) {
	var body []byte
	if m != nil {
		var err error
		if body, err = json.Marshal(m); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, p.config.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, h := range p.config.Headers {
		req.Header.Add(h.Name, h.Value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
	}
	if p.version != "" {
		req.Header.Set("MCP-Protocol-Version", p.version)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, errors.Join(statusError(res.StatusCode), res.Body.Close())
	}
	return res, nil
}

// findAnswer reads the answer to a call. A stream may have other messages before it, which are ignored.
func findAnswer(res *http.Response, id int64) (*mcpMessage, error) {
	body := io.LimitReader(res.Body, maxMCPAnswer)
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	if kind != "text/event-stream" {
		var m mcpMessage
		if err := json.NewDecoder(body).Decode(&m); err != nil {
			return nil, err
		}
		return &m, nil
	}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxMCPAnswer)
	var data strings.Builder
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			data.WriteString(text + "\n")
		} else if lines.Text() == "" && data.Len() > 0 { // the end of an event
			var m mcpMessage
			if err := json.Unmarshal([]byte(data.String()), &m); err != nil {
				return nil, err
			}
			if data.Reset(); m.Method == "" && m.ID != nil && *m.ID == id {
				return &m, nil
			}
		}
	}
	return nil, errors.Join(io.ErrUnexpectedEOF, lines.Err())
}
