package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/acpgo/sdk/internal/filelock"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestMain is a process that takes the lock and is killed with it, too.
func TestMain(m *testing.M) {
	if name := os.Getenv("FILELOCK_TEST"); name != "" {
		lock, err := filelock.Try(name)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
		runtime.KeepAlive(lock)
	}
	os.Exit(m.Run())
}

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock := must.Get(filelock.Try(name))(t)
	if _, err := filelock.Try(name); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := filelock.Wait(ctx, name); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		lock, err := filelock.Wait(t.Context(), name)
		if err == nil {
			err = lock.Unlock()
		}
		waited <- err
	}()
	must.Do(t, lock.Unlock())
	must.Do(t, <-waited)
	if _, err := filelock.Try(filepath.Join(name, "below")); err == nil || errors.Is(err, filelock.ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// TestKilled: a lock ends with its process.
func TestKilled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FILELOCK_TEST="+name)
	in := must.Get(cmd.StdinPipe())(t)
	defer in.Close()
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := filelock.Try(name); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("got %v", err)
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	lock := must.Get(filelock.Wait(t.Context(), name))(t)
	must.Do(t, lock.Unlock())
}
