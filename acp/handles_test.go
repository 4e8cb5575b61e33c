package acp_test

// This file shows how long a client keeps the handle of a session.

import (
	"context"
	"errors"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// isHandle reports whether s is what handlers are given for its session.
func isHandle(s *acp.ClientSession) bool {
	// A handle that is not kept is replaced when another session is asked for.
	s.Conn().Session("another")
	return s.Conn().Session(s.ID()) == s
}

// A session that was closed or deleted is forgotten, whichever call did it, and also by a handle that is older
// than the session's own.
func TestHandleOfAClosedSession(t *testing.T) {
	agent, opts := everything()
	agent.CloseSession = func(_ context.Context, _ *acp.AgentSession, req *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
		if req.SessionID == "busy" {
			return nil, errors.New("busy")
		}
		if req.SessionID == "gone" {
			return nil, acp.SessionNotFound(req.SessionID)
		}
		return &acp.CloseSessionResponse{}, nil
	}
	conn, _ := pair(t, agent, opts, acp.ClientHandlers{}, nil)
	ctx := t.Context()
	for name, test := range map[string]struct {
		id   acp.SessionID
		end  func(older *acp.ClientSession) error
		kept bool
	}{
		"close": {"a", func(*acp.ClientSession) error {
			_, err := conn.CloseSession(ctx, &acp.CloseSessionRequest{SessionID: "a"})
			return err
		}, false},
		"delete": {"b", func(*acp.ClientSession) error {
			_, err := conn.DeleteSession(ctx, &acp.DeleteSessionRequest{SessionID: "b"})
			return err
		}, false},
		"by an older handle": {"c", func(older *acp.ClientSession) error { return older.Close(ctx) }, false},
		"unknown": {"gone", func(*acp.ClientSession) error {
			_, err := conn.CloseSession(ctx, &acp.CloseSessionRequest{SessionID: "gone"})
			if err != nil { // it is closed, which is what was wanted
				t.Errorf("closing an unknown session: %v", err)
			}
			return nil
		}, false},
		"refused": {"busy", func(older *acp.ClientSession) error {
			if err := older.Close(ctx); err == nil {
				t.Error("the agent's error is lost")
			}
			return nil
		}, true},
	} {
		older := conn.Session(test.id)
		conn.Session("another")
		s, err := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: test.id, Cwd: "/"})
		if err != nil || !isHandle(s) {
			t.Fatalf("%s: %v, kept %t before", name, err, isHandle(s))
		}
		if err := test.end(older); err != nil || isHandle(s) != test.kept {
			t.Errorf("%s: %v, kept %t, want %t", name, err, isHandle(s), test.kept)
		}
	}
}

// Of two calls that load a session at once, one that fails does not take the handle from the other; when both
// have failed nothing is kept.
func TestLoadingASessionTwice(t *testing.T) {
	for _, test := range []struct {
		name string
		fail [2]bool // the first, the second
	}{
		{"both succeed", [2]bool{false, false}},
		{"the first fails", [2]bool{true, false}},
		{"the second fails", [2]bool{false, true}},
		{"both fail", [2]bool{true, true}},
	} {
		for _, last := range []int{0, 1} { // which is answered last
			agent, opts := everything()
			came := make(chan int)
			answer := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
			agent.LoadSession = func(_ context.Context, _ *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
				i := 0
				if req.Cwd == "/1" {
					i = 1
				}
				came <- i
				<-answer[i]
				if test.fail[i] {
					return nil, errors.New("not now")
				}
				return &acp.LoadSessionResponse{}, nil
			}
			conn, _ := pair(t, agent, opts, acp.ClientHandlers{}, nil)
			var done [2]chan error
			for i, cwd := range []string{"/0", "/1"} {
				done[i] = make(chan error, 1)
				go func() {
					_, err := conn.LoadSession(context.Background(), &acp.LoadSessionRequest{SessionID: "s", Cwd: cwd})
					done[i] <- err
				}()
				if got := <-came; got != i {
					t.Fatal(got)
				}
			}
			s := conn.Session("s")
			for _, i := range []int{1 - last, last} {
				close(answer[i])
				if err := <-done[i]; (err != nil) != test.fail[i] {
					t.Fatal(err)
				}
			}
			if want := !test.fail[0] || !test.fail[1]; isHandle(s) != want {
				t.Errorf("%s, %d answered last: kept %t, want %t", test.name, last, isHandle(s), want)
			}
		}
	}
}
