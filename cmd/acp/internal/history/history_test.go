package history

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

func newFile(t *testing.T) *File {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	f := must.Get(For("/work"))(t)
	return f
}

func load(t *testing.T, f *File) []Prompt {
	t.Helper()
	prompts := must.Get(f.Load())(t)
	return prompts
}

func TestKept(t *testing.T) {
	f := newFile(t)
	if got := load(t, f); len(got) != 0 {
		t.Fatalf("at first: %v", got)
	}
	want := []Prompt{{Text: "one"}, {Text: "two\nlines \x1b é"}, {Text: "[pasted text 1: 30 lines]", Pasted: []string{strings.Repeat("line\n", 30)}}}
	for _, p := range want {
		must.Do(t, f.Add(p))
	}
	if got := load(t, f); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	other := must.Get(For("/other"))(t)
	if got := load(t, other); len(got) != 0 {
		t.Fatalf("of another directory: %v", got)
	}
	must.Do(t, other.Add(Prompt{Text: "elsewhere"}))
	if got := load(t, f); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v: others may read it", info.Mode(), err)
	}
}

// TestBounded: the newest prompts are kept, however many there were.
func TestBounded(t *testing.T) {
	f := newFile(t)
	long := strings.Repeat("x", 2000)
	for i := 0; i < 3000; i += 50 {
		var some []Prompt
		for j := range 50 {
			some = append(some, Prompt{Text: fmt.Sprint(i+j, long)})
		}
		must.Do(t, f.Add(some...))
		if info, err := os.Stat(f.path); err != nil || info.Size() > maxBytes {
			t.Fatalf("%d bytes, %v", info.Size(), err)
		}
	}
	got := load(t, f)
	if len(got) < 100 || got[len(got)-1].Text != "2999"+long {
		t.Fatalf("%d are left, the last is %.10q", len(got), got[len(got)-1].Text)
	}
	for i, p := range got {
		if want := fmt.Sprint(3000-len(got)+i, long); p.Text != want {
			t.Fatalf("%d is %.10q, want %.10q", i, p.Text, want)
		}
	}
	must.Do(t, f.Add(Prompt{Text: strings.Repeat("y", maxPrompt)}))
	if again := load(t, f); len(again) != len(got) {
		t.Fatal("a prompt without bounds was kept")
	}
}

// TestDamaged: what a killed process leaves behind damages only its own line.
func TestDamaged(t *testing.T) {
	f := newFile(t)
	must.Do(t, f.Add(Prompt{Text: "one"}))
	file := must.Get(os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0))(t)
	must.Get(file.WriteString("\n\xff\x00nothing\n[]\n{\"text\":\"to"))(t)
	file.Close()
	must.Do(t, f.Add(Prompt{Text: "two"}))
	if got := load(t, f); !reflect.DeepEqual(got, []Prompt{{Text: "one"}, {Text: "two"}}) {
		t.Fatalf("got %q", got)
	}
}

// TestTwoProcesses: nothing is lost when several processes add and shorten at once.
func TestTwoProcesses(t *testing.T) {
	const processes, each = 4, 100
	if who := os.Getenv("HISTORY_TEST"); who != "" {
		f := must.Get(For("/work"))(t)
		for i := range each {
			must.Do(t, f.Add(Prompt{Text: fmt.Sprint(who, " ", i), Pasted: []string{strings.Repeat("p", 4000)}}))
		}
		return
	}
	f := newFile(t)
	var running sync.WaitGroup
	for i := range processes {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestTwoProcesses$")
		cmd.Env = append(os.Environ(), fmt.Sprint("HISTORY_TEST=p", i))
		running.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	running.Wait()
	next := map[string]int{}
	for _, p := range load(t, f) {
		who, number, _ := strings.Cut(p.Text, " ")
		if want, seen := next[who]; seen && number != fmt.Sprint(want) {
			t.Fatalf("of %s, %s follows %d", who, number, want-1)
		}
		var n int
		must.Get(fmt.Sscan(number, &n))(t)
		next[who] = n + 1
	}
	last := 0
	for _, n := range next {
		last = max(last, n)
	}
	if last != each {
		t.Errorf("the newest prompt is missing: %v", next)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(f.path), ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
