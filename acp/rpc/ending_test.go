//go:build unix

package rpc

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Rule 13: when Close returns, so that the program may exit, the process is gone, however long its end
// takes.
func TestCloseOutlastsTheProcess(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	ext, pids := telling()
	c := connectCommand(t, childCommand("stubborn"), ext, &Options{CloseTime: 10 * time.Millisecond})
	pid := (<-pids)[0]
	must.Do(t, c.Close())
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("process %d after Close: %v", pid, err)
	}
	<-c.Done()
}

// Rule 1: a writer given as Stderr that never returns must not keep the connection from ending.
func TestCloseWhileStderrBlocks(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	blocks := &blockingWriter{entered: make(chan struct{}), release: make(chan struct{})}
	defer close(blocks.release)
	cmd := exec.Command("sh", "-c", "echo hello >&2; cat >/dev/null")
	cmd.Stderr = blocks
	c := must.Get(Connect(t.Context(), Command(cmd), nil, &Options{CloseTime: 10 * time.Millisecond}))(t)
	<-blocks.entered
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	must.Do(t, <-closed)
	<-c.Done()
}

type blockingWriter struct {
	once             sync.Once
	entered, release chan struct{}
}

func (w *blockingWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.entered) })
	<-w.release
	return len(b), nil
}

// The transports are exported structs: a literal is as good as what the functions return.
func TestTransportLiterals(t *testing.T) {
	stream := must.Get((&CommandTransport{Cmd: exec.Command("true")}).Connect(t.Context()))(t)
	p := stream.(*process)
	if p.stopTime != 2*time.Second || p.killTime != 3*time.Second || p.tail.max != 8<<10 {
		t.Errorf("defaults: %v, %v, %d", p.stopTime, p.killTime, p.tail.max)
	}
	if _, err := stream.Read(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	must.Do(t, stream.Close())
}

// Programs that kill groups themselves ask for one.
func TestCommandWithAGroupOfItsOwn(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := must.Get(Connect(t.Context(), Command(cmd), nil, nil))(t)
	must.Do(t, c.Close())
}

// An input that is a file is read in order, and not made non-blocking for other processes that have it open.
func TestInputIsAFile(t *testing.T) {
	want := strings.Repeat("0123456789\n", 10_000)
	name := filepath.Join(t.TempDir(), "in")
	must.Do(t, os.WriteFile(name, []byte(want), 0o600))
	f := must.Get(os.Open(name))(t)
	defer f.Close()
	in := interruptible(f)
	if got, err := io.ReadAll(in); string(got) != want || err != nil {
		t.Errorf("got %d of %d bytes, or in another order, %v", len(got), len(want), err)
	}
	if _, ok := in.ReadWriter.(*os.File); ok {
		t.Error("it was made non-blocking")
	}
	must.Do(t, in.Close())
}

// The peer of a Stdio stream sees the end of its input when the writing side is closed, and not only
// when the process ends.
func TestStdioHalfClose(t *testing.T) {
	cmd := childCommand("half close").Cmd
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(out)
		ended <- err
	}()
	// The child continues until its own input ends.
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the end of the output was not seen")
	}
	in.Close()
	must.Do(t, cmd.Wait())
}
