package interop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// screen is what the user of v1-words.mjs has seen.
type screen struct {
	Answers                   []string // to the steps
	User, Text, Thought, Plan string
	Calls, Asked              []string
	Mode, Tone                string
}

// TestTypeScriptTranslated connects the TypeScript SDK's client of version 1 to its agent of version 1. Between them
// they speak version 2: each is translated for a program of version 2, here a proxy without hooks.
func TestTypeScriptTranslated(t *testing.T) {
	const edited = "diff edit completed /w/a.txt a\nb\na\nc\n"
	script := filepath.Join(installed.Dir(t), "v1-words.mjs")
	for _, scene := range []struct {
		name  string
		steps []string
		want  screen
	}{
		{"text", []string{"new", "prompt say=a think=b plan say=c"}, screen{
			Answers: []string{"prompt: end_turn"}, Text: "ac", Thought: "b", Plan: "Plan completed",
		}},
		{"calls", []string{"new", "prompt diff", "prompt term"}, screen{
			Answers: []string{"prompt: end_turn", "prompt: end_turn"}, Calls: []string{edited, "term execute completed made\n[exit status 0]"},
		}},
		{"ask", []string{"new", "prompt ask=y", "prompt ask=n", "prompt ask=? say=a"}, screen{
			Answers: []string{"prompt: end_turn", "prompt: end_turn", "prompt: cancelled"}, Asked: []string{"ask y", "ask n", "ask ?"},
			Calls: []string{"ask edit completed", "ask edit failed", "ask edit pending"},
		}},
		{"settings", []string{"new", "mode code", "tone warm"}, screen{Mode: "code", Tone: "warm"}},
		{"settings of the agent's own", []string{"new", "prompt mode=code say=a"}, screen{Answers: []string{"prompt: end_turn"}, Text: "a", Mode: "code"}},
		{"errors", []string{"new", "prompt login", "login", "prompt bad", "prompt say=a fail", "prompt refusal", "logout"}, screen{
			Answers: []string{"prompt: -32000", "prompt: -32602", "prompt: -32603", "prompt: refusal"}, Text: "a",
		}},
		{"cancel", []string{
			"new", "cancel start", "prompt wait", "cancel text", "prompt say=a wait", "cancel call", "prompt diff wait",
			"cancel ask", "prompt ask=?", "prompt say=b",
		}, screen{
			Answers: []string{"prompt: cancelled", "prompt: cancelled", "prompt: cancelled", "prompt: cancelled", "prompt: end_turn"},
			Text:    "ab", Asked: []string{"ask ?"}, Calls: []string{edited, "ask edit pending"},
		}},
		{"sessions", []string{"new", "prompt say=a diff", "list", "close", "prompt say=b", "load", "close", "resume", "prompt say=c", "delete", "resume"}, screen{
			Answers: []string{"prompt: end_turn", "list: true /w", "prompt: -32002", "prompt: end_turn", "resume: -32002"},
			User:    "say=a diff", Text: "aac", Calls: []string{edited},
		}},
	} {
		scene.want.Mode, scene.want.Tone = cmp.Or(scene.want.Mode, "ask"), cmp.Or(scene.want.Tone, "plain")
		t.Run(scene.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			steps := must.Get(json.Marshal(scene.steps))(t)
			client := exec.CommandContext(ctx, "node", script, "client", string(steps))
			var report bytes.Buffer
			client.Stderr = &report
			in, err1 := client.StdinPipe()
			out, err2 := client.StdoutPipe()
			must.Do(t, errors.Join(err1, err2, client.Start()))
			tapped := func(side conformance.Side, transport rpc.Transport, schema *conformance.Schema) rpc.Transport {
				return conformance.Tap(t, side, transport, &conformance.TapOptions{
					Schema: schema, Level: conformance.Should, Accept: map[string]string{"CFG-19": "the modes are to be translated"},
				})
			}
			up := translate.Transport(tapped(conformance.Agent, rpc.IO(out, in, 0), conformance.V1()), translate.AgentSide, 2, nil)
			agent := tapped(conformance.Client, rpc.Command(exec.Command("node", script, "agent")), conformance.Negotiated(conformance.V1(), conformance.V2()))
			down := tapped(conformance.Client, translate.Transport(agent, translate.ClientSide, 2, nil), conformance.V2())
			must.Do(t, errors.Join(proxy.Serve(ctx, up, down, proxy.Hooks{}, nil), client.Wait()))
			var got screen
			if err := json.Unmarshal(report.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, &report)
			}
			if diff := gocmp.Diff(scene.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
