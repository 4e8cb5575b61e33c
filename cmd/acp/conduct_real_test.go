package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// TestConductRealAgents talks to agents from npm, whose model is fake and on this machine, through chains of proxies that
// change nothing. The conversation is that without a chain, and each hop of the trace has the same messages and findings.
func TestConductRealAgents(t *testing.T) {
	commands := npmtest.Agents(t)
	for _, f := range []struct {
		name  string
		finds []string // docs/reference/real-agents.md says why
	}{
		{"claude", nil},
		{"opencode", []string{"CFG-19"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			direct, _ := talkToReal(t, f.name, commands[f.name])
			for proxies := range 4 {
				trace := filepath.Join(t.TempDir(), "trace.jsonl")
				command := []string{"acp", "conduct", "--trace", trace}
				for range proxies {
					command = append(command, "passer")
				}
				talk, passed := talkToReal(t, f.name, slices.Concat(command, []string{"--"}, commands[f.name]))
				if differ := difference(talk, direct); differ != "" {
					t.Errorf("%d proxies: %s", proxies, differ)
				}
				hops := []string{"client"}
				for i := range proxies {
					hops = append(hops, fmt.Sprintf("proxy:%d", i))
				}
				for _, hop := range hops {
					messages, finds := judgeHop(t, trace, hop)
					if messages != passed || !slices.Equal(finds, f.finds) {
						t.Errorf("%d proxies, after %s: %d messages, want %d; findings %q, want %q", proxies, hop, messages, passed, finds, f.finds)
					}
				}
				if !t.Failed() {
					t.Logf("%d proxies: %d messages of the client are the same; %d hops judged", proxies, passed, len(hops))
				}
			}
		})
	}
}

// talkToReal plays turns to an agent, and returns what passed, normalized, and the number of messages.
func talkToReal(t *testing.T, preset string, command []string) (talk []string, passed int) {
	t.Helper()
	dir, work, model := serveModel(t, preset)
	var stderr bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = work, &stderr
	cmd.Env = append(agentEnviron(), model.env...)
	handlers := acp.ClientHandlers{
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			for _, o := range req.Options {
				if o.Kind == acp.PermissionOptionKindAllowOnce {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(o.OptionID)}, nil
				}
			}
			return nil, fmt.Errorf("nothing to allow in %v", req.Options)
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), work)
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	var messages conformance.Recording
	tap := conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{
		OnMessage: messages.Add, Ignore: func(f conformance.Finding) bool { return f.Direction == conformance.ToClient },
	})
	converse := func() error {
		conn, err := acp.Connect(t.Context(), tap, handlers, &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "1"}})
		if err != nil {
			return err
		}
		defer conn.Close()
		session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: work})
		if err != nil {
			return err
		}
		for _, prompt := range []string{
			"Read the file notes.txt.", `Edit the file notes.txt: append the line "two".`, "Run the command `echo hello`.", "Think step by step.",
		} {
			if _, err := session.Prompt(t.Context(), acp.TextBlock(prompt)); err != nil {
				return fmt.Errorf("%s: %w", prompt, err)
			}
		}
		return conn.Close()
	}
	if err := converse(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, &stderr)
	}
	all := messages.Messages()
	return normalizedTalk(all, strings.NewReplacer(dir, "DIR", strings.TrimPrefix(dir, "/"), "DIR", model.home, "HOME")), len(all)
}

// changing is what differs from run to run: ids, times, ports, and what the paths in the prompts cost.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z|` +
	`\b(ses|msg|prt|call|toolu|chatcmpl)_[0-9a-zA-Z]+|127\.0\.0\.1:\d+|("used"|"amount"|[tT]okens"):[0-9.]+|\d{10,}`)

// unordered are updates that agents send when they have time for it, and as often, such as what hooks of Claude Agent report.
var unordered = regexp.MustCompile(`"sessionUpdate":"(available_commands_update|session_info_update|usage_update)"|"claudeCode":\{[^}]*"toolResponse":`)

// normalizedTalk are the messages of each direction without what changes.
func normalizedTalk(messages []conformance.Message, paths *strings.Replacer) []string {
	var all, late []string
	for _, d := range []conformance.Direction{conformance.ToAgent, conformance.ToClient} {
		for _, m := range messages {
			var fields map[string]json.RawMessage
			if m.Direction != d || json.Unmarshal(m.Line, &fields) != nil {
				continue
			}
			delete(fields, "id")
			line, _ := json.Marshal(fields) // it was decoded
			text := d.String() + ": " + changing.ReplaceAllString(paths.Replace(string(line)), "CHANGING")
			if unordered.Match(m.Line) {
				late = append(late, text)
			} else {
				all = append(all, text)
			}
		}
	}
	slices.Sort(late)
	return append(all, slices.Compact(late)...)
}

// difference says how two conversations differ.
func difference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			at := 0
			for at < min(len(g), len(w)) && g[at] == w[at] {
				at++
			}
			at = max(0, at-100)
			return fmt.Sprintf("message %d of %d, want %d\n got %.150s … %.300s\nwant %.150s … %.300s", i, len(got), len(want), g, g[at:], w, w[at:])
		}
	}
	return ""
}

// judgeHop judges the messages that passed after a component, and returns their number and what was found.
func judgeHop(t *testing.T, trace, hop string) (messages int, finds []string) {
	t.Helper()
	file, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := recording.NewReader(file, &recording.ReaderOptions{Hop: hop})
	judge := conformance.NewJudge(nil, nil)
	add := func(findings []conformance.Finding) {
		for _, f := range findings {
			if f.Level <= conformance.ShouldNot && !slices.Contains(finds, f.Rule) {
				finds = append(finds, f.Rule)
			}
		}
	}
	for {
		entry, err := reader.Read()
		if err != nil {
			break
		}
		if entry.Err != nil {
			t.Error(entry.Err)
		}
		if entry.Kind == recording.KindMessage {
			messages++
			add(judge.Message(conformance.Message{Direction: entry.Direction, Line: entry.Line}))
		}
	}
	judge.Closed(conformance.Client)
	add(judge.End())
	slices.Sort(finds)
	return messages, finds
}
