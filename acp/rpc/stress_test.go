package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Turns at random, with everything that may happen in them, from both kinds of caller and ended by all
// means: order and barrier hold, nothing hangs, and nothing is left behind.
func TestRandomTurns(t *testing.T) {
	const seed, duration = 1, time.Second
	a, b := Pipe()
	opts := &Options{QueueBytes: 2000}
	random := func(session string, n int) *rand.Rand {
		return rand.New(rand.NewPCG(seed, uint64(session[0])<<32+uint64(n)))
	}
	type state struct{ sent, handled atomic.Int32 } // updates
	sessions := map[string]*state{"a": {}, "b": {}, "c": {}, "d": {}}

	var agent *Conn
	prompt := func(ctx context.Context, p *promptParams) (*promptResult, error) {
		r, s := random(p.SessionID, len(p.Prompt)), sessions[p.SessionID]
		for range r.IntN(40) {
			update := &updateParams{SessionID: p.SessionID, N: int(s.sent.Load()), Text: strings.Repeat("x", r.IntN(300))}
			if err := updateMethod.Notify(ctx, agent, update); err != nil {
				return nil, err
			}
			s.sent.Add(1)
			if r.IntN(10) == 0 {
				if _, err := askMethod.Call(ctx, agent, &sessionParams{p.SessionID}); err != nil {
					return nil, err
				}
			}
		}
		if r.IntN(4) == 0 { // until it is cancelled
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &promptResult{"end_turn"}, nil
	}
	agent, err := Connect(t.Context(), a, func(*Conn) []Route { return agentRoutes(prompt) }, opts)
	if err != nil {
		t.Fatal(err)
	}

	var client *Conn
	update := func(ctx context.Context, u *updateParams) error {
		if want := sessions[u.SessionID].handled.Add(1) - 1; u.N != int(want) {
			t.Errorf("session %s: update %d, want %d", u.SessionID, u.N, want)
		}
		if u.N%17 == 0 {
			if _, err := echoMethod.Call(ctx, client, &echoParams{SessionID: u.SessionID}); err != nil {
				t.Error("a call from a handler:", err)
			}
		}
		return nil
	}
	ask := func(ctx context.Context, p *sessionParams) (*askResult, error) {
		if rand.IntN(2) == 0 {
			return &askResult{"selected"}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rand.N(3 * time.Millisecond)): // a user
			return &askResult{"selected"}, nil
		}
	}
	client, err = Connect(t.Context(), b, func(*Conn) []Route { return clientRoutes(update, ask) }, opts)
	if err != nil {
		t.Fatal(err)
	}

	turns := make(chan error, len(sessions))
	for id, s := range sessions {
		spec := TurnSpec{Session: id, CancelMethod: "cancel", CancelParams: &sessionParams{id}}
		run := func(n int) (res *promptResult, err error) {
			r := random(id, -n-1)
			ctx, stop := context.WithTimeout(t.Context(), time.Duration(r.IntN(30))*time.Millisecond)
			defer stop()
			params := &promptParams{id, strings.Repeat("p", n)}
			if r.IntN(2) == 0 {
				return RunTurn(ctx, client, promptMethod, params, spec)
			}
			turn, leave := StartTurn(ctx, client, promptMethod, params, spec, pickUpdate), r.IntN(30)
			for range turn.Updates() {
				if leave--; leave == 0 {
					break
				}
			}
			return turn.Result()
		}
		go func() {
			var failed error
			for n, start := 0, time.Now(); failed == nil && time.Since(start) < duration; n++ {
				res, err := run(n)
				switch sent, handled := s.sent.Load(), s.handled.Load(); {
				case err != nil && !errors.Is(err, context.DeadlineExceeded):
					failed = fmt.Errorf("turn %d of session %s: %w", n, id, err)
				case err == nil && handled < sent:
					failed = fmt.Errorf("turn %d of session %s: %v after %d of %d updates", n, id, res, handled, sent)
				}
			}
			turns <- failed
		}()
	}
	for range sessions {
		if err := receive(t, turns); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*Conn{client, agent} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		if len(c.inbound) != 0 || c.serving != 0 || len(c.flights.all) != 0 {
			t.Errorf("%d requests, %d being served, and %d calls are left", len(c.inbound), c.serving, len(c.flights.all))
		}
		for id, s := range c.sessions {
			if len(s.own)+len(s.turns)+len(s.asks)+s.cancelling+s.nested != 0 {
				t.Errorf("something of session %q is left", id)
			}
		}
		c.mu.Unlock()
	}
}

// Every request is answered exactly once, whatever comes between, and all that is sent is JSON.
func TestGarbageBetweenRequests(t *testing.T) {
	const requests = 4000
	p, _ := newPeer(t, []Route{
		echoMethod.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
			if p.N%3 == 0 { // until it is cancelled
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return p, nil
		}),
		updateMethod.Handle(func(context.Context, *updateParams) error { return nil }),
	}, nil)

	var wg sync.WaitGroup
	wg.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range requests {
			id := fmt.Sprintf("request %d", i)
			p.send(garbage(r), request(id, "echo", fmt.Sprintf(`{"n":%d}`, i)))
			if i%3 == 0 {
				p.send(note("$/cancel_request", fmt.Sprintf(`{"requestId":%q}`, id)))
			}
		}
	})
	answers := map[string]int{}
	next := func() string {
		var message struct{ ID any }
		line := p.read()
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Errorf("sent %s: %v", line, err)
		}
		id, _ := message.ID.(string)
		if strings.HasPrefix(id, "request ") {
			answers[id]++
		}
		return id
	}
	for len(answers) < requests {
		next()
	}
	wg.Wait()
	p.send(request("end", "echo", `{"n":1}`))
	for next() != "end" {
	}
	for id, n := range answers {
		if n != 1 {
			t.Errorf("%s was answered %d times", id, n)
		}
	}
}

// garbage is a message, or what was one before up to three changes.
func garbage(r *rand.Rand) string {
	messages := []string{
		request("a", "echo", `{"n":1}`), note("update", `{"sessionId":"s","n":1}`), `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, note("$/cancel_request", `{"requestId":"a"}`),
		`[1,2]`, `{}`, `{"jsonrpc":"2.0","method":"echo","id":1.5}`, `{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`,
	}
	const alphabet = "{}[]\",:0123456789\\abcnull\xff\x00"
	s := messages[r.IntN(len(messages))]
	for range r.IntN(4) {
		at := r.IntN(len(s) + 1)
		switch r.IntN(3) {
		case 0:
			s = s[:at] + alphabet[r.IntN(len(alphabet)):][:1] + s[min(len(s), at+1):]
		case 1:
			s = s[:at] + s[min(len(s), at+1+r.IntN(5)):]
		case 2:
			s = s[:at] + messages[r.IntN(len(messages))] + s[at:]
		}
	}
	return s
}
