//go:build linux || darwin

package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
	"github.com/acpgo/sdk/internal/test/must"
)

// play is acp run in a terminal.
type play struct {
	*screen.Terminal

	t    testing.TB
	dir  string // the directory of the program and the agent
	home string
	gate *os.File
}

// staging configures a play. The zero value is acp run in 80 columns and 24 rows.
type staging struct {
	command    []string // of acp, with its flags; default: run
	agent      []string // flags of the agent
	named      bool     // the command names the agent, or leaves it to the configuration
	env        []string
	cols, rows int
	prepare    func(p *play, cmd *exec.Cmd) // before the program starts
}

// newPlay makes the directories of a play.
func newPlay(t testing.TB) *play {
	t.Helper()
	// Paths appear on the screen, so all have the same length and are short enough for one line.
	base := ""
	for base == "" {
		path := fmt.Sprintf("/tmp/ap-%04x", rand.Uint32N(1<<16))
		if err := os.Mkdir(path, 0o700); err == nil {
			base = path
		} else if !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	p := &play{t: t, dir: base + "/work", home: base + "/home"}
	for _, dir := range []string{p.dir, p.home, p.dir + "/docs"} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	t.Cleanup(func() { must.Do(t, os.RemoveAll(base)) })
	for name, text := range map[string]string{
		"notes.txt": "Buy milk.\n", "main.go": before, "docs/guide.md": "# Guide\n", "pixel.png": "\x89PNG\r\n\x1a\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	gate := base + "/gate"
	must.Do(t, syscall.Mkfifo(gate, 0o600))
	var err error
	if p.gate, err = os.OpenFile(gate, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.gate.Close() })
	return p
}

// begin starts the program.
func begin(t *testing.T, s staging) *play {
	t.Helper()
	p := newPlay(t)
	if len(s.command) == 0 {
		s.command = []string{"run"}
	}
	if !s.named {
		s.command = append(append(slices.Clip(s.command), "--", "stage"), s.agent...)
	}
	p.start(s)
	return p
}

// start starts the program of a staging, whose command is complete.
func (p *play) start(s staging) {
	p.t.Helper()
	cmd := exec.Command(acpPath(p.t), s.command...)
	cmd.Dir = p.dir
	cmd.Env = screen.Env(append([]string{"HOME=" + p.home, gateVariable + "=" + p.gate.Name()}, s.env...)...)
	if s.prepare != nil {
		s.prepare(p, cmd)
	}
	if s.cols == 0 {
		s.cols, s.rows = 80, 24
	}
	p.Terminal = screen.Start(p.t, cmd, s.cols, s.rows)
}

// ready starts the program and waits for its session.
func ready(t *testing.T, s staging) *play {
	t.Helper()
	t.Parallel()
	p := begin(t, s)
	p.Wait(" ready ")
	return p
}

// say types a prompt and sends it.
func (p *play) say(text string) {
	p.t.Helper()
	p.Type(text)
	p.Wait(text)
	p.Press("enter")
}

// answered waits for a text of the agent, and for the end of its turn.
func (p *play) answered(texts ...string) {
	p.t.Helper()
	p.Wait(append(texts, " ready ")...)
}

// open opens the gate of the agent once.
func (p *play) open() {
	p.t.Helper()
	must.Get(p.gate.Write([]byte{'.'}))(p.t)
}

// masks mask what differs between two runs.
var masks = []screen.Mask{
	{Pattern: regexp.MustCompile(`/tmp/ap-[0-9a-f]{4}`), With: "/tmp/ap-####"},
	{Pattern: regexp.MustCompile(`working [0-9.]+m?s`), With: "working 0s"},
}

// shows compares the screen with a file of testdata/screens.
func (p *play) shows(name string) {
	p.t.Helper()
	if *pictures != "" {
		must.Do(p.t, os.WriteFile(filepath.Join(*pictures, name+".svg"), []byte(picture(p.Settled(), name)), 0o644))
		return
	}
	p.Golden(filepath.Join("testdata/screens", name+".txt"), *update, masks...)
}

// quit quits the program, which must leave nothing behind.
func (p *play) quit() {
	p.t.Helper()
	p.Press("ctrl+d")
	p.Leave(0)
}
