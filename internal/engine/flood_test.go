package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// victimEnv makes the test binary be what is attacked. Its value is the bound of its heap in bytes, the bound of what its
// connection holds, and how long it answers after the end of its input.
const victimEnv = "ACP_TEST_VICTIM"

// connBytes is the default bound of what a connection holds.
const connBytes = 256 << 20

// fileSize is how long the text is that a victim answers with whose connection holds so much.
func fileSize(maxBytes int) int { return maxBytes / 25 }

// names is what generated code makes of a list of strings.
type names struct{ Names []string }

func (n *names) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("names")
	codec.EncodeStrings(e, n.Names)
	e.EndObject()
}

func (n *names) DecodeJSON(d *codec.Decoder) {
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == "names" {
			n.Names = codec.DecodeStrings[string](d)
		} else {
			d.Skip()
		}
	}
}

// victim serves its parent until that ends the stream, and says on stderr how large its heap was at most. It ends with
// a failure when the heap grows beyond the bound.
func victim(env string) error {
	var bound uint64
	var maxBytes int
	var drain time.Duration
	if _, err := fmt.Sscan(env, &bound, &maxBytes, &drain); err != nil {
		return err
	}
	most, stop, stopped := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for tick := time.NewTicker(time.Millisecond); ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			if most > bound {
				fmt.Fprintf(os.Stderr, "the heap has %d MiB, %d goroutines\n", most>>20, runtime.NumGoroutine())
				os.Exit(3)
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	c, err := Connect(context.Background(), rpc.IO(os.Stdin, os.Stdout, 0), func(c *Conn) []Route {
		return []Route{
			RequestMethod[echoParams, chunk]{Name: "file"}.Handle(func(ctx context.Context, _ *echoParams) (*chunk, error) {
				if err := rpc.Reserve(ctx, fileSize(maxBytes)); err != nil {
					return nil, err
				}
				return &chunk{Text: strings.Repeat("x", fileSize(maxBytes))}, nil
			}),
			RequestMethod[chunk, chunk]{Name: "ask"}.Handle(func(ctx context.Context, _ *chunk) (*chunk, error) { return nil, wait(ctx) }),
			RequestMethod[names, chunk]{Name: "list"}.Handle(func(ctx context.Context, _ *names) (*chunk, error) { return nil, wait(ctx) }),
			chunkMethod.Handle(func(ctx context.Context, u *chunk) error {
				_, err := tellMethod.Call(ctx, c, u)
				return err
			}),
		}
	}, &Options{MaxBytes: maxBytes, DrainTime: drain})
	if err != nil {
		return err
	}
	<-c.Done()
	close(stop)
	<-stopped
	fmt.Fprint(os.Stderr, most)
	return nil
}

// An attack is what the parent sends, and whether it reads what comes.
type attack struct {
	name  string
	n     int
	line  func(i int) string
	deaf  bool // it reads nothing until all was sent, or nothing more is taken
	drain time.Duration
	whole bool // it is about more than bytes, and always made in full
	heap  int  // in MiB, of a connection with the default bound: the collector lets it grow to twice of what is in use
}

// What a connection holds at most is bounded, whatever a peer sends, and whether it reads or not. Below tier Full the
// bound, and what the peer sends, are an eighth, and what is made in full is left out.
func TestFloods(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race {
		t.Skip("the race detector takes memory")
	}
	file := func(i int) string { return request(i, "file", "{}") }
	part := tier.Pick(0, 8, 1, 1)
	long := strings.Repeat("x", 8<<20/part)
	list := strings.Repeat(`,""`, 200_000/part)
	for _, a := range []attack{
		{name: "files", n: 60, line: file, drain: time.Minute, heap: 300},
		{name: "files, and nothing is read", n: 60, line: file, drain: time.Minute, deaf: true, heap: 300},
		{name: "long questions", n: 100, heap: 500, line: func(i int) string {
			return request(i, "ask", `{"text":"`+long+`"}`)
		}},
		{name: "short values", n: 100, heap: 300, line: func(i int) string {
			return request(i, "list", `{"names":[""`+list+`]}`)
		}},
		{name: "sessions", n: 60_000, heap: 80, whole: true, line: func(i int) string {
			return note("chunk", fmt.Sprintf(`{"sessionId":"s%d","text":""}`, i))
		}},
		{name: "refusals, and nothing is read", n: 100_000, deaf: true, heap: 200, whole: true, line: func(i int) string {
			return request(fmt.Sprintf("%d%0500d", i, 0), "nothing", "{}")
		}},
	}[:tier.Pick(0, 4, 6, 6)] {
		t.Run(a.name, func(t *testing.T) { a.run(t, part) })
	}
}

func (a *attack) run(t *testing.T, part int) {
	bound := a.heap << 20
	if a.whole {
		part = 1
	}
	if bound /= part; part > 1 {
		bound += 8 << 20 // what the program itself takes
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d", victimEnv, bound, connBytes/part, a.drain+time.Millisecond))
	said := new(strings.Builder)
	cmd.Stderr = said
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
	begun := time.Now()
	var taken atomic.Int64
	sent := make(chan error, 1)
	go func() {
		defer in.Close()
		for i := range a.n {
			if _, err := io.WriteString(in, a.line(i)+"\n"); err != nil {
				sent <- err
				return
			}
			taken.Add(1)
		}
		sent <- nil
	}()
	for last := int64(-1); a.deaf && len(sent) == 0 && last != taken.Load(); {
		last = taken.Load()
		time.Sleep(500 * time.Millisecond)
	}
	messages, errors := 0, 0
	for r, begins := bufio.NewReaderSize(out, 1<<20), true; ; {
		piece, err := r.ReadSlice('\n')
		if begins {
			messages++
			if bytes.Contains(piece[:min(len(piece), 1000)], []byte(`"error":`)) {
				errors++
			}
		}
		if begins = err == nil; !begins && err != bufio.ErrBufferFull {
			break
		}
	}
	if err := <-sent; err != nil {
		t.Errorf("after %d messages: %v", taken.Load(), err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	var most int
	if _, err := fmt.Sscan(said.String(), &most); err != nil {
		t.Errorf("it said %q", said)
	}
	t.Logf("%d messages sent, %d came, %d of them errors; a heap of %d MiB; %v",
		taken.Load(), messages-1, errors, most>>20, time.Since(begun).Round(time.Millisecond))
}
