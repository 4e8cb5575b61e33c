package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

const mib = 1 << 20

func floods() map[string]attack {
	return map[string]attack{
		"read-flood":        {run: readFlood},
		"read-flood-unread": {run: readFloodUnread},
		"output-flood":      {run: outputFlood},
		"permission-flood":  {run: permissionFlood},
		"session-flood":     {run: sessionFlood},
		"update-flood":      {run: updateFlood},

		"echoes":         {run: echoes},
		"big-initialize": {initialize: bigInitialize, run: func(*agent, *session) error { return nil }},
		"cancellations":  {run: cancellations},
		"write-flood":    {run: writeFlood},
	}
}

// bigFile makes a file of 10 MiB, each byte of which is six in JSON.
func bigFile(s *session) (path string, err error) {
	path = filepath.Join(s.cwd, "big.txt")
	return path, os.WriteFile(path, []byte(strings.Repeat("\x01", 10*mib)), 0o600)
}

// readFlood asks for a large file very often with very few bytes, and reads the answers promptly.
func readFlood(a *agent, s *session) error {
	path, err := bigFile(s)
	if err != nil {
		return err
	}
	answers, err := a.flood(a.size(12, 240), "fs/read_text_file", func(int) string { return object("sessionId", s.id, "path", path) })
	if err != nil {
		return err
	}
	return a.collect(answers, 4*time.Minute)
}

// readFloodUnread does so, and reads only when nothing has come for a while.
func readFloodUnread(a *agent, s *session) error {
	path, err := bigFile(s)
	if err != nil {
		return err
	}
	resume := a.Pause()
	answers, err := a.flood(a.size(12, 240), "fs/read_text_file", func(int) string { return object("sessionId", s.id, "path", path) })
	time.Sleep(time.Duration(a.size(1, 5)) * time.Second)
	resume()
	if err != nil {
		return err
	}
	return a.collect(answers, 4*time.Minute)
}

// outputFlood asks for the output of a command very often.
func outputFlood(a *agent, s *session) error {
	m, err := a.Call("terminal/create", `{"sessionId":`+hostile.Quote(s.id)+
		`,"command":"sh","args":["-c","head -c 12000000 /dev/zero | tr '\\000' '\\001'"],"outputByteLimit":8388608}`, hostile.Patience)
	if err != nil {
		return err
	}
	id, err := terminalID(m)
	if err != nil {
		return err
	}
	if _, err := a.Call("terminal/wait_for_exit", object("sessionId", s.id, "terminalId", id), hostile.Patience); err != nil {
		return err
	}
	answers, err := a.flood(a.size(14, 300), "terminal/output", func(int) string { return object("sessionId", s.id, "terminalId", id) })
	if err != nil {
		return err
	}
	return a.collect(answers, 4*time.Minute)
}

// permissionFlood asks the user much, at length. The user does not answer, and so in the end the requests are
// taken back.
func permissionFlood(a *agent, s *session) error {
	text := strings.Repeat("p", a.size(8, 60)*mib)
	params := a.permission(s, "A long question", text)
	type request struct {
		id     string
		answer <-chan *hostile.Message
	}
	var requests []request
	for range 120 {
		id, answer, err := a.Go("session/request_permission", params)
		if err != nil {
			return err
		}
		requests = append(requests, request{id, answer})
	}
	for _, r := range requests {
		if err := a.Notify("$/cancel_request", `{"requestId":`+r.id+`}`); err != nil {
			return err
		}
	}
	refused := 0
	for i, r := range requests {
		m, err := hostile.Await(r.answer, hostile.Patience)
		if err != nil {
			return fmt.Errorf("request for permission %d, which was cancelled: %w", i, err)
		}
		a.granted(m)
		if m.Error != nil && m.Error.Code != -32800 {
			refused++
		}
	}
	a.Note("%d of %d refused at once", refused, len(requests))
	return nil
}

// sessionFlood sends an update for each of very many sessions. The calls that the client makes for them it answers
// only when the client reads no more, or at the end.
func sessionFlood(a *agent, s *session) error {
	var progress atomic.Int64
	var calls, late atomic.Int64
	answering := make(chan struct{})
	queue := make(chan *hostile.Message, 4_000_000)
	read := func(m *hostile.Message) {
		if len(m.ID) == 0 {
			return // the client takes a call back
		}
		calls.Add(1)
		select {
		case queue <- m:
		default:
			late.Add(1)
		}
	}
	a.reading.Store(&read)
	stop := make(chan struct{})
	answered := make(chan error, 1)
	go func() {
		<-answering
		for {
			select {
			case m := <-queue:
				if err := a.Result(m.ID, `{}`); err != nil {
					answered <- err
					return
				}
				continue
			default:
			}
			select {
			case m := <-queue:
				if err := a.Result(m.ID, `{}`); err != nil {
					answered <- err
					return
				}
			case <-stop:
				answered <- nil
				return
			}
		}
	}()
	n := a.size(50_000, 1_000_000)
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			if err := a.update(&session{id: fmt.Sprint("flood-", i)}, chunk("x")); err != nil {
				sent <- err
				return
			}
			progress.Store(int64(i))
		}
		sent <- nil
	}()
	var err error
	before := int64(-1)
	open := false
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
wait:
	for {
		select {
		case err = <-sent:
			break wait
		case <-tick.C:
			// The write that waits holds the lock that answers need, so that answers must come first: a client
			// that reads no more until its calls are answered must still read answers. Here they are behind the
			// updates in the same pipe.
			if now := progress.Load(); now == before && !open {
				a.Note("the client stopped reading after %d sessions", now)
				open = true
				close(answering)
			} else {
				before = now
			}
		case <-a.Done():
			err = hostile.ErrOver
			break wait
		}
	}
	if !open {
		close(answering)
	}
	// Until the client has no more calls; it makes them as its workers end.
	for last := int64(-1); err == nil; {
		time.Sleep(300 * time.Millisecond)
		if now := calls.Load(); now == last && len(queue) == 0 {
			break
		} else {
			last = now
		}
	}
	close(stop)
	if err == nil {
		err = <-answered
	}
	a.Note("%d sessions, %d calls", n, calls.Load())
	if late.Load() > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls were not answered", late.Load()))
	}
	return err
}

// updateFlood sends many updates to one session, and some long ones.
func updateFlood(a *agent, s *session) error {
	long := chunk(strings.Repeat("u", mib))
	short := chunk("u\n")
	for i := range a.size(50_000, 1_000_000) {
		update := short
		if i%2000 == 0 {
			update = long
		}
		if err := a.update(s, update); err != nil {
			return err
		}
	}
	return nil
}

// maxEcho is how long an answer may be that refuses something, in bytes.
const maxEcho = 16 << 10

// echoes sends long things that the client refuses; its answers must not be long.
func echoes(a *agent, s *session) error {
	long := strings.Repeat("\x01e", a.size(1, 8)*mib)
	id := hostile.Quote(s.id)
	file := hostile.Quote(filepath.Join(s.cwd, "missing") + long)
	for _, request := range []struct{ name, method, params string }{
		{"path of a file to be read", "fs/read_text_file", `{"sessionId":` + id + `,"path":` + file + `}`},
		{"path of a file to be written", "fs/write_text_file", `{"sessionId":` + id + `,"content":"","path":` + file + `}`},
		{"relative path", "fs/read_text_file", `{"sessionId":` + id + `,"path":` + hostile.Quote(long) + `}`},
		{"command", "terminal/create", `{"sessionId":` + id + `,"command":` + hostile.Quote(long) + `}`},
		{"path of a command", "terminal/create", `{"sessionId":` + id + `,"command":` + hostile.Quote("/"+long) + `,"args":["x"]}`},
		{"directory", "terminal/create", `{"sessionId":` + id + `,"command":"true","cwd":` + file + `}`},
		{"name of a variable", "terminal/create", `{"sessionId":` + id + `,"command":"true","env":[{"name":` + hostile.Quote("="+long) + `,"value":""}]}`},
		{"argument", "terminal/create", `{"sessionId":` + id + `,"command":"true","args":[` + hostile.Quote(long) + `]}`},
		{"terminal", "terminal/output", `{"sessionId":` + id + `,"terminalId":` + hostile.Quote(long) + `}`},
		{"session", "terminal/output", `{"sessionId":` + hostile.Quote(long) + `,"terminalId":"x"}`},
		{"session of a file", "fs/read_text_file", `{"sessionId":` + hostile.Quote(long) + `,"path":"/x"}`},
		{"method", "_" + long, `{}`},
		{"wrong parameter", "fs/read_text_file", `{"sessionId":` + id + `,"path":[` + hostile.Quote(long) + `]}`},
		{"kind of an option", "session/request_permission", `{"sessionId":` + id + `,"toolCall":{"toolCallId":"x","title":"x"},"options":[` +
			`{"optionId":"a","name":"a","kind":` + hostile.Quote(long) + `}],` + hostile.Quote(long) + `:1}`},
	} {
		if request.method == "session/request_permission" {
			continue // a user may take long to answer that
		}
		m, err := a.Call(request.method, request.params, hostile.Patience)
		if err != nil {
			return fmt.Errorf("a long %s: %w", request.name, err)
		}
		if m.Size > maxEcho {
			a.Problem("a long %s is answered with %d bytes", request.name, m.Size)
		}
	}
	return nil
}

// bigInitialize offers very many ways to log in.
func bigInitialize(a *agent, m *hostile.Message) error {
	method := `{"id":"m","name":"` + strings.Repeat("n", 40) + `","description":""},`
	n := a.size(16, 60) * mib / len(method)
	return a.Result(m.ID, `{"protocolVersion":1,"authMethods":[`+strings.TrimSuffix(strings.Repeat(method, n), ",")+`]}`)
}

// cancellations cancels what there is and what there is not.
func cancellations(a *agent, s *session) error {
	if err := a.Cancellations(a.size(50_000, 1_000_000)); err != nil {
		return err
	}
	// Each of these is cancelled as soon as it is made, and often again.
	var answers []<-chan *hostile.Message
	for range a.size(500, 5000) {
		id, answer, err := a.Go("session/request_permission", a.permission(s, "A question that is taken back", ""))
		if err != nil {
			return err
		}
		for range 3 {
			if err := a.Notify("$/cancel_request", `{"requestId":`+id+`}`); err != nil {
				return err
			}
		}
		answers = append(answers, answer)
	}
	for i, answer := range answers {
		m, err := hostile.Await(answer, hostile.Patience)
		if err != nil {
			return fmt.Errorf("request %d, which was cancelled: %w", i, err)
		}
		a.granted(m)
	}
	return nil
}

// writeFlood writes large files, faster than a disk may take them.
func writeFlood(a *agent, s *session) error {
	content := hostile.Quote(strings.Repeat("\x01", 9*mib))
	answers, err := a.flood(a.size(4, 200), "fs/write_text_file", func(i int) string {
		return `{"sessionId":` + hostile.Quote(s.id) + `,"path":` + hostile.Quote(filepath.Join(s.cwd, fmt.Sprint("w", i%4))) + `,"content":` + content + `}`
	})
	if err != nil {
		return err
	}
	return a.collect(answers, 4*time.Minute)
}
