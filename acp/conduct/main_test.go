package conduct_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// runAs makes the test binary another program.
const runAs = "CONDUCT_TEST_RUN_AS"

// exampleAgent is the reference agent, built for the tests.
var exampleAgent string

func TestMain(m *testing.M) {
	if role := os.Getenv(runAs); role != "" {
		stream, err := rpc.Stdio().Connect(context.Background())
		if err == nil {
			err = roles[role](stream)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	buildtest.Main(m, map[string]*string{"../../internal/test/actor/actor": &exampleAgent})
}

// roles are the programs that the test binary can be.
var roles = map[string]func(rpc.Stream) error{
	"pass": passOn,
	"stubborn": func(s rpc.Stream) error { // neither the end of its input nor a signal ends it, and it has a child
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		if err := exec.Command("sleep", "1000").Start(); err != nil {
			return err
		}
		if err := passOn(s); err != nil {
			return err
		}
		select {}
	},
	"dying in an update": func(s rpc.Stream) error {
		return dieWithin(s, `{"jsonrpc":"2.0","method":"session/update","params":{"text":"`)
	},
	"dying in an answer": func(s rpc.Stream) error { return dieWithin(s, `{"jsonrpc":"2.0","id":8,"result":{"text":"`) },
	"failing": func(s rpc.Stream) error {
		_, _ = s.Read()
		return errors.New("one\ncannot read the configuration")
	},
}

// dieWithin is an agent that answers initialize, and ends in the middle of a long message.
func dieWithin(s rpc.Stream, begin string) error {
	if _, err := s.Read(); err != nil {
		return err
	}
	if err := s.Write([]byte(`{"jsonrpc":"2.0","id":4,"result":{"protocolVersion":1}}`)); err != nil {
		return err
	}
	if _, err := s.Read(); err != nil {
		return err
	}
	stdout := os.NewFile(1, "stdout") // os.Stdout does not know that the stream does not block
	if _, err := stdout.WriteString(begin + strings.Repeat("x", 3<<20)); err != nil {
		return err
	}
	return errors.New("out of memory")
}

// program is a component that is a process: the test binary in a role.
func program(t *testing.T, role string) conduct.Component {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), runAs+"="+role, "GORACE=atexit_sleep_ms=0")
	return conduct.Component{Name: role, Transport: started(cmd)}
}

// command is the transport of a process.
type command struct {
	*rpc.CommandTransport
	process chan *os.Process // has it when it was started
}

func started(cmd *exec.Cmd) *command { return &command{rpc.Command(cmd), make(chan *os.Process, 1)} }

func (c *command) Connect(ctx context.Context) (rpc.Stream, error) {
	s, err := c.CommandTransport.Connect(ctx)
	c.process <- c.Cmd.Process
	return s, err
}

// process waits for the process of a component.
func process(c conduct.Component) *os.Process {
	started := c.Transport.(*command).process
	p := <-started
	started <- p
	return p
}

// inMemory is a component that is a function of this process.
func inMemory(t *testing.T, name string, run func(rpc.Stream) error) conduct.Component {
	t.Helper()
	ours, theirs := rpc.Pipe()
	stream := must.Get(theirs.Connect(t.Context()))(t)
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(stream); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stream.Close()
	})
	t.Cleanup(func() {
		stream.Close()
		running.Wait()
	})
	return conduct.Component{Name: name, Transport: ours}
}

// passOn is a proxy that changes nothing.
func passOn(stream rpc.Stream) error {
	up := transport(func(context.Context) (rpc.Stream, error) { return stream, nil })
	err := proxy.Serve(context.Background(), up, nil, proxy.Hooks{}, nil)
	if errors.Is(err, io.ErrClosedPipe) {
		return nil // the conductor has ended
	}
	return err
}

// transport is a function that connects.
type transport func(context.Context) (rpc.Stream, error)

func (f transport) Connect(ctx context.Context) (rpc.Stream, error) { return f(ctx) }

// end is the other end of a connection of a conductor, for raw lines.
type end struct {
	rpc.Stream
	t    *testing.T
	name string
}

// newEnd connects an end.
func newEnd(t *testing.T, name string, to rpc.Transport) *end {
	t.Helper()
	stream := must.Get(to.Connect(t.Context()))(t)
	return &end{stream, t, name}
}

// send sends lines.
func (e *end) send(lines ...string) {
	e.t.Helper()
	for _, line := range lines {
		if err := e.Write([]byte(line)); err != nil {
			e.t.Fatalf("%s: %v", e.name, err)
		}
	}
}

// next returns the next line.
func (e *end) next() string {
	e.t.Helper()
	line, err := e.Read()
	if err != nil {
		e.t.Fatalf("%s: %v", e.name, err)
	}
	return string(line)
}

// want reads lines, and compares them.
func (e *end) want(lines ...string) {
	e.t.Helper()
	for _, want := range lines {
		if got := silence.ReplaceAllString(e.next(), ""); got != want {
			e.t.Fatalf("%s:\n got %s\nwant %s", e.name, got, want)
		}
	}
}

// silence is what an error says about a process that is slow.
var silence = regexp.MustCompile(`; silent for [0-9.hms]+`)

// run runs a conductor, and returns the way of its client to it.
func run(ctx context.Context, proxies []conduct.Component, agent *conduct.Component, o *conduct.Options) (client rpc.Transport, ended chan error) {
	client, conductor := rpc.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- conduct.Run(ctx, conductor, proxies, agent, o) }()
	return client, ended
}

// runRaw is run for a client of raw lines.
func runRaw(t *testing.T, proxies []conduct.Component, agent *conduct.Component) (client *end, ended chan error) {
	t.Helper()
	to, ended := run(t.Context(), proxies, agent, nil)
	return newEnd(t, "client", to), ended
}

// chain is a conductor, with raw lines at all its ends.
type chain struct {
	t          *testing.T
	client     *end
	components []*end // the agent is the last one, if there is one
	ended      chan error
	log        lockedBuffer
	lastID     int // of initialize
	started    atomic.Int32
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a conductor.
func start(t *testing.T, proxies int, agent bool, o *conduct.Options) *chain {
	t.Helper()
	c := &chain{t: t}
	add := func(place, name string) conduct.Component {
		ours, theirs := rpc.Pipe()
		c.components = append(c.components, newEnd(t, place, theirs))
		return conduct.Component{Name: name, Transport: transport(func(ctx context.Context) (rpc.Stream, error) {
			c.started.Add(1)
			return ours.Connect(ctx)
		})}
	}
	var all []conduct.Component
	for i := range proxies {
		all = append(all, add(fmt.Sprintf("proxy:%d", i), fmt.Sprintf("P%d", i)))
	}
	var last *conduct.Component
	if agent {
		a := add("agent", "A")
		last = &a
	}
	var options conduct.Options
	if o != nil {
		options = *o
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(&c.log, nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	client, ended := run(ctx, all, last, &options)
	c.client, c.ended = newEnd(t, "client", client), ended
	t.Cleanup(func() {
		cancel()
		c.client.Close()
		for _, e := range c.components {
			e.Close()
		}
		<-c.ended
	})
	return c
}

// result waits for the end of the conductor.
func (c *chain) result() error {
	err := <-c.ended
	c.ended <- err
	return err
}

// hungUp ends the client's input, and reads what it is still sent.
func (c *chain) hangUp() (last []string) {
	c.t.Helper()
	must.Do(c.t, c.client.Stream.(rpc.HalfCloser).CloseWrite())
	for {
		line, err := c.client.Read()
		if err != nil {
			return last
		}
		last = append(last, string(line))
	}
}

const initParams = `{"protocolVersion":1,"clientCapabilities":{},"_x":[1e400]}`

// initialize passes an initialize through a chain of raw lines: requests 1 and on, if there were no others.
func (c *chain) initialize(result string) {
	c.t.Helper()
	c.client.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":` + initParams + `}`)
	n := c.lastID + 1
	c.lastID += len(c.components)
	for i, p := range c.components {
		if i == len(c.components)-1 {
			p.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":%s}`, n+i, initParams))
			break
		}
		p.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"proxy/initialize","params":%s}`, n+i, initParams))
		p.send(`{"jsonrpc":"2.0","id":"down","method":"proxy/successor","params":{"method":"initialize","params":` + initParams + `}}`)
	}
	for i := len(c.components) - 1; i >= 0; i-- {
		c.components[i].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, n+i, result))
		if i > 0 {
			c.components[i-1].want(`{"jsonrpc":"2.0","id":"down","result":` + result + `}`)
		}
	}
	c.client.want(`{"jsonrpc":"2.0","id":"init","result":` + result + `}`)
}

// contains fails the test if a text does not contain another.
func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not contain %q", text, part)
	}
}
