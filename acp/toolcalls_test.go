package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
)

// The short constructors give what their names say.
func TestShortConstructors(t *testing.T) {
	for want, value := range map[string]any{
		`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Read","status":"pending"}`: acp.StartToolCall("1", "Read"),
		`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Read","name":"cat","kind":"read","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"hi"}}],"locations":[{"path":"/a","line":3},{"path":"/b"}],"rawInput":{"n":1}}`: acp.StartToolCall("1", "Read",
			acp.WithName("cat"), acp.WithKind(acp.ToolKindRead), acp.WithStatus(acp.ToolCallStatusInProgress), acp.WithContent(acp.ToolText("hi")),
			acp.WithLocation("/a", 3), acp.WithLocation("/b", 0), acp.WithInput(map[string]int{"n": 1})),
		`{"sessionUpdate":"tool_call_update","toolCallId":"1"}`:                                                           acp.UpdateToolCall("1"),
		`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[],"rawOutput":[true,null]}`: acp.UpdateToolCall("1", acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(), acp.WithOutput([]any{true, nil})),
		`{"toolCallId":"1","title":"Delete"}`:                                                                             acp.ToolCallRef("1", acp.WithTitle("Delete")),
		`{"sessionUpdate":"current_mode_update","currentModeId":"m"}`:                                                     acp.ModeUpdate("m"),
		`{"sessionUpdate":"session_info_update","title":"T"}`:                                                             acp.TitleUpdate("T"),
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d","input":{"hint":"h"}},{"name":"m","description":"e"}]}`: acp.CommandsUpdate(acp.SlashCommand("n", "d", "h"), acp.SlashCommand("m", "e", "")),
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d"}]}`:                                                     acp.CommandsUpdate(acp.AvailableCommand{Name: "n", Description: "d"}),
		`{"sessionUpdate":"config_option_update","configOptions":[{"id":"i","name":"n","type":"select","currentValue":"v","options":[{"value":"v","name":"V"}]},{"id":"b","name":"B","type":"boolean","currentValue":true}]}`: acp.ConfigUpdate(
			acp.SelectOption("i", "n", "v", acp.SelectValue("v", "V")), acp.BooleanOption("b", "B", true)),
		`{"optionId":"i","name":"n","kind":"allow_once"}`:    acp.AllowOnce("i", "n"),
		`{"optionId":"i","name":"n","kind":"allow_always"}`:  acp.AllowAlways("i", "n"),
		`{"optionId":"i","name":"n","kind":"reject_once"}`:   acp.RejectOnce("i", "n"),
		`{"optionId":"i","name":"n","kind":"reject_always"}`: acp.RejectAlways("i", "n"),
		`{"type":"audio","data":"d","mimeType":"m"}`:         acp.AudioBlock("d", "m"),
		`{"text":"t","uri":"u"}`:                             acp.TextResource("t", "u"),
		`{"sessionUpdate":"plan_removed","planId":"p"}`:      acp.NewSessionUpdatePlanRemoved(acp.PlanRemoved{PlanID: "p"}),
		`{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"p","uri":"u"}}`: acp.NewSessionUpdatePlanUpdate(
			acp.PlanUpdate{Plan: acp.PlanUpdateContent{Variant: &acp.PlanUpdateContentFile{PlanID: "p", URI: "u"}}}),
		`{"sessionUpdate":"notice","severity":"info","title":"t"}`: acp.NewSessionUpdateNotice(acp.Notice{Severity: "info", Title: "t"}),
		`{"sessionUpdate":"subagent_update","sessionId":"s"}`:      acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{SessionID: "s"}),
		`{"sessionUpdate":"session_message","messageId":"m"}`:      acp.NewSessionUpdateSessionMessage(acp.SessionMessage{MessageID: "m"}),
		`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"t"}}`: acp.NewSessionUpdateSessionMessageChunk(
			acp.SessionMessageChunk{MessageID: "m", Content: acp.TextBlock("t")}),
		`{"type":"http","name":"n","url":"u","headers":[]}`:              acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "n", URL: "u"}),
		`{"type":"sse","name":"n","url":"u","headers":[]}`:               acp.NewMCPServerSSE(acp.MCPServerSSE{Name: "n", URL: "u"}),
		`{"type":"acp","name":"n","serverId":"i"}`:                       acp.NewMCPServerACP(acp.MCPServerACP{Name: "n", ServerID: "i"}),
		`{"sessionId":"s","configId":"c","type":"boolean","value":true}`: acp.NewSetSessionConfigOptionRequestBoolean("s", "c", true),
		`{"action":"cancel"}`:                                            acp.NewCreateElicitationResponseCancel(),
	} {
		got, err := json.Marshal(value)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if err := sample.Equal(must.Get(sample.Parse([]byte(want)))(t), must.Get(sample.Parse(got))(t)); err != nil {
			t.Errorf("got  %s\nwant %s: %v", got, want, err)
		}
	}
}

// An update changes what it names, and nothing else.
func TestApplyToolCallUpdate(t *testing.T) {
	call := acp.ToolCall{ToolCallID: "1", Title: "T", Kind: acp.ToolKindRead, Status: acp.ToolCallStatusPending, RawInput: acp.Raw(1)}
	call.Apply(acp.ToolCallRef("1", acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(acp.ToolText("done"))))
	call.Apply(acp.ToolCallUpdate{ToolCallID: "1", Title: acp.Null[string]()})
	var nulls acp.ToolCallUpdate
	must.Do(t, json.Unmarshal([]byte(`{"toolCallId":"1","rawInput":null,"rawOutput":null}`), &nulls))
	call.Apply(nulls)
	if string(call.RawInput) != "1" || call.RawOutput != nil {
		t.Errorf("null has changed the input or the output: %s, %s", call.RawInput, call.RawOutput)
	}
	text := call.Content[0].Text()
	if call.Title != "T" || call.Kind != acp.ToolKindRead || call.Status != acp.ToolCallStatusCompleted || text != "done" || string(call.RawInput) != "1" {
		t.Errorf("got %+v", call)
	}
}

// What cannot be encoded does not pass for something else.
func TestRawThatCannotBeEncoded(t *testing.T) {
	raw := acp.Raw(func() {})
	if json.Valid(raw) || !strings.Contains(string(raw), "func()") {
		t.Errorf("got %s", raw)
	}
	if _, err := json.Marshal(acp.ToolCallRef("1", acp.WithInput(func() {}))); err == nil || !strings.Contains(err.Error(), "/rawInput") {
		t.Errorf("got %v", err)
	}
	if got := string(acp.Raw("not encoded: this is a string")); got != `"not encoded: this is a string"` {
		t.Errorf("got %s", got)
	}
}
