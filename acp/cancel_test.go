package acp_test

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
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
	var sent sentMethods
	_, session := openPair(t, pairOptions{agent: acp.AgentHandlers{
		Prompt: func(ctx context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if text := req.Prompt[0].Text(); text == "wait" {
				<-ctx.Done()
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, ctx.Err()
		},
	}, sees: sent.note, anyWay: true})
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
			return streamed(func(*acp.Turn, context.CancelFunc) { must.Do(t, session.Cancel(t.Context())) })
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
}

func (s *sentMethods) sofar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}
