package natsacp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	"github.com/acpgo/sdk/acp/rpc"
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

// playRole does what the variable says, until it is stopped.
func playRole(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt)
	if r.Kind == "nats" {
		o := &server.Options{
			ServerName: r.Name, Host: "127.0.0.1", Port: r.Port, JetStream: true, StoreDir: r.Dir, NoSigs: true, NoLog: true,
		}
		if r.Replicas > 1 {
			o.Cluster, o.Routes = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: r.Cluster}, server.RoutesFromStr(r.Routes)
		}
		s, err := server.NewServer(o)
		if err != nil {
			return err
		}
		s.Start()
		fmt.Println("ready")
		<-stopped
		s.Shutdown()
		return nil
	}
	nc, err := nats.Connect(r.URL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.RetryOnFailedConnect(true),
		nats.PingInterval(time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx := context.Background()
	options := &natsacp.Options{Replicas: r.Replicas, Lease: r.Lease}
	var f *natsacp.Fleet
	for f == nil { // the cluster may have no leader yet
		if f, err = natsacp.Open(ctx, nc, options); err != nil {
			time.Sleep(200 * time.Millisecond)
		}
	}
	if r.Kind == "gateway" {
		g, err := f.StartGateway(ctx, &natsacp.GatewayOptions{
			Name: r.Name, Server: &remote.HandlerOptions{Logger: quiet, MaxConnections: 100_000},
		})
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", r.Listen)
		if err != nil {
			return err
		}
		server := remote.NewHTTPServer(g)
		go func() {
			<-stopped
			os.Exit(0)
		}()
		fmt.Println("ready")
		return server.Serve(l)
	}
	if r.Fast {
		if _, err := f.StartNode(ctx, natsacp.InProcess(fast), &natsacp.NodeOptions{Name: r.Name, MaxSessions: 100_000}); err != nil {
			return err
		}
		<-stopped
		return nil
	}
	store, err := natsacp.OpenStore(ctx, nc, options)
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(r.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.StartNode(ctx, natsacp.InProcess(func(ctx context.Context, t rpc.Transport) error {
		return agentkit.NewSessions(agentkit.Config[any]{Store: store, Prompt: func(
			ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest,
		) (*acp.PromptResponse, error) {
			return nil, count(ctx, t, journal, req)
		}}).Serve(ctx, t, nil)
	}), &natsacp.NodeOptions{Name: r.Name})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-stopped
	return nil
}

// count runs a prompt of the form "number length": it says that many numbers.
func count(ctx context.Context, t *agentkit.Turn[any], journal io.Writer, req *acp.PromptRequest) error {
	var number, length int
	if _, err := fmt.Sscan(agentkit.PromptText(req), &number, &length); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(journal, "%s %d\n", req.SessionID, number); err != nil {
		return err
	}
	for i := range length {
		if err := t.Update(ctx, acp.AgentMessageText(fmt.Sprintf("%d.%d;", number, i))); err != nil {
			return err
		}
	}
	return nil
}

// process is a process of the fleet.
type process struct {
	role role
	cmd  *exec.Cmd
	log  string
}

func (p *process) start() error {
	text, err := json.Marshal(p.role)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), envRole+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	return p.cmd.Start()
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
	ports := freePorts(t, 2*servers+gateways)
	var routes, urls []string
	for i := range servers {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[servers+i]))
	}
	add := func(r role) {
		r.URL, r.Journal, r.Replicas, r.Lease, r.Fast = strings.Join(urls, ","), filepath.Join(c.dir, "journal"), servers, what.Lease, what.Fast
		p := &process{role: r, log: filepath.Join(c.dir, r.Name+".log")}
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
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", c.all[len(c.all)-1].role.Listen)
		if err == nil {
			must.Do(t, conn.Close())
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("the last gateway does not start: %v", err)
		}
	}
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

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// talker is a client that prompts one session again and again, at any gateway, and checks what it gets.
type talker struct {
	t        *testing.T
	gateways []string

	mu     sync.Mutex
	id     acp.SessionID
	last   map[int]int // the last number of each prompt
	gaps   map[int]bool
	number int
	wrong  []string

	done, failed atomic.Int64
}

func (k *talker) update(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	text := n.Update.AgentText()
	if text == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		var number, i int
		if _, err := fmt.Sscanf(part, "%d.%d", &number, &i); err != nil {
			k.wrong = append(k.wrong, "malformed: "+text)
			return nil
		}
		last, begun := k.last[number]
		switch {
		case begun && i <= last:
			k.wrong = append(k.wrong, fmt.Sprintf("prompt %d: %d comes after %d", number, i, last))
		case !begun && i > 0, begun && i > last+1:
			k.gaps[number] = true
		}
		k.last[number] = i
	}
	return nil
}

const chaosLength = 30

// run talks until ctx ends, and then until a prompt has succeeded.
func (k *talker) run(ctx context.Context) {
	for {
		ended := ctx.Err() != nil
		if err := k.connection(ctx); err != nil && !errors.Is(err, errTalked) {
			k.failed.Add(1)
			time.Sleep(100 * time.Millisecond)
		} else if ended {
			return
		}
	}
}

var errTalked = errors.New("the time is over")

// connection talks until the connection is lost.
func (k *talker) connection(ctx context.Context) error {
	bound, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := acp.Connect(bound, remote.Dial(k.gateways[rand.IntN(len(k.gateways))], nil), acp.ClientHandlers{SessionUpdate: k.update}, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	var s *acp.ClientSession
	if k.id == "" {
		if s, err = conn.NewSession(bound, &acp.NewSessionRequest{Cwd: "/w"}); err == nil {
			k.mu.Lock()
			k.id = s.ID()
			k.mu.Unlock()
		}
	} else {
		s, err = conn.ResumeSession(bound, &acp.ResumeSessionRequest{SessionID: k.id, Cwd: "/w"})
	}
	if err != nil {
		return err
	}
	for {
		over := ctx.Err() != nil
		err := k.prompt(s)
		select {
		case <-conn.Done():
			return errors.Join(err, errors.New("the connection was lost"))
		default:
		}
		if err == nil && over {
			return errTalked
		}
		if err != nil {
			k.failed.Add(1)
			time.Sleep(50 * time.Millisecond)
		} else if *chaosPause > 0 {
			select {
			case <-time.After(rand.N(2 * *chaosPause)):
			case <-conn.Done():
			case <-ctx.Done():
			}
		}
	}
}

// prompt runs a turn. It either has all its updates, or fails.
func (k *talker) prompt(s *acp.ClientSession) error {
	k.mu.Lock()
	k.number++
	number := k.number
	k.mu.Unlock()
	bound, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err := s.Prompt(bound, acp.TextBlock(fmt.Sprint(number, " ", chaosLength)))
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case bound.Err() != nil:
		k.wrong = append(k.wrong, fmt.Sprintf("prompt %d was not answered", number))
	case err == nil && (k.last[number] != chaosLength-1 || k.gaps[number]):
		k.wrong = append(k.wrong, fmt.Sprintf("prompt %d succeeded without all its updates: the last is %d", number, k.last[number]))
	}
	if err == nil {
		k.done.Add(1)
	}
	return err
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
		k := &talker{t: t, gateways: gateways, last: map[int]int{}, gaps: map[int]bool{}}
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
		failed += k.failed.Load()
		k.mu.Unlock()
	}
	if t.Failed() || *chaosTime != 0 {
		slog.Info("chaos", "seed", seed, "faults", len(faults), "sessions", sessions, "prompts", len(runs), "succeeded", done(), "during", during, "errors", failed)
		t.Logf("faults: %q", faults)
	}
}
