package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	initialized = `{"jsonrpc":"2.0","id":0,"result":{"for":"initialize"}}` // what a testAgent answers
)

// dial connects to a URL and writes a message.
func dial(t *testing.T, url string, o *remote.DialOptions, message string) rpc.Stream {
	t.Helper()
	s, err := remote.Dial(url, o).Connect(t.Context())
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		err = s.Write([]byte(message))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestREM2_URL: the scheme chooses, and an error never repeats the URL.
func TestREM2_URL(t *testing.T) {
	for url, want := range map[string]string{
		"ftp://host/secret":   `acp: unsupported scheme "ftp", expected http, https, ws or wss`,
		"http://":             "acp: the URL has no host",
		"/secret":             "acp: the URL has no host",
		"http://a b/secret":   "acp: invalid URL",
		"host/acp?token=abcd": "acp: the URL has no host",
	} {
		if _, err := remote.Dial(url, nil).Connect(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close() // nobody listens there
	address := l.Addr().String()
	if _, err := dial(t, "http://"+address, nil, initialize).Read(); err == nil || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "http:") {
		t.Errorf("got %v", err)
	}
}

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestREM87_Insecure: nothing that may be a token goes out without TLS, except to this machine.
func TestREM87_Insecure(t *testing.T) {
	network := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") })}
	header := func(context.Context) (http.Header, error) { return nil, nil }
	for _, c := range []struct {
		url                  string
		insecure, withHeader bool // that it is refused, with and without a header
	}{
		{"http://example.com/acp", false, true},
		{"http://user:pw@example.com/acp", true, true},
		{"http://example.com/acp?token=1", true, true},
		{"ws://example.com/acp?X-Access_KEY=1", true, true},
		{"http://127.0.0.1/acp?token=1", false, false},
		{"ws://[::1]:80/?token=1", false, false},
		{"ws://[::ffff:127.0.0.1]:80/?token=1", false, false},
		{"ws://user:pw@localhost/", false, false},
		{"ws://agent.localhost/?token=1", true, true}, // a name of DNS, for Go
		{"ws://localhost./?token=1", true, true},      // that goes to a proxy
		{"ws://LOCALHOST/?token=1", true, true},
		{"ws://localhost.example.com/?token=1", true, true},
		{"http://10.0.0.1/?token=1", true, true},
		{"https://user:pw@example.com/?token=1", false, false},
		{"wss://example.com/?token=1", false, false},
	} {
		for o, want := range map[*remote.DialOptions]bool{
			{}: c.insecure, {AllowInsecure: true}: false, {Header: header}: c.withHeader, {Header: header, AllowInsecure: true}: false,
		} {
			o.HTTPClient = network
			s, err := remote.Dial(c.url, o).Connect(t.Context())
			if errors.Is(err, remote.ErrInsecure) != want || err != nil && strings.Contains(err.Error(), "pw") {
				t.Errorf("%s with a header %v, allowed %v: %v", c.url, o.Header != nil, o.AllowInsecure, err)
			}
			if err == nil {
				s.Close()
			}
		}
	}
}

// TestREM26_TLS: wss goes over HTTP/1.1 though the server speaks HTTP/2, and https over HTTP/2, with one client.
func TestREM26_TLS(t *testing.T) {
	protos := make(chan string, 100)
	f := serveBy(t, "HTTP/2", nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			protos <- r.Proto
			h.ServeHTTP(w, r)
		})
	})
	for scheme, proto := range map[string]string{"wss": "HTTP/1.1", "https": "HTTP/2.0"} {
		s := dial(t, strings.Replace(f.url, "https", scheme, 1), &remote.DialOptions{HTTPClient: f.client}, initialize)
		if line, err := s.Read(); err != nil || string(line) != initialized {
			t.Errorf("%s: %s, %v", scheme, line, err)
		}
		if got := receive(t, protos); got != proto {
			t.Errorf("%s over %s", scheme, got)
		}
		s.Close()
		for len(protos) > 0 {
			<-protos
		}
	}
	// A server that nobody vouches for has not seen a request.
	_, err := dial(t, f.url, nil, initialize).Read()
	if _, unknown := errors.AsType[*remote.OutcomeError](err); unknown || err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

// TestREM58_ConnectContext: the context of Connect applies to opening only.
func TestREM58_ConnectContext(t *testing.T) {
	f := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	s := must.Get(remote.Dial("ws"+strings.TrimPrefix(f.url, "http"), nil).Connect(ctx))(t)
	defer s.Close()
	cancel()
	must.Do(t, s.Write([]byte(initialize)))
	must.Get(s.Read())(t)

	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // accepts by its backlog, and answers nothing
	defer l.Close()
	why := errors.New("enough")
	ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer stop()
	if _, err := remote.Dial("ws://"+l.Addr().String(), nil).Connect(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestREM55_Backoff: a stream that cannot be opened again is tried after 1 s × 1.5ⁿ, up to 30 s, and a random part of
// that; for so long as a server keeps what it has to send; then the connection is lost. The waits begin anew only when a
// message came: not for a stream that opens and ends.
func TestREM55_Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, took, err := reopened(t, ":\n\n", true)
		if err == nil || !strings.Contains(err.Error(), "6m0s") || took < 6*time.Minute || took > 7*time.Minute {
			t.Errorf("given up after %v: %v", took, err)
		}
		limit, different := time.Second, map[time.Duration]bool{}
		for i, wait := range waits {
			if wait > limit {
				t.Errorf("wait %d is %v, more than %v", i, wait, limit)
			}
			limit = min(limit*3/2, 30*time.Second)
			different[wait] = true
		}
		if len(waits) < 12 || len(waits) > 200 || len(different) < len(waits)/2 {
			t.Errorf("waited %v", waits)
		}
	})
	for stream, anew := range map[string]bool{":\n\n": false, "data: " + expand("x {}") + "\n\n": true} {
		synctest.Test(t, func(t *testing.T) {
			waits, _, err := reopened(t, stream, false)
			if longest := slices.Max(waits); err != nil || anew != (longest <= time.Second) {
				t.Errorf("%q: the longest wait was %v; %v", stream, longest, err)
			}
		})
	}
}

// reopened returns the times between the GETs of a client whose stream ends again and again, or fails after the first
// time, and how it ends, if it does so within ten minutes.
func reopened(t *testing.T, stream string, fails bool) (waits []time.Duration, took time.Duration, err error) {
	var mu sync.Mutex
	var gets []time.Time
	server := func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		status, header, body := 202, http.Header{}, ""
		switch r.Method {
		case http.MethodPost:
			status, body = 200, initialized
			header.Set(remote.HeaderConnection, "c0ffee")
		case http.MethodGet:
			if gets = append(gets, time.Now()); fails && len(gets) > 1 {
				status = []int{502, 409, 0}[len(gets)%3]
				break
			}
			status, body = 200, stream
			header.Set("Content-Type", "text/event-stream")
		}
		if status == 0 {
			return nil, errors.New("the network is down")
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r, ContentLength: -1}, nil
	}
	s := dial(t, "http://localhost", &remote.DialOptions{
		HTTPClient: &http.Client{Transport: roundTripper(server)}, Logger: slog.New(slog.DiscardHandler),
	}, initialize)
	began, ended := time.Now(), make(chan error, 1)
	go func() {
		for {
			if _, err := s.Read(); err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err = <-ended:
	case <-time.After(10 * time.Minute):
	}
	took = time.Since(began)
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i < len(gets); i++ {
		waits = append(waits, gets[i].Sub(gets[i-1]))
	}
	return waits, took, err
}

// TestErrorsKeepSecrets: what a server says is in errors as one line, without what the client sent to get access.
func TestErrorsKeepSecrets(t *testing.T) {
	// The key has the least length that counts.
	const token, key, inURL, password = "tok~secret/1=", "8-secret", "url-secret-3", "pass-secret-4"
	const text = "refused\n\x1b[2J\u202eagent good"
	const maxText = 1 << 10
	// Each server repeats what it was sent.
	sent := func(r *http.Request) string {
		_, pass, _ := r.BasicAuth()
		return fmt.Sprintf("%s %s %s %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.URL.Query().Get("token"), pass)
	}
	for name, serve := range map[string]http.HandlerFunc{
		"body": func(w http.ResponseWriter, r *http.Request) { http.Error(w, text+sent(r), http.StatusForbidden) },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, text+strings.Repeat("x", maxText-len(text)-7)+token, http.StatusBadRequest)
		},
		"cut, and hidden before": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(token, maxText/len(token)+2), http.StatusBadRequest)
		},
		"type": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/"+key)
			io.WriteString(w, "no message")
		},
		"no HTTP": func(w http.ResponseWriter, r *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(buf, "HTTP/1.1 %s\r\n\r\n", sent(r))
			buf.Flush()
		},
		"close": func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				http.Error(w, sent(r), http.StatusBadRequest)
				return
			}
			ws.Close(websocket.StatusPolicyViolation, text+sent(r))
		},
	} {
		server := httptest.NewServer(serve)
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		for _, address := range []string{"ws://" + host + "/?token=" + inURL, "http://" + host + "/?token=" + inURL, "http://user:" + password + "@" + host} {
			t.Run(name+" "+address[:2], func(t *testing.T) {
				o := &remote.DialOptions{HTTPClient: server.Client(), Logger: slog.New(slog.DiscardHandler)}
				if !strings.Contains(address, "@") {
					o.Header = func(context.Context) (http.Header, error) {
						return http.Header{"authorization": {"Bearer " + token}, "X-Key": {key}}, nil
					}
				}
				err := failure(t, address, o)
				if err == nil {
					t.Fatal("it was accepted")
				}
				for _, secret := range []string{token, token[:5], key, inURL, password, "\n", "\x1b", "\u202e"} {
					if strings.Contains(err.Error(), secret) && !(strings.HasPrefix(name, "cut") && o.Header == nil) {
						t.Errorf("%q is in the error: %q", secret, err)
					}
				}
				if name == "body" && o.Header != nil {
					status, ok := errors.AsType[*remote.StatusError](err)
					if want := `refused \x1b[2J\u202eagent goodBearer *** *** ***`; !ok || status.Text != want {
						t.Errorf("%q, want %q", status.Text, want)
					}
				}
			})
		}
	}
}

// failure is why a connection fails, when it is opened or at its first message.
func failure(t *testing.T, address string, o *remote.DialOptions) error {
	s, err := remote.Dial(address, o).Connect(t.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	// A server that closes at once may be faster than the message: both errors count.
	err = s.Write([]byte(initialize))
	if _, read := s.Read(); read != nil {
		err = fmt.Errorf("%v; %w", err, read)
	}
	return err
}

// TestServeAgent serves one agent to two clients.
func TestServeAgent(t *testing.T) {
	server := remote.ServeAgent(acp.ServeAgent, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return nil, nil
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}}, nil)
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	for _, scheme := range []string{"http", "ws"} {
		transport := remote.Dial(scheme+strings.TrimPrefix(web.URL, "http"), nil)
		client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, nil), acp.ClientHandlers{},
			&acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}}))(t)
		session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
		if res, err := session.Prompt(t.Context(), acp.TextBlock("hello")); err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Errorf("%s: %v, %v", scheme, res, err)
		}
		must.Do(t, client.Close())
	}
}
