package talk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
)

// Files are sent in the form that the agent accepts.
func TestAttachment(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a b.txt": "text", "x.png": "\x89PNG\r\n\x1a\n", "s.wav": "RIFF", "b.bin": "\x00\x01\xff", "long.txt": strings.Repeat("x", maxText+1),
		"huge.png": strings.Repeat("x", maxMedia+1), "main.go": "package main\n", "none": "just text",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	all := acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true}
	for _, test := range []struct {
		name string
		can  acp.PromptCapabilities
		want string // in the block or the error
	}{
		{"a b.txt", all, `"type":"resource"`},
		{"a b.txt", all, `/a%20b.txt"`},
		{"a b.txt", acp.PromptCapabilities{}, `"type":"resource_link"`},
		{"main.go", all, `package main`},
		{"none", all, `just text`},
		{"x.png", all, `"type":"image"`},
		{"x.png", acp.PromptCapabilities{}, "does not accept images"},
		{"s.wav", all, `"type":"audio"`},
		{"s.wav", acp.PromptCapabilities{Image: true}, "does not accept sounds"},
		{"b.bin", all, `"type":"resource_link"`},
		{"long.txt", all, `"size":1048577`},
		{"huge.png", all, "longer than 20 MiB"},
		{".", all, `"type":"resource_link"`},
		{"missing", all, "no such file"},
	} {
		block, err := Attachment(filepath.Join(dir, test.name), test.can)
		got := ""
		if err != nil {
			got = err.Error()
			if _, unsupported := errors.AsType[*UnsupportedError](err); unsupported != strings.Contains(got, "does not accept") {
				t.Errorf("%s: %T", test.name, err)
			}
		} else {
			text := must.Get(block.MarshalJSON())(t)
			got = string(text)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %.200s, want %s", test.name, got, test.want)
		}
	}
	for path, want := range map[string]string{"/a b": "file:///a%20b", "C:/a": "file:///C:/a"} {
		if got := FileURL(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Files of MCP servers have the format of editors.
func TestMCPServers(t *testing.T) {
	read := func(text string) (string, error) {
		name := filepath.Join(t.TempDir(), "mcp.json")
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		servers, _, err := ReadMCPServers(name, "")
		if err != nil {
			return "", err
		}
		return string(acp.Raw(servers)), nil
	}
	got, err := read(`{"mcpServers": {
		"b": {"type": "sse", "url": "http://b/", "headers": {"X": "1"}},
		"a": {"command": "go", "args": ["version"], "env": {"K": "v"}},
		"c": {"url": "http://c/"}}}`)
	must.Do(t, err)
	for _, want := range []string{`"args":["version"]`, `"name":"b"`, `"type":"sse"`, `"name":"c"`, `"type":"http"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if !strings.Contains(got, `"env":[{"name":"K","value":"v"}]`) || !strings.Contains(got, `"headers":[{"name":"X","value":"1"}]`) || !strings.Contains(got, `"command":"/`) {
		t.Errorf("got %s", got)
	}
	if got, err := read(`{"servers": {"a": {"command": "go"}}}`); err != nil || !strings.Contains(got, `"args":[]`) {
		t.Errorf("got %s, %v", got, err)
	}
	for text, want := range map[string]string{
		`{}`: "no member mcpServers", `{`: "unexpected EOF", `{"mcpServers":{"a":{}}}`: "either command or url",
		`{"mcpServers":{"a":{"command":"no-such-program"}}}`: "no-such-program", `{"mcpServers":{"a":{"url":"http://a/","type":"carrier-pigeon"}}}`: "carrier-pigeon",
		`{"mcpServers":{"a":{"command":"go","type":"http"}}}`: `a command cannot have the type "http"`,
		`[]`: "unexpected JSON array", `{"mcpServers":{"a":{"command":"go","args":"x"}}}`: "args: unexpected JSON string",
		`{"mcpServers":{"a":{"url":"ftp://a/"}}}`: "url: expected http or https", `{"mcpServers":{"a":{"url":"a b"}}}`: "url: expected http or https",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Files have comments and variables, and what only an editor knows is an error.
func TestMCPServersOfEditors(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	for name, test := range map[string]struct{ text, want string }{
		"comments":       {"// c\n{\"mcpServers\": /* \"x */ {\"a\": {\"command\": \"go\", \"args\": [\"// no\", \"a,]\",],},},}", `"args":["// no","a,]"]`},
		"streamable":     {`{"mcpServers":{"a":{"type":"streamableHttp","url":"http://h/${TOKEN}"}}}`, `"url":"http://h/secret"`},
		"header":         {`{"mcpServers":{"a":{"url":"http://h/","headers":{"A":"Bearer ${env:TOKEN}"}}}}`, `"value":"Bearer secret"`},
		"unset":          {`{"mcpServers":{"a":{"command":"go","env":{"K":"${env:UNSET}"}}}}`, "K: the variable UNSET is not set"},
		"unset, default": {`{"mcpServers":{"a":{"command":"go","args":["${env:UNSET:-a}","$UNSET"],"env":{"K":"${TOKEN}"}}}}`, `"args":["a","$UNSET"],"env":[{"name":"K","value":"secret"}]`},
		"folder":         {`{"servers":{"a":{"command":"go","args":["${workspaceFolder}/x"]}}}`, `"args":["/w/dir/x"]`},
		"input":          {`{"servers":{"a":{"url":"http://h/","headers":{"K":"Bearer ${input:key}"}}},"inputs":[]}`, "the variable ${input:key} is one of the editor"},
		"disabled":       {`{"mcpServers":{"a":{"command":"go","disabled":true},"b":{"url":"http://b/"}}}`, ` ["the MCP server \"a\" is disabled in `},
	} {
		file := filepath.Join(t.TempDir(), "mcp.json")
		must.Do(t, os.WriteFile(file, []byte(test.text), 0o600))
		servers, notes, err := ReadMCPServers(file, "/w/dir")
		if got := fmt.Sprintf("%s %q %v", acp.Raw(servers), notes, err); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// MCP servers are commands, URLs and files, in this order.
func TestMCPServerList(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("a=b.json", []byte(`{"mcpServers":{"filed":{"command":"go"}}}`), 0o600))
	t.Setenv("WORDS", "two words")
	got, _, err := MCPServers([]string{`run=go run "a b" 'c $WORDS' $WORDS d\ e`, "./a=b.json", "far=HTTPS://h/?x=y z", "dots.and-_9=go"}, "/w/dir")
	must.Do(t, err)
	text := string(acp.Raw(got))
	for _, want := range []string{
		`"args":["run","a b","c $WORDS","two","words","d e"]`, `"name":"filed"`, `"url":"HTTPS://h/?x=y z"`, `"headers":[]`, `"name":"dots.and-_9"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if got, _, err := MCPServers(nil, "/w/dir"); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for list, want := range map[string]string{
		"a=": "expected a command or a URL", "a=$NOTHING": "expected a command or a URL", "a='x": "quote", "a=no-such-program": "no-such-program",
		"=go": "=go", "a b=go": "no such file", "a=http://": "url: expected http or https", "a=go,a=go": `two MCP servers have the name "a"`,
		"filed=go,./a=b.json": `two MCP servers have the name "filed"`,
	} {
		if _, _, err := MCPServers(strings.Split(list, ","), "/w/dir"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", list, err, want)
		}
	}
}
