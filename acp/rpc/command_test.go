//go:build unix

package rpc

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func childCommand(kind string) *CommandTransport {
	cmd := exec.Command(os.Args[0])
	// The race detector would delay each exit by a second.
	cmd.Env = append(os.Environ(), childEnv+"="+kind, "GORACE=atexit_sleep_ms=0")
	return Command(cmd)
}

func connectChild(t *testing.T, kind string) *Conn {
	t.Helper()
	return connectCommand(t, childCommand(kind), nil, nil)
}

// telling is an extension that passes on the processes that a child names.
func telling() (*Extensions[Conn], <-chan []int) {
	type pidParams struct{ Pids []int }
	ext, pids := &Extensions[Conn]{}, make(chan []int, 1)
	HandleNotification(ext, "pids", func(_ context.Context, _ *Conn, p *pidParams) error {
		pids <- p.Pids
		return nil
	})
	return ext, pids
}

func connectCommand(t *testing.T, transport *CommandTransport, ext *Extensions[Conn], opts *Options) *Conn {
	t.Helper()
	transport.StopTime, transport.KillTime = 200*time.Millisecond, 200*time.Millisecond
	c := must.Get(Connect(t.Context(), transport, ext, opts))(t)
	t.Cleanup(func() { must.Do(t, c.Close()) })
	return c
}

func TestCommandAndStdio(t *testing.T) {
	c := connectChild(t, "serve")
	big := strings.Repeat("é\n\u2028", 1<<18)
	type text struct{ Text string }
	for i := range 100 {
		res, err := echoMethod.Call(t.Context(), c, &echoParams{SessionID: big[:i*6], N: i})
		if err != nil || res.N != i || res.SessionID != big[:i*6] {
			t.Fatal(res, err)
		}
	}
	if _, err := Call[text](t.Context(), c, "nope", &text{big}); !errors.Is(err, ErrMethodNotFound) {
		t.Error(err)
	}
	must.Do(t, c.Close())
}

// Each call that fails because the process has ended says how, whether its request was written, could not be, or came
// later.
func TestEveryCallSaysHowTheProcessEnded(t *testing.T) {
	fastest := patience
	for n := 0; n < 10 || n < 100 && fastest >= lingerTime; n++ { // more on a busy machine
		// The child has inherited one side of a pipe, whose end is the child's.
		lives, held, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		transport := childCommand("die")
		transport.Cmd.ExtraFiles = []*os.File{held}
		c := connectCommand(t, transport, nil, nil)
		held.Close()
		var died time.Time
		var watching, group sync.WaitGroup
		watching.Go(func() {
			_, _ = io.Copy(io.Discard, lives)
			died = time.Now()
		})
		for i := range 8 {
			group.Go(func() {
				for failed := 0; failed < 20; {
					err := Notify(t.Context(), c, "note", &echoParams{N: i})
					if i%2 == 0 || err != nil {
						_, err = echoMethod.Call(t.Context(), c, &echoParams{N: i})
					}
					if err == nil {
						continue
					}
					failed++
					if exit, ok := errors.AsType[*ExitError](err); !ok || exit.State.ExitCode() != 3 || !errors.Is(err, ErrClosed) {
						t.Errorf("failure %d: %v, want the exit status", failed, err)
						return
					}
				}
			})
		}
		group.Wait()
		noticed := time.Now()
		watching.Wait()
		lives.Close()
		fastest = min(fastest, noticed.Sub(died))
	}
	if fastest >= lingerTime {
		t.Errorf("each end was noticed after %v or more", fastest)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	for _, kind := range []string{"stubborn", "orphan"} {
		t.Run(kind, func(t *testing.T) {
			ext, pids := telling()
			// Its end says that none of those that have inherited the other side lives.
			lives, held, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer lives.Close()
			transport := childCommand(kind)
			transport.Cmd.ExtraFiles = []*os.File{held}
			c := connectCommand(t, transport, ext, nil)
			held.Close()
			all := <-pids
			if kind == "orphan" {
				c.Wait() // the end is seen although the output stays open
			}
			must.Do(t, c.Close())
			must.Do(t, lives.SetReadDeadline(time.Now().Add(patience)))
			if _, err := io.Copy(io.Discard, lives); err != nil {
				t.Errorf("of the processes %v one still runs: %v", all, err)
			}
		})
	}
}

func TestCommandCannotStart(t *testing.T) {
	_, err := Connect(t.Context(), Command(exec.Command("/nonexistent/agent")), nil, nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	transport := childCommand("serve")
	transport.Cmd.Stdout = os.Stderr
	if _, err := Connect(t.Context(), transport, nil, nil); err == nil {
		t.Error("a command with its output set was started")
	}
}

func TestTransportConnectsOnce(t *testing.T) {
	a, _ := Pipe()
	must.Get(a.Connect(t.Context()))(t)
	if _, err := a.Connect(t.Context()); err == nil {
		t.Error("connected twice")
	}
}

func TestHalfClose(t *testing.T) {
	stream := must.Get(childCommand("serve").Connect(t.Context()))(t)
	defer stream.Close()
	must.Do(t, stream.(FastStream).WriteLines([]byte(request(1, "echo", `{"n":1}`)+"\n"+request(2, "echo", `{"n":2}`)+"\n")))
	must.Do(t, stream.(HalfCloser).CloseWrite())
	answers := 0
	for {
		_, err := stream.Read()
		if err == nil {
			answers++
			continue
		}
		if exit, ok := errors.AsType[*ExitError](err); !ok || !exit.State.Success() {
			t.Error(err)
		}
		break
	}
	if answers != 2 {
		t.Errorf("%d answers", answers)
	}
}
