package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/internal/test/must"
)

// writeBinary is the command "binary FILE": it writes a file that is not text.
func writeBinary(ts *testscript.TestScript, _ bool, args []string) {
	var text []byte
	for i := range 4096 {
		text = append(text, byte(i*7), 0)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o644))
}

// writeBinaryLine is the command "binary-line FILE FROM": it writes a copy of a file whose third line is not text.
func writeBinaryLine(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.SplitAfter(ts.ReadFile(args[1]), "\n")
	lines = slices.Insert(lines, 2, "\x00\x01\xff\xfe\x00\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "")), 0o644))
}

// serveRegistry is the command "registry FOLDER": it starts serving a directory as the registry of agents. In
// registry.json {url} stands for its URL, and {platform} for this system.
func serveRegistry(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/registry.json" {
			http.ServeFileFS(w, r, os.DirFS(dir), strings.TrimPrefix(r.URL.Path, "/"))
			return
		}
		text, err := os.ReadFile(filepath.Join(dir, "registry.json"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, strings.NewReplacer("{url}", "http://"+r.Host, "{platform}", registry.Platform()).Replace(string(text)))
	}))
	ts.Defer(server.Close)
	ts.Setenv("ACP_REGISTRY_URL", server.URL+"/registry.json")
}

// expectStatus is the command "status N acp …": it runs a program, which must exit with status N.
func expectStatus(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM [ARG…]")
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", args[1], got, want)
	}
}

// The beginning of a recording, and one message of it that breaks a requirement.
const (
	header  = `{"recording":1,"tool":"acp","date":"2026-01-02T15:04:05Z"}` + "\n"
	request = `{"t":0,"from":"client","raw":"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,\"clientCapabilities\":{},\"clientInfo\":{\"name\":\"editor\",\"version\":\"1.0\"}}}"}` + "\n"
	banner  = `{"t":1,"from":"agent","raw":"Loading models"}` + "\n"
	end     = `{"t":9,"exit":{"code":0,"signal":null}}` + "\n"
)

// write writes a file in a directory of the test.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(name, text, 0o644))
	return name
}

// expectExit checks how a program exited.
func expectExit(t *testing.T, err error, want int) {
	t.Helper()
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() { // as a shell counts
			got = 128 + int(status.Signal())
		}
	} else if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("exit status %d, want %d (%v)", got, want, err)
	}
}
