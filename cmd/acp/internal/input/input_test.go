//go:build unix

package input

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes: a named pipe with nobody at its other end is an error at once; one with somebody is read and written.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(pipe, 100); err == nil || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := Create(pipe); err == nil || !strings.Contains(err.Error(), "nobody reads") {
		t.Errorf("written: %v", err)
	}
	other, err := os.OpenFile(pipe, os.O_RDWR, 0) // for reading and writing it opens without anybody else
	if err != nil {
		t.Fatal(err)
	}
	out, err := Create(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, "hello"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that what is written is kept
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	other.Close()
	if text, err := ReadFile(pipe, 5); err != nil || string(text) != "hello" {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestBound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(file, 5); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadFile(file, 4); err == nil {
		t.Error("longer than its bound")
	}
	if _, err := ReadFile("/dev/zero", 1<<20); err == nil {
		t.Error("a file without end")
	}
	if _, err := ReadFile(filepath.Dir(file), 10); err == nil {
		t.Error("a folder")
	}
}
