package turns_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/internal/test/must"
)

type conn struct{ done chan struct{} }

func (c *conn) Done() <-chan struct{} { return c.done }

type session struct {
	life  turns.Life
	freed int
}

type table = turns.Table[*conn, *session]

func newTable(t *testing.T, most int) (*table, *conn) {
	t.Helper()
	sessions := turns.NewTable[*conn](most, func(s *session) *turns.Life { return &s.life })
	t.Cleanup(sessions.Close)
	return sessions, &conn{make(chan struct{})}
}

// open opens a session, or refuses it.
func open(ctx context.Context, sessions *table, c *conn, id acp.SessionID) (*session, error) {
	done, err := sessions.Opening(ctx, c, id)
	if err != nil {
		return nil, err
	}
	defer done()
	s := &session{}
	s.life.Init(func() { s.freed++ })
	if !sessions.Put(c, id, s) {
		s.life.Close()
		return nil, acp.ErrClosed
	}
	return s, nil
}

func mustOpen(t *testing.T, sessions *table, c *conn, id acp.SessionID) *session {
	t.Helper()
	s := must.Get(open(t.Context(), sessions, c, id))(t)
	return s
}

// A session is found by its connection and id until it is closed, and freed when its last user is done.
func TestUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, c := newTable(t, 10)
		s := mustOpen(t, sessions, c, "a")
		for name, find := range map[string]func() (*session, func(), error){
			"another id":         func() (*session, func(), error) { return sessions.Use(c, "b") },
			"another connection": func() (*session, func(), error) { return sessions.Use(&conn{}, "a") },
		} {
			if _, _, err := find(); !errors.Is(err, acp.ErrResourceNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, release, err := sessions.Use(c, "a")
		if err != nil || got != s {
			t.Fatalf("%p, %v", got, err)
		}
		ctx, end := s.life.Within(t.Context())
		defer end()
		var closing sync.WaitGroup
		closing.Go(func() {
			was, done, err := sessions.Closing(t.Context(), c, "a")
			if err != nil || !was {
				t.Errorf("%v, %v", was, err)
				return
			}
			if s.freed != 1 {
				t.Errorf("closed, and freed %d times", s.freed)
			}
			if _, _, err := sessions.Use(c, "a"); !errors.Is(err, acp.ErrInvalidRequest) {
				t.Errorf("while it is closed: %v", err)
			}
			done()
		})
		<-ctx.Done()
		synctest.Wait()
		if s.freed != 0 || !errors.Is(context.Cause(ctx), turns.ErrSessionClosed) || !errors.Is(context.Cause(s.life.Context()), turns.ErrSessionClosed) {
			t.Errorf("freed %d times with a user, whose context ended with %v", s.freed, context.Cause(ctx))
		}
		if _, _, err := sessions.Use(c, "a"); !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("while it is being closed: %v", err)
		}
		release()
		closing.Wait()
		if _, _, err := sessions.Use(c, "a"); !errors.Is(err, acp.ErrResourceNotFound) {
			t.Errorf("after it was closed: %v", err)
		}
		if was, done, err := sessions.Closing(t.Context(), c, "a"); err != nil || was {
			t.Errorf("closing once more: %v, %v", was, err)
		} else {
			done()
		}
	})
}

// Opening a session that is open closes it first, unless a prompt uses it.
func TestOpenAgain(t *testing.T) {
	sessions, c := newTable(t, 1)
	first := mustOpen(t, sessions, c, "a")
	_, release, err := sessions.UseForPrompt(c, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), sessions, c, "a"); !errors.Is(err, turns.ErrBusy) {
		t.Errorf("a busy one: %v", err)
	}
	if s, again, err := sessions.Use(c, "a"); err != nil || s != first || first.freed != 0 {
		t.Errorf("after a refusal: %v", err)
	} else {
		again()
	}
	release()
	if s := mustOpen(t, sessions, c, "a"); s == first || first.freed != 1 {
		t.Errorf("the first one was freed %d times", first.freed)
	}
}

// Who gives up waiting leaves the session closed, and nobody opens it while its handlers run.
func TestGiveUpClosing(t *testing.T) {
	sessions, c := newTable(t, 2)
	s := mustOpen(t, sessions, c, "a")
	_, release, err := sessions.Use(c, "a")
	if err != nil {
		t.Fatal(err)
	}
	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gaveUp)
	if _, _, err := sessions.Closing(ctx, c, "a"); !errors.Is(err, gaveUp) {
		t.Error(err)
	}
	if _, err := open(t.Context(), sessions, c, "a"); !errors.Is(err, acp.ErrInvalidRequest) || s.freed != 0 {
		t.Errorf("while a handler runs: %v, freed %d times", err, s.freed)
	}
	if _, _, err := sessions.Use(c, "a"); !errors.Is(err, acp.ErrResourceNotFound) {
		t.Errorf("a session that is closing: %v", err)
	}
	mustOpen(t, sessions, c, "b")
	if _, err := open(t.Context(), sessions, c, "c"); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("one that is closing does not count: %v", err)
	}
	release()
	if s.freed != 1 {
		t.Errorf("freed %d times", s.freed)
	}
	mustOpen(t, sessions, c, "a")
}

// As many sessions are open as may be. One that is being closed counts once, and one that is being deleted without being
// open does not count.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, c := newTable(t, 3)
		mustOpen(t, sessions, c, "a")
		mustOpen(t, sessions, c, "b")
		_, release, err := sessions.Use(c, "a")
		if err != nil {
			t.Fatal(err)
		}
		var closing sync.WaitGroup
		closing.Go(func() {
			_, done, err := sessions.Closing(t.Context(), c, "a")
			if err != nil {
				t.Error(err)
				return
			}
			done()
		})
		synctest.Wait()
		_, done, err := sessions.Closing(t.Context(), c, "unknown")
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		mustOpen(t, sessions, c, "c")
		if _, err := open(t.Context(), sessions, c, "d"); !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("one too many: %v", err)
		}
		release()
		closing.Wait()
		mustOpen(t, sessions, c, "d")
		if _, err := open(t.Context(), sessions, c, "e"); !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("one too many: %v", err)
		}
		mustOpen(t, sessions, c, "d") // again
		other := &conn{make(chan struct{})}
		mustOpen(t, sessions, other, "e") // each connection has its own
	})
}

// Two sessions at once are too many where there is room for one.
func TestRoomAtOnce(t *testing.T) {
	sessions, c := newTable(t, 1)
	done := must.Get(sessions.Opening(t.Context(), c, "a"))(t)
	if _, err := sessions.Opening(t.Context(), c, "b"); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("the second one: %v", err)
	}
	if _, err := sessions.Opening(t.Context(), c, "a"); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("the same one: %v", err)
	}
	done()
	mustOpen(t, sessions, c, "b")
}

// The end of a connection, and that of the table, close what is open; what is being opened then is not.
func TestTableEnd(t *testing.T) {
	for name, end := range map[string]func(*table, *conn){
		"connection": func(_ *table, c *conn) { close(c.done) },
		"table":      func(sessions *table, _ *conn) { sessions.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sessions := turns.NewTable[*conn](100, func(s *session) *turns.Life { return &s.life })
				c := &conn{make(chan struct{})}
				var all []*session
				for i := range 20 {
					all = append(all, mustOpen(t, sessions, c, acp.SessionID(fmt.Sprint(i))))
				}
				_, release, err := sessions.Use(c, "0")
				if err != nil {
					t.Fatal(err)
				}
				done := must.Get(sessions.Opening(t.Context(), c, "late"))(t)
				end(sessions, c)
				synctest.Wait()
				if sessions.Put(c, "late", &session{}) {
					t.Error("a session was opened after the end")
				}
				done()
				for i, s := range all {
					if want := min(i, 1); s.freed != want {
						t.Errorf("session %d was freed %d times", i, s.freed)
					}
				}
				if _, _, err := sessions.Use(c, "1"); !errors.Is(err, acp.ErrResourceNotFound) {
					t.Errorf("after the end: %v", err)
				}
				release()
				if all[0].freed != 1 {
					t.Errorf("the one with a handler was freed %d times", all[0].freed)
				}
				sessions.Close()
				if _, err := sessions.Opening(t.Context(), c, "x"); !errors.Is(err, acp.ErrClosed) {
					t.Errorf("opening after the end: %v", err)
				}
			})
		})
	}
}

// Requests of all kinds at once: no session is freed twice or while it is used, and all are freed in the end.
func TestAtOnce(t *testing.T) {
	sessions, c := newTable(t, 4)
	var mu sync.Mutex
	var all []*session
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for n := range 200 {
				id := acp.SessionID(fmt.Sprint((i + n) % 6))
				switch (i + n/6) % 3 {
				case 0:
					if s, err := open(t.Context(), sessions, c, id); err == nil {
						mu.Lock()
						all = append(all, s)
						mu.Unlock()
					}
				case 1:
					if s, release, err := sessions.UseForPrompt(c, id); err == nil {
						if s.freed != 0 {
							t.Error("a session is used that was freed")
						}
						release()
					}
				case 2:
					if _, done, err := sessions.Closing(t.Context(), c, id); err == nil {
						done()
					}
				}
			}
		})
	}
	calls.Wait()
	close(c.done)
	sessions.Close()
	if len(all) == 0 {
		t.Fatal("none was opened")
	}
	for _, s := range all {
		if s.freed != 1 {
			t.Errorf("freed %d times", s.freed)
		}
	}
}
