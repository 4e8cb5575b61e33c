package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// Between the TypeScript client and the TypeScript agent, acp serve and acp connect change no byte.
func TestServeBetweenTypeScriptPrograms(t *testing.T) {
	dir := typescript(t)
	for _, scheme := range []string{"ws", "http"} {
		inner, outer, root := t.TempDir(), t.TempDir(), notes(t)
		g := startGateway(t, nil, append([]string{"--"}, witness(inner, "node", filepath.Join(dir, "agent.mjs"))...)...)
		connect := witness(outer, must.Get(exec.LookPath("acp"))(t), "connect", "--remote-files", "--remote-terminals", g.at(scheme))
		client := exec.Command("node", append([]string{filepath.Join(dir, "client.mjs"), string(turnsPlan(t, root))}, connect...)...)
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", scheme, err, out, g.logged())
		}
		g.end(t)
		compareWitnesses(t, scheme, outer, inner)
	}
}

// The TypeScript SDK's own client for both transports talks to acp serve, with a token.
func TestServeTypeScriptClient(t *testing.T) {
	dir := typescript(t)
	for _, scheme := range []string{"ws", "http"} {
		recorded, root := filepath.Join(t.TempDir(), "run.jsonl"), notes(t)
		g := startGateway(t, []string{"ACP_SERVE_TOKEN=" + secret}, "--",
			must.Get(exec.LookPath("acp"))(t), "record", "-o", recorded, "--", "node", filepath.Join(dir, "agent.mjs"))
		client := exec.Command("node", filepath.Join(dir, "client.mjs"), string(turnsPlan(t, root)), g.at(scheme))
		client.Env = append(client.Environ(), "ACP_INTEROP_TOKEN="+secret)
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", scheme, err, out, g.logged())
		}
		g.end(t)
		conforms(t, scheme, recorded)
	}
}

// acp connect makes the TypeScript server an agent for a client that starts commands.
func TestConnectTypeScriptServer(t *testing.T) {
	dir := typescript(t)
	server := exec.Command("node", filepath.Join(dir, "server.mjs"))
	stdin := must.Get(server.StdinPipe())(t)
	stdout := must.Get(server.StdoutPipe())(t)
	server.Stderr = t.Output()
	must.Do(t, server.Start())
	defer func() {
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		if err := server.Wait(); err != nil {
			t.Error(err)
		}
	}()
	address := firstLine(t, stdout)
	for _, scheme := range []string{"ws", "http"} {
		recorded := filepath.Join(t.TempDir(), "run.jsonl")
		client := exec.Command("node", filepath.Join(dir, "client.mjs"), string(turnsPlan(t, notes(t))),
			must.Get(exec.LookPath("acp"))(t), "record", "-o", recorded, "--", must.Get(exec.LookPath("acp"))(t), "connect", scheme+"://"+address+"/acp")
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", scheme, err, out)
		}
		if scheme == "http" { // its server sends the loaded history and the response on two streams
			conforms(t, scheme, recorded, "--ignore", "SES-6,SES-7")
		} else {
			conforms(t, scheme, recorded)
		}
	}
}

// conforms checks that a recording conforms.
func conforms(t *testing.T, scheme, recorded string, flags ...string) {
	t.Helper()
	out, err := exec.Command(must.Get(exec.LookPath("acp"))(t), append([]string{"check", "--level", "must", recorded}, flags...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), ": conforms (") {
		t.Errorf("%s: %v\n%s", scheme, err, out)
	}
	t.Logf("%s: %s", scheme, out)
}
