package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

// Every request is answered exactly once, whatever comes between, and all that is sent is JSON.
func TestGarbageBetweenRequests(t *testing.T) {
	requests := tier.Pick(200, 1000, 4000, 4000)
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
