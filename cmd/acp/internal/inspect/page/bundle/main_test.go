package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// TestCurrent checks that the committed files are those of the sources.
func TestCurrent(t *testing.T) {
	files := must.Get(bundle(".."))(t)
	if len(files) != 3 {
		t.Errorf("%d files, want index.html, app.js and app.css", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../dist", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("dist/%s is not current: run go generate in cmd/acp/internal/inspect/page (%v)", name, err)
		}
	}
}

// TestTypes checks the sources with TypeScript's compiler.
func TestTypes(t *testing.T) {
	folder := npmtest.Folder{Files: []string{"../package.json", "../package-lock.json", "../tsconfig.json", "../*.ts"}}
	defer folder.Remove()
	tsc := exec.CommandContext(t.Context(), "npx", "--no-install", "tsc", "--pretty", "false")
	tsc.Dir = folder.Dir(t)
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
}
