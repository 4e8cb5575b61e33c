package conformance_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/fastpath"
	"github.com/acpgo/sdk/internal/test/must"
)

// able is a stream with all abilities that records how it is used.
type able struct {
	in     chan string
	closed func()
	ended  <-chan struct{}

	mu   sync.Mutex
	uses []string
}

func newAble(in ...string) *able {
	ctx, cancel := context.WithCancel(context.Background())
	s := &able{in: make(chan string, len(in)+10), closed: cancel, ended: ctx.Done()}
	for _, line := range in {
		s.in <- line
	}
	return s
}

func (s *able) note(use string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses = append(s.uses, use)
}

// noted returns the uses since the last call.
func (s *able) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	uses := s.uses
	s.uses = nil
	return uses
}

func (s *able) Connect(context.Context) (rpc.Stream, error) { return s, nil }

func (s *able) next() ([]byte, error) {
	select {
	case line := <-s.in:
		return []byte(line), nil
	case <-s.ended:
		return nil, io.EOF
	}
}

func (s *able) Read() ([]byte, error) {
	s.note("Read")
	return s.next()
}

func (s *able) ReadLine(beforeWait func()) ([]byte, error) {
	s.note("ReadLine")
	beforeWait()
	return s.next()
}

func (s *able) Write(message []byte) error {
	s.note("Write " + string(message))
	return nil
}

func (s *able) WriteLines(lines []byte) error {
	s.note("WriteLines " + string(lines))
	return nil
}

func (s *able) CloseWrite() error {
	s.note("CloseWrite")
	return nil
}

func (s *able) Close() error {
	s.closed()
	return nil
}

// checkAbilities uses each ability of a wrapper of s.
func checkAbilities(t *testing.T, s *able, wrapper rpc.Stream) {
	t.Helper()
	fast, ok := wrapper.(rpc.FastStream)
	half, ok2 := wrapper.(rpc.HalfCloser)
	if !ok || !ok2 {
		t.Fatalf("%T is a FastStream: %v, a HalfCloser: %v", wrapper, ok, ok2)
	}
	const (
		one = `{"jsonrpc":"2.0","method":"_one","params":{}}`
		two = `{"jsonrpc":"2.0","method":"_two","params":{}}`
	)
	expect := func(what string, want ...string) {
		t.Helper()
		if got := s.noted(); !slices.Equal(got, want) {
			t.Errorf("%s: the stream inside saw %q, want %q", what, got, want)
		}
	}
	s.noted()
	announced := 0
	s.in <- one
	if got, err := fast.ReadLine(func() { announced++ }); string(got) != one || err != nil || announced != 1 {
		t.Errorf("read %q, %v, announced %d times", got, err, announced)
	}
	expect("ReadLine", "ReadLine")
	must.Do(t, fast.WriteLines([]byte(one+"\n"+two+"\n")))
	expect("WriteLines", "WriteLines "+one+"\n"+two+"\n")
	must.Do(t, half.CloseWrite())
	expect("CloseWrite", "CloseWrite")
}

const (
	initializeRequest = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	initializeAnswer  = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`
)

func TestWrappersPassAbilitiesOn(t *testing.T) {
	if !fastpath.Enabled {
		t.Skip("it is about fast paths")
	}
	// The wrapper also judges the lines; here it does not matter that they are not messages of the protocol.
	ignore := func(conformance.Finding) bool { return true }
	monitor := conformance.NewMonitor(conformance.V1(), &conformance.MonitorOptions{Ignore: ignore})
	for name, wrap := range map[string]func(rpc.Transport) rpc.Transport{
		"monitored client": monitor.WrapClient,
		"monitored agent":  monitor.WrapAgent,
		"tap": func(inner rpc.Transport) rpc.Transport {
			return conformance.Tap(t, conformance.Client, inner, &conformance.TapOptions{Ignore: ignore})
		},
		"tap of a tap": func(inner rpc.Transport) rpc.Transport {
			inner = conformance.Tap(t, conformance.Client, inner, &conformance.TapOptions{Ignore: ignore})
			return conformance.Tap(t, conformance.Client, inner, &conformance.TapOptions{Ignore: ignore})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAble()
			stream := must.Get(wrap(s).Connect(t.Context()))(t)
			checkAbilities(t, s, stream)
		})
	}
	// A translation that has nothing to translate, on both sides.
	t.Run("translated agent", func(t *testing.T) {
		s := newAble(initializeRequest)
		stream := must.Get(translate.Agent(s).Connect(t.Context()))(t)
		if first, err := stream.Read(); err != nil || string(first) != initializeRequest {
			t.Errorf("got %q, %v, want the initialize request", first, err)
		}
		checkAbilities(t, s, stream)
	})
	t.Run("translated client", func(t *testing.T) {
		s := newAble(initializeAnswer)
		stream := must.Get(translate.Transport(s, translate.ClientSide, 1, &translate.Options{Only: 1}).Connect(t.Context()))(t)
		must.Do(t, stream.Write([]byte(initializeRequest)))
		if answer, err := stream.Read(); err != nil || string(answer) != initializeAnswer {
			t.Errorf("got %q, %v, want the answer", answer, err)
		}
		checkAbilities(t, s, stream)
	})
	t.Run("native agent of two versions", func(t *testing.T) {
		s := newAble(`{"jsonrpc":"2.0","method":"_early"}`, initializeRequest)
		version, chosen, err := translate.Asked(t.Context(), s)
		if err != nil || version != 1 {
			t.Fatalf("version %d, %v", version, err)
		}
		stream := must.Get(chosen.Connect(t.Context()))(t)
		for _, want := range []string{`{"jsonrpc":"2.0","method":"_early"}`, initializeRequest} {
			if line, err := stream.Read(); err != nil || string(line) != want {
				t.Errorf("got %q, %v, want %q", line, err, want)
			}
		}
		checkAbilities(t, s, stream)
	})
	// A connection with a hook uses the fast methods of its stream.
	t.Run("hook", func(t *testing.T) {
		s := newAble(initializeRequest)
		seen := make(chan string, 10)
		opts := &acp.AgentOptions{}
		opts.Conn.Hooks.Message = func(sent bool, message []byte) {
			if sent {
				seen <- string(message)
			}
		}
		handlers := acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return nil, rpc.ErrInternal
			},
			Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
				return nil, rpc.ErrInternal
			},
		}
		agent := must.Get(acp.StartAgent(t.Context(), s, handlers, opts))(t)
		<-seen
		must.Do(t, agent.Close())
		uses := s.noted()
		if !slices.Contains(uses, "ReadLine") || slices.Contains(uses, "Read") {
			t.Errorf("read by %q", uses)
		}
		if !slices.ContainsFunc(uses, func(use string) bool { return strings.HasPrefix(use, "WriteLines ") }) {
			t.Errorf("written by %q", uses)
		}
	})
}

// A wrapper changes messages in the same way whichever method writes them, and sees each message once.
func TestWrapperChangesMessages(t *testing.T) {
	if !fastpath.Enabled {
		t.Skip("it is about fast paths")
	}
	const drop, refuse, change = `{"d":1}`, `{"r":1}`, `{"c":1}`
	var seen []string
	wrap := func(s *able) rpc.FastStream {
		return rpc.Wrap(s, rpc.Wrapper{Write: func(message []byte) ([]byte, error) {
			seen = append(seen, string(message))
			switch string(message) {
			case drop:
				return nil, nil
			case refuse:
				return nil, io.ErrClosedPipe
			case change:
				return []byte("{\n}"), nil
			}
			return message, nil
		}}).(rpc.FastStream)
	}
	for _, test := range []struct {
		lines string
		want  string // what arrives
		err   error
	}{
		{"{}\n", "{}\n", nil},
		{drop + "\n", "", nil},
		{refuse + "\n", "", io.ErrClosedPipe},
		{change + "\n", "{ }\n", nil},
		{"{}\n" + drop + "\n[]\n", "{}\n[]\n", nil},
		{"{}\n" + change + "\n[]\n" + change + "\n", "{}\n{ }\n[]\n{ }\n", nil},
		{"{}\n" + change + "\n" + refuse + "\n[]\n", "{}\n{ }\n", io.ErrClosedPipe},
		{"{}\n" + refuse + "\n" + change + "\n", "{}\n", io.ErrClosedPipe},
	} {
		ways := map[string]func(rpc.FastStream) error{
			"together": func(s rpc.FastStream) error { return s.WriteLines([]byte(test.lines)) },
			"one by one": func(s rpc.FastStream) error {
				for line := range strings.Lines(test.lines) {
					if err := s.WriteLines([]byte(line)); err != nil {
						return err
					}
				}
				return nil
			},
		}
		for name, write := range ways {
			seen = nil
			s := newAble()
			err := write(wrap(s))
			var arrived strings.Builder
			for _, use := range s.noted() {
				_, lines, _ := strings.Cut(use, " ")
				arrived.WriteString(lines)
			}
			if arrived.String() != test.want || err != test.err {
				t.Errorf("%q, %s: %q arrived, %v, want %q, %v", test.lines, name, arrived.String(), err, test.want, test.err)
			}
			if want := strings.Split(test.lines, "\n"); !slices.Equal(seen, want[:len(seen)]) {
				t.Errorf("%q, %s: seen as %q", test.lines, name, seen)
			}
		}
	}
}

// plain is a transport whose stream has only the required methods, as streams of other packages may.
type plain struct{ rpc.Transport }

func (t plain) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := t.Transport.Connect(ctx)
	return struct{ rpc.Stream }{stream}, err
}

// A stream that reads, writes and closes is enough, even inside a wrapper.
func TestPlainStreams(t *testing.T) {
	ours, theirs := acp.Pipe()
	handlers := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			for range 100 {
				if err := s.Update(ctx, acp.AgentMessageText("x")); err != nil {
					return nil, err
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
	agent := must.Get(acp.StartAgent(t.Context(), plain{theirs}, handlers, nil))(t)
	updates := 0
	client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, plain{ours}, nil), acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			updates++
			return nil
		},
	}, nil))(t)
	session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
	if res, err := session.Prompt(t.Context(), acp.TextBlock("go")); err != nil || res.StopReason != acp.StopReasonEndTurn || updates != 100 {
		t.Errorf("got %v, %v and %d updates", res, err, updates)
	}
	must.Do(t, errors.Join(client.Close(), agent.Wait()))
	bare, _ := acp.Pipe()
	stream := must.Get(conformance.Tap(t, conformance.Client, plain{bare}, nil).Connect(t.Context()))(t)
	if err := stream.(rpc.HalfCloser).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half of a stream that cannot is closed: %v", err)
	}
	must.Do(t, stream.Close())
}
