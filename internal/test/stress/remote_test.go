package stress

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

var loadConnections = flag.Int("load.connections", 0, "how many connections a server has, half of which are killed; 0 is what the tier says")

// The updates in the turns of these connections.
const (
	remoteUpdates = 50
	remoteSize    = 200
)

// remoteExpiry returns a time that is long enough for all clients to start at once on a busy machine.
func remoteExpiry(count int) time.Duration {
	return tier.Pick(5*time.Second, 5*time.Second, 20*time.Second, 20*time.Second) + time.Duration(count)*10*time.Millisecond
}

// clientsKind is the kind of a process with many clients; its arguments are the way, the address and the number.
const clientsKind = "clients"

// ways are how clients connect.
var ways = []string{"ws", "http", "h2c"}

// dialer returns the transport of a client.
func dialer(way, address string) acp.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(way != "h2c")
	protocols.SetUnencryptedHTTP2(way == "h2c")
	client := &http.Client{Transport: &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 8}}
	scheme := "http"
	if way == "ws" {
		scheme = "ws"
	}
	return remote.Dial(scheme+"://"+address+remote.DefaultPath, &remote.DialOptions{HTTPClient: client})
}

// beClients is the main function of such a process. It opens all connections with a session and a turn each, prints the
// result, starts another turn in each that does not end, prints that, and ends them all when its input ends.
func beClients(args []string) error {
	way, address := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var failed, disordered atomic.Int64
	var first atomic.Pointer[error]
	conns := make([]*acp.ClientConn, count)
	lingering := make(chan struct{}, count)
	var opening, turns sync.WaitGroup
	room := make(chan struct{}, 50) // at once
	for i := range conns {
		room <- struct{}{}
		opening.Go(func() {
			defer func() { <-room }()
			next := 0
			handlers := acp.ClientHandlers{SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
				if numberOf(&n.Update) != next {
					disordered.Add(1)
				}
				if next++; next == 2*remoteUpdates {
					lingering <- struct{}{}
				}
				return nil
			}}
			ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
			defer cancel()
			err := func() error {
				conn, err := acp.Connect(ctx, dialer(way, address), handlers, nil)
				if err != nil {
					return err
				}
				conns[i] = conn
				session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
				if err != nil {
					return err
				}
				if _, err := session.Prompt(ctx, plan{Updates: remoteUpdates, Size: remoteSize}.block()); err != nil {
					return err
				}
				if next != remoteUpdates {
					return fmt.Errorf("the answer came after %d updates", next)
				}
				turns.Go(func() {
					// It ends with the connection.
					_, _ = session.Prompt(context.Background(), plan{Updates: remoteUpdates, Size: remoteSize, Linger: true}.block())
				})
				return nil
			}()
			if err != nil {
				failed.Add(1)
				first.CompareAndSwap(nil, &err)
				lingering <- struct{}{}
			}
		})
	}
	opening.Wait()
	for range count {
		<-lingering
	}
	fmt.Printf("%d %d\n", failed.Load(), disordered.Load())
	if err := first.Load(); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", *err)
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var closing sync.WaitGroup
	for _, conn := range conns {
		if conn != nil {
			closing.Go(func() {
				if err := conn.Close(); err != nil {
					fmt.Fprintln(os.Stderr, "clients:", err)
				}
			})
		}
	}
	closing.Wait()
	turns.Wait()
	return nil
}

// clients is a process with many clients.
type clients struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	said  *stderr
}

func startClients(t *testing.T, way, address string, count int) *clients {
	t.Helper()
	c := &clients{cmd: exec.Command(os.Args[0], way, address, strconv.Itoa(count)), said: &stderr{}}
	c.cmd.Env = append(os.Environ(), childEnv+"="+clientsKind, "GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr = c.said
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill() // the test has failed early
			_ = c.cmd.Wait()
		}
	})
	return c
}

// ready waits until all turns are running, and requires that there were no errors.
func (c *clients) ready(t *testing.T) {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil || line != "0 0\n" {
		t.Fatalf("clients that failed, and updates out of order: %q, %v\n%s", line, err, c.said)
	}
}

// kill kills the process.
func (c *clients) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.cmd.Wait() // its error is that it was killed
}

// end makes the process close its connections.
func (c *clients) end(t *testing.T) {
	t.Helper()
	if err := c.stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil || c.said.String() != "" {
		t.Errorf("the clients ended with %v: %s", err, c.said)
	}
}

// usage is the resource usage of this process.
type usage struct {
	goroutines, files int
	memory            int // heap and stacks
	resident          int
}

func use() usage {
	runtime.GC() // the second collection frees the pools of net/http
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{runtime.NumGoroutine(), openFiles(), int(m.HeapInuse + m.StackInuse), vm(os.Getpid(), "VmRSS")}
}

// settles waits until a condition is true.
func settles(t *testing.T, what string, within time.Duration, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s: not within %v", what, within)
			return
		}
	}
}

// A server has many connections, each with a session and a turn. Half of the clients are killed, and all their
// resources are freed; the same happens when the others end.
func TestRemoteConnections(t *testing.T) {
	tier.Need(t, tier.Full)
	tab := newTable(t, "clients", "connections", "memory each", "resident each", "goroutines each", "files each", "begun within", "killed, freed within", "goroutines", "files", "memory")
	for _, way := range ways[:tier.Pick(0, 1, 1, 3)] {
		t.Run(way, func(t *testing.T) { manyConnections(t, way, of(*loadConnections, 0, 10, 40, 200), tab) })
	}
}

func manyConnections(t *testing.T, way string, count int, tab *table) {
	var running, wrong atomic.Int64
	agents := remote.Handler(func(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
		running.Add(1)
		defer running.Add(-1)
		a := &agent{sessions: map[acp.SessionID]*int{}}
		err := acp.ServeAgent(ctx, transport, a.handlers(), nil)
		if errors.Is(err, rpc.ErrStuck) {
			wrong.Add(1)
		}
		return nil // clients are killed
	}, &remote.HandlerOptions{Expiry: remoteExpiry(count)})
	mux := http.NewServeMux()
	mux.Handle(remote.DefaultPath, agents)
	server := remote.NewHTTPServer(mux)
	server.IdleTimeout = 0 // net/http keeps memory of an ended HTTP/2 connection for this time
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(agents.Shutdown(ctx), server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()

	before := use()
	begun := time.Now()
	half := count / 2
	killed := startClients(t, way, listener.Addr().String(), half)
	kept := startClients(t, way, listener.Addr().String(), count-half)
	started := use() // with the pipes to the two processes
	killed.ready(t)
	kept.ready(t)
	ready := time.Since(begun)
	full := use()
	if n := running.Load(); n != int64(count) {
		t.Errorf("%d agents run, want %d", n, count)
	}

	killed.kill(t)
	gone := time.Now()
	settles(t, "the killed clients' agents", remoteExpiry(count)+patience, func() bool { return running.Load() == int64(count-half) })
	freed := time.Since(gone)
	kept.end(t)
	settles(t, "all agents", patience, func() bool { return running.Load() == 0 })
	var after usage
	settles(t, "goroutines and files", patience, func() bool {
		after = usage{goroutines: runtime.NumGoroutine(), files: openFiles()}
		return after.goroutines <= before.goroutines && after.files <= before.files
	})
	if n := len(agents.Stats().Connections); n > 0 {
		for transport, n := range agents.Stats().Connections {
			if n > 0 {
				t.Errorf("the server counts %d connections by %s", n, transport)
			}
		}
	}
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d agents were stuck", n)
	}
	end := use()
	if end.memory > before.memory+smallGrowth && !gentest.Race {
		t.Errorf("memory was %s, and is %s at the end", mib(before.memory), mib(end.memory))
	}
	each := func(full, before int) string { return fmt.Sprintf("%.1f", float64(full-before)/float64(count)) }
	kib := func(full, before int) string {
		return fmt.Sprintf("%.1f KiB", float64(full-before)/float64(count)/1024)
	}
	tab.row(way, strconv.Itoa(count), kib(full.memory, started.memory), kib(full.resident, started.resident),
		each(full.goroutines, started.goroutines), each(full.files, started.files), ready.Round(time.Millisecond).String(),
		freed.Round(time.Millisecond).String(), fmt.Sprintf("%d → %d", before.goroutines, after.goroutines), fmt.Sprintf("%d → %d", before.files, after.files),
		mib(before.memory)+" → "+mib(end.memory))
}

// openFiles returns the number of files that this process has open, or 0 if it is not available.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries) - 1 // without the folder's
}
