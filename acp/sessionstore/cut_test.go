package sessionstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// cuts is how many processes are killed, each at another write.
func cuts() int { return tier.Pick(4, 10, 30, 600) }

// operation is one thing that a process does.
type operation struct {
	kind  string // create, change, append or delete
	id    acp.SessionID
	title string
	texts []string
}

// script is what a process does.
func script(seed uint64) (ops []operation) {
	random := rand.New(rand.NewPCG(seed, 3))
	text := func() string { return fmt.Sprint(random.Uint32(), strings.Repeat("é\n", random.IntN(3000))) }
	ids := []acp.SessionID{"plain", "Not plain"}
	for _, id := range ids {
		ops = append(ops, operation{kind: "create", id: id, title: text()[:8]})
	}
	for range 8 {
		id := ids[random.IntN(2)]
		switch random.IntN(8) {
		case 0:
			ops = append(ops, operation{kind: "delete", id: id}, operation{kind: "create", id: id, title: "again"})
		case 1, 2:
			ops = append(ops, operation{kind: "change", id: id, title: text()[:8]})
		default:
			op := operation{kind: "append", id: id}
			for range 1 + random.IntN(3) {
				op.texts = append(op.texts, text())
			}
			ops = append(ops, op)
		}
	}
	return ops
}

func (op operation) do(ctx context.Context, store sessionstore.Store) error {
	switch op.kind {
	case "create":
		return store.Create(ctx, sessionstore.Record{Info: sessionstore.Info{ID: op.id, Cwd: "/w", Title: op.title}})
	case "change":
		return store.Change(ctx, op.id, func(r *sessionstore.Record) error {
			r.Title, r.State = op.title, json.RawMessage(strconv.Quote(op.title))
			return nil
		})
	case "append":
		var updates []acp.SessionUpdate
		for _, text := range op.texts {
			updates = append(updates, acp.AgentMessageText(text))
		}
		return store.Append(ctx, op.id, updates...)
	default:
		return store.Delete(ctx, op.id)
	}
}

// kept is what a store has: of each session the title and the texts.
type kept map[acp.SessionID][]string

// after is what is kept after an operation.
func (k kept) after(op operation) kept {
	next := maps.Clone(k)
	switch op.kind {
	case "create":
		next[op.id] = []string{op.title}
	case "change":
		next[op.id] = append([]string{op.title}, k[op.id][1:]...)
	case "append":
		next[op.id] = append(slices.Clone(k[op.id]), op.texts...)
	default:
		delete(next, op.id)
	}
	return next
}

func (k kept) equal(other kept) bool { return maps.EqualFunc(k, other, slices.Equal) }

func readAll(t *testing.T, store sessionstore.Store) kept {
	t.Helper()
	page := must.Get(store.List(t.Context(), sessionstore.Query{}))(t)
	all := kept{}
	for _, info := range page.Sessions {
		r := must.Get(store.Get(t.Context(), info.ID))(t)
		lines := []string{r.Title}
		for update, err := range store.Updates(t.Context(), info.ID) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, update.AgentText())
		}
		all[info.ID] = lines
	}
	return all
}

// TestCutChild is what the processes do that TestCut kills: it kills itself at its n-th write, of which it has made a part.
func TestCutChild(t *testing.T) {
	dir := os.Getenv("ACP_CUT_DIR")
	if dir == "" {
		t.Skip("TestCut starts it")
	}
	var seed uint64
	var at, part int
	must.Get(fmt.Sscan(os.Getenv("ACP_CUT"), &seed, &at, &part))(t)
	store := open(t, dir).(*sessionstore.Dir)
	defer store.Close()
	sessionstore.Cut(store, func(file *os.File, offset int64, data []byte) {
		if at--; at >= 0 {
			return
		}
		whole := true
		if file != nil {
			n := len(data) * part / 4
			if part > 0 && part < 4 {
				n = max(1, min(n, len(data)-1))
			}
			whole = n == 0 || bytes.HasSuffix(data[:n], []byte("\n"))
			if _, err := file.WriteAt(data[:n], offset); err != nil {
				panic(err)
			}
		}
		fmt.Println("whole", whole)
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {}
	})
	for i, op := range script(seed) {
		must.Do(t, op.do(t.Context(), store))
		fmt.Println("ack", i)
	}
}

// A process is killed at each of its writes, and within them. Nothing is lost but what it was writing, a torn line is
// reported once and is gone with the next update, and the store is used on.
func TestCut(t *testing.T) {
	runs, torn := 0, 0
	began := time.Now()
	for seed := uint64(0); runs < cuts(); seed++ {
		for at := 0; runs < cuts(); at++ {
			runs++
			killed, said := cut(t, seed, at, runs%5)
			if t.Failed() {
				t.Fatalf("with the seed %d, killed at write %d, part %d", seed, at, runs%5)
			}
			torn += said
			if !killed {
				break // it has no more writes
			}
		}
	}
	if cuts() >= 60 && torn == 0 {
		t.Error("no line was torn")
	}
	t.Logf("%d processes killed in %v; %d torn lines reported", runs, time.Since(began).Round(time.Millisecond), torn)
}

func cut(t *testing.T, seed uint64, at, part int) (killed bool, torn int) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCutChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), "ACP_CUT_DIR="+dir, fmt.Sprintf("ACP_CUT=%d %d %d", seed, at, part))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	ops := script(seed)
	done, whole := 0, true
	for line := range strings.Lines(string(out)) {
		switch {
		case strings.HasPrefix(line, "ack"):
			done++
		case line == "whole false\n":
			whole = false
		}
	}
	killed = err != nil
	if killed != (done < len(ops)) {
		t.Errorf("the process has ended with %v after %d of %d operations: %s", err, done, len(ops), out)
		return killed, 0
	}
	before := kept{}
	for _, op := range ops[:done] {
		before = before.after(op)
	}
	possible := []kept{before}
	if killed {
		op := ops[done]
		for n := range op.texts { // the first of several updates may be there
			some := op
			some.texts = op.texts[:n]
			possible = append(possible, before.after(some))
		}
		possible = append(possible, before.after(op))
	}

	var reports []sessionstore.Damage
	store, err := sessionstore.Open(dir, &sessionstore.Options{Damaged: func(d sessionstore.Damage) { reports = append(reports, d) }})
	if err != nil {
		t.Error(err)
		return killed, 0
	}
	defer store.Close()
	got := readAll(t, store)
	if !slices.ContainsFunc(possible, got.equal) {
		t.Errorf("after %d operations there is %.300q\nwant one of %.900q", done, got, possible)
	}
	if expect := killed && !whole && ops[done].kind == "append"; (len(reports) == 1) != expect {
		t.Errorf("reported are %v; is a line torn: %v", reports, expect)
	}
	for _, report := range reports {
		if !report.Torn || report.Length == 0 {
			t.Errorf("reported is %+v", report)
		}
	}
	torn = len(reports)

	// It is used on.
	for id := range got {
		more := operation{kind: "append", id: id, texts: []string{"more"}}
		got = got.after(more)
		if err := more.do(t.Context(), store); err != nil {
			t.Error(err)
		}
	}
	reports = nil
	if now := readAll(t, store); !now.equal(got) || len(reports) != 0 {
		t.Errorf("later there is %.300q, want %.300q; reported are %v", now, got, reports)
	}
	if killed && ops[done].kind == "delete" || killed && ops[done].kind == "create" {
		create := operation{kind: "create", id: ops[done].id, title: "later"}
		if _, there := got[create.id]; !there {
			if err := create.do(t.Context(), store); err != nil {
				t.Error(err)
			}
			if now := readAll(t, store); !now.equal(got.after(create)) {
				t.Errorf("made again, there is %.300q", now)
			}
		}
	}
	return killed, torn
}
