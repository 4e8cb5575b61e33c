// This file connects to the MCP servers of a session. MCP over stdio frames its messages as ACP does, so the runtime's
// own connection can be used; mcp_http.go implements MCP over HTTP.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

const (
	mcpTime     = 10 * time.Second // for the start of a server, and for a call
	mcpStopTime = time.Second      // to end after its input, and again after being asked
)

// mcpVersion is the version of MCP that is requested. Any version in the answer is sufficient to list tools.
const mcpVersion = "2025-06-18"

// Bounds on the MCP servers that run and start at once, in all sessions, because a client could name any number.
const (
	defaultMaxServers = 64
	maxStarting       = 4
)

// slots bounds a number: each user holds one slot.
type slots chan struct{}

// mcpServer is a running MCP server.
type mcpServer struct {
	name string
	peer mcpPeer
	slot slots // it holds one of these
}

// mcpPeer is a connection to an MCP server.
type mcpPeer interface {
	call(ctx context.Context, method string, params any) (json.RawMessage, error)
	notify(ctx context.Context, method string) error
	close() error
}

// stdioPeer is a connection over stdio.
type stdioPeer struct{ conn *rpc.Conn }

func (p stdioPeer) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	res, err := rpc.Call[json.RawMessage](ctx, p.conn, method, params)
	if err != nil {
		return nil, err
	}
	return *res, nil
}

func (p stdioPeer) notify(ctx context.Context, method string) error {
	return rpc.Notify(ctx, p.conn, method, nil)
}
func (p stdioPeer) close() error { return p.conn.Close() }

type mcpImplementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type mcpInitialize struct {
	ProtocolVersion string            `json:"protocolVersion"`
	Capabilities    struct{}          `json:"capabilities"`
	ClientInfo      mcpImplementation `json:"clientInfo"`
}

// startServers starts the servers of a session, a few at a time, except those that exceed the limit. broken describes
// those that do not run.
func (a *agent) startServers(ctx context.Context, dir string, wanted []acp.MCPServer) (running []*mcpServer,
	broken []error) {
	servers, errs := make([]*mcpServer, len(wanted)), make([]error, len(wanted))
	var wg sync.WaitGroup
	left := 0
	for i, server := range wanted {
		select {
		case a.running <- struct{}{}:
		default:
			left++
			continue
		}
		a.starting <- struct{}{} // held for a start, which mcpTime bounds
		wg.Go(func() {
			defer func() { <-a.starting }()
			if servers[i], errs[i] = startServer(ctx, server, dir); errs[i] != nil {
				<-a.running
				return
			}
			servers[i].slot = a.running
		})
	}
	wg.Wait()
	for i := range servers {
		if servers[i] != nil {
			running = append(running, servers[i])
		}
		if errs[i] != nil {
			broken = append(broken, errs[i])
		}
	}
	if left > 0 {
		broken = append(broken, fmt.Errorf("%d more are too many: at most %d run at once", left, cap(a.running)))
	}
	return running, broken
}

func startServer(ctx context.Context, server acp.MCPServer, dir string) (*mcpServer, error) {
	ctx, cancel := context.WithTimeout(ctx, mcpTime)
	defer cancel()
	var name string
	var peer mcpPeer
	switch config := server.Variant.(type) {
	case *acp.MCPServerStdio:
		conn, err := startCommand(ctx, config, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", config.Name, err)
		}
		name, peer = config.Name, stdioPeer{conn}
	case *acp.MCPServerHTTP:
		name, peer = config.Name, &httpPeer{config: config}
	default: // the runtime refuses such sessions
		return nil, errors.New("an MCP server of an unknown type")
	}
	_, err := peer.call(ctx, "initialize", mcpInitialize{
		ProtocolVersion: mcpVersion,
		ClientInfo:      mcpImplementation{Name: "acp-example-agent", Version: "1.0.0"},
	})
	if err == nil {
		err = peer.notify(ctx, "notifications/initialized")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), peer.close())
	}
	return &mcpServer{name: name, peer: peer}, nil
}

func startCommand(ctx context.Context, config *acp.MCPServerStdio, dir string) (*rpc.Conn, error) {
	cmd := exec.Command(config.Command, config.Args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	for _, v := range config.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	serve := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(serve, "ping", func(context.Context, *rpc.Conn, *struct{}) (*struct{}, error) { return &struct{}{}, nil })
	transport := rpc.Command(cmd)
	transport.StopTime, transport.KillTime = mcpStopTime, mcpStopTime
	return rpc.Connect(ctx, transport, serve, nil)
}

// stopServers ends all servers concurrently.
func stopServers(servers []*mcpServer) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			errs[i] = s.peer.close()
			<-s.slot
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tools describes the tools of a server.
func (s *mcpServer) tools(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, mcpTime)
	defer cancel()
	text, err := s.peer.call(ctx, "tools/list", struct{}{})
	var res struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err == nil {
		err = json.Unmarshal(text, &res)
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", s.name, err)
	}
	names := make([]string, len(res.Tools))
	for i, tool := range res.Tools {
		names[i] = tool.Name
	}
	return fmt.Sprintf("%s: %s", s.name, strings.Join(names, ", "))
}
