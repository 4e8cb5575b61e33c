package talk

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// Files are sent in the form that the agent accepts.
func TestAttachment(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a b.txt": "text", "x.png": "\x89PNG\r\n\x1a\n", "s.wav": "RIFF", "b.bin": "\x00\x01\xff", "long.txt": strings.Repeat("x", maxText+1),
		"huge.png": strings.Repeat("x", maxMedia+1), "main.go": "package main\n", "none": "just text",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
			text, err := block.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %.200s, want %s", test.name, got, test.want)
		}
	}
}

// Files of MCP servers have the format of editors.
func TestMCPServers(t *testing.T) {
	read := func(text string) (string, error) {
		name := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
		`{}`: "no member mcpServers", `{`: "unexpected end", `{"mcpServers":{"a":{}}}`: "either command or url",
		`{"mcpServers":{"a":{"command":"no-such-program"}}}`: "no-such-program", `{"mcpServers":{"a":{"url":"http://a/","type":"carrier-pigeon"}}}`: "carrier-pigeon",
		`{"mcpServers":{"a":{"command":"go","type":"http"}}}`: `a command cannot have the type "http"`,
		`[]`: "no member mcpServers", `{"mcpServers":{"a":{"command":"go","args":"x"}}}`: "args: unexpected JSON string",
		`{"mcpServers":{"a":{"url":"ftp://a/"}}}`: "url: expected http or https", `{"mcpServers":{"a":{"url":"a b"}}}`: "url: expected http or https",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Files are read as popular editors write them.
func TestMCPServersOfEditors(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	const off = ` ["the MCP server \"a\" is disabled in `
	env := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(env, []byte("# A=0\n\nexport A='x = y'\nB = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"mark and comments": {"\ufeff// c\n{\"mcpServers\": /* \"x */ {\"a\": {\"command\": \"go\", \"args\": [\"// no\", \"a,]\",],},},}", `"args":["// no","a,]"]`},
		"streamable":        {`{"mcpServers":{"a":{"type":"streamableHttp","url":"http://h/"}}}`, `"type":"http"`},
		"streamable_http":   {`{"mcpServers":{"a":{"type":"streamable_http","url":"http://h/"}}}`, `"type":"http"`},
		"Windsurf":          {`{"mcpServers":{"a":{"serverUrl":"http://h/","headers":{"A":"Bearer ${env:TOKEN}"}}}}`, `"value":"Bearer secret"`},
		"Gemini":            {`{"mcpServers":{"a":{"httpUrl":"http://h/${TOKEN}"}}}`, `"url":"http://h/secret"`},
		"Zed":               {`{"context_servers":{"a":{"command":{"path":"go","args":["version"],"env":{"K":"${TOKEN}"}}}}}`, `"env":[{"name":"K","value":"secret"}]`},
		"opencode":          {`{"mcp":{"a":{"type":"local","command":["go","version"],"environment":{"K":"{env:TOKEN}"},"enabled":true}}}`, `"env":[{"name":"K","value":"secret"}]`},
		"opencode, remote":  {`{"mcp":{"a":{"type":"remote","url":"http://h/"}}}`, `"type":"http"`},
		"VS Code":           {`{"mcp":{"servers":{"a":{"command":"go","args":["${UNSET:-version}"]}}}}`, `"args":["version"]`},
		"unset":             {`{"mcpServers":{"a":{"command":"go","env":{"K":"${env:UNSET}"}}}}`, "K: the variable UNSET is not set"},
		"unset, default":    {`{"mcpServers":{"a":{"command":"go","args":["${env:UNSET:-a}","$UNSET","${/}"],"env":{"K":"$TOKEN","N":8080,"B":true,"Z":null}}}}`, `"args":["a","$UNSET","/"]`},
		"bare":              {`{"mcpServers":{"a":{"command":"go","env":{"K":"$TOKEN","N":8080,"B":true,"Z":null}}}}`, `[{"name":"B","value":"true"},{"name":"K","value":"secret"},{"name":"N","value":"8080"},{"name":"Z","value":""}]`},
		"bare, unset":       {`{"mcpServers":{"a":{"url":"http://h/","headers":{"K":"$UNSET"}}}}`, "K: the variable UNSET is not set"},
		"numbers":           {`{"mcpServers":{"a":{"command":"go","args":["-p",8080]}}}`, `"args":["-p","8080"]`},
		"folder":            {`{"servers":{"a":{"command":"go","args":["${workspaceFolder}/x","${workspaceFolderBasename}"]}}}`, `"args":["/w/dir/x","dir"]`},
		"input":             {`{"servers":{"a":{"url":"http://h/","headers":{"K":"Bearer ${input:key}"}}},"inputs":[]}`, "the variable ${input:key} is one of the editor"},
		"file":              {`{"mcp":{"a":{"type":"remote","url":"http://h/","headers":{"K":"{file:~/key}"}}}}`, "the variable {file:~/key} is one of the editor"},
		"two shapes":        {`{"mcpServers":{},"servers":{"b":{"url":"http://b/"}},"context_servers":{"a":{"url":"http://a/"}}}`, `"name":"a","url":"http://a/","headers":[]},{"type":"http","name":"b"`},
		"array":             {`{"mcpServers":[{"name":"a","command":"go","args":[],"env":[{"name":"K","value":"v"}]}]}`, `"env":[{"name":"K","value":"v"}]`},
		"array, no name":    {`{"mcpServers":[{"command":"go"}]}`, "a server in an array has no name"},
		"sse by its name":   {`{"mcpServers":{"a":{"url":"http://h/v1/sse?k=1"}}}`, `"type":"sse"`},
		"transport":         {`{"mcpServers":{"a":{"transport":"sse","url":"http://h/"}}}`, `"type":"sse"`},
		"Cherry Studio":     {`{"mcpServers":{"a":{"type":"streamableHttp","baseUrl":"http://h/","isActive":true,"command":"","args":[]}}}`, `"url":"http://h/"`},
		"UTF-16":            {"\xff\xfe" + strings.Join(strings.Split(`{"mcpServers":{"a":{"url":"http://h/"}}}`, ""), "\x00") + "\x00", `"url":"http://h/"`},
		"env file":          {`{"servers":{"a":{"command":"go","envFile":"` + filepath.ToSlash(env) + `","env":{"B":"3"}}}}`, `"env":[{"name":"A","value":"x = y"},{"name":"B","value":"3"}]`},
		"no env file":       {`{"servers":{"a":{"command":"go","envFile":"${workspaceFolder}/.env"}}}`, "envFile: open /w/dir/.env"},
		"cwd":               {`{"mcpServers":{"a":{"command":"go","cwd":"/x"}}}`, `and not in its cwd`},
		"Zed, extension":    {`{"context_servers":{"a":{"source":"extension","settings":{}},"b":{"settings":{}}}}`, `[] ["the MCP server \"a\" in `},
		"no member":         {`{"a":{"command":"go"},"b":{"url":"http://b/"}}`, `"name":"b"`},
		"no servers":        {`{"a":{"command":"go"},"b":{"version":1}}`, `no member mcpServers`},
		"of session/new":    {`[{"name":"a","command":"go","args":[],"env":[]}]`, `"name":"a"`},
		"Amp":               {`{"amp.mcpServers":{"a":{"command":"go"}}}`, `"name":"a"`},
		"Codex.toml":        {"model = 'x'\n[mcp_servers.a]\nurl = 'http://a/'\nbearer_token_env_var = 'TOKEN'\nhttp_headers = {B = 'c'}\n", `[{"name":"Authorization","value":"Bearer secret"},{"name":"B","value":"c"}]`},
		"Codex, off.toml":   {"[mcp_servers.a]\ncommand = 'go'\nenabled = false\n", off},
		"Crush":             {`{"mcp":{"a":{"type":"stdio","command":"go","disabled":true}}}`, off},
		"disabled":          {`{"mcpServers":{"a":{"command":"go","disabled":true},"b":{"url":"http://b/"}}}`, off},
		"not enabled":       {`{"mcp":{"a":{"type":"local","command":["no-such-program"],"enabled":false}}}`, off},
		"not active":        {`{"mcpServers":{"a":{"command":"go","isActive":false}}}`, off},
		"excluded":          {`{"mcpServers":{"a":{"command":"go"}},"mcp":{"excluded":["a"],"serverCommand":"x"}}`, off},
		"excluded, before":  {`{"mcpServers":{"a":{"command":"go"}},"excludeMCPServers":["a"],"mcp":{"serverCommand":"x"}}`, off},
		"not allowed":       {`{"mcpServers":{"a":{"command":"go"},"b":{"url":"http://b/"}},"mcp":{"allowed":["b"]}}`, off},
	} {
		file := filepath.Join(t.TempDir(), cmp.Or(filepath.Ext(name), ".json"))
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		servers, notes, err := ReadMCPServers(file, "/w/dir")
		if got := fmt.Sprintf("%s %q %v", acp.Raw(servers), notes, err); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// MCP servers are commands, URLs and files, in this order.
func TestMCPServerList(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a=b.json", []byte(`{"mcpServers":{"filed":{"command":"go"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WORDS", "two words")
	got, _, err := MCPServers([]string{`run=go run "a b" 'c $WORDS' $WORDS d\ e`, "./a=b.json", "far=HTTPS://h/?x=y z", "dots.and-_9=go"}, "/w/dir")
	if err != nil {
		t.Fatal(err)
	}
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
