//go:build unix

package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Rule 13: when Close returns, so that the program may exit, the process is gone, however long its end
// takes.
func TestCloseOutlastsTheProcess(t *testing.T) {
	t.Parallel()
	transport := childCommand("stubborn")
	transport.StopTime, transport.KillTime = 200*time.Millisecond, 200*time.Millisecond
	ready := make(chan []int, 1)
	c, err := Connect(t.Context(), transport, func(*Conn) []Route {
		return []Route{NotificationMethod[pidParams]{Name: "pids"}.Handle(func(_ context.Context, p *pidParams) error {
			ready <- p.Pids
			return nil
		})}
	}, &Options{CloseTime: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	pid := receive(t, ready)[0]
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("process %d after Close: %v", pid, err)
	}
	receive(t, c.Done())
}

// Rule 1: a writer given as Stderr that never returns must not keep the connection from ending.
func TestCloseWhileStderrBlocks(t *testing.T) {
	t.Parallel()
	blocks := &blockingWriter{entered: make(chan struct{}), release: make(chan struct{})}
	defer close(blocks.release)
	cmd := exec.Command("sh", "-c", "echo hello >&2; cat >/dev/null")
	cmd.Stderr = blocks
	c, err := Connect(t.Context(), Command(cmd), nil, &Options{CloseTime: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, blocks.entered)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	if err := receive(t, closed); err != nil {
		t.Error(err)
	}
	receive(t, c.Done())
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

// endsWith is a transport whose stream ends with an error of the test's.
type endsWith struct {
	Transport
	err error
}

func (e endsWith) Connect(ctx context.Context) (Stream, error) {
	s, err := e.Transport.Connect(ctx)
	return endingStream{s, e.err}, err
}

type endingStream struct {
	Stream
	err error
}

func (s endingStream) Read() ([]byte, error) {
	line, err := s.Stream.Read()
	if err == io.EOF {
		err = s.err
	}
	return line, err
}

// Wait says whether the end was an orderly one, and Close, which many defer, does not change that.
func TestHowAConnectionEnded(t *testing.T) {
	ended := func(err error) Transport {
		a, b := Pipe()
		stream, _ := b.Connect(t.Context()) // never fails
		stream.Close()
		return endsWith{a, err}
	}
	shell := func(script string) Transport { return Command(exec.Command("sh", "-c", script)) }
	for name, test := range map[string]struct {
		transport Transport
		orderly   bool
		cause     error
	}{
		"end of input":           {ended(io.EOF), true, io.EOF},
		"end of input, wrapped":  {ended(fmt.Errorf("the peer left: %w", io.EOF)), true, io.EOF},
		"broken stream":          {ended(io.ErrUnexpectedEOF), false, io.ErrUnexpectedEOF},
		"subprocess is done":     {shell("exit 0"), true, io.EOF},
		"subprocess has failed":  {shell("exit 3"), false, io.EOF},
		"subprocess was stopped": {shell("kill -9 $$"), false, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(t.Context(), test.transport, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"before Close", "after Close"} {
				err := c.Wait()
				if orderly := err == nil; orderly != test.orderly {
					t.Errorf("%s: %v", when, err)
				}
				if err != nil && (!errors.Is(err, ErrClosed) || !errors.Is(err, test.cause)) {
					t.Errorf("%s: %v", when, err)
				}
				_, err = echoMethod.Call(t.Context(), c, nil)
				_, exit := errors.AsType[*ExitError](err)
				_, command := test.transport.(*CommandTransport)
				if !errors.Is(err, ErrClosed) || !errors.Is(err, test.cause) || exit != command {
					t.Errorf("a call %s: %v", when, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestHowAConnectionWasEnded(t *testing.T) {
	p, c := newPeer(t, nil, nil)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	p.w.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := echoMethod.Call(t.Context(), c, nil); !errors.Is(err, ErrClosed) || errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// Close cannot end a handler that ignores its context; it says so, and the connection ends with that.
func TestCloseWhileAHandlerDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		p, c := newPeer(t, []Route{echoMethod.Handle(func(context.Context, *echoParams) (*echoParams, error) {
			close(entered)
			<-release
			return &echoParams{}, nil
		})}, &Options{CloseTime: time.Second})
		p.send(request(1, "echo", `{}`))
		receive(t, entered)
		start := time.Now()
		if err := c.Close(); err == nil {
			t.Error("Close returned no error")
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("Close took %v", d)
		}
		select {
		case <-c.Done():
			t.Error("the connection is over while a handler runs")
		default:
		}
		close(release)
		receive(t, c.Done())
	})
}

// Requests are answered after the end of input for DrainTime; then their handlers are told.
func TestHandlerThatOutlastsDrainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		p, c := newPeer(t, []Route{echoMethod.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return p, nil
		})}, &Options{DrainTime: 3 * time.Second})
		start := time.Now()
		p.send(request(1, "echo", `{}`))
		p.w.Close()
		if err := receive(t, causes); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("the handler was told after %v", d)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// The transports are exported structs: a literal is as good as what the functions return.
func TestTransportLiterals(t *testing.T) {
	stream, err := (&CommandTransport{Cmd: exec.Command("true")}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := stream.(*process)
	if p.stopTime != 2*time.Second || p.killTime != 3*time.Second || p.tail.max != 8<<10 {
		t.Errorf("defaults: %v, %v, %d", p.stopTime, p.killTime, p.tail.max)
	}
	if _, err := stream.Read(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}

// Programs that kill groups themselves ask for one.
func TestCommandWithAGroupOfItsOwn(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c, err := Connect(t.Context(), Command(cmd), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// The peer of a Stdio stream sees the end of its input when the writing side is closed, and not only
// when the process ends.
func TestStdioHalfClose(t *testing.T) {
	cmd := childCommand("half close").Cmd
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(out)
		ended <- err
	}()
	// The child goes on until its own input ends.
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the end of the output was not seen")
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
