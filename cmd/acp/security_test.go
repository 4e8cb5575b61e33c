//go:build unix

package main

// The table of attacks over the network, on acp serve and on a program with remote.Handler. Each row says what the
// attacker gets and when, how much memory and how many files it costs the server, and that other clients are served
// meanwhile.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The limits of the servers in the table.
const (
	guardedMessage = 1 << 20
	guardedEach    = 20 // connections per principal
	guardedHeader  = 64 << 10
)

func init() { programs["guarded"], programs["crowd"] = guarded, crowd }

// guarded is a program that serves parrots in its own process. Its arguments are the file of tokens and how long a
// client may take to send something, 0 for the default. /heap returns the memory in use. TERM ends it.
func guarded() {
	if err := guard(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "guarded:", err)
		os.Exit(1)
	}
}

func guard(file, within string) error {
	tokens, err := (&tokenFlags{file: file}).read()
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(within)
	if err != nil {
		return err
	}
	agents := remote.Handler(func(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
		return serveParrot(ctx, transport)
	}, &remote.HandlerOptions{
		Authenticate: remote.BearerToken(tokens), TokenQuery: "token", MaxMessage: guardedMessage, MaxConnectionsPerPrincipal: guardedEach,
		InitializeTimeout: limit, BodyTimeout: limit,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	mux := http.NewServeMux()
	mux.Handle(remote.DefaultPath, agents)
	mux.HandleFunc("/heap", func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC() // the second one frees the pools of net/http
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprint(w, m.HeapInuse+m.StackInuse)
	})
	server := remote.NewHTTPServer(mux)
	if limit > 0 {
		server.ReadHeaderTimeout, server.IdleTimeout = limit, limit
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s%s\n", listener.Addr(), remote.DefaultPath)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ctx, _, stop := untilSignals()
	defer stop()
	<-ctx.Done()
	bound, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err = errors.Join(agents.Shutdown(bound), server.Shutdown(bound))
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// crowd is a program that opens many connections to an address, writes the same text to all of them, and waits until
// the server has closed each. It prints a line when all are open and another when none is: how often each answer came,
// and when the first and the last connection ended.
func crowd() {
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(2)
	}
	text, err := strconv.Unquote(os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(2)
	}
	if err := makeCrowd(os.Args[1], count, text); err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(1)
	}
}

func makeCrowd(address string, count int, text string) error {
	conns := make([]net.Conn, count)
	errs := make(chan error, count)
	room := make(chan struct{}, 100) // at a time
	var opening sync.WaitGroup
	for i := range conns {
		room <- struct{}{}
		opening.Go(func() {
			defer func() { <-room }()
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conns[i] = conn
				_, err = io.WriteString(conn, text)
			}
			if err != nil {
				errs <- err
			}
		})
	}
	begun := time.Now()
	opening.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	fmt.Println("open")
	type end struct {
		answer string
		after  time.Duration
	}
	ends := make(chan end, count)
	for _, conn := range conns {
		go func() {
			answer := "closed"
			from := bufio.NewReader(conn)
			if line, err := from.ReadString('\n'); err == nil {
				if status, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok {
					answer, _, _ = strings.Cut(status, " ")
				}
				_, _ = io.Copy(io.Discard, from) // until the server closes it, in order or not
			}
			ends <- end{answer, time.Since(begun)}
			conn.Close()
		}()
	}
	answers := map[string]int{}
	var first, last time.Duration
	for range conns {
		e := <-ends
		answers[e.answer]++
		if first == 0 {
			first = e.after
		}
		last = e.after
	}
	var words []string
	for _, answer := range slices.Sorted(maps.Keys(answers)) {
		words = append(words, fmt.Sprintf("%s ×%d", answer, answers[answer]))
	}
	fmt.Printf("%s\t%v\t%v\n", strings.Join(words, ", "), first.Round(10*time.Millisecond), last.Round(10*time.Millisecond))
	return nil
}

// The principals of the table, and what must not appear in a log.
const (
	adaToken     = secret + "-of-ada"
	malloryToken = secret + "-of-mallory"
	wrongToken   = "a-guess-of-a-token"
	adaSays      = "what-ada-says"
)

// target is a server under attack.
type target struct {
	*gatewayProcess
	t       *testing.T
	name    string
	address string
	heap    bool               // it serves /heap
	session *acp.ClientSession // of ada
	id      string             // of another connection of ada
}

// startGuarded starts the program with remote.Handler.
func startGuarded(t *testing.T, tokens string) *gatewayProcess {
	t.Helper()
	limit := 5 * time.Second // more than any honest client needs
	if tier.Current() == tier.Nightly {
		limit = 0
	}
	return startServer(t, exec.Command(programPath(t, "guarded"), tokens, limit.String()))
}

// An attack is a row of the table. It returns what the attacker got; its duration is how long that took.
type attack struct {
	name string
	want string
	run  func(g *target) string
	// least is the tier that runs the attack on the Handler, and serve the tier that runs it on acp serve, whose
	// timeouts cannot be shortened.
	least, serve tier.Tier
	// growth is how much more memory the server may use, some of which is garbage.
	growth int
}

// TestSecurityTable runs each attack of the tier on each server, and logs the table. Tier Nightly runs all of them,
// with 10,000 half-open connections and the default timeouts.
func TestSecurityTable(t *testing.T) {
	tier.Need(t, tier.Normal)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ada "+adaToken+"\nmallory "+malloryToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "attack\tserver\tanswer\ttime\tpeak of memory\theap after\tmeanwhile, ada\tfiles left")
	defer func() {
		table.Flush()
		t.Log("\n" + text.String())
	}()
	for _, server := range []struct {
		name  string
		start func() *gatewayProcess
	}{
		{"Handler", func() *gatewayProcess { return startGuarded(t, tokens) }},
		{"acp serve", func() *gatewayProcess {
			return startGateway(t, nil, "--token-file", tokens, "--token-query", "token", "--log-debug", "--max-message", strconv.Itoa(guardedMessage),
				"--max-connections-each", strconv.Itoa(guardedEach), "--", programPath(t, "parrot"))
		}},
	} {
		g := newTarget(t, server.name, server.start())
		for _, a := range attacks() {
			if least := max(a.least, map[bool]tier.Tier{false: a.serve}[g.heap]); tier.Current() < least {
				fmt.Fprintf(table, "%s\t%s\tonly in tier %s\n", a.name, g.name, least)
				continue
			}
			fmt.Fprintln(table, g.suffer(a))
		}
		g.close()
	}
}

// newTarget connects ada to a server.
func newTarget(t *testing.T, name string, process *gatewayProcess) *target {
	g := &target{gatewayProcess: process, t: t, name: name, heap: name == "Handler"}
	g.address, _, _ = strings.Cut(strings.TrimPrefix(g.url, "http://"), "/")
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, g.dial("ws"), nil), acp.ClientHandlers{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if g.session, err = conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	answer := g.ask("POST", adaToken, "", helloAgent, "Content-Type: application/json")
	if g.id = answer.Header.Get("Acp-Connection-Id"); g.id == "" {
		t.Fatalf("ada's second connection: %s", answer.Status)
	}
	stream, err := net.Dial("tcp", g.address) // without it the connection expires
	if err != nil {
		t.Fatal(err)
	}
	send(stream, g.request("GET", adaToken, g.id))
	events := bufio.NewReader(stream)
	if status, err := events.ReadString('\n'); err != nil || !strings.Contains(status, " 200 ") { // from now on it is one of the server's open files
		t.Fatalf("the stream of ada's second connection: %q, %v", status, err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, events) }) // to its end
	t.Cleanup(reading.Wait)
	t.Cleanup(func() { stream.Close() })
	return g
}

// dial returns ada's transport.
func (g *target) dial(scheme string) acp.Transport {
	return remote.Dial(g.at(scheme), &remote.DialOptions{Header: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + adaToken}}, nil
	}})
}

// close ends the server, and searches its log for secrets.
func (g *target) close() {
	if answer := g.ask("DELETE", adaToken, g.id, ""); answer.StatusCode != 202 {
		g.t.Errorf("%s: ada's second connection has not outlived the attacks: %s", g.name, answer.Status)
	}
	g.end(g.t)
	log := g.logged()
	for _, secret := range []string{secret, wrongToken, adaSays} {
		if n := strings.Count(log, secret); n > 0 {
			g.t.Errorf("%s: %q stands in the log %d times", g.name, secret, n)
		}
	}
	g.t.Logf("%s: the log, with debugging, has %d lines, and no secret", g.name, strings.Count(log, "\n"))
}

// suffer runs an attack, and returns the row.
func (g *target) suffer(a attack) string {
	t, pid := g.t, g.cmd.Process.Pid
	files := filesOf(pid)
	most := resetPeak(pid)
	ctx, cancel := context.WithCancel(t.Context())
	meanwhile := make(chan string, 1)
	go func() { meanwhile <- g.serveOthers(ctx) }()
	begun := time.Now()
	got := a.run(g)
	took := time.Since(begun)
	cancel()
	others := <-meanwhile
	if strings.HasPrefix(got, "SKIPPED") {
		return fmt.Sprintf("%s\t%s\t%s", a.name, g.name, got)
	}
	if got, when, ok := strings.Cut(got, "\t"); ok {
		return g.row(a, got, when, others, most, files)
	}
	return g.row(a, got, took.Round(time.Millisecond).String(), others, most, files)
}

func (g *target) row(a attack, got, when, others string, before, files int) string {
	t, pid := g.t, g.cmd.Process.Pid
	if got != a.want {
		t.Errorf("%s, %s: %s, want %s", a.name, g.name, got, a.want)
	}
	peak := vmOf(pid, "VmHWM")
	if a.growth = max(a.growth, 32<<20); peak-before > a.growth && before > 0 && !gentest.Race {
		t.Errorf("%s, %s: memory grew by %d KiB to %d KiB, want %d KiB at most", a.name, g.name, (peak-before)>>10, peak>>10, a.growth>>10)
	}
	heap := "–"
	if g.heap {
		_, text := get(t, "http://"+g.address+"/heap")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Error(err)
		}
		heap = fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	http.DefaultClient.CloseIdleConnections()
	left := 0
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if left = filesOf(pid) - files; left <= 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%s, %s: %d files are left", a.name, g.name, left)
			break
		}
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%.1f MiB (%+.1f)\t%s\t%s\t%d", a.name, g.name, got, when, float64(peak)/(1<<20), float64(peak-before)/(1<<20), heap, others, max(left, 0))
}

// serveOthers makes ada use her connection and open others until ctx ends, and reports how often, and how long it took
// at most.
func (g *target) serveOthers(ctx context.Context) string {
	var turn, fresh time.Duration
	n := 0
	for pause := time.NewTicker(100 * time.Millisecond); ; n++ {
		begun := time.Now()
		if err := g.turn(g.session); err != nil {
			g.t.Errorf("%s: ada's turn: %v", g.name, err)
		}
		turn = max(turn, time.Since(begun))
		begun = time.Now()
		if err := g.visit([]string{"ws", "http"}[n%2]); err != nil {
			g.t.Errorf("%s: another connection of ada: %v", g.name, err)
		}
		fresh = max(fresh, time.Since(begun))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Sprintf("%d turns ≤ %v, %d connections ≤ %v", n+1, turn.Round(time.Millisecond), n+1, fresh.Round(time.Millisecond))
		}
	}
}

// turn makes the parrot repeat what ada says.
func (g *target) turn(session *acp.ClientSession) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), 3*time.Minute)
	defer cancel()
	turn := session.Stream(ctx, acp.TextBlock(adaSays))
	var said strings.Builder
	for update := range turn.Updates() {
		text := update.AgentText()
		said.WriteString(text)
	}
	_, err := turn.Result()
	if err == nil && said.String() != adaSays {
		err = fmt.Errorf("the agent says %q", said.String())
	}
	return err
}

// visit opens a connection, has a turn, and closes it.
func (g *target) visit(scheme string) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), 3*time.Minute)
	defer cancel()
	conn, err := acp.Connect(ctx, g.dial(scheme), acp.ClientHandlers{}, nil)
	if err != nil {
		return err
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	if err == nil {
		err = g.turn(session)
	}
	return errors.Join(err, conn.Close())
}

const helloAgent = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`

// request returns the text of a request. If token is "", there is none; if it begins with ?, it is in the URL.
func (g *target) request(method, token, id string, header ...string) string {
	path, host := remote.DefaultPath, "Host: "+g.address
	var lines []string
	if strings.HasPrefix(token, "?") {
		path += "?token=" + token[1:]
	} else if token != "" {
		lines = append(lines, "Authorization: Bearer "+token)
	}
	if method == "UPGRADE" {
		method = "GET"
		lines = append(lines, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==")
	} else if method == "GET" {
		lines = append(lines, "Accept: text/event-stream")
	}
	if id != "" {
		lines = append(lines, "Acp-Connection-Id: "+id)
	}
	for _, line := range header {
		if strings.HasPrefix(line, "Host: ") {
			host = line
		} else {
			lines = append(lines, line)
		}
	}
	return method + " " + path + " HTTP/1.1\r\n" + host + "\r\n" + strings.Join(append(lines, "", ""), "\r\n")
}

// tooLong is when an attack is stopped if the server does not stop it.
const tooLong = 3 * time.Minute

// connect opens a TCP connection with a deadline.
func (g *target) connect() net.Conn {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(tooLong)); err != nil {
		g.t.Fatal(err)
	}
	return conn
}

// send writes until the server accepts no more.
func send(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// ask makes a request on a separate connection, and returns the response without its body.
func (g *target) ask(method, token, id, body string, header ...string) *http.Response {
	g.t.Helper()
	conn := g.connect()
	defer conn.Close()
	if method == "POST" {
		header = append(header, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	send(conn, g.request(method, token, id, header...)+body)
	return g.answer(conn)
}

func (g *target) answer(conn net.Conn) *http.Response {
	g.t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		g.t.Fatalf("%s: no answer: %v", g.name, err)
	}
	return answer
}

// each makes a request with every method, and returns the statuses: a single one, if it is the same for all.
func (g *target) each(token, id string, header ...string) string {
	var all []string
	for _, method := range []string{"POST", "GET", "DELETE", "UPGRADE"} {
		if id != "" && method == "UPGRADE" {
			continue // it opens a separate connection
		}
		own, body := header, ""
		if method == "POST" {
			own, body = append(slices.Clip(header), "Content-Type: application/json"), helloAgent
			if id != "" {
				body = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"one"}}`
			}
		}
		all = append(all, strconv.Itoa(g.ask(method, token, id, body, own...).StatusCode))
	}
	if len(slices.Compact(slices.Clone(all))) == 1 {
		return all[0]
	}
	return strings.Join(all, ", ")
}

// open upgrades a connection.
func (g *target) open(token string) (net.Conn, *bufio.Reader) {
	g.t.Helper()
	conn := g.connect()
	send(conn, g.request("UPGRADE", token, ""))
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		g.t.Fatalf("%s: no WebSocket: %v, %v", g.name, answer, err)
	}
	return conn, from
}

// closed reads frames until the server closes the WebSocket, and returns the code.
func (g *target) closed(from *bufio.Reader) string {
	g.t.Helper()
	for {
		var head [2]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return fmt.Sprintf("cut: %v", err)
		}
		size := int(head[1] & 0x7f)
		if size == 126 {
			var long [2]byte
			if _, err := io.ReadFull(from, long[:]); err != nil {
				return fmt.Sprintf("cut: %v", err)
			}
			size = int(long[0])<<8 | int(long[1])
		}
		payload := make([]byte, size)
		if _, err := io.ReadFull(from, payload); err != nil {
			return fmt.Sprintf("cut: %v", err)
		}
		if head[0]&0xf == 8 && size >= 2 {
			return fmt.Sprintf("close %d", int(payload[0])<<8|int(payload[1]))
		}
	}
}

// attacks returns the rows.
func attacks() []attack {
	half, drips := tier.Pick(0, 0, 200, 10_000), tier.Pick(0, 0, 20, 200)
	const headers = "POST /acp HTTP/1.1\r\nHost: localhost\r\n"
	return []attack{
		{name: "no token", want: "401", run: func(g *target) string { return g.each("", "") }},
		{name: "wrong token", want: "401", run: func(g *target) string { return g.each(wrongToken, "") }},
		{name: "wrong token in the URL", want: "401", run: func(g *target) string { return g.each("?"+wrongToken, "") }},
		{name: "foreign Origin", want: "403", run: func(g *target) string { return g.each(adaToken, "", "Origin: https://evil.example") }},
		{name: "foreign Host", want: "403", run: func(g *target) string { return g.each(adaToken, "", "Host: evil.example") }},
		{name: "foreign Host and Origin, the same", want: "403", run: func(g *target) string {
			return g.each(adaToken, "", "Host: evil.example", "Origin: http://evil.example")
		}},
		{name: "connection id of another", want: "404", run: func(g *target) string { return g.each(malloryToken, g.id) }},
		{name: "connection id without token", want: "401", run: func(g *target) string { return g.each("", g.id) }},
		{name: "connection id guessed", want: "404", run: func(g *target) string { return g.each(malloryToken, strings.Repeat("A", 26)) }},
		{name: "body of 1 TB, announced", serve: tier.Nightly, want: "413", run: func(g *target) string {
			conn := g.connect()
			defer conn.Close()
			send(conn, g.request("POST", malloryToken, "", "Content-Type: application/json", "Content-Length: 1000000000000"))
			return strconv.Itoa(g.answer(conn).StatusCode)
		}},
		{name: "body without end", want: "413", run: func(g *target) string {
			conn := g.connect()
			defer conn.Close()
			send(conn, g.request("POST", malloryToken, "", "Content-Type: application/json", "Transfer-Encoding: chunked"))
			var writing sync.WaitGroup
			defer writing.Wait()
			writing.Go(func() {
				chunk := "8000\r\n" + strings.Repeat(" ", 0x8000) + "\r\n"
				for range 2 * guardedMessage / 0x8000 {
					send(conn, chunk)
				}
			})
			return strconv.Itoa(g.answer(conn).StatusCode)
		}},
		{name: "header of 100 KiB", want: "431", run: func(g *target) string {
			conn := g.connect()
			defer conn.Close()
			send(conn, headers+"X-Long: "+strings.Repeat("x", 100<<10))
			return strconv.Itoa(g.answer(conn).StatusCode)
		}},
		{name: "frame of 1 TB", want: "close 1009", run: func(g *target) string {
			conn, from := g.open(malloryToken)
			defer conn.Close()
			// A length of 8 bytes, and a mask of zeros.
			send(conn, "\x81\xff\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
			var writing sync.WaitGroup
			defer writing.Wait()
			writing.Go(func() { send(conn, strings.Repeat(" ", 2*guardedMessage)) })
			return g.closed(from)
		}},
		{name: "message of fragments without end", want: "close 1009", run: func(g *target) string {
			conn, from := g.open(malloryToken)
			defer conn.Close()
			var writing sync.WaitGroup
			defer writing.Wait()
			writing.Go(func() {
				frame := "\x01\xfe\x80\x00\x00\x00\x00\x00" + strings.Repeat(" ", 0x8000)
				for range 2 * guardedMessage / 0x8000 {
					send(conn, frame)
					frame = "\x00" + frame[1:]
				}
			})
			return g.closed(from)
		}},
		{name: fmt.Sprintf("%d slow headers", drips), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("closed ×%d", drips), run: func(g *target) string {
			return g.drip(drips, headers, "X-A: b\r\n")
		}},
		{name: fmt.Sprintf("%d slow bodies", drips), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("408 ×%d", drips), run: func(g *target) string {
			return g.drip(drips, g.request("POST", malloryToken, "", "Content-Type: application/json", "Content-Length: 100000"), " ")
		}},
		{name: fmt.Sprintf("%d slow bodies, no token", drips), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("401 ×%d", drips), run: func(g *target) string {
			return g.drip(drips, g.request("POST", "", "", "Content-Type: application/json", "Content-Length: 100000"), " ")
		}},
		{name: fmt.Sprintf("%d slow bodies for another path", drips), least: tier.Nightly, want: fmt.Sprintf("404 ×%d", drips), run: func(g *target) string {
			return g.drip(drips, strings.Replace(headers, "/acp", "/other", 1)+"Content-Length: 100000\r\n\r\n", " ")
		}},
		{name: "silent WebSocket", least: tier.Full, serve: tier.Nightly, want: "close 1008", run: func(g *target) string {
			conn, from := g.open(malloryToken)
			defer conn.Close()
			return g.closed(from)
		}},
		{name: "WebSocket with a slow frame", least: tier.Full, serve: tier.Nightly, want: "close 1008", run: func(g *target) string {
			conn, from := g.open(malloryToken)
			defer conn.Close()
			done := make(chan struct{})
			var writing sync.WaitGroup
			defer writing.Wait()
			defer close(done)
			send(conn, "\x81\xfe\x80\x00\x00\x00\x00\x00")
			writing.Go(func() { drip(conn, " ", done) })
			return g.closed(from)
		}},
		{name: fmt.Sprintf("%d connections that say nothing", half), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("closed ×%d", half), growth: 32<<20 + half*(32<<10),
			run: func(g *target) string { return g.crowd(half, "") }},
		{name: fmt.Sprintf("%d half requests", half), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("closed ×%d", half), growth: 32<<20 + half*(32<<10),
			run: func(g *target) string { return g.crowd(half, headers) }},
		{name: fmt.Sprintf("%d silent connections of HTTP/2", half), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("closed ×%d", half), growth: 32<<20 + half*(64<<10),
			run: func(g *target) string {
				return g.crowd(half, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00") // with SETTINGS
			}},
		{name: fmt.Sprintf("%d half requests of HTTP/2", half), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("closed ×%d", half), growth: 32<<20 + half*(64<<10),
			run: func(g *target) string {
				// HEADERS of a POST for the root, without END_HEADERS.
				return g.crowd(half, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x03\x01\x00\x00\x00\x00\x01\x83\x86\x84")
			}},
		{name: fmt.Sprintf("%d silent WebSockets, no token", half), least: tier.Full, want: fmt.Sprintf("401 ×%d", half), growth: 32<<20 + half*(32<<10),
			run: func(g *target) string { return g.crowd(half, g.request("UPGRADE", "", "", "Connection: close")) }},
		{name: fmt.Sprintf("%d silent WebSockets", half), least: tier.Full, serve: tier.Nightly, want: fmt.Sprintf("101 ×%d, 429 ×%d", guardedEach, half-guardedEach), growth: 32<<20 + half*(32<<10),
			run: func(g *target) string {
				return g.crowd(half, g.request("UPGRADE", malloryToken, "", "Connection: close"))
			}},
	}
}

// drip begins requests on many connections and continues them slowly until the server closes them. It says how they
// ended.
func (g *target) drip(count int, begin, drop string) string {
	answers := make(chan string, count)
	for range count {
		conn := g.connect()
		go func() {
			defer conn.Close()
			done := make(chan struct{})
			var writing sync.WaitGroup
			defer writing.Wait()
			defer close(done)
			send(conn, begin)
			writing.Go(func() { drip(conn, drop, done) })
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			switch {
			case err == nil:
				answers <- strconv.Itoa(answer.StatusCode)
			case errors.Is(err, os.ErrDeadlineExceeded):
				answers <- "nothing, for too long"
			default:
				answers <- "closed"
			}
		}()
	}
	counts := map[string]int{}
	for range count {
		counts[<-answers]++
	}
	var words []string
	for _, answer := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s ×%d", answer, counts[answer]))
	}
	return strings.Join(words, ", ")
}

// drip keeps writing a little.
func drip(conn net.Conn, drop string, done <-chan struct{}) {
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			send(conn, drop)
		case <-done:
			return
		}
	}
}

// crowd opens count connections from a separate process. The server and that process need a file for each.
func (g *target) crowd(count int, text string) string {
	t := g.t
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < uint64(count)+1000 {
		return fmt.Sprintf("SKIPPED: ulimit -n is %d, and must be %d", limit.Max, count+1000)
	}
	cmd := exec.Command(programPath(t, "crowd"), g.address, strconv.Itoa(count), strconv.Quote(text))
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(stdout)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(strings.TrimSpace(string(out)), "open\n")
	words := strings.Split(line, "\t")
	if !ok || len(words) != 3 {
		t.Fatalf("the crowd says %q", out)
	}
	return fmt.Sprintf("%s\t%s – %s", words[0], words[1], words[2])
}

// filesOf counts the open files of a process; it is 0 where that is unknown.
func filesOf(pid int) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0
	}
	return len(entries)
}

// resetPeak resets the peak memory of a process to its current memory, and returns that; 0 where that is impossible.
func resetPeak(pid int) int {
	const peak = "5" // see proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0); err != nil {
		return 0
	}
	return vmOf(pid, "VmHWM")
}

// vmOf reads a figure of a process in bytes; it is 0 if there is none.
func vmOf(pid int, name string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			if kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB"))); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
