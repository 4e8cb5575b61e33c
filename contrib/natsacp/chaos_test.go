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
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	chaosTime     = flag.Duration("chaos.time", 0, "how long TestChaos stops processes (default 20 s)")
	chaosSessions = flag.Int("chaos.sessions", 0, "how many sessions it has (default 20)")
	chaosSeed     = flag.Uint64("chaos.seed", 0, "the seed of its choices (default random)")
)

// envRole makes the test binary behave as one process of a fleet; the variable holds a role.
const envRole = "ACP_FLEET_ROLE"

// role is what a process of the fleet does.
type role struct {
	Kind, Name, Dir string
	Port, Cluster   int
	Routes          string
	URL, Listen     string
	Journal         string
}

var chaosOptions = natsacp.Options{Replicas: 3, Lease: 3 * time.Second}

// playRole does what the variable says, until it is stopped.
func playRole(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt)
	if r.Kind == "nats" {
		s, err := server.NewServer(&server.Options{
			ServerName: r.Name, Host: "127.0.0.1", Port: r.Port, JetStream: true, StoreDir: r.Dir, NoSigs: true, NoLog: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: r.Cluster}, Routes: server.RoutesFromStr(r.Routes),
		})
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
	var f *natsacp.Fleet
	for f == nil { // the cluster may have no leader yet
		if f, err = natsacp.Open(ctx, nc, &chaosOptions); err != nil {
			time.Sleep(200 * time.Millisecond)
		}
	}
	if r.Kind == "gateway" {
		g, err := f.StartGateway(ctx, &natsacp.GatewayOptions{Name: r.Name, Server: &remote.HandlerOptions{Logger: quiet}})
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
	store, err := natsacp.OpenStore(ctx, nc, &chaosOptions)
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

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
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
	text, ok := n.Update.AgentText()
	if !ok {
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
	dir := t.TempDir()
	ports := freePorts(t, 8)
	var routes, urls []string
	for i := range 3 {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3+i]))
	}
	var all []*process
	add := func(r role) {
		r.URL, r.Journal = strings.Join(urls, ","), filepath.Join(dir, "journal")
		p := &process{role: r, log: filepath.Join(dir, r.Name+".log")}
		must(t, p.start())
		t.Cleanup(func() { p.kill() })
		all = append(all, p)
	}
	for i := range 3 {
		add(role{
			Kind: "nats", Name: fmt.Sprint("s", i), Dir: filepath.Join(dir, fmt.Sprint("s", i)),
			Port: ports[i], Cluster: ports[3+i], Routes: strings.Join(routes, ","),
		})
	}
	for i := range 3 {
		add(role{Kind: "node", Name: fmt.Sprint("n", i)})
	}
	var gateways []string
	for i := range 2 {
		listen := fmt.Sprint("127.0.0.1:", ports[6+i])
		add(role{Kind: "gateway", Name: fmt.Sprint("g", i), Listen: listen})
		gateways = append(gateways, (&url.URL{Scheme: "ws", Host: listen}).String())
	}

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
	for end := time.Now().Add(time.Minute); done() < int64(sessions); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the fleet does not work from the beginning")
		}
	}
	var faults []string
	begun := time.Now()
	for time.Since(begun) < duration {
		p := all[random.IntN(len(all))]
		away := time.Duration(random.IntN(5000)) * time.Millisecond
		if random.IntN(2) == 0 {
			faults = append(faults, "kill "+p.role.Name)
			p.kill()
			time.Sleep(away / 5)
			must(t, p.start())
		} else {
			faults = append(faults, fmt.Sprint("stop ", p.role.Name, " ", away))
			must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
			time.Sleep(away)
			must(t, p.cmd.Process.Signal(syscall.SIGCONT))
		}
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
	}
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
	journal, err := os.Open(filepath.Join(dir, "journal"))
	must(t, err)
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
		slog.Info("chaos", "seed", seed, "faults", len(faults), "sessions", sessions, "prompts", len(runs), "succeeded", done(), "errors", failed)
		t.Logf("faults: %q", faults)
	}
}
