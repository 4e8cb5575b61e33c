package ledger_test

import (
	"testing"

	"github.com/acpgo/sdk/internal/ledger"
)

func TestRequests(t *testing.T) {
	var l ledger.Ledger[string]
	r := &l.Sent
	if open := l.Request(true, "1", "a"); open != 0 {
		t.Errorf("%d open", open)
	}
	l.Request(true, `"1"`, "b") // another id
	if r.Open() != 2 || l.Received.Open() != 0 {
		t.Errorf("%d and %d open", r.Open(), l.Received.Open())
	}
	if about, ok := l.Answer(false, "1"); about != "a" || !ok {
		t.Errorf("got %q, %t", about, ok)
	}
	if about, ok := l.Answer(false, "1"); about != "a" || ok {
		t.Errorf("a second answer: %q, %t", about, ok)
	}
	if _, ok := l.Answer(false, "2"); ok || r.Unasked() != 2 {
		t.Errorf("an answer to nothing: %t, %d", ok, r.Unasked())
	}
	// An answer that came too early answers no later request.
	if open := l.Request(true, "2", "c"); open != 0 || r.Open() != 2 {
		t.Errorf("%d, %d open", open, r.Open())
	}
	if _, ok := l.Answer(false, "2"); !ok {
		t.Error("no answer was due")
	}
	if r.Open() != 1 || r.Asked() != 3 || r.Answered() != 2 {
		t.Errorf("%d open, %d asked, %d answered", r.Open(), r.Asked(), r.Answered())
	}
}

func TestIDsThatAreUsedAgain(t *testing.T) {
	var r ledger.Requests[int]
	r.Ask("1", 1)
	if open := r.Ask("1", 2); open != 1 || r.Open() != 2 {
		t.Errorf("%d, %d open", open, r.Open())
	}
	for range 2 {
		if about, ok := r.Answer("1"); about != 2 || !ok {
			t.Errorf("got %d, %t", about, ok)
		}
	}
	if open := r.Ask("1", 3); open != 0 || r.Get("1").Open() != 1 {
		t.Errorf("%d, %+v", open, r.Get("1"))
	}
	for id, e := range r.All() {
		if id != "1" || e.Asked != 3 || e.Answered != 2 {
			t.Errorf("%s: %+v", id, e)
		}
	}
}

// An account that forgets keeps what is open, and nothing else.
func TestForget(t *testing.T) {
	r := ledger.Requests[int]{Forget: true}
	for i := range 1000 {
		r.Ask("1", i)
		if about, ok := r.Answer("1"); about != i || !ok {
			t.Fatalf("got %d, %t", about, ok)
		}
		if _, ok := r.Answer("1"); ok {
			t.Fatal("a second answer was due")
		}
	}
	for id := range r.All() {
		t.Errorf("%s is kept", id)
	}
	if r.Open() != 0 || r.Asked() != 1000 || r.Unasked() != 1000 {
		t.Errorf("%d open, %d asked, %d unasked", r.Open(), r.Asked(), r.Unasked())
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string][3]bool{
		`{"id":1,"method":"x"}`:                  {true, false, false},
		`{"id":null,"method":"x"}`:               {true, false, false},
		`{"method":"x","params":{}}`:             {false, true, false},
		`{"id":"a","result":null}`:               {false, false, true},
		`{"id":1,"error":{"code":1}}`:            {false, false, true},
		`{"id":null,"error":{"code":-32700}}`:    {false, false, false},
		`{"id":1}`:                               {false, false, false},
		`{}`:                                     {false, false, false},
		`{"error":{"code":-32600,"message":""}}`: {false, false, false},
	} {
		m, err := ledger.Read([]byte(text))
		if got := [3]bool{m.IsRequest(), m.IsNotification(), m.IsAnswer()}; err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	if _, err := ledger.Read([]byte("x")); err == nil {
		t.Error("read what is not JSON")
	}
}
