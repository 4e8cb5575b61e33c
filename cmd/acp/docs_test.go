package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// manuals are the pages whose commands are run.
var manuals = []string{"acp.md", "exec.md"}

// TestManual runs the commands of the pages on the files of testdata/docs, and compares the output. my-agent is
// kit-agent.
func TestManual(t *testing.T) {
	tier.Need(t, tier.Normal)
	agent := must.Get(kitAgent())(t)
	for _, page := range manuals {
		t.Run(page, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, os.CopyFS(dir, os.DirFS("testdata/docs")))
			bin := t.TempDir()
			must.Do(t, os.Symlink(agent, filepath.Join(bin, "my-agent")))
			env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
			for _, name := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
				env = append(env, "XDG_"+name+"_HOME=")
			}
			runManual(t, filepath.Join("../../docs", page), dir, env)
		})
	}
}

func runManual(t *testing.T, manual, dir string, env []string) {
	t.Helper()
	text := must.Get(os.ReadFile(manual))(t)
	count := 0
	got := regexp.MustCompile("(?ms)^```console\n(.*?)^```$").ReplaceAllStringFunc(string(text), func(block string) string {
		var b strings.Builder
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "```") {
				b.WriteString(line)
				continue
			}
			command, is := strings.CutPrefix(line, "$ ")
			if !is {
				continue
			}
			count++
			b.WriteString(line)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			if status := cmd.ProcessState.ExitCode(); err != nil && status != statusFindings && status != statusUnasked {
				t.Errorf("%s%v\n%s", line, err, out)
			}
			b.WriteString(strings.ReplaceAll(string(out), dir, "/home/me/project"))
		}
		return b.String()
	})
	if count < 5 {
		t.Fatalf("only %d commands in %s", count, manual)
	}
	if got == string(text) {
		return
	}
	if *update {
		must.Do(t, os.WriteFile(manual, []byte(got), 0o644))
		return
	}
	t.Errorf("the commands of %s print something else; go test . -update writes it", manual)
}

// workflow returns the workflow of a page that begins with a text.
func workflow(t *testing.T, page, begin string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("../..", page)))(t)
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(block[1], begin) {
			return block[1]
		}
	}
	t.Fatalf("%s has no workflow %q", page, begin)
	return ""
}

// checkAction is the action that judges the agent of a test suite.
const checkAction = ".github/actions/check"

// A step is a command of a workflow.
type step struct {
	script string
	env    []string
	always bool // also after a step that has failed
}

// workflowSteps returns the commands of a workflow, with the commands of checkAction in its place.
func workflowSteps(t *testing.T, text string) (steps []step) {
	t.Helper()
	uses := regexp.MustCompile(`(?m)^      - (?:run: (.*)\n(        if: always\(\)\n)?|uses: \./\.acp/` + regexp.QuoteMeta(checkAction) +
		`\n        with: \{agent: (.*), run: (.*)\}$)`)
	for _, found := range uses.FindAllStringSubmatch(text, -1) {
		if found[1] != "" {
			steps = append(steps, step{script: found[1], always: found[2] != ""})
			continue
		}
		action := must.Get(os.ReadFile(filepath.Join("../..", checkAction, "action.yml")))(t)
		inputs := strings.NewReplacer("${{ inputs.agent }}", found[3], "${{ inputs.run }}", found[4], "${{ inputs.flags }}", "")
		for _, one := range strings.Split(string(action), "\n    - ")[1:] {
			head, script, is := strings.Cut(one, "run: |\n")
			if !is {
				continue
			}
			s := step{script: strings.ReplaceAll(script, "        ", ""), always: strings.Contains(head, "!cancelled()")}
			for _, env := range regexp.MustCompile(`(?m)^        ([A-Z]+): (.*)$`).FindAllStringSubmatch(head, -1) {
				s.env = append(s.env, env[1]+"="+inputs.Replace(env[2]))
			}
			steps = append(steps, s)
		}
	}
	return steps
}

// runWorkflow runs the commands of a workflow in a module outside of this one, with this repository in place of its
// checkout. After a failing command it runs only those that always run. It returns their output.
func runWorkflow(t *testing.T, text, dir string, env ...string) (out string, failed bool) {
	t.Helper()
	root := must.Get(filepath.Abs("../.."))(t)
	if !strings.Contains(text, "repository: acpgo/sdk, path: .acp") {
		t.Fatal("the workflow does not check out this repository")
	}
	// With a link instead, every new folder would compile the library again.
	checkout := strings.NewReplacer("=./.acp", "='"+root+"'", " .acp/cmd/acp", " '"+root+"/cmd/acp'")
	bin := filepath.Join(dir, ".bin")
	var b strings.Builder
	for _, s := range workflowSteps(t, text) {
		if failed && !s.always {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", checkout.Replace(s.script))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -vet=off", "GOBIN="+bin, "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"),
			"RUNNER_TEMP="+bin, "GITHUB_ACTION_PATH="+filepath.Join(root, checkAction), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		cmd.Env = append(append(cmd.Env, s.env...), env...)
		printed, err := cmd.CombinedOutput()
		b.WriteString("$ " + s.script + "\n" + string(printed))
		failed = failed || err != nil
	}
	t.Log("\n" + b.String())
	return b.String(), failed
}

// TestCheckAction: the action only runs commands. Another action could change the environment of the user's later
// steps.
func TestCheckAction(t *testing.T) {
	action := must.Get(os.ReadFile(filepath.Join("../..", checkAction, "action.yml")))(t)
	if strings.Contains(string(action), "uses:") || strings.Contains(string(action), "GITHUB_PATH") || strings.Contains(string(action), "GITHUB_ENV") {
		t.Errorf("it changes the environment:\n%s", action)
	}
}

// TestWorkflowGo runs the workflow for Go with an agent of another module. A mistake of the agent makes it fail.
func TestWorkflowGo(t *testing.T) {
	tier.Need(t, tier.Full)
	text := workflow(t, "docs/ci.md", "# Go:")
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("testdata/ci/go")))
	module := "module example.com/parrot\n\ngo 1.26\n\nrequire github.com/acpgo/sdk v0.0.0\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o644))
	if out, failed := runWorkflow(t, text, dir); failed {
		t.Fatal(out)
	}
	agent := filepath.Join(dir, "agent.go")
	replaceIn(t, agent, `"github.com/acpgo/sdk/acp"`, `"github.com/acpgo/sdk/acp"; "github.com/acpgo/sdk/acp/rpc"`)
	replaceIn(t, agent, "return &acp.PromptResponse", `rpc.Notify(ctx, session.RPC(), "parrot/status", nil); return &acp.PromptResponse`)
	if out, failed := runWorkflow(t, text, dir); !failed || !strings.Contains(out, "EXT-3 MUST") {
		t.Errorf("failed: %v\n%s", failed, out)
	}
}

// TestWorkflowAnyLanguage runs the other workflow with an agent on the TypeScript SDK; the only Go program is acp.
func TestWorkflowAnyLanguage(t *testing.T) {
	tier.Need(t, tier.Nightly)
	npmtest.Need(t)
	text := workflow(t, "docs/ci.md", "# Any language:")
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("testdata/ci/typescript")))
	lock := must.Get(os.ReadFile("../../conformance/interop/package-lock.json"))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "package-lock.json"), lock, 0o644))
	for _, banner := range []string{"", "parrot 1.0"} { // an agent that prints one is wrong
		wrong := banner != ""
		out, failed := runWorkflow(t, text, dir, "BANNER="+banner)
		if failed != wrong || wrong && !strings.Contains(out, "MUST NOT  TRN-5") {
			t.Errorf("failed: %v\n%s", failed, out)
		}
		for _, name := range []string{"acp-results/acp.xml", "acp-results/acp.sarif", "summary.md"} {
			written, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
			}
			if name == "summary.md" && strings.Contains(string(written), "TRN-5") != wrong {
				t.Errorf("%s:\n%s", name, written)
			}
		}
	}
}

// TestWorkflowJudgesEveryStart runs the workflow for any language, and the commands for other CI systems, with a test
// suite that starts its agent twice. A banner in only the first start makes both fail.
func TestWorkflowJudgesEveryStart(t *testing.T) {
	tier.Need(t, tier.Full)
	text := workflow(t, "docs/ci.md", "# Any language:")
	page := must.Get(os.ReadFile("../../docs/ci.md"))(t)
	commands := regexp.MustCompile("(?s)```sh\n(go install [^`]*acp check[^`]*)```").FindSubmatch(page)
	if commands == nil {
		t.Fatal("docs/ci.md does not show the commands for other systems")
	}
	suite := strings.NewReplacer("npm ci", "true", "node agent.mjs", "./agent", "npm test", "./suite")
	text = suite.Replace(text)
	var other strings.Builder
	other.WriteString("      # repository: acpgo/sdk, path: .acp\n")
	for line := range strings.Lines(suite.Replace(string(commands[1]))) {
		other.WriteString("      - run: " + line)
	}
	const start = `echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}' | $AGENT >/dev/null` + "\n"
	for _, broken := range []bool{false, true} {
		agent, banner := "#!/bin/sh\nexec ./example\n", ""
		if broken {
			agent, banner = "#!/bin/sh\n$BANNER\nexec ./example\n", "BANNER='echo Welcome' "
		}
		dir := t.TempDir()
		must.Do(t, os.Symlink(must.Get(exampleAgent())(t), filepath.Join(dir, "example")))
		for name, text := range map[string]string{"agent": agent, "suite": "#!/bin/sh\nset -e\nexport BANNER=\n" + strings.Replace(start, "$AGENT", banner+"$AGENT", 1) + start} {
			must.Do(t, buildtest.WriteFile(filepath.Join(dir, name), text, 0o755))
		}
		for _, text := range []string{text, other.String()} {
			out, failed := runWorkflow(t, text, dir)
			if failed != broken || !strings.Contains(out, "run-2.jsonl") || strings.Contains(out, "TRN-5") != broken {
				t.Errorf("failed: %v\n%s", failed, out)
			}
		}
	}
}

// TestWorkflowProbe runs the workflow of docs/probe.md with an agent that prints a banner, first with that failure in
// the baseline and then without it.
func TestWorkflowProbe(t *testing.T) {
	tier.Need(t, tier.Nightly)
	text := workflow(t, "docs/probe.md", "name: acp\n")
	dir := t.TempDir()
	must.Do(t, os.Symlink(must.Get(exampleAgent())(t), filepath.Join(dir, "agent")))
	for name, text := range map[string]string{
		"my-agent": "#!/bin/sh\necho Welcome\nexec ./agent\n", "acp-known.txt": "TRN-5  # it greets its users\n",
	} {
		must.Do(t, buildtest.WriteFile(filepath.Join(dir, name), text, 0o755))
	}
	summary := filepath.Join(dir, "summary.md")
	out, failed := runWorkflow(t, text, dir)
	if failed || !strings.Contains(out, "known fail") || !strings.Contains(out, "known from the baseline: TRN-5") {
		t.Fatal(out)
	}
	if written, err := os.ReadFile(summary); err != nil || !strings.Contains(string(written), "it greets its users") {
		t.Errorf("%v\n%s", err, written)
	}
	replaceIn(t, filepath.Join(dir, "acp-known.txt"), "TRN-5", "# TRN-5")
	out, failed = runWorkflow(t, strings.Replace(text, "acp probe ", "acp probe --only start ", 1), dir)
	if !failed || !strings.Contains(out, "MUSTs that fail: TRN-5") {
		t.Errorf("failed: %v\n%s", failed, out)
	}
	for _, name := range []string{"acp.xml", "summary.md"} {
		if written, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(written), "TRN-5") {
			t.Errorf("%v\n%s", err, written)
		}
	}
}

// replaceIn replaces a text in a file, which must contain it.
func replaceIn(t *testing.T, name, from, to string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q (%v)", name, from, err)
	}
	must.Do(t, os.WriteFile(name, []byte(strings.ReplaceAll(string(text), from, to)), 0o644))
}
