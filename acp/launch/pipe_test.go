//go:build unix

package launch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp/launch"
)

// TestDoctorPipe: an examination does not wait for what nobody writes, nor read without end.
func TestDoctorPipe(t *testing.T) {
	requireShell(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "agent")
	if err := syscall.Mkfifo(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if d := launch.Doctor(t.Context(), launch.New(program), nil); !d.Has(launch.NotExecutable) {
		t.Errorf("a pipe is a program: %v", d)
	}
	for name, make := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"too long": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := make(filepath.Join(dir, "package.json")); err != nil {
				t.Fatal(err)
			}
			script := write(t, filepath.Join(dir, "node"), "#!/bin/sh\necho v1.0.0\n", 0o700)
			d := launch.Doctor(t.Context(), launch.New(script, filepath.Join(dir, "node")), nil)
			if d.Has(launch.WrongNode) || d.Agent != nil {
				t.Error(d)
			}
		})
	}
}

// TestProblemIsClean: nothing that a program has written reaches the terminal as it is.
func TestProblemIsClean(t *testing.T) {
	text := launch.Problem{Kind: launch.Exited, Text: "it says: \x1b[2J\n::error::x", Advice: "do\x07\r\u202e"}.String()
	if strings.ContainsAny(text, "\x1b\x07\r\u202e") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
}
