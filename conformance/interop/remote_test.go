package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// schemes are the transports, by their URL schemes.
var schemes = []string{"ws", "http"}

// startServer starts a program in dir that serves agents, or with "go" the server for floods, and returns its address.
// The server ends with the test, and must end without an error.
func startServer(t *testing.T, dir, program string) (address string, output *bufio.Reader, stop func()) {
	t.Helper()
	server := exec.Command("node", filepath.Join(dir, program))
	if program == "go" {
		server = exec.Command(os.Args[0])
		server.Env = append(os.Environ(), floodVariable+"=server")
	}
	server.Stderr = t.Output()
	stdin := must.Get(server.StdinPipe())(t)
	stdout := must.Get(server.StdoutPipe())(t)
	must.Do(t, server.Start())
	output = bufio.NewReader(stdout)
	stop = sync.OnceFunc(func() {
		timer := time.AfterFunc(time.Minute, func() { _ = server.Process.Kill() }) // it may have ended
		defer timer.Stop()
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		// The rest of its output is read before Wait closes the pipe.
		rest, _ := io.ReadAll(output)
		output.Reset(strings.NewReader(string(rest)))
		if err := server.Wait(); err != nil {
			t.Errorf("%s: %v", program, err)
		}
	})
	t.Cleanup(stop)
	address = must.Get(output.ReadString('\n'))(t)
	return strings.TrimSpace(address), output, stop
}

// TestRemoteTypeScriptServer drives the TypeScript agent on the TypeScript server with this module's client.
func TestRemoteTypeScriptServer(t *testing.T) {
	address, _, _ := startServer(t, installed.Dir(t), "server.mjs")
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			messages := driveTypeScriptAgent(t, remote.Dial(scheme+"://"+address+"/acp", nil), greetingRoot(t), scheme == "http")
			passed(t, "TypeScript's server", scheme, messages, conformance.Client, 0)
		})
	}
}

// serveExample serves the example agent at the server's address, with one process and a tap for each connection.
func serveExample(t *testing.T, o *remote.HandlerOptions, record func(conformance.Message)) (server *remote.Server, address string) {
	t.Helper()
	program, state := build(t, "agent"), t.TempDir()
	return serve(t, o, func(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
		client, err := conformance.Tap(t, conformance.Agent, transport, &conformance.TapOptions{OnMessage: record}).Connect(ctx)
		if err != nil {
			return err
		}
		command := exec.Command(program, "-state", state)
		command.Stderr = t.Output()
		agent, err := rpc.Command(command).Connect(ctx)
		if err != nil {
			return errors.Join(err, client.Close())
		}
		down := make(chan error, 1)
		go func() { down <- copyMessages(client, agent) }()
		err = errors.Join(copyMessages(agent, client), agent.Close())
		return errors.Join(err, <-down, client.Close())
	})
}

// copyMessages passes messages on until the stream that they come from ends.
func copyMessages(to, from rpc.Stream) error {
	for {
		message, err := from.Read()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		if err := to.Write(message); err != nil {
			return err
		}
	}
}

// serve serves connections on a free port, until the test ends.
func serve(
	t *testing.T, o *remote.HandlerOptions, connection func(context.Context, rpc.Transport, *remote.Peer) error,
) (server *remote.Server, address string) {
	t.Helper()
	server = remote.Handler(func(ctx context.Context, transport rpc.Transport, peer *remote.Peer) error {
		err := connection(ctx, transport, peer)
		if err != nil && t.Context().Err() == nil {
			t.Errorf("a connection ended with %v", err)
		}
		return err
	}, o)
	mux := http.NewServeMux()
	mux.Handle(remote.DefaultPath, server)
	web := remote.NewHTTPServer(mux)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), web.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return server, listener.Addr().String()
}

// TestRemoteTypeScriptClient drives the example agent with the TypeScript client over both of its transports.
func TestRemoteTypeScriptClient(t *testing.T) {
	dir := installed.Dir(t)
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) { driveTypeScriptClient(t, dir, scheme, "TypeScript's client") })
	}
}

func driveTypeScriptClient(t *testing.T, dir, scheme, name string) {
	var messages conformance.Recording
	_, address := serveExample(t, nil, messages.Add)
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("Buy milk.\n"), 0o600))
	var s summary
	drive(t, filepath.Join(dir, "client.mjs"), root, "", []string{fmt.Sprintf("%s://%s%s", scheme, address, remote.DefaultPath)}, &s)
	s.check(t)
	passed(t, name, scheme, messages.Messages(), conformance.Agent, 0)
}
