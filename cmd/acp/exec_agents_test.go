package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// serveModel serves the fake model for an agent in a new folder, and returns that, a folder in it with a file, for the
// agent to work in, and the model. All of the agents share its home.
func serveModel(t *testing.T, preset string) (dir, work string, model *fakeModel) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	if model, err = (&modelFlags{preset: preset}).serve(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must.Do(t, model.close()) })
	for i, variable := range model.env {
		model.env[i] = strings.ReplaceAll(variable, "{home}", model.home)
	}
	work = filepath.Join(dir, probe.Work, "1") // below the folder that the model looks for in prompts
	must.Do(t, os.MkdirAll(work, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(work, "notes.txt"), []byte("one\n"), 0o644))
	return dir, work, model
}

// agentEnviron is what agents get of the environment.
func agentEnviron() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "TMPDIR=" + os.TempDir()}
}

// TestExecRealAgents talks to agents from npm, whose model is fake and on this machine: text, JSON, exit statuses, and
// recordings that acp check reads. The findings in those must be what is known of the agents.
func TestExecRealAgents(t *testing.T) {
	commands := npmtest.Agents(t)
	for _, f := range []struct {
		name   string
		finds  []string // what acp check finds; docs/reference/real-agents.md says why
		login  bool     // whether it needs one
		goesOn bool     // whether it can continue with a session
	}{
		{"claude", []string{"PRM-6"}, true, true},
		{"opencode", []string{"CFG-19"}, false, true},
		{"gemini", []string{"CFG-19", "EXT-2", "PRM-6"}, true, false},
		{"qwen", []string{"EXT-2", "EXT-3", "PRM-6"}, true, true},
	} {
		t.Run(f.name, func(t *testing.T) {
			dir, work, model := serveModel(t, f.name)
			notes := filepath.Join(work, "notes.txt")
			environ := model.env
			acp := func(want int, args ...string) (string, string) {
				t.Helper()
				c := exec.CommandContext(t.Context(), "acp", args...)
				c.Dir = work
				c.Env = slices.Concat(agentEnviron(), environ)
				var out, errs bytes.Buffer
				c.Stdout, c.Stderr = &out, &errs
				began := time.Now()
				err := c.Run()
				t.Logf("%s: %.1f s, status %d", strings.Join(args[:min(len(args), 8)], " "), time.Since(began).Seconds(), c.ProcessState.ExitCode())
				if c.ProcessState.ExitCode() != want {
					t.Errorf("%v, want status %d\n%s%s", err, want, errs.String(), out.String())
				}
				return out.String(), errs.String()
			}
			run := func(want int, args ...string) (string, string) {
				t.Helper()
				return acp(want, slices.Concat([]string{"exec"}, args, []string{"--"}, commands[f.name])...)
			}

			// Text: what the agent says on standard output, what it does on standard error, and the file is edited.
			recording := filepath.Join(dir, "run.jsonl")
			out, errs := run(statusOK, "--allow", "--record", recording, `Read the file notes.txt, then edit the file notes.txt: append the line "two".`)
			if strings.TrimSpace(out) == "" || !strings.Contains(errs, "completed") {
				t.Errorf("text:\n%s%s", out, errs)
			}
			if text, err := os.ReadFile(notes); err != nil || !strings.Contains(string(text), "two") {
				t.Errorf("notes.txt: %q, %v\n%s%s", text, err, out, errs)
			}

			// The recording is read to its end, and what the judge finds is known.
			var report struct {
				Readable bool
				Rules    []struct{ ID string }
			}
			status := statusOK
			if len(f.finds) > 0 {
				status = statusFindings
			}
			out, _ = acp(status, "check", "--format", "json", recording)
			if err := json.Unmarshal([]byte(out), &report); err != nil || !report.Readable {
				t.Errorf("%v: %s", err, out)
			}
			var finds []string
			for _, rule := range report.Rules {
				finds = append(finds, rule.ID)
			}
			if slices.Sort(finds); !slices.Equal(finds, f.finds) {
				t.Errorf("the judge finds %q, want %q\n%s", finds, f.finds, out)
			}

			// JSON: each line is an object; the first and the last are ours, and so are the answers about permission.
			out, _ = run(statusOK, "--deny", "--format", "json", `Edit the file notes.txt: append the line "three".`)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			for i, line := range lines {
				var m map[string]json.RawMessage
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Errorf("line %d: %v: %s", i, err, line)
				}
				member := "update"
				switch i {
				case 0:
					member = "session"
				case len(lines) - 1:
					member = "result"
				}
				if m[member] == nil && (member != "update" || m["permission"] == nil) {
					t.Errorf("line %d has no %s: %s", i, member, line)
				}
			}
			if text, err := os.ReadFile(notes); err != nil || strings.Contains(string(text), "three") {
				t.Errorf("notes.txt: %q, %v", text, err)
			}

			// Quiet: the last message alone.
			if out, errs = run(statusOK, "--format", "quiet", "Read the file notes.txt."); strings.TrimSpace(out) == "" || errs != "" {
				t.Errorf("quiet: %q, %q", out, errs)
			}

			// A server of MCP: its tool is called, and the model repeats the result. Others are still connecting in the first turn.
			if f.name == "claude" {
				server := "probe=acp " + mcpCommand + " '" + filepath.Join(dir, "mcp.log") + "'"
				out, errs = run(statusOK, "--allow", "--mcp", server, `Call the MCP tool acp_probe with "x".`)
				if !strings.Contains(out, "The tool says: ") || !strings.Contains(out, "Nothing was done.") {
					t.Errorf("MCP: %s%s", out, errs)
				}
			}

			// Statuses: the time passes, and a mode that is not there.
			run(statusTimeout, "--timeout", "8s", "Tell me a long story.")
			run(statusUsage, "--mode", "no such mode", "Hello")

			// A session continues.
			if f.goesOn {
				run(statusOK, "--session", "work", "--format", "quiet", "Hello")
				if out, _ = run(statusOK, "--session", "work", "--format", "json", "Hello again"); !strings.Contains(out, `"resumed":true`) {
					t.Errorf("the session does not go on: %s", out)
				}
			}

			// Without the model there is no key.
			if f.login {
				environ = []string{"HOME=" + t.TempDir()}
				if _, errs = run(statusLogin, "Hello"); !strings.Contains(errs, "requires you to log in") {
					t.Error(errs)
				}
			}
		})
	}
}
