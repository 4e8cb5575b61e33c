package interop

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

var (
	remoteUpdates = flag.Int("remote.updates", 5_000, "how many updates a flood has")
	remoteRounds  = flag.Int("remote.rounds", 1, "how often each pair is measured; the fastest counts")
)

// floodVariable turns the test binary into one side of a flood: the server, the client, or an agent on standard input
// and output.
const floodVariable = "ACP_INTEROP_FLOOD"

// flooding is the main function of such a process.
func flooding(kind string) error {
	switch kind {
	case "server":
		return floodServer()
	case "agent":
		return serveFlood(context.Background(), acp.Stdio())
	default:
		return floodClient(os.Args[1:])
	}
}

// order returns a text that asks for updates, as in flood.mjs.
func order(count, size int) string { return fmt.Sprintf("flood-%d-%d", count, size) }

// chunk returns the text of update n, which is size bytes long.
func chunk(n, size int) string {
	text := strconv.Itoa(n)
	return text + strings.Repeat(".", size-len(text))
}

// serveFlood is the agent of flood-server.mjs.
func serveFlood(ctx context.Context, transport rpc.Transport) error {
	flood := func(ctx context.Context, session *acp.AgentSession, order string) error {
		var count, size int
		if _, err := fmt.Sscanf(order, "flood-%d-%d", &count, &size); err != nil {
			return acp.InvalidParamsf("%v", err)
		}
		for n := range count {
			if err := session.Update(ctx, acp.AgentMessageText(chunk(n, size))); err != nil {
				return err
			}
		}
		return nil
	}
	return acp.ServeAgent(ctx, transport, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "one"}, nil
		},
		LoadSession: func(ctx context.Context, session *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			return &acp.LoadSessionResponse{}, flood(ctx, session, string(session.ID()))
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, flood(ctx, session, text)
		},
	}, nil)
}

// floodServer does what flood-server.mjs does.
func floodServer() error {
	agent := remote.Handler(func(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
		return serveFlood(ctx, transport)
	}, nil)
	mux := http.NewServeMux()
	mux.Handle(remote.DefaultPath, agent)
	server := remote.NewHTTPServer(mux)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	fmt.Println(peakMemory())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = errors.Join(agent.Shutdown(ctx), server.Shutdown(ctx))
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// flooded is the report of a flood's client.
type flooded struct {
	Handled, Before, Disordered int
	Answered, Seconds           float64
	Peak, ServerPeak            int
}

// floodClient does what flood-client.mjs does; the URL "pipe" is an agent on standard input and output.
func floodClient(args []string) error {
	url, method := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	transport := remote.Dial(url, nil)
	command := exec.Command(os.Args[0])
	if url == "pipe" {
		command.Env = append(os.Environ(), floodVariable+"=agent")
		transport = acp.Command(command)
	}
	var handled, disordered atomic.Int64
	var last time.Time
	all := make(chan struct{})
	ctx := context.Background()
	conn, err := acp.Connect(ctx, transport, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			var text string
			if u, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
				text = u.Content.Text()
			}
			if text != chunk(int(handled.Load()), size) {
				disordered.Add(1)
			}
			if handled.Add(1) == int64(count) {
				last = time.Now()
				close(all)
			}
			return nil
		},
	}, nil)
	if err != nil {
		return err
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	if err != nil {
		return err
	}
	begun := time.Now()
	if method == "load" {
		_, err = conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: acp.SessionID(order(count, size)), Cwd: "/"})
	} else {
		_, err = session.Prompt(ctx, acp.TextBlock(order(count, size)))
	}
	if err != nil {
		return err
	}
	answered := time.Now()
	out := flooded{Before: int(handled.Load()), Answered: answered.Sub(begun).Seconds()}
	select {
	case <-all:
	case <-time.After(time.Minute): // too few are reported
	}
	out.Handled, out.Disordered = int(handled.Load()), int(disordered.Load())
	out.Seconds = max(out.Answered, last.Sub(begun).Seconds())
	if url == "pipe" {
		out.ServerPeak = peakMemoryOf(command.Process.Pid)
	}
	if err := conn.Close(); err != nil {
		return err
	}
	out.Peak = peakMemory()
	return json.NewEncoder(os.Stdout).Encode(out)
}

func peakMemory() int { return peakMemoryOf(os.Getpid()) }

// peakMemoryOf returns the peak memory of a process in bytes, or 0 if the number is not available.
func peakMemoryOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0
	}
	return kib << 10
}

// flood runs a client that asks a server for updates. Each is "go" or "typescript", and the server may also be "pipe".
func flood(t *testing.T, dir, server, client, scheme, method string, count, size int) flooded {
	t.Helper()
	url, stop := "pipe", func() int { return 0 }
	if server != "pipe" {
		address, output, end := startServer(t, dir, floodProgram(server))
		url = scheme + "://" + address + remote.DefaultPath
		stop = func() int {
			end()
			text := must.Get(output.ReadString('\n'))(t)
			return must.Get(strconv.Atoi(strings.TrimSpace(text)))(t)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(count)*2*time.Millisecond)
	defer cancel()
	args := []string{url, method, strconv.Itoa(count), strconv.Itoa(size)}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), floodVariable+"=client")
	if client == "typescript" {
		cmd = exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "flood-client.mjs")}, args...)...)
	}
	cmd.Stderr = t.Output()
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s client, %s server, %s: %v", client, server, scheme, err)
	}
	var out flooded
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if server != "pipe" {
		out.ServerPeak = stop()
	}
	if out.Handled != count || out.Disordered > 0 {
		t.Errorf("%s client, %s server, %s: %d of %d updates arrived, %d out of order", client, server, scheme, out.Handled, count, out.Disordered)
	}
	return out
}

// floodProgram is the program of a side: a script in the folder, or this one.
func floodProgram(side string) string {
	if side == "typescript" {
		return "flood-server.mjs"
	}
	return "go"
}

// All updates of a session/load arrive before its answer, over every transport with this module on one side.
func TestRemoteLoad(t *testing.T) {
	dir := installed.Dir(t)
	const updates = 3000
	for _, scheme := range schemes {
		for _, pair := range []struct{ server, client string }{{"go", "typescript"}, {"go", "go"}, {"typescript", "go"}, {"typescript", "typescript"}} {
			out := flood(t, dir, pair.server, pair.client, scheme, "load", updates, 64)
			t.Logf("%-4s %10s server, %10s client: %d of %d updates were handled before the answer", scheme, pair.server, pair.client, out.Before, updates)
			// This module is not responsible for the TypeScript SDK at both ends, or for messages that the SDK sends on
			// two streams.
			if out.Before != updates && pair.server == "go" {
				t.Errorf("%s, %s client: %d updates arrived after the answer", scheme, pair.client, updates-out.Before)
			}
		}
	}
}

// TestRemoteFlood prints the cost of many small updates. Make it large with -remote.updates 1000000.
func TestRemoteFlood(t *testing.T) {
	dir := installed.Dir(t)
	const size = 64
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "transport\tserver\tclient\ttime\tupdates/s\tserver's peak\tclient's peak")
	for _, row := range []struct{ scheme, server, client string }{
		{"pipe", "pipe", "go"},
		{"ws", "go", "go"}, {"ws", "go", "typescript"}, {"ws", "typescript", "go"}, {"ws", "typescript", "typescript"},
		{"http", "go", "go"}, {"http", "go", "typescript"}, {"http", "typescript", "go"}, {"http", "typescript", "typescript"},
	} {
		var best flooded
		t.Run(row.scheme+" "+row.server+" "+row.client, func(t *testing.T) {
			for range *remoteRounds {
				if out := flood(t, dir, row.server, row.client, row.scheme, "prompt", *remoteUpdates, size); best.Handled == 0 || out.Seconds < best.Seconds {
					best = out
				}
			}
		})
		if best.Handled == 0 {
			continue // not chosen, or failed
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.3f s\t%.0f\t%d MiB\t%d MiB\n", row.scheme, row.server, row.client, best.Seconds,
			float64(best.Handled)/best.Seconds, best.ServerPeak>>20, best.Peak>>20)
	}
	must.Do(t, w.Flush())
	t.Logf("%d updates of %d bytes, %d processors:\n%s", *remoteUpdates, size, runtime.NumCPU(), text.String())
}
