package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
)

// modelAgent is a separate program: an agent that calls the model at $MODEL, has one tool, and repeats what the model
// says.
func modelAgent() {
	dir := ""
	beAgent(acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			dir = req.Cwd
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text, err := askModel(dir, req.Prompt[0].Text())
			if err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.AgentMessageText(text))
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "model", Version: "1"}})
}

// askModel plays a turn with the model and a tool that runs commands.
func askModel(dir, prompt string) (string, error) {
	messages := []any{map[string]any{"role": "system", "content": "Working directory: " + dir}, map[string]any{"role": "user", "content": prompt}}
	tools := json.RawMessage(`[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}]`)
	for {
		body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "tools": tools})
		if err != nil {
			return "", err
		}
		r, err := http.Post(os.Getenv("MODEL")+"/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s, %w", r.Status, text, err)
		}
		var answer struct {
			Choices []struct {
				Message json.RawMessage
			}
		}
		var message struct {
			Content   string
			ToolCalls []struct {
				ID       string
				Function struct{ Arguments string }
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return "", err
		}
		if err := json.Unmarshal(answer.Choices[0].Message, &message); err != nil {
			return "", err
		}
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		var args struct{ Command string }
		if err := json.Unmarshal([]byte(message.ToolCalls[0].Function.Arguments), &args); err != nil {
			return "", err
		}
		c := exec.Command("sh", "-c", args.Command)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %w: %s", args.Command, err, out)
		}
		messages = append(messages, answer.Choices[0].Message, map[string]any{"role": "tool", "tool_call_id": message.ToolCalls[0].ID, "content": string(out)})
	}
}

// probeModel runs acp probe on modelAgent, and returns the report and the log of the model.
func probeModel(t *testing.T, want int, flags ...string) (r *probe.Report, asked []string, stderr string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "model.jsonl")
	args := slices.Concat([]string{"probe", "--format", "json", "--only", "tools", "--timeout", "2m", "--quiet", "100ms", "--model-log", log}, flags, []string{"--", "modelagent"})
	c := exec.Command("acp", args...)
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState.ExitCode() != want {
		t.Fatalf("%v\n%s%s", err, errs.String(), out.String())
	}
	left, err := filepath.Glob(filepath.Join(dir, "acp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it has left %s, %v", left, err)
	}
	if want == statusUsage {
		return nil, nil, errs.String()
	}
	r = &probe.Report{}
	must.Do(t, json.Unmarshal(out.Bytes(), r))
	text := must.Get(os.ReadFile(log))(t)
	for line := range strings.Lines(string(text)) {
		var x struct{ Calls []string }
		must.Do(t, json.Unmarshal([]byte(line), &x))
		asked = append(asked, x.Calls...)
	}
	return r, asked, errs.String()
}

// TestProbeModel leads an agent to the fake model, which makes it read, edit and run.
func TestProbeModel(t *testing.T) {
	r, calls, stderr := probeModel(t, statusOK, "--model-stub", "--model-env", "MODEL={url}/v1")
	got := strings.Join(calls, "\n")
	for _, want := range []string{"/notes.txt\"", "The probe was here.", "echo acp-probe"} {
		if !strings.Contains(got, want) {
			t.Errorf("no call has %q:\n%s", want, got)
		}
	}
	if stderr != "" || r.Scenarios[0].Skipped != "" || len(r.Scenarios[0].Failed) > 0 {
		t.Errorf("%s, %+v", stderr, r.Scenarios[0])
	}
	if strings.Contains(got, os.Getenv("HOME")+"/notes.txt") {
		t.Errorf("the model does not know where the agent is: %s", got)
	}
}

// TestProbeNoModel: if an agent never calls the model, this is reported, and its turns are errors.
func TestProbeNoModel(t *testing.T) {
	t.Setenv("MODEL", "http://127.0.0.1:1")
	r, calls, stderr := probeModel(t, statusOK, "--model-stub=claude")
	if !strings.Contains(stderr, "sent the fake model no request") || len(calls) > 0 {
		t.Errorf("%s, %q", stderr, calls)
	}
	if !slices.Contains(r.Scenarios[0].Failed, "PRM-5") {
		t.Errorf("%+v", r.Scenarios[0])
	}
}

func TestProbeModelFlags(t *testing.T) {
	for want, flags := range map[string][]string{
		"expected one of any, claude": {"--model-stub=nobody"},
		"expected NAME=VALUE":         {"--model-stub", "--model-env", "x"},
		"need a model: --model-stub":  {"--model-env", "A=b"},
	} {
		if _, _, stderr := probeModel(t, statusUsage, flags...); !strings.Contains(stderr, want) {
			t.Errorf("%q: %s", flags, stderr)
		}
	}
}

// TestPresets: each preset fills in its placeholders, and agents keep their files in their home.
func TestPresets(t *testing.T) {
	for _, name := range presetNames() {
		f := &modelFlags{preset: name, env: []string{"MORE={url}/x"}}
		m := must.Get(f.serve(t.TempDir()))(t)
		if name != anyAgent && !slices.Contains(m.env, "HOME={home}") {
			t.Errorf("%s: %q", name, m.env)
		}
		reached := 0
		for _, text := range m.env {
			if strings.ContainsAny(strings.ReplaceAll(text, "{home}", ""), "{}") { // the launch fills in {home}
				t.Errorf("%s: %s", name, text)
			}
		}
		look := func(text string) {
			if strings.Contains(text, "http://127.0.0.1:") {
				reached++
			}
		}
		for _, text := range m.env {
			look(text)
		}
		for file := range presets[name].files {
			text, err := os.ReadFile(filepath.Join(m.home, file))
			if err != nil || !json.Valid(text) {
				t.Errorf("%s: %s, %v: %s", name, file, err, text)
			}
			look(string(text))
		}
		if reached < 2 { // through MORE, and through its own variable
			t.Errorf("%s: nothing says where the model is", name)
		}
		must.Do(t, m.close())
		if _, err := os.Stat(m.home); err == nil {
			t.Errorf("%s: %s is still there", name, m.home)
		}
	}
}

// The variables of the fake model lead a command to it, unless it has its own.
func TestModelLead(t *testing.T) {
	m := &fakeModel{env: []string{"OPENAI_BASE_URL=http://x/v1", "HOME={home}", "KEY=fake"}, home: "/h"}
	own := map[string]string{"KEY": "own"}
	command := &launch.Command{Program: "agent", Env: own}
	m.lead(command)
	if want := map[string]string{"OPENAI_BASE_URL": "http://x/v1", "HOME": "/h", "KEY": "own"}; !maps.Equal(command.Env, want) || len(own) != 1 {
		t.Errorf("%v, want %v; its own were %v", command.Env, want, own)
	}
}
