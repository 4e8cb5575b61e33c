package modelstub

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// post sends a request, and returns the answer as far as it came.
func post(t *testing.T, url, body string) (status int, text string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	read, _ := io.ReadAll(res.Body) // it may be cut
	return res.StatusCode, string(read)
}

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
)

// A script's answers are served in both shapes, and with their faults.
func TestScript(t *testing.T) {
	answers := map[string]*Answer{
		"text":   {Thought: "Hm.", Text: []string{"a", "b"}, Calls: []Call{{ID: "c1", Name: "read", Args: `{"path`}}},
		"full":   {Text: []string{"a"}, Full: true},
		"cut":    {Text: []string{"a"}, Cut: true},
		"status": {Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: "slow"},
	}
	stub := New(&Options{Pace: time.Millisecond, Script: func(r Request) *Answer { return answers[r.Prompt] }})
	server := httptest.NewServer(stub)
	defer server.Close()
	for _, test := range []struct {
		path, prompt string
		status       int
		has, hasNot  []string
	}{
		{chatPath, "text", 200, []string{`"reasoning_content":"Hm."`, `"content":"b"`, `"arguments":"{\"path"`, `"id":"c1"`, `"tool_calls"`, "[DONE]"}, nil},
		{messagesPath, "text", 200, []string{`"thinking":"Hm."`, `"text":"b"`, `"partial_json":"{\"path"`, `"tool_use"`, "message_stop"}, nil},
		{chatPath, "full", 200, []string{`"finish_reason":"length"`}, nil},
		{messagesPath, "full", 200, []string{`"stop_reason":"max_tokens"`}, nil},
		{chatPath, "cut", 200, []string{`"content":"a"`}, []string{"finish_reason\":\"stop", "[DONE]"}},
		{messagesPath, "cut", 200, []string{`"text":"a"`}, []string{"message_stop"}},
		{chatPath, "status", 429, []string{"slow"}, nil},
		{chatPath, "something else", 200, []string{`"content":"OK"`}, nil},
	} {
		status, text := post(t, server.URL+test.path, `{"stream": true, "max_tokens": 1, "messages": [{"role": "user", "content": "`+test.prompt+`"}]}`)
		if status != test.status {
			t.Errorf("%s, %s: status %d, want %d", test.path, test.prompt, status, test.status)
		}
		for _, want := range test.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s, %s: %s does not have %s", test.path, test.prompt, text, want)
			}
		}
		for _, want := range test.hasNot {
			if strings.Contains(text, want) {
				t.Errorf("%s, %s: %s has %s", test.path, test.prompt, text, want)
			}
		}
	}
}

// A strict server refuses the conversations that the real APIs refuse.
func TestStrict(t *testing.T) {
	server := httptest.NewServer(New(&Options{Strict: true}))
	defer server.Close()
	const chatCall = `{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}`
	const call = `{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "read", "input": {}}]}`
	const result = `{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]}`
	const chatResult = `{"role": "tool", "tool_call_id": "1", "content": "x"}`
	const chatUser, user = `{"role": "user", "content": "Hello"}`, `{"role": "user", "content": [{"type": "text", "text": "Hello"}]}`
	const tools = `, "tools": [{"name": "read", "input_schema": {"type": "object"}}]`
	for _, test := range []struct {
		path, messages, rest string
		status               int
	}{
		{chatPath, chatUser + "," + chatCall + "," + chatResult, "", 200},
		{chatPath, chatUser + "," + chatCall, "", 400},
		{chatPath, chatUser + "," + chatCall + "," + chatUser, "", 400},
		{chatPath, chatUser + "," + chatResult, "", 400},
		{chatPath, chatUser + `, {"role": "assistant"}`, "", 400},
		{chatPath, chatUser + "," + strings.Replace(chatCall, `"id": "1"`, `"id": ""`, 1), "", 400},
		{chatPath, chatUser + "," + strings.Replace(chatCall, `{}`, `{`, 1) + "," + chatResult, "", 400},
		{messagesPath, user + "," + call + "," + result, tools, 200},
		{messagesPath, user + "," + call + "," + result, "", 400},
		{messagesPath, user + "," + call, tools, 400},
		{messagesPath, user + "," + call + "," + user, tools, 400},
		{messagesPath, user + "," + result, tools, 400},
		{messagesPath, call + "," + result, tools, 400},
		{messagesPath, user + `, {"role": "assistant", "content": []}`, "", 400},
		{messagesPath, strings.Replace(user, "Hello", " ", 1), "", 400},
	} {
		status, text := post(t, server.URL+test.path, `{"stream": true, "max_tokens": 1, "messages": [`+test.messages+`]`+test.rest+`}`)
		if status != test.status {
			t.Errorf("%s, %s: status %d, want %d: %s", test.path, test.messages, status, test.status, text)
		}
	}
}
