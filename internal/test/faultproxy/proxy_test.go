package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time limit for events that must happen; briefly is a delay, and idle more than the steps of a test are apart.
const (
	patience = 2 * time.Minute
	briefly  = 50 * time.Millisecond
	idle     = 2 * time.Second
)

// holds waits until a proxy holds something.
func holds(t *testing.T, p *Proxy) {
	t.Helper()
	for end := time.Now().Add(patience); p.held.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the proxy holds nothing")
		}
	}
}

// backend is the server of a proxy. It answers a POST with its number and its body, a GET with a stream of the lines
// that the test sends, and an upgrade with an echo.
type backend struct {
	*httptest.Server
	lines chan string

	mu    sync.Mutex
	posts []string
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Upgrade") != "":
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buf) // until the other end is gone
	case r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.posts = append(b.posts, string(body))
		n := len(b.posts)
		b.mu.Unlock()
		fmt.Fprintf(w, "%d %s HTTP/%d", n, body, r.ProtoMajor)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case line, ok := <-b.lines:
				if !ok {
					return
				}
				fmt.Fprintln(w, line)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// send sends lines until stop is called.
func (b *backend) send(lines ...string) (stop func()) {
	stopped := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for _, line := range lines {
			select {
			case b.lines <- line:
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		sending.Wait()
	}
}

func (b *backend) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.posts)
}

// start starts a backend and a proxy for it.
func start(t *testing.T, rules ...*Rule) (*backend, *Proxy) {
	t.Helper()
	b := &backend{lines: make(chan string)}
	b.Server = httptest.NewUnstartedServer(b)
	b.Config.Protocols = protocols(true, true)
	b.Start()
	t.Cleanup(b.Close)
	p, err := New(b.Listener.Addr().String(), rules...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := p.Conns(); n > 0 {
			t.Errorf("%d sockets are open at the end", n)
		}
	})
	return b, p
}

func protocols(http1, http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// each runs a test over HTTP/1.1 and HTTP/2.
func each(t *testing.T, test func(t *testing.T, client *http.Client)) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP", version), func(t *testing.T) {
			transport := &http.Transport{Protocols: protocols(version == 1, version == 2)}
			defer transport.CloseIdleConnections()
			test(t, &http.Client{Transport: transport, Timeout: patience})
		})
	}
}

func post(client *http.Client, p *Proxy, body string) (status int, text string, err error) {
	res, err := client.Post("http://"+p.Addr()+"/acp", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	return res.StatusCode, string(all), err
}

func TestRequests(t *testing.T) {
	each(t, func(t *testing.T, client *http.Client) {
		message := func(method string) string { return fmt.Sprintf(`{"method":%q}`, method) }
		b, p := start(t,
			&Rule{Match: RPC("busy"), Do: Answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, "later")},
			&Rule{Match: RPC("second"), Skip: 1, Times: 1, Do: Answer(502, nil, "no")},
			&Rule{Match: RPC("after"), Do: AnswerAfter(502, "bad gateway")},
			&Rule{Match: RPC("reset"), Do: Reset},
			&Rule{Match: RPC("lost"), Do: ResetAfter},
			&Rule{Match: RPC("double"), Do: Double},
			&Rule{Match: Responses, Do: BodyLimit(10)},
		)
		for _, test := range []struct {
			method string
			status int // 0: the connection breaks
			text   string
			seen   int // by the server
		}{
			{"any", 200, "1 {any}", 1},
			{"busy", 429, "later", 0},
			{"second", 200, "2 {second}", 1},
			{"second", 502, "no", 0},
			{"second", 200, "3 {second}", 1},
			{"after", 502, "bad gateway", 1},
			{"reset", 0, "", 0},
			{"lost", 0, "", 1},
			{"double", 200, "7 {double}", 2},
		} {
			before := len(b.seen())
			status, text, err := post(client, p, message(test.method))
			text = strings.NewReplacer(message(test.method), "{"+test.method+"}", fmt.Sprintf(" HTTP/%d", p.Requests()[0].ProtoMajor), "").Replace(text)
			if status != test.status || text != test.text || (err != nil) != (test.status == 0) {
				t.Errorf("%s: got %d, %q, %v", test.method, status, text, err)
			}
			if seen := len(b.seen()) - before; seen != test.seen {
				t.Errorf("%s: the server saw it %d times, want %d", test.method, seen, test.seen)
			}
		}
		for body, want := range map[string]int{"[]": 200, "[1,2,3,4,5]": 413} {
			if status, _, err := post(client, p, body); status != want || err != nil {
				t.Errorf("%s: got %d, %v, want %d", body, status, err, want)
			}
		}
		p.Clear()
		if status, _, err := post(client, p, message("busy")); status != 200 || err != nil {
			t.Errorf("without rules: got %d, %v", status, err)
		}
		if last := p.Requests()[len(p.Requests())-1]; last.RPC != "busy" || string(last.Body) != message("busy") {
			t.Errorf("got %s %s", last.RPC, last.Body)
		}
	})
}

// Two requests on two connections arrive in the other order.
func TestReorder(t *testing.T) {
	each(t, func(t *testing.T, client *http.Client) {
		second := make(chan struct{})
		b, p := start(t, &Rule{Match: RPC("first"), Do: Hold(second)}, &Rule{Match: RPC("late"), Do: Delay(briefly)})
		var posting sync.WaitGroup
		posting.Go(func() {
			if status, _, err := post(client, p, `{"method":"first"}`); status != 200 {
				t.Error(status, err)
			}
		})
		if _, _, err := post(client, p, `{"method":"second"}`); err != nil {
			t.Error(err)
		}
		close(second)
		posting.Wait()
		if got, want := b.seen(), []string{`{"method":"second"}`, `{"method":"first"}`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		begun := time.Now()
		if status, _, err := post(client, p, `{"method":"late"}`); status != 200 || time.Since(begun) < briefly {
			t.Errorf("got %d, %v after %v", status, err, time.Since(begun))
		}
	})
}

// stream is a GET whose lines are read.
type stream struct {
	*bufio.Reader
	close func()
}

func get(t *testing.T, client *http.Client, p *Proxy) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Addr()+"/acp", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{bufio.NewReader(res.Body), func() {
		cancel()
		res.Body.Close()
	}}
	t.Cleanup(s.close)
	return s
}

func (s *stream) want(t *testing.T, want string) {
	t.Helper()
	if got, err := s.ReadString('\n'); got != want+"\n" || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestStreams(t *testing.T) {
	each(t, func(t *testing.T, client *http.Client) {
		t.Run("passes", func(t *testing.T) {
			b, p := start(t)
			s := get(t, client, p)
			for _, line := range []string{"one", "two"} { // each as soon as it is available
				b.lines <- line
				s.want(t, line)
			}
			close(b.lines)
			if _, err := s.ReadByte(); err != io.EOF {
				t.Errorf("got %v, want the end", err)
			}
		})
		now := make(chan struct{})
		close(now)
		for _, test := range []struct {
			name  string
			fault Fault
			want  string
			clean bool
		}{
			{"cut", CutAfter(6), "one\ntw", false},
			{"end", EndAfter(6), "one\ntw", true},
			{"cut behind a line", CutAfter(4), "one\n", false},
			{"cut at once", CutAfter(0), "", false},
			{"end at once", EndWhen(now), "", true},
			{"cut on an event", CutWhen(now), "", false},
			{"cut when idle", IdleCut(idle), "one\ntwo\n", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				b, p := start(t, &Rule{Match: Method(http.MethodGet), Times: 1, Do: test.fault})
				stop := b.send("one", "two")
				s := get(t, client, p)
				got, err := io.ReadAll(s)
				stop()
				if string(got) != test.want || (err == nil) != test.clean {
					t.Errorf("got %q, %v, want %q", got, err, test.want)
				}
				again := get(t, client, p) // the rule is used up
				// The first of them may go to the stream that was cut.
				stop = b.send("again", "again")
				again.want(t, "again")
				stop()
			})
		}
		t.Run("cut on a later event", func(t *testing.T) {
			event := make(chan struct{})
			b, p := start(t, &Rule{Do: CutWhen(event)})
			s := get(t, client, p)
			b.lines <- "one"
			s.want(t, "one")
			close(event)
			if _, err := s.ReadByte(); err == nil || err == io.EOF {
				t.Errorf("got %v, want it to break", err)
			}
		})
		t.Run("stall", func(t *testing.T) {
			b, p := start(t, &Rule{Times: 1, Do: StallAfter(4)})
			s := get(t, client, p)
			b.lines <- "one"
			s.want(t, "one")
			b.lines <- "two"
			ended := make(chan error, 1)
			go func() {
				_, err := s.ReadByte()
				ended <- err
			}()
			holds(t, p)
			select {
			case err := <-ended:
				t.Errorf("read: %v", err)
			default:
			}
			s.close()
			if err := <-ended; err == nil {
				t.Error("something passed")
			}
		})
		t.Run("buffer", func(t *testing.T) {
			release := make(chan struct{})
			b, p := start(t, &Rule{Do: Buffer(release)})
			got := make(chan *stream)
			go func() { got <- get(t, client, p) }()
			b.lines <- "one" // the server has begun to answer
			holds(t, p)
			select {
			case <-got:
				t.Error("the header arrived")
			default:
			}
			close(release)
			(<-got).want(t, "one")
		})
	})
}

// upgrade opens a connection that echoes.
func upgrade(t *testing.T, p *Proxy) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET /acp HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "echo" {
		t.Fatalf("got %s %v", res.Status, res.Header)
	}
	return c, r
}

func TestUpgrade(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault Fault
		want  string
		err   error // what ends it
	}{
		{"passes", Pass, "one two three", io.EOF},
		{"cut", CutAfter(5), "one t", syscall.ECONNRESET},
		{"end", EndAfter(5), "one t", io.EOF},
		{"idle", IdleCut(idle), "one two three", syscall.ECONNRESET},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, p := start(t, &Rule{Match: Upgrade, Do: test.fault})
			c, r := upgrade(t, p)
			fmt.Fprint(c, "one two three")
			got := make([]byte, len(test.want))
			if _, err := io.ReadFull(r, got); string(got) != test.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if test.name == "passes" {
				if err := c.(*net.TCPConn).CloseWrite(); err != nil {
					t.Error(err)
				}
			}
			if rest, err := r.ReadByte(); !errors.Is(err, test.err) {
				t.Errorf("got %q, %v, want %v", rest, err, test.err)
			}
		})
	}
}

func TestSockets(t *testing.T) {
	_, p := start(t)
	c, r := upgrade(t, p)
	echo := func() error {
		fmt.Fprint(c, "x")
		_, err := r.ReadByte()
		return err
	}
	if err := echo(); err != nil {
		t.Fatal(err)
	}

	p.Freeze()
	thawed := make(chan error, 1)
	go func() { thawed <- echo() }()
	holds(t, p)
	select {
	case err := <-thawed:
		t.Errorf("a frozen connection: %v", err)
	default:
	}
	p.Thaw()
	if err := <-thawed; err != nil {
		t.Errorf("a thawed connection: %v", err)
	}

	if err := p.Refuse(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want it refused", err)
	}
	if err := echo(); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
	upgrade(t, p)

	p.Cut()
	if err := echo(); err == nil {
		t.Error("a connection that was cut is still open")
	}
	upgrade(t, p)
}
