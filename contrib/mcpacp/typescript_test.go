package mcpacp_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
)

// An agent calls the tools of a client on the official TypeScript SDK over ACP: the list and its changes, progress,
// failures, cancellation, resources and prompts. Every message is judged.
func TestTypeScriptProvider_MOA1_MOA2_MOA3_MOA8_MOA12_MOA13_MOA16(t *testing.T) {
	dir := folder.Dir(t)
	prompts := []string{
		"tools\nts__echo {\"message\":\"hi\"}\nts__count\nts__fail\nresources\nprompts", "ts__grow\nawait ts__new\nts__new", "ts__hang", "ts__echo {\"message\":\"the end\"}",
	}
	cmd := exec.Command("node", append([]string{filepath.Join(dir, "client.mjs"), t.TempDir()}, prompts...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	tap := conformance.Tap(t, conformance.Agent, acp.Command(cmd), &conformance.TapOptions{Schema: conformance.V1Unstable()})
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
	if err := agentkit.NewSessions(config(nil)).Serve(t.Context(), tap, opts); err != nil {
		t.Errorf("the connection ended with %v\n%s", err, &stderr)
	}
	type summary struct {
		Supported   bool
		Methods     []string
		Aborted     bool
		StopReasons []string
		Text        string
		Calls       []string
	}
	lines := bytes.Split(bytes.TrimSpace(stderr.Bytes()), []byte("\n"))
	var got summary
	if err := json.Unmarshal(lines[len(lines)-1], &got); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	slices.Sort(got.Methods)
	got.Methods = slices.Compact(got.Methods)
	want := summary{
		Supported: true,
		Methods: []string{
			"prompts/get", "prompts/list", "resources/list", "resources/read", "server/discover", "subscriptions/listen",
			"tools/call", "tools/list",
		},
		Aborted:     true,
		StopReasons: []string{"end_turn", "end_turn", "cancelled", "end_turn"},
		Text: "tools: ts__echo ts__count ts__fail ts__grow ts__hang. result: echo of hi. result: counted. failed: it failed. " +
			"ts note://1: a note. ts greet: Hello. result: grown. result: new. result: echo of the end. ",
		Calls: []string{
			"ts: Echo completed", "ts: count completed", "ts: fail failed", "ts: grow completed", "ts: new completed", "ts: hang failed",
			"ts: Echo completed",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client's summary (-want +got):\n%s", diff)
	}
}
