package browser

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// TestTap watches the TypeScript client and an agent: the client starts the command that acp inspect --listen prints.
func TestTap(t *testing.T) {
	need(t)
	const programs = "../../../../../conformance/interop/"
	folder := npmtest.Folder{Files: []string{programs + "*.mjs", programs + "package.json", programs + "package-lock.json"}}
	t.Cleanup(folder.Remove)
	dir := folder.Dir(t)
	agent := buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor")
	out, inspecting := command(t, buildtest.Program(t, "github.com/acpgo/sdk/cmd/acp"), "inspect", "--listen", "--", agent)
	p := newTab(t, wide)
	p.open(out.line())
	p.see("Connected")

	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("one\ntwo\n"), 0o600))
	plan, err := json.Marshal(map[string]string{
		"root": root, "allow": "Make a plan, think, read notes.txt, edit notes.txt, and run `cat notes.txt`.",
		"reject": "Now edit notes.txt, and run `cat notes.txt` again.", "long": "Write a very long story.",
	})
	must.Do(t, err)
	client := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "client.mjs"), string(plan), inspecting.Path, "inspect", "--connect", "--", agent)
	client.Env = inspecting.Env
	text, err := client.CombinedOutput()
	if err != nil {
		t.Fatalf("the client: %v\n%s", err, text)
	}
	p.until(`document.querySelector(".row.end:not([hidden])")`)
	p.see("No findings")
	p.click("[role=tab]", "Capabilities")
	p.see("fs/read_text_file × ")
	p.click("[role=tab]", "Conversation")
	p.see("Make a plan, think, read notes.txt")
	if strings.Contains(eval[string](p, `document.body.className`), "live") {
		t.Error("the page offers to talk to the agent of another client")
	}
}
