//go:build linux || darwin

package screen

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "write testdata anew")

func sh(t *testing.T, script string, cols, rows int) *Terminal {
	t.Helper()
	return Start(t, exec.Command("sh", "-c", script), cols, rows)
}

// The output of a program appears on the screen, with its styles.
func TestGolden(t *testing.T) {
	t.Parallel()
	x := sh(t, `printf '\033[?1049h\033[?25l\033[?2004h\033[?1006h\033]0;a title\007'
printf '\033[2J\033[H\033[1;31mred\033[0m plain \033[38;2;1;2;3mrgb\033[48;5;200m on\033[0m\n\033[7mreverse\033[m   '
printf '\033[4;1Hwide: 世界 😀|\n'; read -r line`, 40, 6)
	x.Wait("wide: 世界 😀|", "reverse")
	x.Golden("testdata/golden.txt", *update)
	if style, ok := x.Frame().Style("red"); style != "bold red" || !ok {
		t.Errorf("%q %v", style, ok)
	}
	x.Press("enter")
	if left := x.End().Left; !slices.Equal(left, []string{"alternate screen on", "bracketed paste on", "cursor off", "mouse (SGR) on"}) {
		t.Errorf("left: %q", left)
	}
}

// A program that restores the terminal leaves nothing behind; one that changes the settings of the line does.
func TestLeave(t *testing.T) {
	t.Parallel()
	x := sh(t, `stty -echo raw; printf '\033[?1049h\033[?25lready'; dd bs=1 count=1 2>/dev/null; printf '\033[?1049l\033[?25h'; stty sane; exit 3`, 80, 24)
	x.Wait("ready")
	x.Press("ctrl+c") // a key for a program in raw mode
	end := x.End()
	if end.State.ExitCode() != 3 || len(end.Frame.Changed()) > 0 {
		t.Errorf("%v %q", end.State, end.Frame.Changed())
	}
	x = sh(t, `stty -echo; printf '\033[>1u\033[>4;2m\033[?2026h\033[2;5r'`, 80, 24)
	end = x.End()
	if len(end.Left) != 5 || !strings.Contains(strings.Join(end.Left, ","), "the line: ") {
		t.Errorf("left: %q", end.Left)
	}
	sh(t, `printf '\033[>1u\033[>4;2m\033[?2026h\033[2;5r\033[<u\033[>4;0m\033[?2026l\033[r'`, 80, 24).Leave(0)
}

// Signals, changes of the size, and keys reach a program.
func TestSignals(t *testing.T) {
	t.Parallel()
	x := sh(t, `trap 'stty size; echo done' WINCH; trap 'echo interrupted' INT; trap 'echo bye; exit 9' TERM; echo started; while :; do read -r line && echo "got $line"; done`, 30, 5)
	x.Wait("started")
	x.Resize(50, 8)
	if f := x.Wait("8 50", "done"); f.Cols != 50 || f.Rows != 8 {
		t.Errorf("%d %d", f.Cols, f.Rows)
	}
	x.Type("hello")
	x.Press("enter")
	x.Wait("got hello")
	x.Press("ctrl+c")
	x.Wait("interrupted")
	x.Signal(syscall.SIGTERM)
	x.Press("enter")
	x.Wait("bye")
	x.Leave(9)
}

// A terminal answers the queries of a program.
func TestReplies(t *testing.T) {
	t.Parallel()
	x := sh(t, `stty raw -echo; printf 'abc\033[6n'; dd bs=1 count=6 2>/dev/null | od -c | head -1; stty sane`, 60, 5)
	x.Wait(`033   [   1   ;   4   R`)
	x.End()
}

// A hangup ends a program and all processes that it started; a process that hides from the hangup is found.
func TestProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: processes are found on Linux only")
	}
	t.Parallel()
	x := sh(t, `sleep 1000 & setsid sh -c 'trap "" HUP; echo ready; exec sleep 1000' & wait`, 80, 24)
	x.Wait("ready")
	if got := len(x.Processes()); got != 3 {
		t.Errorf("%d processes, want the shell and two", got)
	}
	x.Hangup()
	end := x.End()
	if got := end.State.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGHUP {
		t.Errorf("ended by %v", end.State)
	}
	left := x.Processes()
	for end := time.Now().Add(Deadline); len(left) != 1 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = x.Processes() // processes take a while to end after the hangup
	}
	if len(left) != 1 {
		t.Fatalf("%v are left, want one", left)
	}
	must.Do(t, syscall.Kill(left[0], syscall.SIGKILL))
}

// Lines that were scrolled away are kept, and lines that the terminal broke are joined.
func TestHistory(t *testing.T) {
	t.Parallel()
	x := sh(t, `for i in 1 2 3 4 5 6 7 8 9; do echo "line $i is longer than the screen"; done`, 12, 4)
	x.End()
	if got := x.History(); strings.Count(got, "is longer than the screen\n") != 9 {
		t.Errorf("%s", got)
	}
}

// Effects of a program other than drawing are recorded.
func TestCommands(t *testing.T) {
	t.Parallel()
	x := sh(t, `printf '\033]52;c;aGk=\007\033]2;evil\033\\\007\033]8;;http://x/\007link\033]8;;\007\033c'`, 80, 24)
	want := []string{"osc 52 c;aGk=", "title evil", "bell", "osc 8 ;http://x/", "osc 8 ;", "reset"}
	if got := x.End().Frame.Commands; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestSequences(t *testing.T) {
	raw := []byte("a\x1b[1mb\x1b[31;4mc\x1b[?25l\x1b]0;t\ad\x1bPq\x1b\\e\x1b(Bf\xc2\x9bg\r\n\x1b[3;4H世")
	want := []string{"\n", "\r", "\x1b(B", "\x1bPq\x1b\\", "\x1b[?25l", "\x1b[H", "\x1b[m", "\x1b]0;…\a", "\xc2\x9b"}
	if got := Sequences(raw, true); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := Sequences(raw, false); len(got) != 10 {
		t.Errorf("%q", got)
	}
}

func TestStrange(t *testing.T) {
	raw := []byte("a 世界 e\u0301 \x1b[1mb\x1b[0m\u202e\xff\u200b\u202e👩\u200d💻\ufffd\xc2\x9b")
	if got, want := Strange(raw), []string{`"\u202e"`, `"\xff"`, `"\u200b"`}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// The directory of the emulator is removed once it runs.
func TestEmulatorLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	need(t)
	e := must.Get(startEmulator())(t)
	term := must.Get(e.open(10, 2, func([]byte) {}))(t)
	must.Do(t, e.close(term))
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q %v", left, err)
	}
}
