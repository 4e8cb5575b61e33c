//go:build unix

package acp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// shellPrelude speaks the protocol up to the first prompt, whose request is not read yet.
const shellPrelude = shellWords + `
read -r line; answer 1 '{"protocolVersion":1}'
read -r line; answer 2 '{"sessionId":"s"}'
`

const shellWords = `
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"}}}}\n' $1; }
answer() { printf '{"jsonrpc":"2.0","id":%d,"result":%s}\n' $1 "$2"; }
ask() { echo '{"jsonrpc":"2.0","id":"a","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}}'; }
hang() { while :; do sleep 60; done; }
`

const garbage = `read -r line; echo "npm WARN"; update 0; printf '\377\000{\n'; echo '[{"x":1}'; update 1
echo '{"jsonrpc":"2.0"}'; echo; update 2;`

// The times of the agents that make the client wait for them, and how much longer anything may take on a busy machine.
const (
	stopTime  = 200 * time.Millisecond
	killTime  = 300 * time.Millisecond
	drainTime = 400 * time.Millisecond
	callTime  = time.Second // after which nobody waits for what is never answered
	linger    = time.Second // rpc's: how far apart the ends of a process and of its output may be
	slack     = time.Minute
)

// faultyAgent is an agent that goes wrong.
type faultyAgent struct {
	name      string
	script    string
	prompt    string // "go" by default
	skipNoise bool
	limit     time.Duration // of Connect, or of Prompt from the last update on; none by default
	drain     time.Duration // DrainTime, CancelGrace and CloseTime; slack by default

	early   bool          // the script is everything, and Connect fails
	updates int           // that are received, numbered from 0
	invalid int           // what Hooks.Invalid is notified of
	err     error         // that Connect or Prompt returns; nil: Prompt succeeds
	text    string        // a part of its text
	exit    string        // the state in its *ExitError; "" when it has none
	within  time.Duration // Connect or Prompt return
	orderly bool          // Wait returns nil
	lives   time.Duration // how long Close has to wait for it
}

var faultyAgents = []faultyAgent{
	{
		name:   "is killed in the turn",
		script: `read -r line; update 0; update 1; update 2; echo "out of memory" >&2; kill -9 $$`,
		err:    acp.ErrClosed, text: "session/prompt: acp: connection closed: subprocess ended: signal: killed: out of memory",
		exit: "signal: killed", updates: 3,
	},
	{
		name:   "fails in the turn",
		script: `read -r line; update 0; echo "noise" >&2; echo "fatal: no such model" >&2; exit 3`,
		err:    acp.ErrClosed, text: "exit status 3: fatal: no such model", exit: "exit status 3", updates: 1,
	},
	{
		name:   "ends in the turn as if it were done",
		script: `read -r line; update 0`,
		err:    io.EOF, text: "exit status 0", exit: "exit status 0", updates: 1, orderly: true,
	},
	{
		name:   "ends within an update",
		script: `read -r line; update 0; printf '{"jsonrpc":"2.0","method":"session/upd'; exit 1`,
		err:    io.ErrUnexpectedEOF, exit: "exit status 1", updates: 1,
	},
	{
		name:   "ends within the answer",
		script: `read -r line; update 0; update 1; printf '{"jsonrpc":"2.0","id":3,"result":{"stopR'; exit 1`,
		err:    acp.ErrClosed, exit: "exit status 1", updates: 2,
	},
	{
		name:   "ends within the answer as if it were done",
		script: `read -r line; update 0; printf '{"jsonrpc":"2.0","id":3,"result":{"stopR'`,
		err:    io.ErrUnexpectedEOF, text: "unexpected EOF within a message: subprocess ended: exit status 0",
		exit: "exit status 0", updates: 1,
	},
	{
		name:    "ends with an answer without a newline",
		script:  `read -r line; update 0; printf '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'`,
		updates: 1, orderly: true,
	},
	{
		name:    "prints garbage between its messages, and is told of each",
		script:  garbage + `for i in 1 2 3 4; do read -r line; done; answer 3 '{"stopReason":"end_turn"}'; cat >/dev/null`,
		updates: 3, invalid: 4, orderly: true,
	},
	{
		name:      "prints garbage, which is tolerated but for what looks like a message",
		skipNoise: true,
		script: garbage + `read -r line; case $line in *-32600*) answer 3 '{"stopReason":"end_turn"}'; esac
			exec >&-; cat >/dev/null`,
		updates: 3, invalid: 4, orderly: true,
	},
	{
		name:   "closes its output and lives",
		script: `read -r line; update 0; exec >&-; cat >/dev/null`,
		err:    io.EOF, text: "session/prompt: acp: connection closed: EOF", updates: 1, within: linger, orderly: true,
	},
	{
		name:   "closes its output and does not go",
		script: `trap '' TERM; read -r line; update 0; exec >&-; hang`,
		err:    io.EOF, updates: 1, within: linger, orderly: true, lives: stopTime + killTime,
	},
	{
		// The first answer can go into the pipe nevertheless: a process that is being started has it until it runs its program.
		name:   "closes its input and lives",
		script: `read -r line; exec <&-; update 0; ask; sleep 5; ask; hang`,
		drain:  drainTime, err: syscall.EPIPE, text: "acp: connection closed", updates: 1, within: drainTime, lives: stopTime,
	},
	{
		name:   "closes both and lives",
		script: `read -r line; update 0; exec <&- >&-; hang`,
		err:    io.EOF, updates: 1, within: linger, orderly: true, lives: stopTime,
	},
	{
		name:   "leaves a child that holds its output",
		script: `read -r line; update 0; sleep 60 & exit 4`,
		err:    acp.ErrClosed, text: "exit status 4", exit: "exit status 4", updates: 1, within: linger,
	},
	{
		name:   "leaves a child that holds its output and ignores signals",
		script: `trap '' TERM HUP INT; read -r line; update 0; sleep 60 & exit 4`,
		err:    acp.ErrClosed, text: "exit status 4", exit: "exit status 4", updates: 1, within: linger,
	},
	{
		name:   "leaves a child in a session of its own that holds its output",
		script: `read -r line; update 0; setsid sleep 3 & exit 4`,
		err:    acp.ErrClosed, text: "exit status 4", exit: "exit status 4", updates: 1, within: linger,
	},
	{
		name:   "ignores the end of its input and SIGTERM",
		script: `trap '' TERM; read -r line; update 0; hang`,
		limit:  callTime, drain: drainTime, err: context.DeadlineExceeded, updates: 1, within: callTime + drainTime, orderly: true, lives: stopTime + killTime,
	},
	{
		name:   "is stopped",
		script: `read -r line; update 0; kill -STOP $$`,
		limit:  callTime, drain: drainTime, err: context.DeadlineExceeded, updates: 1, within: callTime + drainTime, orderly: true, lives: stopTime + killTime,
	},
	{
		name:   "does not read, and the pipe is full",
		script: `update 0; hang`,
		prompt: strings.Repeat("x", 1<<20),
		limit:  callTime, drain: drainTime, err: context.DeadlineExceeded, updates: 1, within: callTime + drainTime, orderly: true, lives: drainTime + stopTime,
	},
	{
		name:   "is killed while the pipe is full",
		script: `update 0; dd bs=1 count=1 >/dev/null 2>&1; echo "not now" >&2; kill -9 $$`, // once the prompt is on its way
		prompt: strings.Repeat("x", 1<<20),
		err:    acp.ErrClosed, text: "signal: killed: not now", exit: "signal: killed", updates: 1,
	},
	{
		name: "fails before it reads", early: true,
		script: `echo "no license" >&2; exit 9`,
		err:    acp.ErrClosed, text: "initialize: acp: connection closed: subprocess ended: exit status 9: no license", exit: "exit status 9",
	},
	{
		name: "is killed while it initializes", early: true,
		script: `read -r line; kill -9 $$`,
		err:    acp.ErrClosed, text: "initialize: acp: connection closed: subprocess ended: signal: killed", exit: "signal: killed",
	},
	{
		name: "ends within the answer to initialize", early: true,
		script: `read -r line; printf '{"jsonrpc":"2.0","id":1,"result":{"proto'; exit 2`,
		err:    io.ErrUnexpectedEOF, text: "initialize: acp: connection closed: unexpected EOF within a message: subprocess ended: exit status 2", exit: "exit status 2",
	},
	{
		name: "never answers initialize", early: true,
		script: `read -r line; hang`,
		limit:  callTime, err: context.DeadlineExceeded, within: callTime + stopTime,
	},
	{
		name: "is not there", early: true,
		script: `exec /nonexistent/agent`,
		err:    acp.ErrClosed, text: "/nonexistent/agent", exit: "exit status 127",
	},
}

// TestFaultyProcesses runs a turn with each of them, all at once. Afterwards the error has said what
// happened, within the time that it may take, what came before was received, and nothing is left: no
// process, no goroutine.
func TestFaultyProcesses(t *testing.T) {
	tier.Need(t, tier.Normal)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	tries := make([]*faultyTry, len(faultyAgents))
	var wg sync.WaitGroup
	for i := range faultyAgents {
		try := &faultyTry{faultyAgent: &faultyAgents[i]}
		tries[i] = try
		wg.Go(func() { try.run(t.Context()) })
	}
	wg.Wait()
	var results strings.Builder
	for _, try := range tries {
		t.Run(try.name, func(t *testing.T) {
			for _, what := range try.wrong {
				t.Error(what)
			}
		})
		fmt.Fprintf(&results, "%-70s %5.2f s, closed in %.2f s: %v\n", try.name, try.took.Seconds(), try.closed.Seconds(), try.err)
	}
	t.Logf("%d agents\n%s", len(tries), &results)
}

// faultyTry is one run of an agent, and what came of it.
type faultyTry struct {
	*faultyAgent
	err     error         // of Connect or Prompt
	took    time.Duration // until that
	closed  time.Duration // how long closing took
	updates atomic.Int32
	invalid atomic.Int32
	mu      sync.Mutex
	wrong   []string
}

func (f *faultyTry) bad(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *faultyTry) run(ctx context.Context) {
	prelude := shellPrelude
	if f.early {
		prelude = shellWords
	}
	transport := acp.Command(exec.Command("sh", "-c", prelude+f.script))
	transport.StopTime, transport.KillTime = stopTime, killTime
	start := time.Now()
	conn, err := f.connect(ctx, transport)
	f.err, f.took = err, time.Since(start)
	if f.took > f.within+slack {
		f.bad("the end was seen after %v", f.took)
	}
	f.check()
	begin := time.Now()
	if conn != nil {
		f.close(ctx, conn)
	}
	f.closed = time.Since(begin)
	// The time that the process has may begin before Close is called, when its output ends.
	if f.closed > f.lives+slack || time.Since(start) < f.lives {
		f.bad("closing took %v", f.closed)
	}
	if err := awaitNoGroup(transport.Cmd.Process.Pid); err != nil {
		f.bad("%v", err)
	}
}

// connect connects and, if that is to succeed, runs a turn.
func (f *faultyTry) connect(ctx context.Context, transport acp.Transport) (*acp.ClientConn, error) {
	drain := cmp.Or(f.drain, slack)
	opts := &acp.ClientOptions{Conn: acp.ConnOptions{
		DrainTime: drain, CancelGrace: drain, CloseTime: drain, SkipNoise: f.skipNoise,
	}}
	opts.Conn.Hooks.Invalid = func([]byte, error) { f.invalid.Add(1) }
	if f.early && f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	came := make(chan struct{}, 100) // the updates
	conn, err := acp.Connect(ctx, transport, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			chunk, _ := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk)
			if text := chunk.Content.Text(); text != fmt.Sprint(f.updates.Add(1)-1) {
				f.bad("update %s came at the wrong place", text)
			}
			came <- struct{}{}
			return nil
		},
		RequestPermission: choose("yes"),
	}, opts)
	if connected := err == nil; connected == f.early {
		f.bad("Connect: %v", err)
	}
	if err != nil {
		return nil, err
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		return conn, err
	}
	if f.limit > 0 {
		ctx, cancel := context.WithCancel(ctx)
		late := expiring{ctx, make(chan struct{})}
		ended := make(chan struct{})
		defer func() { cancel(); <-ended }()
		go func() { // how long the agent takes to get so far is the machine's business
			defer close(ended)
			for range f.faultyAgent.updates {
				select {
				case <-came:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-time.After(f.limit):
				close(late.done)
			case <-ctx.Done():
			}
		}()
		_, err = session.Prompt(late, acp.TextBlock(cmp.Or(f.prompt, "go")))
		return conn, err
	}
	_, err = session.Prompt(ctx, acp.TextBlock(cmp.Or(f.prompt, "go")))
	return conn, err
}

// expiring is a context whose deadline has passed when done is closed.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// silence is what errors add when the machine is slow.
var silence = regexp.MustCompile(`subprocess has closed its output \(silent for [^)]*\): |; silent for [0-9.hms]+`)

// check looks at the error of Connect or Prompt, and at what came before.
func (f *faultyTry) check() {
	if !errors.Is(f.err, f.faultyAgent.err) || f.err != nil && !strings.Contains(silence.ReplaceAllString(f.err.Error(), ""), f.text) {
		f.bad("got %v, want %v, %q", f.err, f.faultyAgent.err, f.text)
	}
	if over := f.faultyAgent.err != nil && f.faultyAgent.err != context.DeadlineExceeded; over != errors.Is(f.err, acp.ErrClosed) {
		f.bad("got %v", f.err)
	}
	exit, ok := errors.AsType[*acp.ExitError](f.err)
	if ok != (f.exit != "") || ok && exit.State.String() != f.exit {
		f.bad("got %v, want %s", f.err, f.exit)
	}
	if n := int(f.updates.Load()); n != f.faultyAgent.updates {
		f.bad("%d updates were received before the end was seen", n)
	}
	if n := int(f.invalid.Load()); n != f.faultyAgent.invalid {
		f.bad("%d messages were invalid", n)
	}
}

// close looks at how the connection ends, and ends it.
func (f *faultyTry) close(ctx context.Context, conn *acp.ClientConn) {
	want := f.faultyAgent.err
	if f.limit > 0 || want == nil { // it is not over yet
		if err := conn.Close(); err != nil {
			f.bad("Close: %v", err)
		}
	}
	if err := conn.Wait(); (err == nil) != f.orderly || err != nil && !errors.Is(err, want) {
		f.bad("Wait: %v", err)
	}
	if err := conn.Close(); err != nil {
		f.bad("Close: %v", err)
	}
	_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	_, exit := errors.AsType[*acp.ExitError](err)
	if !errors.Is(err, acp.ErrClosed) || f.exit != "" && !exit || f.limit == 0 && want != nil && !errors.Is(err, want) {
		f.bad("a call on the connection that is over: %v", err)
	}
}

// awaitNoGroup waits until no process of a group runs: who was killed may need a moment to end. Those that
// have ended and that nobody has collected do not run.
func awaitNoGroup(id int) error {
	for deadline := time.Now().Add(slack); ; {
		out, err := exec.Command("ps", "-A", "-o", "pgid=,stat=,pid=,args=").Output()
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
			f := strings.Fields(line)
			return len(f) < 3 || f[0] != strconv.Itoa(id) || strings.HasPrefix(f[1], "Z")
		})
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("processes %q are left", left), syscall.Kill(-id, syscall.SIGKILL))
		}
	}
}
