package translate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connectTo connects to the end of a pipe through a translation, and returns the program's stream and the peer's.
func connectTo(t testing.TB, side translate.Side, version int) (program, peer rpc.FastStream) {
	return open(t, func() (rpc.Transport, rpc.Transport) {
		a, b := rpc.Pipe()
		return translate.Transport(a, side, version, &translate.Options{Unique: "x"}), b
	})
}

func open(t testing.TB, pipe func() (a, b rpc.Transport)) (a, b rpc.FastStream) {
	var streams [2]rpc.FastStream
	first, second := pipe()
	for i, transport := range []rpc.Transport{first, second} {
		s := must.Get(transport.Connect(t.Context()))(t)
		streams[i] = s.(rpc.FastStream)
	}
	return streams[0], streams[1]
}

// exchange writes a line to one stream and reads the next one from another.
func exchange(t testing.TB, from, to rpc.FastStream, line string) string {
	done := make(chan error, 1)
	go func() { done <- from.WriteLines([]byte(line + "\n")) }()
	got, err := to.Read()
	must.Do(t, errors.Join(err, <-done))
	return string(got)
}

// TestPassThrough requires that what both sides send in version 1 arrives byte for byte, through the program's stream
// alone: no goroutine of the translation's is left.
func TestPassThrough(t *testing.T) {
	odd := []string{`{ "jsonrpc" : "2.0", "id":2.0,"method":"session/new","params":{"x":1e2,"x":2}}`, `[{"batch":true}]`, `not json`, `{"id":"translated-x-1"}`, "{\"u\":\"\\u00e9\xff\"}"}
	for _, side := range []translate.Side{translate.ClientSide, translate.AgentSide} {
		synctest.Test(t, func(t *testing.T) {
			program, peer := connectTo(t, side, 1)
			client, agent := program, peer
			if side == translate.AgentSide {
				client, agent = peer, program
			}
			request := exchange(t, client, agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}}`)
			if side == translate.AgentSide && !strings.HasSuffix(request, `"clientCapabilities":{"fs":{"readTextFile":true}}}}`) {
				t.Errorf("got %s", request)
			}
			exchange(t, agent, client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`)
			for _, line := range odd {
				if got := exchange(t, client, agent, line); got != line {
					t.Errorf("got %s, want %s", got, line)
				}
				if got := exchange(t, agent, client, line); got != line {
					t.Errorf("got %s, want %s", got, line)
				}
			}
			// What writes and reads are the calling goroutines: a test that is durably blocked has no other.
			if n := bytes.Count(stacks(), []byte("translate.(*stream)")); n > 0 {
				t.Errorf("goroutines of the translation:\n%s", stacks())
			}
			must.Do(t, errors.Join(program.Close(), peer.Close()))
		})
	}
}

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// TestAsksAgain connects a client of version 1 to agents that take version 2 in different ways.
func TestAsksAgain(t *testing.T) {
	const one = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
	for _, c := range []struct {
		name   string
		agents [][]string // what the agent of each connection answers; "" ends it
		want   string     // in the client's answer, or error
		asked  string     // the versions that the agents were asked for
	}{
		{"chooses 1", [][]string{{one}}, `"protocolVersion":1`, "2"},
		{"refuses", [][]string{{`{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"no"}}`, one}}, `"protocolVersion":1`, "2 1"},
		{"says what it has", [][]string{{`{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"no","data":{"requested":2,"supported":[1]}}}`, one}}, `"protocolVersion":1`, "2 1"},
		{"refuses both", [][]string{{`{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"no"}}`, `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"never"}}`}}, `"never"`, "2 1"},
		{"echoes", [][]string{{`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"agentCapabilities":{"loadSession":true}}}`}}, `"protocolVersion":1,"agentCapabilities":{"loadSession":true}`, "2"},
		{"ends", [][]string{{""}, {one}}, `"protocolVersion":1`, "2 1"},
		{"refuses and ends", [][]string{{`{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"no"}}`, ""}, {one}}, `"protocolVersion":1`, "2 1 1"},
		{"ends each time", [][]string{{""}, {""}}, "EOF", "2 1"},
		{"ends and cannot be started again", [][]string{{""}}, "EOF", "2"},
		{"has only 2", [][]string{{`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`}}, `"loadSession":true`, "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				agents := &script{agents: c.agents, asked: func(version string) { asked = append(asked, version) }}
				s := must.Get(translate.Transport(agents, translate.ClientSide, 1, &translate.Options{Again: agents}).Connect(t.Context()))(t)
				got := ""
				must.Do(t, s.Write([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)))
				if line, err := s.Read(); err != nil {
					got = err.Error()
				} else {
					got = string(line)
				}
				if !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
				_ = s.Close()
				agents.wait()
				if got := strings.Join(asked, " "); got != c.asked {
					t.Errorf("asked for %s, want %s", got, c.asked)
				}
			})
		})
	}
}

// script is a transport to agents that only answer initialize.
type script struct {
	agents [][]string
	asked  func(version string)
	done   []chan struct{}
}

func (s *script) Connect(ctx context.Context) (rpc.Stream, error) {
	if len(s.agents) == 0 {
		return nil, errors.New("connected too often")
	}
	answers, done := s.agents[0], make(chan struct{})
	s.agents, s.done = s.agents[1:], append(s.done, done)
	a, b := rpc.Pipe()
	agent, err := b.Connect(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(done)
		defer agent.Close()
		for _, answer := range answers {
			line, err := agent.Read()
			if err != nil {
				return
			}
			_, version, _ := strings.Cut(string(line), `"protocolVersion":`)
			if s.asked(version[:1]); answer == "" || agent.Write([]byte(answer)) != nil {
				return
			}
		}
		_, _ = agent.Read() // until the client closes
	}()
	return a.Connect(ctx)
}

func (s *script) wait() {
	for _, done := range s.done {
		<-done
	}
}

// translated returns the streams of a connection between an agent of version 1 and a client of version 2, with a session.
func translated(t testing.TB) (agent, client rpc.FastStream) {
	agent, client = connectTo(t, translate.AgentSide, 1)
	exchange(t, client, agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}`)
	exchange(t, agent, client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`)
	exchange(t, client, agent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w"}}`)
	exchange(t, agent, client, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)
	return agent, client
}

// TestBackpressure requires that a side that does not read stops the other one, and that closing ends all of it.
func TestBackpressure(t *testing.T) {
	text := strings.Repeat("x", 64<<10)
	for _, c := range []struct {
		name, line string
		fromClient bool
	}{
		{"the client does not read", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}}}`, false},
		{"the agent does not read", `{"jsonrpc":"2.0","method":"_x","params":{"text":"` + text + `"}}`, true},
		{"the client asks, and does not read the answers", `{"jsonrpc":"2.0","id":%d,"method":"session/load","params":{}}`, true},
		{"the agent asks, and does not read the answers", `{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file","params":{}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, client := translated(t)
				from := agent
				if c.fromClient {
					from = client
				}
				var written atomic.Int64
				done := make(chan struct{})
				go func() {
					defer close(done)
					for n := 2; n < 50_000; n++ {
						line := c.line
						if strings.Contains(line, "%d") {
							line = fmt.Sprintf(line, n)
						}
						if from.Write([]byte(line)) != nil {
							return
						}
						written.Add(int64(len(line)))
					}
				}()
				synctest.Wait()
				time.Sleep(time.Minute)
				if n := written.Load(); n > 4<<20 {
					t.Errorf("%d MB were taken", n>>20)
				}
				_, _ = agent.Close(), client.Close() // the pipe may have ended with lines in it
				<-done
			})
		})
	}
}

// TestEnds requires that both ends see the end of the other one.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, client := translated(t)
		must.Do(t, client.(rpc.HalfCloser).CloseWrite())
		if _, err := agent.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
		if got := exchange(t, agent, client, `{"jsonrpc":"2.0","method":"_late"}`); got != `{"jsonrpc":"2.0","method":"_late"}` {
			t.Errorf("got %s", got)
		}
		must.Do(t, agent.Close())
		if err := agent.Write([]byte(`{}`)); err == nil {
			t.Error("wrote to a closed stream")
		}
		if _, err := client.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
		_ = client.Close()
	})
}

// transportFunc is a function as a transport.
type transportFunc func(context.Context) (rpc.Stream, error)

func (f transportFunc) Connect(ctx context.Context) (rpc.Stream, error) { return f(ctx) }

// TestNothingPassesWhileClosing requires that what an agent still sends does not pass without a translation while its
// stream is being closed.
func TestNothingPassesWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = `{"jsonrpc":"2.0","id":"translated-x-1","result":{"stopReason":"end_turn"}}` + "\n"
		a, b := rpc.Pipe()
		peer := must.Get(b.Connect(t.Context()))(t)
		agent := peer.(rpc.FastStream)
		client := must.Get(translate.Transport(transportFunc(func(ctx context.Context) (rpc.Stream, error) {
			inner, err := a.Connect(ctx)
			return rpc.Wrap(inner, rpc.Wrapper{Close: func() error {
				go agent.WriteLines([]byte(late + late))
				synctest.Wait()
				return inner.Close()
			}}), err
		}), translate.ClientSide, 2, &translate.Options{Unique: "x"}).Connect(t.Context()))(t)
		exchange(t, client.(rpc.FastStream), agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}`)
		exchange(t, agent, client.(rpc.FastStream), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`)
		var read sync.WaitGroup
		read.Go(func() {
			for line, err := client.Read(); err == nil; line, err = client.Read() {
				t.Errorf("got %s", line)
			}
		})
		synctest.Wait()
		must.Do(t, errors.Join(client.Close(), agent.Close()))
		read.Wait()
	})
}

// TestHolds requires that an answer is held, and not longer than half a second.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, client := translated(t)
		start := time.Now()
		exchange(t, client, agent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}`)
		line, err := client.Read()
		if err != nil || !bytes.Contains(line, []byte(`"messageId"`)) {
			t.Errorf("got %s, %v", line, err)
		}
		if waited := time.Since(start); waited < 250*time.Millisecond || waited > 500*time.Millisecond {
			t.Errorf("after %v", waited)
		}
		_ = client.Close()
		_ = agent.Close()
	})
}

// hosted returns the streams of a connection between an agent of version 1 and a client of version 2, with a session, and
// the other end of the host's.
func hosted(t testing.TB) (agent, client, host rpc.FastStream) {
	toHost, fromHost := rpc.Pipe()
	opened := make(chan rpc.Stream, 1)
	go func() {
		s, err := fromHost.Connect(t.Context())
		if err != nil {
			panic(err)
		}
		opened <- s
	}()
	agent, client = open(t, func() (rpc.Transport, rpc.Transport) {
		a, b := rpc.Pipe()
		return translate.Transport(a, translate.AgentSide, 1, &translate.Options{Unique: "x", Host: &translate.Host{
			Transport: toHost, ReadFiles: true, WriteFiles: true, Terminals: true}}), b
	})
	host = (<-opened).(rpc.FastStream)
	exchange(t, client, agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}`)
	exchange(t, agent, client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`)
	exchange(t, client, agent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w"}}`)
	done := make(chan error, 1)
	go func() { done <- agent.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)) }()
	got, err := host.Read()
	_, err2 := client.Read()
	if err := errors.Join(err, err2, <-done); err != nil || !strings.Contains(string(got), `"cwd":"/w"`) {
		t.Fatalf("the host got %s, %v", got, err)
	}
	return agent, client, host
}

// TestHostWorksBeside requires that nothing waits for a host that does not answer or does not read, except what it would
// have to remember, that what is in flight fails when the host ends, and that closing the connection ends the host's.
func TestHostWorksBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, client, host := hosted(t)
		const call = `{"jsonrpc":"2.0","id":%d,"method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"x"}}`
		exchange(t, agent, host, fmt.Sprintf(call, 2))
		const update = `{"jsonrpc":"2.0","method":"_x"}`
		if got := exchange(t, agent, client, update); got != update {
			t.Errorf("got %s", got)
		}
		if err := agent.Write(fmt.Appendf(nil, call, 3)); err != nil { // the host does not read it
			t.Fatal(err)
		}
		if got := exchange(t, agent, client, update); got != update {
			t.Errorf("got %s", got)
		}
		must.Do(t, host.Close())
		for _, id := range []string{"2", "3"} {
			if line, err := agent.Read(); err != nil || !strings.Contains(string(line), `"id":`+id+`,"error":{"code":-32603`) {
				t.Errorf("got %s, %v", line, err)
			}
		}
		must.Do(t, agent.Write(fmt.Appendf(nil, call, 4)))
		if line, err := agent.Read(); err != nil || !strings.Contains(string(line), `"code":-32601`) {
			t.Errorf("got %s, %v", line, err)
		}
		_, _ = agent.Close(), client.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		agent, client, host := hosted(t)
		var written atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			line := `{"jsonrpc":"2.0","id":%d,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/w/a","content":"` + strings.Repeat("x", 64<<10) + `"}}`
			for n := 2; n < 1000; n++ {
				if agent.Write(fmt.Appendf(nil, line, n)) != nil {
					return
				}
				written.Add(int64(len(line)))
			}
		}()
		synctest.Wait()
		if n := written.Load(); n > 4<<20 {
			t.Errorf("%d MB were taken", n>>20)
		}
		must.Do(t, agent.Close())
		<-done
		for {
			if _, err := host.Read(); err != nil {
				break
			}
		}
		_, _ = client.Close(), host.Close()
	})
}

// TestHostBackpressure requires that what a host sends waits while the client does not read.
func TestHostBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, client, host := hosted(t)
		line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_output_chunk","terminalId":"x","data":"` + strings.Repeat("YWFh", 16<<10) + `"}}}`)
		written, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			for host.Write(line) == nil {
				written += len(line)
			}
		}()
		synctest.Wait()
		must.Do(t, agent.Close())
		<-done
		if written > 4<<20 || written == 0 {
			t.Errorf("%d MB were taken", written>>20)
		}
		_, _ = client.Close(), host.Close()
	})
}

// BenchmarkUpdate compares the cost of an update of 64 bytes without a translation, with one that passes, and with one
// that translates.
func BenchmarkUpdate(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("x", 64) + `"}}}}` + "\n")
	lines := bytes.Repeat(line, 100)
	for _, c := range []struct {
		name    string
		connect func() (from, to rpc.FastStream)
	}{
		{"without", func() (from, to rpc.FastStream) { return open(b, rpc.Pipe) }},
		{"passes", func() (from, to rpc.FastStream) {
			agent, client := connectTo(b, translate.AgentSide, 1)
			exchange(b, client, agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
			exchange(b, agent, client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`)
			return agent, client
		}},
		{"translated", func() (from, to rpc.FastStream) { return translated(b) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			from, to := c.connect()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for from.WriteLines(lines) == nil {
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				must.Get(to.ReadLine(func() {}))(b)
			}
			_, _ = to.Close(), from.Close()
			<-done
		})
	}
}
