package agentkit_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestToolResult(t *testing.T) {
	text := func(text string) []acp.ToolCallContent { return []acp.ToolCallContent{acp.ToolText(text)} }
	for name, test := range map[string]struct {
		call acp.ToolCall
		want string
	}{
		"raw output that is a string": {acp.ToolCall{RawOutput: acp.Raw("out"), Content: text("shown"), Status: acp.ToolCallStatusCompleted}, "out"},
		"an empty string":             {acp.ToolCall{RawOutput: acp.Raw(""), Content: text("shown"), Status: acp.ToolCallStatusCompleted}, ""},
		"content":                     {acp.ToolCall{RawOutput: acp.Raw([]int{1}), Content: text("shown"), Status: acp.ToolCallStatusCompleted}, "shown"},
		"other raw output":            {acp.ToolCall{RawOutput: acp.Raw([]int{1}), Status: acp.ToolCallStatusCompleted}, "[1]"},
		"nothing":                     {acp.ToolCall{Status: acp.ToolCallStatusCompleted}, ""},
		"a failure":                   {acp.ToolCall{Content: text("why"), Status: acp.ToolCallStatusFailed}, "error: why"},
		"a call that did not end":     {acp.ToolCall{Status: acp.ToolCallStatusInProgress}, "error: the call did not end"},
		"one that has printed":        {acp.ToolCall{Content: text("so far"), Status: acp.ToolCallStatusInProgress}, "error: the call did not end\nso far"},
	} {
		if got := agentkit.ToolResult(test.call); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestAPIKey(t *testing.T) {
	key := agentkit.APIKey{Variable: "AGENTKIT_TEST_KEY", File: filepath.Join(t.TempDir(), "new", "key")}
	want := func(what, want string) {
		t.Helper()
		if got, err := key.Get(); got != want || err != nil {
			t.Errorf("%s: the key is %q, %v; want %q", what, got, err, want)
		}
	}
	login := key.Login("-login")
	run := func() error { return login.Run(t.Context(), nil, "environment") }
	want("none", "")
	if err := run(); err == nil || !strings.Contains(err.Error(), "AGENTKIT_TEST_KEY is not set") {
		t.Errorf("a login without a key: %v", err)
	}
	if err := key.Enter(strings.NewReader("\n"), &bytes.Buffer{}); err == nil {
		t.Error("an empty key is stored")
	}
	var prompted bytes.Buffer
	if err := key.Enter(strings.NewReader("stored\n"), &prompted); err != nil || prompted.String() != "API key: " {
		t.Errorf("Enter: %v, with the prompt %q", err, &prompted)
	}
	if info, err := os.Stat(key.File); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
	want("stored", "stored")
	for _, mode := range []os.FileMode{0o644, 0o620, 0o602} {
		must.Do(t, os.Chmod(key.File, mode))
		if got, err := key.Get(); runtime.GOOS != "windows" && (err == nil || got != "") {
			t.Errorf("from a file with the mode %o: %q", mode, got)
		}
	}
	if err := key.Enter(strings.NewReader("stored\n"), &prompted); err != nil { // it makes the file private again
		t.Error(err)
	}
	want("stored again", "stored")
	if ok, err := login.Valid(t.Context(), nil); !ok || err != nil || run() != nil {
		t.Errorf("a login with a key: %v, %v", ok, err)
	}
	t.Setenv("AGENTKIT_TEST_KEY", "variable")
	want("variable", "variable")
	t.Setenv("AGENTKIT_TEST_KEY", "")
	for range 2 { // also if there is no file
		if err := login.Logout(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	want("after the logout", "")
	key.Default = "none"
	want("default", "none")
}

// The text of a prompt is its text blocks.
func TestPromptText(t *testing.T) {
	req := &acp.PromptRequest{Prompt: []acp.ContentBlock{acp.TextBlock("one"), acp.ResourceLinkBlock("a", "file:///a"), acp.TextBlock("two\n"), {}}}
	if got := agentkit.PromptText(req); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
	if got := agentkit.PromptText(&acp.PromptRequest{}); got != "" {
		t.Errorf("got %q", got)
	}
}

// The texts are those of package net/http, which is not imported; others are left out.
func TestStatusText(t *testing.T) {
	texts := 0
	for status := 100; status < 600; status++ {
		got := (&agentkit.APIError{Status: status, Reason: "no"}).Error()
		switch got {
		case fmt.Sprintf("the model's API answers %d %s: no", status, http.StatusText(status)):
			texts++
		case fmt.Sprintf("the model's API answers %d: no", status):
		default:
			t.Errorf("got %q", got)
		}
	}
	if texts < 18 {
		t.Errorf("%d texts", texts)
	}
}

func TestResults(t *testing.T) {
	long := acp.ToolCall{ToolCallID: "1", RawOutput: acp.Raw(strings.Repeat("é", 10_000)), Status: acp.ToolCallStatusCompleted}
	empty := acp.ToolCall{ToolCallID: "2", RawOutput: acp.Raw(""), Status: acp.ToolCallStatusCompleted}
	m := agentkit.Message{ToolCalls: []acp.ToolCall{long, empty}}
	for most, want := range map[int]int{1 << 20: 20_000, 10_002: 5_000, 0: 2_000} {
		var results []string
		for call, result := range m.Results(most) {
			results = append(results, string(call.ToolCallID)+result)
		}
		cut := "1" + strings.Repeat("é", want/2)
		if want < 20_000 {
			cut += "\n(cut off)"
		}
		wantLines(t, fmt.Sprint("at most ", most), results, cut, "2(no output)")
	}
}

func TestContentText(t *testing.T) {
	resource := &acp.TextResourceContents{URI: "file:///a", Text: "the text"}
	got := agentkit.ContentText(acp.TextBlock("Look: "), acp.ResourceLinkBlock("b", "file:///b"), acp.ImageBlock("AAAA", "image/png"),
		acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: resource}))
	if want := "Look: [b](file:///b)(This is not text.)<resource uri=\"file:///a\">\nthe text\n</resource>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := agentkit.ContentText(); got != "" {
		t.Errorf("no content is %q", got)
	}
}
