package talk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
)

// maxMCPFile is the maximum size of a file of MCP servers in bytes.
const maxMCPFile = 4 << 20

// ReadMCPServers reads a file of MCP servers as editors have it:
//
//	{"mcpServers": {"NAME": {"command": "…", "args": ["…"], "env": {"…": "…"}}, "OTHER": {"url": "…", "headers": {"…": "…"}}}}
//
// A member type tells "http" from "sse", which is "http" if it is not there. Commands are looked up in the PATH, and
// ${VARIABLE} and ${env:VARIABLE} stand for variables of the environment. The shapes of other editors are read too, and so
// are comments and commas before a closing bracket. disabled names the servers that the file marks as disabled.
func ReadMCPServers(path string) (servers []acp.MCPServer, disabled []string, err error) {
	text, err := input.ReadFile(path, maxMCPFile)
	if err != nil {
		return nil, nil, err
	}
	var file struct {
		MCPServers     map[string]mcpServer `json:"mcpServers"`
		Servers        map[string]mcpServer `json:"servers"`         // VS Code
		ContextServers map[string]mcpServer `json:"context_servers"` // Zed
		MCP            json.RawMessage      `json:"mcp"`             // opencode, and the settings of VS Code
	}
	if err := json.Unmarshal(plainJSON(text), &file); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, readable(err))
	}
	all := file.MCPServers
	for _, other := range []map[string]mcpServer{file.Servers, file.ContextServers} {
		if all == nil {
			all = other
		}
	}
	if all == nil && file.MCP != nil {
		var nested struct{ Servers map[string]mcpServer }
		if err := json.Unmarshal(file.MCP, &nested); err == nil && nested.Servers != nil {
			all = nested.Servers
		} else if err := json.Unmarshal(file.MCP, &all); err != nil {
			return nil, nil, fmt.Errorf("%s: mcp: %w", path, readable(err))
		}
	}
	if all == nil {
		return nil, nil, fmt.Errorf("%s: no member mcpServers", path)
	}
	servers = []acp.MCPServer{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s := all[name]; s.Disabled || s.Enabled != nil && !*s.Enabled {
			disabled = append(disabled, name)
			continue
		}
		server, err := all[name].server(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: server %q: %w", path, name, err)
		}
		servers = append(servers, server)
	}
	return servers, disabled, nil
}

// readable returns an error of encoding/json without the names of Go types.
func readable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: unexpected JSON %s", cmp.Or(wrong.Field, "the whole"), wrong.Value)
	}
	return err
}

// plainJSON returns JSON without a byte order mark, comments, and commas before closing brackets. Errors in the result are
// at the same places as in the text.
func plainJSON(text []byte) []byte {
	text = bytes.Clone(bytes.TrimPrefix(text, []byte("\ufeff")))
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	comma := -1 // the place of a comma that only white space follows so far
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case text[i] == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			comma = -1
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			blank(i, i+end)
			i += end - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				return text // which is not valid
			}
			blank(i, i+end+2)
			i += end + 1
		case text[i] == ',':
			comma = i
		case (text[i] == '}' || text[i] == ']') && comma >= 0:
			text[comma], comma = ' ', -1
		case !strings.ContainsRune(" \t\r\n", rune(text[i])):
			comma = -1
		}
	}
	return text
}

// mcpServer is an MCP server as editors have it.
type mcpServer struct {
	Type        string            `json:"type"`
	Command     words             `json:"command"`
	Args        []string          `json:"args"`
	Env         map[string]string `json:"env"`
	Environment map[string]string `json:"environment"` // opencode
	URL         string            `json:"url"`
	ServerURL   string            `json:"serverUrl"` // Windsurf
	HTTPURL     string            `json:"httpUrl"`   // Gemini CLI
	Headers     map[string]string `json:"headers"`
	Disabled    bool              `json:"disabled"`
	Enabled     *bool             `json:"enabled"`
}

// words are a command: a program, a list of words, or an object of Zed.
type words struct {
	list []string
	env  map[string]string
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(text []byte) error {
	switch text[0] {
	case '[':
		return json.Unmarshal(text, &w.list)
	case '{':
		var command struct {
			Path string            `json:"path"`
			Args []string          `json:"args"`
			Env  map[string]string `json:"env"`
		}
		err := json.Unmarshal(text, &command)
		w.list, w.env = append([]string{command.Path}, command.Args...), command.Env
		return err
	}
	var program string
	if err := json.Unmarshal(text, &program); err != nil || program == "" {
		return err
	}
	w.list = []string{program}
	return nil
}

// variable matches a variable of the environment: ${X}, ${X:-default}, ${env:X}, or {env:X} of opencode.
var variable = regexp.MustCompile(`\$?\{env:([A-Za-z_]\w*)\}|\$\{([A-Za-z_]\w*)(:-[^}]*)?\}`)

// expand replaces the variables in a text. It fails with the name of one that is not set.
func expand(text string) (string, error) {
	var unset error
	text = variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		name := m[1] + m[2]
		if value, ok := os.LookupEnv(name); ok {
			return value
		}
		if m[3] == "" {
			unset = fmt.Errorf("the variable %s is not set", name)
		}
		return strings.TrimPrefix(m[3], ":-")
	})
	return text, unset
}

// expanded returns a map with the variables in its values replaced, sorted by its keys.
func expanded[T any](values map[string]string, to func(key, value string) T) ([]T, error) {
	out := []T{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := expand(values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, to(key, value))
	}
	return out, nil
}

func (s mcpServer) server(name string) (server acp.MCPServer, err error) {
	address, kind := cmp.Or(s.URL, s.ServerURL, s.HTTPURL), strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s.Type))
	command := append(slices.Clone(s.Command.list), s.Args...)
	switch {
	case (len(s.Command.list) == 0) == (address == ""):
		return server, errors.New("want either command or url")
	case address == "":
		if kind != "" && kind != "stdio" && kind != "local" {
			return server, fmt.Errorf("a command cannot have the type %q: want \"stdio\" or none", s.Type)
		}
		for i := range command {
			if command[i], err = expand(command[i]); err != nil {
				return server, err
			}
		}
		program, err := exec.LookPath(command[0])
		if err == nil {
			program, err = filepath.Abs(program)
		}
		if err != nil {
			return server, err
		}
		env := map[string]string{}
		for _, more := range []map[string]string{s.Command.env, s.Environment, s.Env} {
			maps.Copy(env, more)
		}
		variables, err := expanded(env, func(key, value string) acp.EnvVariable { return acp.EnvVariable{Name: key, Value: value} })
		if err != nil {
			return server, err
		}
		return acp.NewMCPServerStdio(acp.MCPServerStdio{Name: name, Command: program, Args: append([]string{}, command[1:]...), Env: variables}), nil
	}
	if address, err = expand(address); err != nil {
		return server, err
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return server, errors.New("url: want http or https") // it may hold a secret
	}
	headers, err := expanded(s.Headers, func(key, value string) acp.HTTPHeader { return acp.HTTPHeader{Name: key, Value: value} })
	if err != nil {
		return server, err
	}
	switch kind {
	case "", "http", "streamablehttp", "remote":
		return acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: name, URL: address, Headers: headers}), nil
	case "sse":
		return acp.NewMCPServerSSE(acp.MCPServerSSE{Name: name, URL: address, Headers: headers}), nil
	}
	return server, fmt.Errorf("unknown type %q", s.Type)
}
