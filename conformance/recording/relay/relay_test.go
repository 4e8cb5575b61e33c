package relay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// runAs turns the test binary into another program: the relay, which writes to the file in recordTo, or one of the
// agents.
const (
	runAs    = "ACP_RELAY_TEST_RUN_AS"
	recordTo = "ACP_RELAY_TEST_FILE"
)

func TestMain(m *testing.M) {
	role := os.Getenv(runAs)
	if role == "relay" {
		os.Unsetenv(runAs) // the agent has a different role
		if err := runRelay(); err != nil {
			fmt.Fprintln(os.Stderr, "relay:", err)
			os.Exit(99)
		}
		return
	}
	if act, ok := agents[role]; ok {
		act()
		return
	}
	goleak.VerifyTestMain(m)
}

func runRelay() error {
	file, err := os.Create(os.Getenv(recordTo))
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	w, err := recording.NewWriter(file, recording.Header{Command: cmd.Args}, nil)
	if err != nil {
		return err
	}
	signals, stop := relay.Notify()
	defer stop()
	result, err := relay.Run(cmd, relay.Options{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals, Writer: w,
		RecordStderr: os.Getenv(recordStderr) != "",
	})
	if err != nil {
		return err
	}
	if err := errors.Join(result.Err, file.Close()); err != nil {
		return err
	}
	relay.Exit(result.State)
	return nil
}

const recordStderr = "ACP_RELAY_TEST_STDERR"

// agents are programs for the relay to run.
var agents = map[string]func(){
	// writes back its input, and ends with status 7
	"echo": func() {
		io.Copy(os.Stdout, os.Stdin)
		os.Exit(7)
	},
	// reads its input to the end, and then writes 1000 lines
	"late": func() {
		io.Copy(io.Discard, os.Stdin)
		for i := range 1000 {
			fmt.Printf("{\"n\":%d,\"fill\":%q}\n", i, strings.Repeat("x", 1000))
		}
	},
	// closes its output and continues until its input ends
	"mute": func() {
		os.Stdout.Close()
		io.Copy(io.Discard, os.Stdin)
	},
	// closes its input, reports that, and continues
	"deaf": func() {
		os.Stdin.Close()
		fmt.Println("closed")
		select {}
	},
	"loud": func() {
		fmt.Fprint(os.Stderr, "one\ntwo\nthree")
		fmt.Print("no newline")
	},
}

// through returns a relay for an agent of this binary, and its recording.
func through(t *testing.T, role string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	cmd := exec.Command(self, "env", runAs+"="+role, self)
	cmd.Env = append(append(os.Environ(), runAs+"=relay", recordTo+"="+file, "GORACE=atexit_sleep_ms=0"), env...)
	return cmd, file
}

func readFile(t *testing.T, file string) []recording.Entry {
	t.Helper()
	return cleantest.Entries(t, bytes.NewReader(must.Get(os.ReadFile(file))(t)))
}

// sent returns the bytes that a side has written, according to a recording.
func sent(all []recording.Entry, d conformance.Direction) string {
	var b strings.Builder
	for _, e := range all {
		if e.Kind == recording.KindMessage && e.Direction == d {
			b.Write(e.Line)
			if !e.Partial {
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

var everything = strings.Join([]string{
	`{"jsonrpc":"2.0","method":"_vendor/thing","params":{"z":1,"a":[1.0,1e2,12345678901234567890],"_meta":{"k": null}}}`,
	`no JSON at all` + "\r", "", "\xff\xfe broken \x00", `{"long":"` + strings.Repeat("x", 3<<20) + `"}`, "end without a newline",
}, "\n")

// Nothing is changed, added or dropped, neither in transit nor in the recording, and the relay's exit status is the
// agent's.
func TestEveryByte(t *testing.T) {
	cmd, file := through(t, "echo")
	cmd.Stdin = strings.NewReader(everything)
	got, err := cmd.Output()
	if string(got) != everything {
		t.Errorf("%d of %d bytes came back", len(got), len(everything))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 {
		t.Errorf("ended with %v, want status 7", err)
	}
	all := readFile(t, file)
	for _, d := range []conformance.Direction{conformance.ToAgent, conformance.ToClient} {
		if got := sent(all, d); got != everything {
			t.Errorf("%v: %d of %d bytes were recorded", d, len(got), len(everything))
		}
	}
	if end := all[len(all)-1]; end.Kind != recording.KindEnd || end.End.Code == nil || *end.End.Code != 7 || end.End.Closed != conformance.Client {
		t.Errorf("got end %+v", end.End)
	}
}

// Output that the agent writes after the end of its input still reaches the client.
func TestLateAnswers(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	cmd, file := through(t, "late")
	cmd.Stdin = strings.NewReader("{}\n")
	got, err := cmd.Output()
	if n := bytes.Count(got, []byte("\n")); n != 1000 || err != nil {
		t.Errorf("got %d lines, %v, want 1000", n, err)
	}
	if recorded := sent(readFile(t, file), conformance.ToClient); recorded != string(got) {
		t.Errorf("%d of %d bytes were recorded", len(recorded), len(got))
	}
}

// Standard error passes unchanged; its lines are recorded on demand.
func TestStandardError(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	for _, env := range []string{"", "1"} {
		cmd, file := through(t, "loud", recordStderr+"="+env)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		got, err := cmd.Output()
		if string(got) != "no newline" || stderr.String() != "one\ntwo\nthree" || err != nil {
			t.Errorf("got %q, %q, %v", got, &stderr, err)
		}
		var lines []string
		for _, e := range readFile(t, file) {
			if e.Kind == recording.KindStderr {
				lines = append(lines, string(e.Line))
			}
		}
		if want := strings.Fields(strings.Repeat("one two three", len(env))); fmt.Sprint(lines) != fmt.Sprint(want) {
			t.Errorf("recorded %q, want %q", lines, want)
		}
	}
}

// The client sees the end of the agent's output at once, although the agent is still running.
func TestOutputEnds(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	cmd, _ := through(t, "mute")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	if got, err := io.ReadAll(out); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	must.Do(t, in.Close())
	must.Do(t, cmd.Wait())
}

func TestAgentDoesNotStart(t *testing.T) {
	_, err := relay.Run(exec.Command("/no/such/agent"), relay.Options{Stdin: io.NopCloser(strings.NewReader("")), Stdout: nopCloser{io.Discard}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// echo runs the relay in this process, with the echo agent.
func echo(t *testing.T, options relay.Options) (toRelay io.WriteCloser, fromRelay io.ReadCloser, wait func() *relay.Result) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), runAs+"=echo", "GORACE=atexit_sleep_ms=0")
	in, toRelay, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRelay, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	options.Stdin, options.Stdout = in, out
	var result *relay.Result
	var wg sync.WaitGroup
	wg.Go(func() {
		if result, err = relay.Run(cmd, options); err != nil {
			t.Error(err)
		}
	})
	return toRelay, fromRelay, func() *relay.Result {
		wg.Wait()
		if err := fromRelay.Close(); err != nil {
			t.Error(err)
		}
		return result
	}
}

// stuck is a file whose writes block until they are released.
type stuck struct {
	release chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.release
	return s.Buffer.Write(b)
}

// A blocked file delays no messages, memory is bounded, and the recording reports the gaps.
func TestRecordingIsBesideTheTraffic(t *testing.T) {
	file := &stuck{release: make(chan struct{}, 1)}
	file.release <- struct{}{} // for the header
	w := must.Get(recording.NewWriter(file, recording.Header{}, nil))(t)
	in, out, wait := echo(t, relay.Options{Writer: w, MaxPending: 100 << 10})
	line := []byte(strings.Repeat("x", 999) + "\n")
	got := make([]byte, len(line))
	const n = 1000
	for range n {
		must.Get(in.Write(line))(t)
		if _, err := io.ReadFull(out, got); err != nil || !bytes.Equal(got, line) {
			t.Fatal(err)
		}
	}
	close(file.release)
	must.Do(t, in.Close())
	result := wait()
	if result.Err != nil || result.Lost < (2*n-250)*1000 || result.Lost >= 2*n*1000 {
		t.Errorf("got %+v", result)
	}
	r := recording.NewReader(&file.Buffer, nil)
	lines, gaps := 0, 0
	for {
		e, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case errors.Is(e.Err, recording.ErrLost):
			gaps++
		case e.Kind == recording.KindMessage:
			if lines++; string(e.Line)+"\n" != string(line) {
				t.Errorf("got %d bytes", len(e.Line))
			}
		}
	}
	if lines < 50 || gaps < 2 || gaps > n {
		t.Errorf("%d lines, %d gaps", lines, gaps)
	}
}

// An error in the file is reported at the end; the traffic continues.
func TestRecordingFails(t *testing.T) {
	file := &limited{left: 200}
	w := must.Get(recording.NewWriter(file, recording.Header{}, nil))(t)
	var messages int
	in, out, wait := echo(t, relay.Options{Writer: w, OnMessage: func(conformance.Message) { messages++ }})
	line := []byte(strings.Repeat("x", 99) + "\n")
	for range 10 {
		must.Get(in.Write(line))(t)
		must.Get(io.ReadFull(out, make([]byte, len(line))))(t)
	}
	must.Do(t, in.Close())
	if result := wait(); !errors.Is(result.Err, errFull) || relay.ExitStatus(result.State) != 7 || messages != 20 {
		t.Errorf("got %+v, %d messages", result, messages)
	}
}

var errFull = errors.New("full")

type limited struct{ left int }

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// Requests are recorded before their answers, and the times do not go backwards.
func TestOrder(t *testing.T) {
	var file bytes.Buffer
	w := must.Get(recording.NewWriter(&file, recording.Header{}, nil))(t)
	in, out, wait := echo(t, relay.Options{Writer: w})
	const n = 2000
	for i := range n {
		line := fmt.Appendf(nil, "%d\n", i)
		must.Get(in.Write(line))(t)
		must.Get(io.ReadFull(out, line))(t)
	}
	must.Do(t, in.Close())
	wait()
	for i, e := range cleantest.Entries(t, &file) {
		want := recording.Entry{Kind: recording.KindMessage, Direction: conformance.ToAgent + conformance.Direction((i+1)%2), Line: fmt.Appendf(nil, "%d", (i-1)/2)}
		if i > 0 && i <= 2*n && (e.Direction != want.Direction || string(e.Line) != string(want.Line)) {
			t.Fatalf("entry %d: %v %s, want %v %s", i, e.Direction, e.Line, want.Direction, want.Line)
		}
	}
}
