package stress

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	loadUpdates = flag.Int("load.updates", 0, "how many updates a burst has; 0 is what the tier says")
	loadMessage = flag.Int("load.message", 4<<20, "the longest message that the test of the limit lets pass, in bytes")
	soakTime    = flag.Duration("soak.time", 0, "how long the soak lasts; 0 is what the tier says")
	soakSeed    = flag.Uint64("soak.seed", 0, "the seed of the soak; 0 takes one at random")
)

// of returns the value of a flag if it is set, and otherwise the value for the tier.
func of[T comparable](said, short, normal, full, nightly T) T {
	if said != *new(T) {
		return said
	}
	return tier.Pick(short, normal, full, nightly)
}

// soaking returns how long the soak lasts.
func soaking() time.Duration {
	return of(*soakTime, 100*time.Millisecond, 100*time.Millisecond, 2*time.Second, 10*time.Second)
}

// patience is the time limit for events that must happen soon.
const patience = 3 * time.Minute

// childEnv turns the test binary into an agent of some kind.
const childEnv = "ACP_STRESS_CHILD"

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // messages that are too long cause warnings
	if kind := os.Getenv(childEnv); kind != "" {
		run := func() error { return serve(kind) }
		if kind == clientsKind {
			run = func() error { return beClients(os.Args[1:]) }
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// subprocess is an agent in a separate process, and the connection to it.
type subprocess struct {
	*acp.ClientConn
	cmd *exec.Cmd
}

// command returns a transport that starts an agent of some kind.
func command(kind string) (*acp.CommandTransport, *stderr) {
	cmd := exec.Command(os.Args[0])
	// The race detector would delay each exit by a second.
	cmd.Env = append(os.Environ(), childEnv+"="+kind, "GORACE=atexit_sleep_ms=0")
	out := &stderr{}
	cmd.Stderr = out
	return acp.Command(cmd), out
}

// start starts an agent that must end without errors, connects to it, and ends it with the test.
func start(t *testing.T, kind string, handlers acp.ClientHandlers, opts acp.ConnOptions, maxMessage int) *subprocess {
	t.Helper()
	transport, out := command(kind)
	transport.MaxMessage = maxMessage
	cmd := transport.Cmd
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := acp.Connect(ctx, transport, handlers, &acp.ClientOptions{Conn: opts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if said := out.String(); said != "" || !cmd.ProcessState.Success() {
			t.Errorf("the agent ended with %v: %s", cmd.ProcessState, said)
		}
	})
	return &subprocess{conn, cmd}
}

// bounded returns a context for a turn with some updates, which takes a while but not forever.
func bounded(t *testing.T, updates int) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(updates)*2*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// receive waits for a value that must arrive soon.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("it takes too long:", what)
	}
	panic("unreachable")
}

// newSession opens a session.
func newSession(t *testing.T, agent *acp.ClientConn) *acp.ClientSession {
	t.Helper()
	session, err := agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// stderr keeps the standard error of a subprocess, which is empty unless something is wrong.
type stderr struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *stderr) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
