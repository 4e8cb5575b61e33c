//go:build linux || darwin

package terminal

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A person works with examples/coder and the fake model of --model-stub. The judge finds nothing in the recording.
func TestRunCoder(t *testing.T) {
	tier.Need(t, tier.Nightly) // make heavy runs it: the program takes minutes to compile
	acp := acpPath(t)
	coder := buildtest.Program(t, "../../../../examples/coder")
	t.Cleanup(buildtest.Remove)
	home, dir := t.TempDir(), t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	must.Do(t, os.WriteFile(notes, []byte("the notes\n"), 0o600))
	recording := filepath.Join(home, "run.jsonl")
	cmd := exec.Command(acp, "run", "--record", recording, "--model-stub", "--", coder, "-state", filepath.Join(home, "state"))
	cmd.Dir = dir
	cmd.Env = screen.Env("HOME=" + home)
	x := screen.Start(t, cmd, 100, 40)
	x.Wait(" ready ")
	x.Type("read the file notes.txt\r")
	x.Wait("The file says: the notes")
	x.Type("edit the file notes.txt and append the line \"the end\"\r")
	x.Wait("Coder asks for permission", "the end", "Always allow")
	x.Gone("Ctrl-G: answer")
	time.Sleep(view.Delay + 100*time.Millisecond) // a person's time to read
	x.Press("y")
	x.Wait("Done.")
	x.Press("ctrl+d")
	x.Leave(statusOK)
	if text, err := os.ReadFile(notes); err != nil || string(text) != "the notes\nthe end\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if out, err := exec.CommandContext(t.Context(), acp, "check", "--level", "advice", recording).CombinedOutput(); err != nil {
		t.Errorf("acp check: %v\n%s", err, out)
	}
}
