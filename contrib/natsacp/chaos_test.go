package natsacp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	chaosTime     = flag.Duration("chaos.time", 0, "how long TestChaos stops processes (default 20 s)")
	chaosSessions = flag.Int("chaos.sessions", 0, "how many sessions it has (default 20)")
	chaosPause    = flag.Duration("chaos.pause", 0, "how long each session waits between its turns")
	chaosLease    = flag.Duration("chaos.lease", 3*time.Second, "the lease of the fleet")
	chaosSeed     = flag.Uint64("chaos.seed", 0, "the seed of its choices (default random)")
)

// envRole makes the test binary behave as one process of a fleet; the variable holds a role.
const envRole = "ACP_FLEET_ROLE"

// role is what a process of the fleet does.
type role struct {
	Kind, Name, Dir string
	Port, Cluster   int
	Replicas        int
	Routes          string
	URL, Listen     string
	Journal         string
	Lease           time.Duration
	Fast            bool // agents without a store
}

// orExit ends a process of the fleet at an error.
func orExit[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// playRole does what the variable says, until the process is killed.
func playRole(text string) {
	var r role
	orExit(0, json.Unmarshal([]byte(text), &r))
	if r.Kind == "nats" {
		o := &server.Options{
			ServerName: r.Name, Host: "127.0.0.1", Port: r.Port, JetStream: true, StoreDir: r.Dir, NoSigs: true, NoLog: true,
		}
		if r.Replicas > 1 {
			o.Cluster, o.Routes = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: r.Cluster}, server.RoutesFromStr(r.Routes)
		}
		orExit(server.NewServer(o)).Start()
		select {}
	}
	nc := orExit(nats.Connect(r.URL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.RetryOnFailedConnect(true), nats.PingInterval(time.Second)))
	ctx, options := context.Background(), &natsacp.Options{Replicas: r.Replicas, Lease: r.Lease}
	f, err := natsacp.Open(ctx, nc, options)
	for ; err != nil; f, err = natsacp.Open(ctx, nc, options) { // the cluster may have no leader yet
		time.Sleep(200 * time.Millisecond)
	}
	if r.Kind == "gateway" {
		g := orExit(f.StartGateway(ctx, &natsacp.GatewayOptions{
			Name: r.Name, Server: &remote.HandlerOptions{Logger: quiet, MaxConnections: 100_000},
		}))
		orExit(0, remote.NewHTTPServer(g).Serve(orExit(net.Listen("tcp", r.Listen))))
	}
	agent := natsacp.InProcess(fast)
	if !r.Fast {
		journal := orExit(os.OpenFile(r.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))
		agent = keeping(orExit(natsacp.OpenStore(ctx, nc, options)), func(
			ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest,
		) error {
			var number, length int // of the prompt, and how many numbers are to be said
			_, err := fmt.Sscan(agentkit.PromptText(req), &number, &length)
			if err == nil {
				_, err = fmt.Fprintf(journal, "%s %d\n", req.SessionID, number)
			}
			for i := 0; i < length && err == nil; i++ {
				err = t.Update(ctx, acp.AgentMessageText(fmt.Sprintf("%d.%d;", number, i)))
			}
			return err
		})
	}
	orExit(f.StartNode(ctx, agent, &natsacp.NodeOptions{Name: r.Name, MaxSessions: 100_000}))
	select {}
}

// process is a process of the fleet.
type process struct {
	role role
	cmd  *exec.Cmd
}

func (p *process) start() error {
	text, err := json.Marshal(p.role)
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), envRole+"="+string(text))
	return errors.Join(err, p.cmd.Start())
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // Wait reports what matters
	_ = p.cmd.Wait()         // it was killed
}

// cluster is a fleet of processes on this machine.
type cluster struct {
	all      []*process // servers, nodes, gateways
	gateways []string   // their URLs
	dir      string
}

// newCluster starts a fleet. what are the options that its processes share.
func newCluster(t *testing.T, servers, nodes, gateways int, what role) *cluster {
	t.Helper()
	c := &cluster{dir: t.TempDir()}
	var ports []int
	for range 2*servers + gateways {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	var routes, urls []string
	for i := range servers {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[servers+i]))
	}
	add := func(r role) {
		r.URL, r.Journal, r.Replicas, r.Lease, r.Fast = strings.Join(urls, ","), filepath.Join(c.dir, "journal"), servers, what.Lease, what.Fast
		p := &process{role: r}
		must.Do(t, p.start())
		t.Cleanup(func() { p.kill() })
		c.all = append(c.all, p)
	}
	for i := range servers {
		add(role{
			Kind: "nats", Name: fmt.Sprint("s", i), Dir: filepath.Join(c.dir, fmt.Sprint("s", i)),
			Port: ports[i], Cluster: ports[servers+i], Routes: strings.Join(routes, ","),
		})
	}
	for i := range nodes {
		add(role{Kind: "node", Name: fmt.Sprint("n", i)})
	}
	for i := range gateways {
		listen := fmt.Sprint("127.0.0.1:", ports[2*servers+i])
		add(role{Kind: "gateway", Name: fmt.Sprint("g", i), Listen: listen})
		c.gateways = append(c.gateways, (&url.URL{Scheme: "ws", Host: listen}).String())
	}
	eventually(t, "the last gateway starts", func() bool {
		conn, err := net.Dial("tcp", c.all[len(c.all)-1].role.Listen)
		return err == nil && conn.Close() == nil
	})
	return c
}

// memory returns the resident memory of each process in KiB: what it has, or the most that it ever had.
func (c *cluster) memory(t *testing.T, most bool) map[string]int {
	t.Helper()
	member := map[bool]string{false: "VmRSS:", true: "VmHWM:"}[most]
	all := map[string]int{}
	for _, p := range c.all {
		status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)))(t)
		_, rest, _ := strings.Cut(string(status), member)
		var size int
		must.Get(fmt.Sscan(rest, &size))(t)
		all[p.role.Name] = size
	}
	return all
}

// talker is a client that prompts one session again and again, at any gateway, and checks what it gets.
type talker struct {
	gateways     []string
	done, failed atomic.Int64

	mu    sync.Mutex
	id    acp.SessionID
	said  map[string]string // by prompt
	wrong []string
}

func (k *talker) update(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for part := range strings.SplitAfterSeq(n.Update.AgentText(), ";") {
		if prompt, _, ok := strings.Cut(part, "."); ok { // not what is after the last one
			k.said[prompt] += part
		}
	}
	return nil
}

// run talks until ctx ends, and then until a prompt has succeeded, over as many connections as it takes.
func (k *talker) run(ctx context.Context) {
	for prompts := 0; ; {
		conn, s, err := k.open()
		if err != nil {
			k.failed.Add(1)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for lost := false; !lost; {
			over := ctx.Err() != nil
			prompts++
			pause, enough := 50*time.Millisecond, make(<-chan struct{})
			if k.prompt(s, fmt.Sprint(prompts)) {
				if over {
					conn.Close()
					return
				}
				pause, enough = rand.N(2**chaosPause+1), ctx.Done()
			}
			select {
			case <-time.After(pause):
			case <-conn.Done():
				lost = true
			case <-enough:
			}
		}
	}
}

// open connects to any gateway, and opens the session.
func (k *talker) open() (conn *acp.ClientConn, s *acp.ClientSession, err error) {
	bound, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err = acp.Connect(bound, remote.Dial(k.gateways[rand.IntN(len(k.gateways))], nil), acp.ClientHandlers{SessionUpdate: k.update}, nil)
	if err != nil {
		return nil, nil, err
	}
	if k.id != "" {
		s, err = conn.ResumeSession(bound, &acp.ResumeSessionRequest{SessionID: k.id, Cwd: "/w"})
	} else if s, err = conn.NewSession(bound, &acp.NewSessionRequest{Cwd: "/w"}); err == nil {
		k.mu.Lock()
		k.id = s.ID()
		k.mu.Unlock()
	}
	if err != nil {
		conn.Close()
	}
	return conn, s, err
}

// prompt runs a turn, and reports whether it has succeeded: then it has all its updates.
func (k *talker) prompt(s *acp.ClientSession, name string) bool {
	const length = 30
	var whole strings.Builder
	for i := range length {
		whole.WriteString(fmt.Sprintf("%s.%d;", name, i))
	}
	bound, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err := s.Prompt(bound, acp.TextBlock(fmt.Sprint(name, " ", length)))
	k.mu.Lock()
	defer k.mu.Unlock()
	if bound.Err() != nil {
		k.wrong = append(k.wrong, fmt.Sprintf("prompt %s was not answered", name))
	} else if err == nil && k.said[name] != whole.String() {
		k.wrong = append(k.wrong, fmt.Sprintf("prompt %s succeeded with the updates %q", name, k.said[name]))
	}
	if err == nil {
		k.done.Add(1)
	} else {
		k.failed.Add(1)
	}
	return err == nil
}

// Processes of a fleet are killed and stopped at random. Every prompt that succeeds has all its updates, in order and
// once; none is run twice; and afterwards everything works again.
func TestChaos(t *testing.T) {
	duration, sessions := *chaosTime, *chaosSessions
	if duration == 0 {
		tier.Need(t, tier.Full)
		duration = 20 * time.Second
	}
	if sessions == 0 {
		sessions = 20
	}
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, 1))
	c := newCluster(t, 3, 3, 2, role{Lease: *chaosLease})
	all, gateways, dir := c.all, c.gateways, c.dir

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var talkers []*talker
	var talking sync.WaitGroup
	for range sessions {
		k := &talker{gateways: gateways, said: map[string]string{}}
		talkers = append(talkers, k)
		talking.Go(func() { k.run(ctx) })
	}
	done := func() (n int64) {
		for _, k := range talkers {
			n += k.done.Load()
		}
		return n
	}
	for end := time.Now().Add(time.Minute + time.Duration(sessions)*time.Second/4); done() < int64(sessions); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the fleet does not work from the beginning: %d of %d sessions have had a turn", done(), sessions)
		}
	}
	before := done()
	var faults []string
	var away sync.WaitGroup
	var busy [8]atomic.Bool
	// NATS elects a leader within 9 s, and it does not serve while it does that; more often, it would never serve.
	const serverTime = 20 * time.Second
	server := time.Now().Add(-serverTime)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < duration; <-tick.C {
		i := random.IntN(len(all))
		for busy[i].Load() || i < 3 && time.Since(server) < serverTime {
			i = (i + 1) % len(all)
		}
		if i < 3 {
			server = time.Now()
		}
		p, pause := all[i], time.Duration(random.IntN(int(*chaosLease*3/2)))
		busy[i].Store(true)
		if random.IntN(2) == 0 {
			faults = append(faults, "kill "+p.role.Name)
			away.Go(func() {
				p.kill()
				time.Sleep(pause / 5)
				if err := p.start(); err != nil {
					t.Error(err)
				}
				busy[i].Store(false)
			})
		} else {
			faults = append(faults, fmt.Sprint("stop ", p.role.Name, " ", pause))
			away.Go(func() {
				err := p.cmd.Process.Signal(syscall.SIGSTOP)
				time.Sleep(pause)
				if err = errors.Join(err, p.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
					t.Error(err)
				}
				busy[i].Store(false)
			})
		}
	}
	away.Wait()
	during := done() - before
	cancel()
	quietly := make(chan struct{})
	go func() {
		talking.Wait()
		close(quietly)
	}()
	select {
	case <-quietly:
	case <-time.After(3 * time.Minute):
		t.Errorf("not all sessions work again (seed %d)", seed)
	}

	runs := map[string]int{}
	journal := must.Get(os.Open(filepath.Join(dir, "journal")))(t)
	defer journal.Close()
	for in := bufio.NewScanner(journal); in.Scan(); {
		if runs[in.Text()]++; runs[in.Text()] > 1 {
			t.Errorf("the prompt %s ran %d times (seed %d)", in.Text(), runs[in.Text()], seed)
		}
	}
	var failed int64
	for _, k := range talkers {
		k.mu.Lock()
		for _, wrong := range k.wrong {
			t.Errorf("session %s: %s (seed %d)", k.id, wrong, seed)
		}
		for prompt, text := range k.said {
			last := -1
			for part := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
				number := must.Get(strconv.Atoi(strings.TrimPrefix(part, prompt+".")))(t)
				if number <= last {
					t.Errorf("session %s, prompt %s: %d comes after %d (seed %d)", k.id, prompt, number, last, seed)
				}
				last = number
			}
		}
		failed += k.failed.Load()
		k.mu.Unlock()
	}
	if t.Failed() || *chaosTime != 0 {
		slog.Info("chaos", "seed", seed, "faults", len(faults), "sessions", sessions, "prompts", len(runs), "succeeded", done(), "during", during, "errors", failed)
		t.Logf("faults: %q", faults)
	}
}
