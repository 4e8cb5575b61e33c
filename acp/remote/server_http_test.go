package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/test/tier"
)

func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

func note(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func result(id any, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"for":%q}}`, id, method)
}

// send has the agent of a connection send something.
func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.agent.send("%s", text); err != nil {
		p.t.Fatal(err)
	}
}

func TestREM1_OnePathTwoTransports(t *testing.T) {
	t.Run("no HTTP", func(t *testing.T) {
		f := serve(t, &remote.HandlerOptions{DisableHTTP: true})
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if resp, _ := f.do(method, ""); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET" {
				t.Errorf("%s: %s, Allow %q", method, resp.Status, resp.Header.Get("Allow"))
			}
		}
		f.openSocket()
	})
	t.Run("no WebSocket", func(t *testing.T) {
		f := serve(t, &remote.HandlerOptions{DisableWebSocket: true})
		if _, resp, err := f.tryDial(nil); err == nil || resp == nil || resp.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("upgrade: %v", err)
		}
		f.open()
	})
	t.Run("any mux", func(t *testing.T) {
		f := serveBy(t, "HTTP/1.1", nil, func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/agents/{name}", h)
			return mux
		})
		f.url = strings.Replace(f.url, remote.DefaultPath, "/agents/one", 1)
		f.open()
		f.openSocket()
	})
}

// TestREM3_REM4_ConnectionIDs: ids are random, of 128 bits or more, and in headers, not in the result. Each connection
// has an agent of its own.
func TestREM3_REM4_ConnectionIDs(t *testing.T) {
	f := serve(t, nil)
	if _, body := f.do("POST", initialize); strings.Contains(body, "onnectionId") {
		t.Errorf("initialize: %s", body)
	}
	seen := map[string]bool{}
	for i := range 50 {
		var id string
		if i%2 == 0 {
			id = f.open().id
		} else {
			id = f.openSocket().resp.Header.Get("Acp-Connection-Id")
		}
		if len(id)*5 < 128 || seen[id] { // base 32
			t.Fatalf("id %q, seen before: %v", id, seen[id])
		}
		seen[id] = true
	}
}

// TestREM5_Lines: several lines in one write are several messages, and a message over several lines is one.
func TestREM5_Lines(t *testing.T) {
	lines := []string{update("s1", 1), update("s1", 2), note("other", "{}"), update("s1", 3)}
	const spread = " \n{\n \"jsonrpc\": \"2.0\",\r\n\"method\": \"note\"}\n\n"
	const oneLine = "{  \"jsonrpc\": \"2.0\",\r \"method\": \"note\"}"
	type liner interface{ WriteLines([]byte) error }
	f := serve(t, nil)
	t.Run("HTTP", func(t *testing.T) {
		p := f.open()
		own, session := p.get(""), p.get("s1")
		if err := p.agent.stream.(liner).WriteLines([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 3} {
			session.want(lines[i])
		}
		own.want(lines[2])
		p.post(spread)
		if got := receive(t, p.agent.got); got != oneLine {
			t.Errorf("the agent got %q", got)
		}
	})
	t.Run("WebSocket", func(t *testing.T) {
		s := f.openSocket()
		if err := s.agent.stream.(liner).WriteLines([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			s.want(line)
		}
		s.send(spread)
		if got := receive(t, s.agent.got); got != oneLine {
			t.Errorf("the agent got %q", got)
		}
	})
}

// TestREM7_SessionOfAMessage: it is named by the parameters, by the header, or by both alike.
func TestREM7_SessionOfAMessage(t *testing.T) {
	p := serve(t, nil).open()
	session := p.get("s1")
	for id, header := range map[int][]string{1: nil, 2: {"Acp-Session-Id", "s1"}} {
		p.post(request(id, "session/prompt", `{"sessionId":"s1"}`), header...)
		session.want(result(id, "session/prompt"))
	}
	p.post(request(3, "session/prompt", `{}`), "Acp-Session-Id", "s1")
	session.want(result(3, "session/prompt"))
	if resp, _ := p.do("POST", request(4, "session/prompt", `{"sessionId":"s1"}`), p.header("Acp-Session-Id", "s2")...); resp.StatusCode != 400 {
		t.Errorf("two sessions: %s", resp.Status)
	}
	for method := range map[string]bool{
		"session/prompt": true, "session/cancel": true, "session/close": true, "session/delete": true, "session/fork": true, "session/load": true,
		"session/resume": true, "session/set_config_option": true, "session/set_mode": true, "session/set_model": true,
	} {
		if resp, _ := p.do("POST", request(9, method, "{}"), p.header()...); resp.StatusCode != 400 {
			t.Errorf("%s without a session: %s", method, resp.Status)
		}
	}
	if resp, _ := p.do("POST", request(9, "session/prompt", `{"sessionId":"`+strings.Repeat("x", 1025)+`"}`), p.header()...); resp.StatusCode != 400 {
		t.Errorf("a session's id of 1,025 bytes: %s", resp.Status)
	}
}

// TestREM8_MethodsOfTheProtocol: they belong to the connection, both ways, whatever session they name.
func TestREM8_MethodsOfTheProtocol(t *testing.T) {
	p := serve(t, nil).open()
	own := p.get("")
	p.post(note("$/cancel_request", `{"requestId":1,"sessionId":"s1"}`))
	p.post(note("$/cancel_request", `{"requestId":1,"sessionId":"s1"}`), "Acp-Session-Id", "s2")
	p.send(note("$/cancel_request", `{"requestId":1,"sessionId":"s1"}`))
	own.want(note("$/cancel_request", `{"requestId":1,"sessionId":"s1"}`))
}

// TestREM8_CancelRequest: the cancellation of a request of the agent is in the stream of the request, behind it, also if
// nobody reads that stream yet; once the request is answered, or its session is closed, it is in the connection's.
func TestREM8_CancelRequest(t *testing.T) {
	p := serve(t, nil).open()
	own := p.get("")
	ask := func(id, params string) string { return request(id, "session/request_permission", params) }
	cancel := func(id string) string { return note("$/cancel_request", `{"requestId":`+id+`}`) }
	for _, m := range []string{
		ask("100", `{"sessionId":"s1"}`), ask(`"100"`, `{"sessionId":"s2"}`), ask("101", `{}`), ask("102", `{"sessionId":"s2"}`),
		cancel("101"), cancel("100"), cancel(`"100"`), cancel("103"), note("$/cancel_request", `[]`),
		update("s1", 1), update("s2", 1), // so that nothing is waited for that is not there
	} {
		p.send(m)
	}
	one, two := p.get("s1"), p.get("s2")
	one.want(ask("100", `{"sessionId":"s1"}`))
	one.want(cancel("100"))
	two.want(ask(`"100"`, `{"sessionId":"s2"}`))
	two.want(ask("102", `{"sessionId":"s2"}`))
	two.want(cancel(`"100"`))
	own.want(ask("101", `{}`))
	own.want(cancel("101"))
	own.want(cancel("103"))
	own.want(note("$/cancel_request", `[]`))

	p.post(result(100, "x"), "Acp-Session-Id", "s1")
	p.send(cancel("100"))
	p.send(note("x", "{}"))
	own.want(cancel("100"))
	own.want(note("x", "{}"))
	p.post(request(1, "session/close", `{"sessionId":"s2"}`))
	two.want(update("s2", 1))
	two.want(result(1, "session/close"))
	p.send(cancel("102"))
	p.send(note("x", "{}"))
	own.want(cancel("102"))
}

// TestREM9_LongPOST: a message over the limit is refused also when its length was not told before.
func TestREM9_LongPOST(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := serveBy(t, protocol, &remote.HandlerOptions{MaxMessage: 100_000}, nil).open()
			body := note("x", `{"x":"`+strings.Repeat("x", 200_000)+`"}`)
			r, err := http.NewRequestWithContext(t.Context(), "POST", p.url, io.MultiReader(strings.NewReader(body)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Acp-Connection-Id", p.id)
			resp, err := p.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Error(resp.Status)
			}
			p.post(note("x", `{"x":"`+strings.Repeat("x", 90_000)+`"}`))
			receive(t, p.agent.got)
		})
	}
}

// TestREM12_DoubledRequest: an id in progress is refused, and can come again after its answer. 1 and "1" differ.
func TestREM12_DoubledRequest(t *testing.T) {
	f := serve(t, nil)
	p := f.open()
	session := p.get("s1")
	const hang = `{"sessionId":"s1","do":"hang"}`
	p.post(request(1, "session/prompt", hang))
	resp, body := p.do("POST", request(1, "session/prompt", hang), p.header()...)
	if resp.StatusCode != 400 || parse(t, body).Error.Code != -32600 {
		t.Errorf("doubled: %s %s", resp.Status, body)
	}
	p.post(request(`"1"`, "session/prompt", hang))
	p.send(result(1, "session/prompt"))
	session.want(result(1, "session/prompt"))
	p.post(request(1, "session/prompt", hang))

	s := f.openSocket()
	s.send(request(1, "session/prompt", hang))
	s.send(request(`"1"`, "session/prompt", hang))
	s.send(request(1, "session/prompt", hang))
	if m := parse(t, s.message()); m.Error == nil || m.Error.Code != -32600 || string(m.ID) != "1" {
		t.Errorf("doubled on a WebSocket: %+v", m)
	}
	if got := len(s.agent.got); got != 2 {
		t.Errorf("the agent got %d requests", got)
	}
}

// TestREM32_Events: an event is one line of data and a blank one, and an idle stream gets a comment every 15 s.
func TestREM32_Events(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		p := f.open()
		own := p.get("")
		began := time.Now()
		for i := range 10 {
			if part := own.part(); part != ":" {
				t.Fatalf("%q", part)
			}
			if idle := time.Since(began); idle != time.Duration(i+1)*15*time.Second {
				t.Fatalf("comment %d after %v", i, idle)
			}
		}
		time.Sleep(10 * time.Second)
		p.send(note("x", `{"text":"two\nlines"}`))
		if part := own.part(); part != "data: "+note("x", `{"text":"two\nlines"}`) {
			t.Fatalf("%q", part)
		}
		began = time.Now()
		own.part()
		if idle := time.Since(began); idle != 15*time.Second {
			t.Fatalf("comment after %v", idle)
		}
	})
}

// TestREM32_CarriageReturn: white space between the tokens of a message does not end its event.
func TestREM32_CarriageReturn(t *testing.T) {
	p := serve(t, nil).open()
	own := p.get("")
	p.send("{\"jsonrpc\":\"2.0\",\r\n\"method\":\r\"x\"}\r")
	if part := own.part(); part != `data: {"jsonrpc":"2.0",  "method": "x"} ` {
		t.Errorf("%q", part)
	}
}

// TestREM33_AcceptedInOneWrite: what answers a POST has no body, and does not end its connection of TCP.
func TestREM33_AcceptedInOneWrite(t *testing.T) {
	p := serve(t, nil).open()
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), remote.DefaultPath))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := note("x", "{}")
	fmt.Fprintf(conn, "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAcp-Connection-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
		p.id, len(body), body)
	buf := make([]byte, 10_000)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(buf[:n]); !strings.HasPrefix(got, "HTTP/1.1 202 Accepted\r\n") || !strings.HasSuffix(got, "\r\n\r\n") ||
		!strings.Contains(got, "Content-Length: 0\r\n") || strings.Contains(got, "Connection:") {
		t.Errorf("the first write is %q", got)
	}
}

// TestREM34_StreamsOfMessages: what names a session is in its stream, an answer where its request belongs.
func TestREM34_StreamsOfMessages(t *testing.T) {
	p := serve(t, nil).open()
	own, one, two := p.get(""), p.get("s1"), p.get("s2")
	p.send(update("s2", 1))
	two.want(update("s2", 1))
	ask := request(100, "session/request_permission", `{"toolCall":{"sessionId":"s2"},"sessionId":"s1"}`)
	p.send(ask)
	one.want(ask)
	p.send(note("x", `{"text":"sessionId"}`))
	own.want(note("x", `{"text":"sessionId"}`))
	p.post(request(1, "session/new", "{}"))
	own.want(result(1, "session/new"))
	p.post(request(2, "session/fork", `{"sessionId":"s1"}`))
	one.want(result(2, "session/fork"))
	p.post(request(3, "session/set_mode", `{"sessionId":"s2"}`))
	two.want(result(3, "session/set_mode"))
	p.post(request(4, "session/list", `{}`))
	own.want(result(4, "session/list"))
	p.send(result(999, "nothing")) // to no request
	own.want(result(999, "nothing"))
}

// TestREM35_LoadIsAnsweredBehindItsUpdates: the answer to session/load is in the session's stream, if somebody reads
// that, behind all 3,000 updates, and else in the connection's.
func TestREM35_LoadIsAnsweredBehindItsUpdates(t *testing.T) {
	const load = `{"sessionId":"s1","n":3000}`
	p := serve(t, nil).open()
	own, session := p.get(""), p.get("s1")
	p.post(request(1, "session/load", load))
	for i := range 3000 {
		session.want(update("s1", i))
	}
	session.want(result(1, "session/load"))

	// Nobody reads the session's stream before the answer.
	p.post(request(2, "session/load", strings.Replace(load, "s1", "s2", 1)))
	own.want(result(2, "session/load"))
	second := p.get("s2")
	for i := range 3000 {
		second.want(update("s2", i))
	}

	// The stream is lost before the answer.
	p.post(request(3, "session/load", `{"sessionId":"s1","do":"hang"}`))
	session.close()
	// Until the server has seen that, it does not matter.
	waitFor(t, func() bool { return p.Stats().Streams == 2 })
	p.send(update("s1", 1))
	p.send(result(3, "session/load"))
	session = p.get("s1")
	session.want(update("s1", 1))
	session.want(result(3, "session/load"))
}

// waitFor waits for what nothing tells of.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

// TestREM36_MessagesWithoutAReceiver: they are kept in order, also for sessions that nobody has named, and bounded.
func TestREM36_MessagesWithoutAReceiver(t *testing.T) {
	p := serve(t, &remote.HandlerOptions{MaxStreams: 3}).open()
	const many = 3000 // they are kept in parts of 64 KiB
	for i := range many {
		p.send(update("s1", i))
		p.send(update("s2", i))
		p.send(note("x", fmt.Sprint(i)))
	}
	for _, session := range []string{"s1", "s2"} {
		s := p.get(session)
		for i := range many {
			s.want(update(session, i))
		}
	}
	own := p.get("")
	for i := range many {
		own.want(note("x", fmt.Sprint(i)))
	}
	resp, _ := p.do("GET", "", p.header("Accept", "text/event-stream", "Acp-Session-Id", "s3")...)
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a fourth stream: %s", resp.Status)
	}
}

// TestREM36_MoreSessionsThanStreams: an agent that names too many sessions waits, and nothing is lost.
func TestREM36_MoreSessionsThanStreams(t *testing.T) {
	p := serve(t, &remote.HandlerOptions{MaxStreams: 2}).open()
	sent := make(chan error, 1)
	go func() {
		for i := range 10 {
			if err := p.agent.send("%s", update(fmt.Sprint("s", i), i)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range 10 {
		session := fmt.Sprint("s", i)
		// A GET is refused while it would be one stream too many.
		waitFor(t, func() bool {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp := p.request(ctx, "GET", "", p.header("Accept", "text/event-stream", "Acp-Session-Id", session)...)
			defer resp.Body.Close()
			if resp.StatusCode != 200 {
				return false
			}
			r := &reader{t: t, resp: resp, cancel: cancel, lines: bufio.NewReader(resp.Body), wait: patience}
			r.want(update(session, i))
			return true
		})
	}
	if err := receive(t, sent); err != nil {
		t.Error(err)
	}
}

// TestREM37_NewestReceiver: a new GET takes over and gets what the old one did not, in order.
func TestREM37_NewestReceiver(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := serveBy(t, protocol, nil, nil).open()
			n := 0
			for range 10 {
				session := p.get("s1")
				for range 10 {
					p.send(update("s1", n))
					session.want(update("s1", n))
					n++
				}
			}
			waitFor(t, func() bool { return p.Stats().Streams == 1 }) // those that were replaced have ended
		})
	}
	// One that is cut, as far as its client knows, and to which the server still writes.
	for _, protocol := range protocols[:tier.Pick(0, 0, 1, len(protocols))] {
		t.Run("stuck "+protocol, func(t *testing.T) {
			p := serveBy(t, protocol, nil, nil).open()
			session := p.get("s1")
			big := note("x", `{"text":"`+strings.Repeat("x", 16<<20)+`","sessionId":"s1"}`) // more than sockets hold
			p.send(big)
			session.want(big)
			p.send(big)
			waitFor(t, func() bool { return p.Stats().Buffered < len(big) }) // it is being written
			p.get("s1").want(big)
		})
	}
	t.Run("409", func(t *testing.T) {
		p := serve(t, &remote.HandlerOptions{RejectSecondStream: true}).open()
		first := p.get("")
		if resp, _ := p.do("GET", "", p.header("Accept", "text/event-stream")...); resp.StatusCode != http.StatusConflict {
			t.Errorf("second GET: %s", resp.Status)
		}
		p.send(note("x", "{}"))
		first.want(note("x", "{}"))
	})
}

// TestREM38_Responses need no session, but a wrong one is refused.
func TestREM38_Responses(t *testing.T) {
	p := serve(t, nil).open()
	ask := func(id int) {
		p.send(request(id, "session/request_permission", `{"sessionId":"s1"}`))
	}
	for id, header := range map[int][]string{1: nil, 2: {"Acp-Session-Id", "s1"}} {
		ask(id)
		p.post(result(id, ""), header...)
		if got := receive(t, p.agent.got); got != result(id, "") {
			t.Errorf("the agent got %s", got)
		}
	}
	ask(3)
	resp, _ := p.do("POST", result(3, ""), p.header("Acp-Session-Id", "s2")...)
	if resp.StatusCode != 400 {
		t.Errorf("wrong session: %s", resp.Status)
	}
	p.post(result(3, ""))
	if got := receive(t, p.agent.got); got != result(3, "") {
		t.Errorf("the agent got %s", got)
	}
}

// TestREM39_NothingButRequestsWaits: when the agent does not read, requests wait for room, one after the other, and
// everything else is accepted.
func TestREM39_NothingButRequestsWaits(t *testing.T) {
	bubble(t, &remote.HandlerOptions{MaxQueued: 1500}, func(f *fixture) {
		p := f.open()
		p.agent.mu.Lock() // so that it hangs in answering
		p.post(request(1, "x", "{}"))
		pad := `{"pad":"` + strings.Repeat("x", 1400) + `"}`
		p.post(request(2, "x", pad))
		var posts sync.WaitGroup
		accepted := make(chan int, 10)
		for id := 3; id < 6; id++ {
			posts.Go(func() {
				p.post(request(id, "x", strings.Replace(pad, "xxxx", "", 270)))
				accepted <- id
			})
			synctest.Wait() // they come in order
		}
		if n := len(accepted); n != 0 {
			t.Errorf("%d requests were accepted", n)
		}
		p.post(note("session/cancel", `{"sessionId":"s1"}`))
		p.post(result(77, ""))
		resp, _ := p.do("POST", note("x", `{"x":"`+strings.Repeat("x", 8000)+`"}`), p.header()...)
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("a flood of notifications: %s", resp.Status)
		}
		p.agent.mu.Unlock()
		posts.Wait()
		want := []string{`"id":1,`, `"id":2,`, "session/cancel", `"id":77,`, `"id":3,`, `"id":4,`, `"id":5,`}
		for _, part := range want {
			if got := <-p.agent.got; !strings.Contains(got, part) {
				t.Errorf("the agent got %.50s, not %s", got, part)
			}
		}
	})
}

// TestREM39_CancelRequest: the cancellation of a request that waits for room does not overtake it, nor those of others;
// its POST does not wait. What cannot be kept is refused.
func TestREM39_CancelRequest(t *testing.T) {
	bubble(t, &remote.HandlerOptions{MaxQueued: 1000}, func(f *fixture) {
		p := f.open()
		p.agent.mu.Lock() // so that it hangs in answering
		p.post(request(1, "x", "{}"))
		p.post(request(2, "x", `{"pad":"`+strings.Repeat("x", 1000)+`"}`))
		var posts sync.WaitGroup
		for id := 3; id < 5; id++ {
			posts.Go(func() { p.post(request(id, "x", "{}")) })
			synctest.Wait() // they come in order
		}
		cancel := func(id int, pad string) string {
			return note("$/cancel_request", fmt.Sprintf(`{"requestId":%d,"pad":%q}`, id, pad))
		}
		p.post(cancel(3, "once"))
		p.post(cancel(3, "twice"))
		p.post(cancel(2, ""))
		resp, _ := p.do("POST", cancel(3, strings.Repeat("x", 4000)), p.header()...)
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("a flood of cancellations: %s", resp.Status)
		}
		p.agent.mu.Unlock()
		posts.Wait()
		for _, part := range []string{`"id":1,`, `"id":2,`, cancel(2, ""), `"id":3,`, cancel(3, "once"), cancel(3, "twice"), `"id":4,`} {
			if got := <-p.agent.got; !strings.Contains(got, part) {
				t.Errorf("the agent got %.80s, not %s", got, part)
			}
		}
	})
}

// TestREM39_RequestGivenUp: a POST that its client gives up while it waits is not delivered.
func TestREM39_RequestGivenUp(t *testing.T) {
	bubble(t, &remote.HandlerOptions{MaxQueued: 100}, func(f *fixture) {
		p := f.open()
		p.agent.mu.Lock()
		p.post(request(1, "x", "{}"))
		p.post(request(2, "x", `{"x":"`+strings.Repeat("x", 100)+`"}`))
		ctx, cancel := context.WithCancel(f.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := http.NewRequestWithContext(ctx, "POST", p.url, strings.NewReader(request(3, "x", "{}")))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Acp-Connection-Id", p.id)
			if resp, err := p.client.Do(r); err == nil {
				t.Error(resp.Status)
				resp.Body.Close()
			}
		}()
		synctest.Wait()
		cancel()
		<-done
		synctest.Wait()
		p.agent.mu.Unlock()
		p.post(request(3, "y", "{}")) // the id is free
		synctest.Wait()
		if n := len(p.agent.got); n != 3 {
			t.Errorf("the agent got %d messages", n)
		}
	})
}

// TestREM40_Backpressure: an agent waits when as much is kept as may be, requests wait too, and when the client reads
// it gets everything, in order.
func TestREM40_Backpressure(t *testing.T) {
	bubble(t, &remote.HandlerOptions{MaxBuffered: 10_000}, func(f *fixture) {
		p := f.open()
		p.post(request(1, "session/prompt", `{"sessionId":"s1","n":1000}`)) // some 80 KB
		synctest.Wait()
		if kept := f.Stats().Buffered; kept > 10_000 || kept < 9000 {
			t.Errorf("%d bytes are kept", kept)
		}
		requested := make(chan struct{})
		go func() {
			defer close(requested)
			p.post(request(2, "session/prompt", `{"sessionId":"s1"}`))
		}()
		time.Sleep(50 * time.Second)
		select {
		case <-requested:
			t.Error("a request was accepted though nothing is taken")
		default:
		}
		session := p.get("s1")
		for i := range 1000 {
			session.want(update("s1", i))
		}
		session.want(result(1, "session/prompt"))
		<-requested
		session.want(result(2, "session/prompt"))
	})
}

// TestREM40_Stalled: a client that takes nothing for 60 s loses its connection. Its agent's write fails, and a request that
// waited is refused.
func TestREM40_Stalled(t *testing.T) {
	bubble(t, &remote.HandlerOptions{MaxBuffered: 10_000}, func(f *fixture) {
		p := f.open()
		began := time.Now()
		p.post(request(1, "session/prompt", `{"sessionId":"s1","n":1000}`))
		synctest.Wait()
		if waited := time.Since(began); waited != 0 {
			t.Fatalf("waited %v", waited)
		}
		taken := len(p.agent.got)
		status := make(chan int, 1)
		go func() {
			resp, _ := p.do("POST", request(2, "session/prompt", `{"sessionId":"s1"}`), p.header()...)
			status <- resp.StatusCode
		}()
		f.gone(remote.HTTP, 2*time.Minute)
		if got := <-status; got != http.StatusNotFound || len(p.agent.got) != taken {
			t.Errorf("the request that waited got status %d, and the agent %d messages", got, len(p.agent.got)-taken)
		}
		if log := f.log.String(); !strings.Contains(log, remote.ErrStalled.Error()) {
			t.Errorf("the agent's error is not in the log: %s", log)
		}
		if waited := time.Since(began).Round(time.Second); waited != time.Minute {
			t.Errorf("the connection ended after %v", waited)
		}
		if n := strings.Count(f.log.String(), "is ended, because its client does not read"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// gone waits until no connection is left of those over a transport, in steps that take no time.
func (f *fixture) gone(transport string, within time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Second / 10) {
		synctest.Wait()
		n := f.Stats().Connections[transport]
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Errorf("%d connections are left after %v", n, within)
			return
		}
	}
}

// TestREM41_InitializeFails: nothing is left of a connection that was not initialized.
func TestREM41_InitializeFails(t *testing.T) {
	by := func(do string) string { return request(1, "initialize", `{"do":"`+do+`"}`) }
	t.Run("an error", func(t *testing.T) {
		bubble(t, nil, func(f *fixture) {
			resp, body := f.do("POST", by("fail"))
			if resp.StatusCode != 200 || resp.Header.Get("Acp-Connection-Id") != "" || parse(t, body).Error.Code != -32602 {
				t.Errorf("%s %s", resp.Status, body)
			}
			f.gone(remote.HTTP, time.Second)
		})
	})
	for _, do := range []string{"die", "panic"} {
		t.Run(do, func(t *testing.T) {
			bubble(t, nil, func(f *fixture) {
				resp, body := f.do("POST", by(do))
				m := parse(t, body)
				if resp.StatusCode != 200 || resp.Header.Get("Acp-Connection-Id") != "" || m.Error.Code != -32603 || string(m.ID) != "1" ||
					strings.Contains(body, "secret") {
					t.Errorf("%s %s", resp.Status, body)
				}
				f.gone(remote.HTTP, time.Second)
			})
		})
	}
	t.Run("too late", func(t *testing.T) {
		bubble(t, nil, func(f *fixture) {
			began := time.Now()
			resp, body := f.do("POST", by("hang"))
			if resp.StatusCode != http.StatusGatewayTimeout || time.Since(began) != 30*time.Second {
				t.Errorf("%s %s after %v", resp.Status, body, time.Since(began))
			}
			f.gone(remote.HTTP, time.Second)
		})
	})
	t.Run("given up", func(t *testing.T) {
		bubble(t, nil, func(f *fixture) {
			ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", f.url, strings.NewReader(by("hang")))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if _, err := f.client.Do(r); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			f.gone(remote.HTTP, time.Second)
		})
	})
}

// TestREM42_Expiry: a connection lives while it is used, and five minutes more.
func TestREM42_Expiry(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		p := f.open()
		p.post(request(1, "session/prompt", `{"sessionId":"s1","do":"hang"}`)) // a turn that runs
		time.Sleep(4 * time.Minute)
		p.post(note("x", "{}"))
		time.Sleep(4 * time.Minute)
		session := p.get("s1")
		for range 4 * 60 { // an hour
			if part := session.part(); part != ":" {
				t.Fatalf("%q", part)
			}
		}
		p.send(update("s1", 1))
		session.want(update("s1", 1))
		session.close()
		began := time.Now()
		f.gone(remote.HTTP, 6*time.Minute)
		if lived := time.Since(began).Round(time.Second); lived != 5*time.Minute {
			t.Errorf("lived for %v", lived)
		}
		if err := <-p.agent.ended; !errors.Is(err, remote.ErrExpired) {
			t.Errorf("the agent read %v", err)
		}
		if resp, _ := p.do("GET", "", p.header("Accept", "text/event-stream")...); resp.StatusCode != 404 {
			t.Error(resp.Status)
		}
	})
}

// TestREM44_Delete ends streams cleanly and the agent's input, and the connection is not there any more.
func TestREM44_Delete(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := serveBy(t, protocol, nil, nil).open()
			own, session := p.get(""), p.get("s1")
			p.send(update("s1", 1))
			session.want(update("s1", 1))
			if resp, _ := p.do("DELETE", "", p.header()...); resp.StatusCode != 202 {
				t.Fatal(resp.Status)
			}
			own.end()
			session.end()
			if err := receive(t, p.agent.ended); !errors.Is(err, io.EOF) {
				t.Errorf("the agent read %v", err)
			}
			for _, method := range []string{"POST", "GET", "DELETE"} {
				body := ""
				if method == "POST" {
					body = note("x", "{}")
				}
				if resp, _ := p.do(method, body, p.header("Accept", "text/event-stream")...); resp.StatusCode != 404 {
					t.Errorf("%s afterwards: %s", method, resp.Status)
				}
			}
		})
	}
}

// TestREM44_DeleteInATurn: the streams end at once, also while the agent is busy and reads nothing.
func TestREM44_DeleteInATurn(t *testing.T) {
	bubble(t, &remote.HandlerOptions{MaxBuffered: 1000}, func(f *fixture) {
		p := f.open()
		own := p.get("")
		p.post(request(1, "session/prompt", `{"sessionId":"s1","n":1000}`)) // nobody reads them
		synctest.Wait()
		began := time.Now()
		if resp, _ := p.do("DELETE", "", p.header()...); resp.StatusCode != 202 {
			t.Fatal(resp.Status)
		}
		own.end()
		f.gone(remote.HTTP, time.Second)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

// TestREM44_AgentEnds: what its client waits for is answered, and the streams end behind that.
func TestREM44_AgentEnds(t *testing.T) {
	for _, do := range []string{"die", "panic"} {
		t.Run(do, func(t *testing.T) {
			p := serve(t, nil).open()
			own, session := p.get(""), p.get("s1")
			p.post(request(1, "session/prompt", `{"sessionId":"s1","do":"hang"}`))
			p.post(request(2, "x", `{"do":"`+do+`"}`))
			for r, id := range map[*reader]string{session: "1", own: "2"} {
				text := r.message()
				if m := parse(t, text); m.Error == nil || m.Error.Code != -32603 || string(m.ID) != id || strings.Contains(text, "secret") {
					t.Errorf("request %s: %s", id, text)
				}
				r.end()
			}
			if resp, _ := p.do("POST", note("x", "{}"), p.header()...); resp.StatusCode != 404 {
				t.Error(resp.Status)
			}
		})
	}
}

// TestREM31_REM45_Protocols has a conversation by each version of HTTP, whose streams begin with headers and a comment.
func TestREM31_REM45_Protocols(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	n := tier.Pick(0, 500, 500, 5000)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := serveBy(t, protocol, nil, nil).open()
			own, session := p.get(""), p.get("s1")
			if major := session.resp.ProtoMajor; (major == 2) != (protocol != "HTTP/1.1") {
				t.Errorf("by HTTP/%d", major)
			}
			if h := session.resp.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" ||
				h.Get("Cache-Control") != "no-cache, no-transform" || h.Get("Connection") != "" {
				t.Errorf("%v", h)
			}
			p.post(request(1, "session/new", "{}"))
			own.want(result(1, "session/new"))
			p.post(request(2, "session/prompt", fmt.Sprintf(`{"sessionId":"s1","n":%d}`, n)))
			for i := range n {
				session.want(update("s1", i))
			}
			session.want(result(2, "session/prompt"))
			long := note("x", `{"text":"`+strings.Repeat("x", 5<<20)+`","sessionId":"s1"}`)
			p.send(long)
			session.want(long)
			p.post(long)
			receive(t, p.agent.got)
			receive(t, p.agent.got)
			if got := receive(t, p.agent.got); got != long {
				t.Errorf("the agent got %d bytes of %d", len(got), len(long))
			}
		})
	}
}

// wrapped is what a middleware that knows nothing of streams gives on.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// slow is a reader that pauses after each 1 MiB.
type slow struct {
	io.Reader
	pause time.Duration
	n     int // bytes since the last pause
}

func (s *slow) Read(p []byte) (int, error) {
	if s.n >= 1<<20 {
		time.Sleep(s.pause)
		s.n = 0
	}
	n, err := s.Reader.Read(p)
	s.n += n
	return n, err
}

// TestREM46_Deadlines: a stream that is not read is cut, through middleware and by each version of HTTP, and one that is
// read slowly lasts longer than any deadline.
func TestREM46_Deadlines(t *testing.T) {
	tier.Need(t, tier.Normal)
	around := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrapped{w}, r) })
	}
	for _, protocol := range protocols[:tier.Pick(0, 2, len(protocols), len(protocols))] {
		t.Run(protocol, func(t *testing.T) {
			bubbleBy(t, protocol, &remote.HandlerOptions{KeepAlive: -1}, around, func(f *fixture) {
				const stall = time.Minute // the default
				p := f.open()
				own, session := p.get(""), p.get("s1")
				big := note("x", `{"text":"`+strings.Repeat("x", 8<<20)+`","sessionId":"s1"}`) // more than the client buffers
				began := time.Now()
				p.send(big)
				waitFor(t, func() bool { return p.Stats().Streams == 1 })
				if took := time.Since(began).Round(time.Second); took != stall {
					t.Errorf("the stream was cut after %v", took)
				}
				if _, err := session.next(); err == nil {
					t.Error("all of it came")
				}
				session = p.get("s1")
				session.lines = bufio.NewReader(&slow{Reader: session.lines, pause: stall / 2})
				session.want(big) // it had not come, so that it comes again
				p.send(note("x", "1"))
				own.want(note("x", "1")) // idle for longer than the deadline
				// The deadlines are taken back: the connections of TCP are used again.
				session.close()
				time.Sleep(stall + stall/10)
				p.post(note("x", "{}"))
			})
		})
	}
}

// TestREM75_TwoConnections: each has an agent, and gets what that sends.
func TestREM75_TwoConnections(t *testing.T) {
	f := serve(t, nil)
	a, b := f.open(), f.open()
	first, second := a.get("s1"), b.get("s1")
	a.post(request(1, "session/load", `{"sessionId":"s1","n":2}`))
	b.post(request(1, "session/load", `{"sessionId":"s1","n":1}`))
	first.want(update("s1", 0))
	first.want(update("s1", 1))
	first.want(result(1, "session/load"))
	second.want(update("s1", 0))
	second.want(result(1, "session/load"))
}

// TestShutdown: agents finish what is in progress, then streams end; who does not finish is cut.
func TestShutdown(t *testing.T) {
	t.Run("finished", func(t *testing.T) {
		p := serve(t, nil).open()
		session := p.get("s1")
		p.post(request(1, "session/prompt", `{"sessionId":"s1","n":100}`))
		if err := p.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, p.agent.ended); !errors.Is(err, io.EOF) || !errors.Is(err, remote.ErrServerClosed) {
			t.Errorf("the agent read %v", err)
		}
		for i := range 100 {
			session.want(update("s1", i))
		}
		session.want(result(1, "session/prompt"))
		session.end()
		if resp, _ := p.do("POST", initialize); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("afterwards: %s", resp.Status)
		}
	})
	t.Run("cut", func(t *testing.T) {
		p := serve(t, nil).open()
		session := p.get("s1")
		p.agent.mu.Lock()
		p.post(request(1, "session/prompt", `{"sessionId":"s1"}`)) // in which it hangs
		receive(t, p.agent.got)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		stuck := context.AfterFunc(p.agent.ctx, p.agent.mu.Unlock)
		defer stuck()
		if err := p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for last := "data: " + result(1, "session/prompt"); ; {
			got, err := session.next()
			if err != nil {
				break
			}
			if got != ":" && got != last { // the agent may still have answered before it was cut off
				t.Fatalf("the stream goes on with %s", got)
			}
		}
	})
}

// TestClientThatIsGoneTakesNothing: a GET whose client went away before it was served leaves the messages to the next.
func TestClientThatIsGoneTakesNothing(t *testing.T) {
	f := serve(t, nil)
	p := f.open()
	p.send(update("s1", 1))
	local := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
	gone, leave := context.WithCancel(local)
	leave()
	r := httptest.NewRequestWithContext(gone, "GET", f.url, nil)
	for header := p.header("Accept", "text/event-stream", "Acp-Session-Id", "s1"); len(header) > 0; header = header[2:] {
		r.Header.Set(header[0], header[1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "session/update") {
		t.Errorf("a client that is gone got %d %q", w.Code, w.Body)
	}
	p.get("s1").want(update("s1", 1))
}
