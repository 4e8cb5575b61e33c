//go:build unix

package input

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
)

// TestPipes: a named pipe without a peer is an error at once; one with a peer is read and written.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	if text, err := ReadFile(pipe, 100); err == nil || !strings.Contains(err.Error(), "without a writer") {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := Create(pipe); err == nil || !strings.Contains(err.Error(), "without a reader") {
		t.Errorf("written: %v", err)
	}
	other, err := os.OpenFile(pipe, os.O_RDWR, 0) // opening it for reading and writing does not need a peer
	must.Do(t, err)
	out := must.Get(Create(pipe))(t)
	must.Get(io.WriteString(out, "hello"))(t)
	out.Close()
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // keeps what is written
	must.Do(t, err)
	defer reader.Close()
	other.Close()
	if text, err := ReadFile(pipe, 5); err != nil || string(text) != "hello" {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestBound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte("hello"), 0o600))
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
		t.Error("a directory")
	}
}

// TestOpen: a pipe is read as data arrives, but not forever; devices and directories are not read at all.
func TestOpen(t *testing.T) {
	for path, want := range map[string]string{"/dev/zero": "a device", "/dev/random": "a device", t.TempDir(): "a directory", "/none/x": "no such file"} {
		if file, err := Open(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, file, err)
		}
	}
	kernel := "/proc/kmsg" // only root may read it
	if file, err := os.Open(kernel); err == nil {
		file.Close()
		if _, err := Open(kernel); err == nil || !strings.Contains(err.Error(), "a device") {
			t.Errorf("%s: %v", kernel, err)
		}
	}
	if file, err := Open(os.DevNull); err != nil {
		t.Error(err)
	} else if text, err := io.ReadAll(file); len(text) > 0 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	file := must.Get(Open(pipe))(t)
	if text, err := io.ReadAll(file); err == nil || !strings.Contains(err.Error(), "without a writer") {
		t.Errorf("%q, %v", text, err)
	}
	file.Close()

	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // opening it for reading and writing does not need a peer
	must.Do(t, err)
	defer writer.Close()
	if file, err = Open(pipe); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	buf := make([]byte, 10)
	for _, part := range []string{"one", "two"} {
		must.Get(writer.WriteString(part))(t)
		if n, err := file.Read(buf); err != nil || string(buf[:n]) != part {
			t.Errorf("%q, %v", buf[:n], err)
		}
	}
	defer func(before time.Duration) { patience = before }(patience)
	patience = time.Millisecond
	if n, err := file.Read(buf); err == nil || !strings.Contains(err.Error(), "no data") {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
