package talk

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/test/must"
)

// An agent that is silent while it should open a session is reported, and then given up, but neither one that sends
// updates nor one whose question the user has not answered.
func TestSlowSteps(t *testing.T) {
	for name, test := range map[string]struct {
		opening func(ctx context.Context, s *acp.AgentSession) error
		opens   bool
	}{
		"silent": {func(ctx context.Context, _ *acp.AgentSession) error {
			<-ctx.Done()
			return ctx.Err()
		}, false},
		"slow": {func(context.Context, *acp.AgentSession) error {
			time.Sleep(time.Minute)
			return nil
		}, true},
		"talkative": {func(ctx context.Context, s *acp.AgentSession) error {
			for range 10 {
				time.Sleep(time.Minute)
				if err := s.Update(ctx, acp.AgentMessageText("history")); err != nil {
					return err
				}
			}
			return nil
		}, true},
		"asks": {func(ctx context.Context, s *acp.AgentSession) error {
			_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "t"}, acp.AllowOnce("y", "Yes"))
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := 0
				handlers := agentHandlers(nil)
				handlers.LoadSession = func(ctx context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
					return nil, test.opening(ctx, s)
				}
				c, err := Open(t.Context(), &Options{
					Agent: served(t, handlers, nil), Cwd: t.TempDir(), NoReconnect: true, Event: func(e Event) {
						if e.Kind == Slow && e.Text == acp.MethodLoadSession {
							slow++
						}
					},
					Ask: func(context.Context, *Question) (acp.PermissionOptionID, error) {
						time.Sleep(time.Hour)
						return "y", nil
					},
				})
				must.Do(t, err)
				began := time.Now()
				_, err = c.Load(t.Context(), "s", "")
				switch {
				case test.opens && err != nil:
					t.Error(err)
				case !test.opens && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "session/load: no answer within 2m0s")):
					t.Errorf("after %v: %v", time.Since(began), err)
				case slow != 1:
					t.Errorf("%d reports", slow)
				}
				must.Do(t, c.Close())
			})
		})
	}
}

// Output that is not messages is shown a few times and then counted.
func TestNoiseIsCounted(t *testing.T) {
	var shown []string
	c := &Client{opts: Options{Event: func(e Event) { shown = append(shown, e.Err.Error()) }}}
	hook := c.invalid()
	for range 1000 {
		hook(nil, errors.New("noise"))
	}
	if len(shown) != 12 || shown[0] != "noise" || !strings.HasPrefix(shown[11], "1000 lines") {
		t.Errorf("shown %d: %q", len(shown), shown)
	}
}

// The user learns that a login takes long, and it may take any time.
func TestSlowLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := 0
		handlers := agentHandlers(nil)
		handlers.Authenticate = func(context.Context, *acp.AgentConn, *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			time.Sleep(time.Hour)
			return nil, nil
		}
		agent := served(t, handlers, &acp.AgentOptions{AuthMethods: []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "k", Name: "K"})}})
		c, err := Open(t.Context(), &Options{Agent: agent, Cwd: t.TempDir(), NoReconnect: true, Event: func(e Event) {
			if e.Kind == Slow && e.Text == acp.MethodAuthenticate {
				slow++
			}
		}})
		if err == nil {
			err = c.Login(t.Context(), "k", launch.Terminal{})
		}
		if err != nil || slow != 1 {
			t.Errorf("%v, reported %d times", err, slow)
		}
		c.Close()
	})
}
