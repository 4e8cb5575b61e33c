package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/ways"
)

// sentMethods notes the methods of what one side sends.
type sentMethods struct {
	mu   sync.Mutex
	list []string
}

func (s *sentMethods) note(sent bool, message []byte) {
	var m struct{ Method string }
	if sent && json.Unmarshal(message, &m) == nil && m.Method != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, m.Method)
	}
}

func (s *sentMethods) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// A prompt that is sent when a turn was cancelled comes behind the cancellation, however that was done, and is not
// cancelled by it.
func TestADD8_CancellationBeforeTheNextPrompt(t *testing.T) {
	a, c := ways.Pipe(t)
	agent := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, nil), acp.AgentHandlers{
		NewSession: newSession,
		Prompt: func(ctx context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if text := req.Prompt[0].Text(); text == "wait" {
				<-ctx.Done()
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, ctx.Err()
		},
	}, nil))(t)
	var sent sentMethods
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, nil), acp.ClientHandlers{},
		&acp.ClientOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Message: sent.note}}}))(t)
	session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
	sent.take()
	streamed := func(cancel func(turn *acp.Turn, end context.CancelFunc)) func() (*acp.PromptResponse, error) {
		ctx, end := context.WithCancel(t.Context())
		turn := session.Stream(ctx, acp.TextBlock("wait"))
		for slices.Index(sent.sofar(), acp.MethodPrompt) < 0 { // what was not sent need not be cancelled
			runtime.Gosched()
		}
		cancel(turn, end)
		return func() (*acp.PromptResponse, error) {
			defer end()
			return turn.Result()
		}
	}
	for name, first := range map[string]func() func() (*acp.PromptResponse, error){
		"turn.Cancel": func() func() (*acp.PromptResponse, error) {
			return streamed(func(turn *acp.Turn, _ context.CancelFunc) { turn.Cancel() })
		},
		"session.Cancel": func() func() (*acp.PromptResponse, error) {
			return streamed(func(*acp.Turn, context.CancelFunc) {
				if err := session.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
			})
		},
		"end of the stream's context": func() func() (*acp.PromptResponse, error) {
			return streamed(func(_ *acp.Turn, end context.CancelFunc) { end() })
		},
		"end of the prompt's context": func() func() (*acp.PromptResponse, error) {
			ctx, end := context.WithCancel(t.Context())
			go func() {
				for slices.Index(sent.sofar(), acp.MethodPrompt) < 0 {
					runtime.Gosched()
				}
				end()
			}()
			res, err := session.Prompt(ctx, acp.TextBlock("wait"))
			return func() (*acp.PromptResponse, error) { return res, err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				result := first()
				res, err := session.Prompt(t.Context(), acp.TextBlock("go on"))
				if err != nil || res.StopReason != acp.StopReasonEndTurn {
					t.Fatalf("the next prompt: %+v, %v", res, err)
				}
				if res, err = result(); err != nil || res.StopReason != acp.StopReasonCancelled {
					t.Fatalf("the cancelled prompt: %+v, %v", res, err)
				}
				if got := sent.take(); !slices.Equal(got, []string{acp.MethodPrompt, acp.MethodCancel, acp.MethodPrompt}) {
					t.Fatalf("sent %q", got)
				}
			}
		})
	}
	must.Do(t, errors.Join(conn.Close(), agent.Wait()))
}

func (s *sentMethods) sofar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// Updates of a streamed turn go to its loop, all others to the handler, and none to both.
func TestUpdatesBesideAStreamedTurn(t *testing.T) {
	var mu sync.Mutex
	var handled []string
	after := make(chan struct{}, 2) // what came behind a streamed turn
	text := func(u acp.SessionUpdate) string {
		chunk, _ := u.Variant.(*acp.SessionUpdateAgentMessageChunk)
		if chunk == nil {
			return "?"
		}
		text := chunk.Content.Text()
		return text
	}
	conn, _ := pairThat(t, map[string]string{"PRM-13": "the agent says more after its answer"}, acp.AgentHandlers{
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			word := req.Prompt[0].Text()
			err := errors.Join(s.Update(ctx, acp.AgentMessageText(word+" 1")), s.Update(ctx, acp.AgentMessageText(word+" 2")))
			acp.AfterResponse(ctx, func(ctx context.Context) {
				if err := s.Update(ctx, acp.AgentMessageText("after "+word)); err != nil {
					t.Error(err)
				}
			})
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
		},
	}, nil, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, text(n.Update))
			if text(n.Update) == "after s" {
				after <- struct{}{}
			}
			return nil
		},
	}, nil)
	session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
	var streamed []string
	for range 2 {
		turn := session.Stream(t.Context(), acp.TextBlock("s"))
		for u := range turn.Updates() {
			streamed = append(streamed, text(u))
		}
		must.Get(turn.Result())(t)
		<-after
		must.Get(session.Prompt(t.Context(), acp.TextBlock("p")))(t)
	}
	mu.Lock()
	defer mu.Unlock()
	// What a turn sends after its answer may be read when the next one has been started already.
	isLate := func(s string) bool { return s == "after p" }
	streamed = slices.DeleteFunc(streamed, isLate)
	if want := []string{"s 1", "s 2", "s 1", "s 2"}; !slices.Equal(streamed, want) {
		t.Errorf("the loops got %q", streamed)
	}
	got := slices.DeleteFunc(slices.Clone(handled), isLate)
	if want := []string{"after s", "p 1", "p 2", "after s", "p 1", "p 2"}; !slices.Equal(got, want) {
		t.Errorf("the handler got %q", handled)
	}
}
