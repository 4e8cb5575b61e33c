package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// server is an MCP server of a session: over stdio, where MCP frames its messages as ACP does, or over HTTP.
type server struct {
	name string
	conn *rpc.Conn // nil over HTTP
	http *acp.MCPServerHTTP
}

// startServers connects to MCP servers. Those that fail are logged and left out.
func (a *Agent) startServers(ctx context.Context, dir string, wanted []acp.MCPServer) (servers []*server) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, config := range wanted {
		s := &server{}
		var err error
		switch c := config.Variant.(type) {
		case *acp.MCPServerStdio:
			cmd := exec.Command(c.Command, c.Args...)
			cmd.Dir, cmd.Env = dir, os.Environ()
			for _, v := range c.Env {
				cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
			}
			transport := rpc.Command(cmd)
			transport.StopTime, transport.KillTime = time.Second, time.Second
			s.name = c.Name
			s.conn, err = rpc.Connect(ctx, transport, &rpc.Extensions[rpc.Conn]{}, nil)
		case *acp.MCPServerHTTP:
			s.name, s.http = c.Name, c
		default: // the runtime refuses such sessions
			err = errors.New("an MCP server of an unknown type")
		}
		if err == nil {
			_, err = s.call(ctx, "initialize", json.RawMessage(
				`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"acp-actor","version":"1"}}`))
		}
		if err == nil && s.conn != nil {
			err = rpc.Notify(ctx, s.conn, "notifications/initialized", nil)
		} else if err == nil {
			err = s.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
		}
		if err != nil {
			a.Logger.Warn("an MCP server did not start", "name", s.name, "error", err)
			closeServers([]*server{s})
			continue
		}
		servers = append(servers, s)
	}
	return servers
}

// call calls a method of the server.
func (s *server) call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if s.conn != nil {
		res, err := rpc.Call[json.RawMessage](ctx, s.conn, method, params)
		if err != nil {
			return nil, err
		}
		return *res, nil
	}
	var res struct {
		Result json.RawMessage
		Error  *rpc.Error
	}
	err := s.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), &res)
	if err == nil && res.Error != nil {
		err = res.Error
	}
	return res.Result, err
}

// post sends a message over HTTP; the answer, if one is wanted, must be JSON.
func (s *server) post(ctx context.Context, message string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.http.URL, strings.NewReader(message))
	if err != nil {
		return err
	}
	for _, h := range s.http.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the server answered %s", res.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(answer)
}

// closeServers ends servers.
func closeServers(servers []*server) {
	var wg sync.WaitGroup
	for _, s := range servers {
		if s.conn != nil {
			wg.Go(func() { _ = s.conn.Close() }) // it is ended by force if need be
		}
	}
	wg.Wait()
}

func listTools(ctx context.Context, _ *Agent, t *turn, _ string) error {
	if len(t.State.servers) == 0 {
		return say(ctx, t, "The session has no MCP servers.\n\n")
	}
	for _, s := range t.State.servers {
		var list struct {
			Tools []struct{ Name string }
		}
		text, err := s.call(ctx, "tools/list", json.RawMessage(`{}`))
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		line := fmt.Sprintf("%s: %v", s.name, list.Tools)
		if err != nil {
			line = fmt.Sprintf("%s: %v", s.name, err)
		}
		if err := say(ctx, t, line+"\n\n"); err != nil {
			return err
		}
	}
	return nil
}
