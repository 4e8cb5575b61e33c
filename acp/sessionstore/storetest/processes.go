package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// Processes configures RunProcesses. Nil, and the zero value of each field, mean the defaults.
type Processes struct {
	// Kills is how many processes are killed while they write. The default is 20.
	Kills int
	// Updates is how many updates each of two processes appends at the same time. The default is 100.
	Updates int
}

const (
	envRole = "ACP_STORETEST_ROLE"
	envDir  = "ACP_STORETEST_DIR"
)

// RunProcesses tests that processes can be killed at any time without losing data that was stored, and that two
// processes can use a store at once. To start processes, it runs the calling test again; in those processes it does not
// return. open must work in both cases.
func RunProcesses(t *testing.T, open Open, opts *Processes) {
	p := Processes{Kills: 20, Updates: 100}
	if opts != nil {
		p.Kills, p.Updates = max(p.Kills, opts.Kills), max(p.Updates, opts.Updates)
	}
	if role := os.Getenv(envRole); role != "" {
		child(t, open, role)
		return
	}
	t.Run("Killed", func(t *testing.T) { (&suite{t, open, t.TempDir()}).killed(p.Kills, t.Name()) })
	t.Run("TwoAtOnce", func(t *testing.T) { (&suite{t, open, t.TempDir()}).twoAtOnce(p.Updates, t.Name()) })
}

// process starts the test again with a role.
func (s *suite) process(name, role string) (*exec.Cmd, io.ReadCloser) {
	s.Helper()
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] { // without the subtest of RunProcesses
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	cmd := exec.CommandContext(s.Context(), os.Args[0], "-test.run="+strings.Join(parts[:len(parts)-1], "/"),
		"-test.count=1")
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+s.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	return cmd, out
}

// child does the work of a process.
func child(t *testing.T, open Open, role string) {
	s := &suite{t, open, os.Getenv(envDir)}
	kind, rest, _ := strings.Cut(role, " ")
	var who, n int
	if _, err := fmt.Sscanf(rest, "%d %d", &who, &n); err != nil {
		t.Fatal(err)
	}
	switch kind {
	case "write":
		s.write(who)
	case "share":
		s.share(who, n)
	}
}

// write appends and changes without end, and reports what it has done. The numbers continue where the previous process
// stopped.
func (s *suite) write(who int) {
	ctx, store := s.Context(), s.store()
	random := rand.New(rand.NewPCG(uint64(who), 1))
	next, count := s.checkStored(ctx, store)
	for {
		n := 1 + random.IntN(3)
		var updates []acp.SessionUpdate
		for range n {
			updates = append(updates, s.padded(next, random.IntN(8_000)))
			next++
		}
		s.must(store.Append(ctx, "s", updates...))
		fmt.Printf("ack append %d\n", next)
		s.must(store.Change(ctx, "s", func(r *sessionstore.Record) error {
			count++
			r.State = json.RawMessage(fmt.Sprint(count))
			r.Title = strings.Repeat("t", random.IntN(1000))
			return nil
		}))
		fmt.Printf("ack change %d\n", count)
		id := acp.SessionID(fmt.Sprintf("other%d", random.IntN(4)))
		s.must(store.Delete(ctx, id))
		s.must(store.Create(ctx, record(id, random.IntN(100))))
		s.must(store.Append(ctx, id, s.padded(0, random.IntN(100))))
	}
}

// padded returns an update from which it can be seen whether it is complete.
func (s *suite) padded(n, length int) acp.SessionUpdate {
	return s.text("%d %d %s", n, length, strings.Repeat("p", length))
}

// checkStored checks the session s and returns how many updates it has, and the count in its state.
func (s *suite) checkStored(ctx context.Context, store sessionstore.Store) (updates, count int) {
	s.Helper()
	all, err := history(ctx, store, "s")
	s.must(err)
	for i, update := range all {
		var n, length int
		line := s.textOf(update)
		if _, err := fmt.Sscanf(line, "%d %d", &n, &length); err != nil || n != i ||
			!strings.HasSuffix(line, " "+strings.Repeat("p", length)) {
			s.Fatalf("update %d is %.60q, %v", i, line, err)
		}
	}
	if r := s.get(ctx, store, "s"); r.State != nil {
		s.must(json.Unmarshal(r.State, &count))
	}
	return len(all), count
}

// killed kills processes one after another while they write. Everything that a process has reported must be stored, and
// at most the operation in progress in addition.
func (s *suite) killed(kills int, name string) {
	ctx := s.Context()
	s.must(s.store().Create(ctx, record("s", 0)))
	random := rand.New(rand.NewPCG(uint64(kills), 2))
	updates, count, acks := 0, 0, 0
	for run := range kills {
		cmd, out := s.process(name, fmt.Sprint("write ", run, " 0"))
		in := bufio.NewScanner(out)
		for left := random.IntN(12); left >= 0 && in.Scan(); left-- {
			acks += s.ack(in.Text(), &updates, &count)
		}
		killed := cmd.Process.Kill()
		var heard strings.Builder
		for in.Scan() { // what it reported before
			acks += s.ack(in.Text(), &updates, &count)
			heard.WriteString(in.Text() + "\n")
		}
		err := cmd.Wait()
		byItself := err == nil || killed != nil || runtime.GOOS != "windows" && cmd.ProcessState.Exited()
		if byItself {
			s.Fatalf("run %d: the process has ended by itself: %v: %s", run, err, heard.String())
		}
		store := s.store()
		gotUpdates, gotCount := s.checkStored(ctx, store)
		if gotUpdates < updates || gotUpdates > updates+3 {
			s.Fatalf("run %d: %d updates are there, and %d were appended", run, gotUpdates, updates)
		}
		if gotCount < count || gotCount > count+1 {
			s.Fatalf("run %d: the count is %d, and %d was kept", run, gotCount, count)
		}
		updates, count = gotUpdates, gotCount
		for _, id := range s.listAll(store, sessionstore.Query{Limit: 2}) {
			all, err := history(ctx, store, id)
			s.must(err)
			if id != "s" && len(all) > 1 {
				s.Fatalf("run %d: %s has the updates of a session that was deleted", run, id)
			}
		}
		s.must(store.Close())
		if updates > 100 { // so that reading does not take most of the time
			store := s.store()
			s.must(store.Delete(ctx, "s"))
			s.must(store.Create(ctx, record("s", 0)))
			s.must(store.Close())
			updates, count = 0, 0
		}
	}
	if acks == 0 {
		s.Fatal("no process has said that it has kept anything: nothing was tested")
	}
}

// ack records what a process reports, and returns how much that is: 1, or 0 for a line that is not a report, or that
// the process could not finish.
func (s *suite) ack(line string, updates, count *int) int {
	var what string
	var n int
	if _, err := fmt.Sscanf(line, "ack %s %d", &what, &n); err != nil {
		return 0
	}
	if what == "append" {
		*updates = max(*updates, n)
	} else {
		*count = max(*count, n)
	}
	return 1
}

// share works on the same session as another process.
func (s *suite) share(who, n int) {
	ctx, store := s.Context(), s.store()
	for i := range n {
		s.must(store.Append(ctx, "s", s.text("%d %d %s", who, i, strings.Repeat("x", i%5000))))
		s.must(store.Change(ctx, "s", increment))
		id := acp.SessionID(fmt.Sprintf("p%d-%d", who, i))
		s.must(store.Create(ctx, record(id, i)))
		if i%2 == 0 {
			s.must(store.Delete(ctx, id))
		}
		if i%10 == 0 {
			_, err := history(ctx, store, "s")
			s.must(err)
			s.listAll(store, sessionstore.Query{Limit: sessionstore.MaxLimit})
		}
	}
	fmt.Println("ack done 1")
}

// twoAtOnce lets two processes work on one session, and on sessions of their own.
func (s *suite) twoAtOnce(n int, name string) {
	ctx, store := s.Context(), s.store()
	s.must(store.Create(ctx, record("s", 0)))
	var commands [2]*exec.Cmd
	var outs [2]io.ReadCloser
	for who := range commands {
		commands[who], outs[who] = s.process(name, fmt.Sprint("share ", who, " ", n))
	}
	for who := range commands {
		said, err := io.ReadAll(outs[who])
		s.must(err)
		if err := commands[who].Wait(); err != nil || !strings.Contains(string(said), "ack done") {
			s.Fatalf("process %d: %v: %s", who, err, said)
		}
	}
	next := [2]int{}
	for _, line := range s.history(store, "s") {
		var who, i int
		if _, err := fmt.Sscanf(line, "%d %d", &who, &i); err != nil {
			s.Fatalf("%.60q: %v", line, err)
		}
		if i != next[who] || !strings.HasSuffix(line, " "+strings.Repeat("x", i%5000)) {
			s.Fatalf("process %d: %.60q comes where %d should", who, line, next[who])
		}
		next[who]++
	}
	if next != [2]int{n, n} {
		s.Errorf("the processes have %v updates, and appended %d each", next, n)
	}
	if got := s.get(ctx, store, "s"); string(got.State) != fmt.Sprint(2*n) {
		s.Errorf("after %d changes the state is %s", 2*n, got.State)
	}
	if all := s.listAll(store, sessionstore.Query{}); len(all) != 1+2*(n/2) {
		s.Errorf("%d sessions are left", len(all))
	}
}
