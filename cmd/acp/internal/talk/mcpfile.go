package talk

import (
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

	"github.com/tailscale/hujson"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
)

// maxMCPFile is the maximum size of a file of MCP servers in bytes.
const maxMCPFile = 4 << 20

// mcpServer is an MCP server as editors have it.
type mcpServer struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`
}

// ReadMCPServers reads a file of MCP servers as editors have it:
//
//	{"mcpServers": {"NAME": {"command": "…", "args": ["…"], "env": {"…": "…"}},
//	               "OTHER": {"url": "…", "headers": {"…": "…"}}}}
//
// The member is called servers in files of VS Code. A member type tells "http" from "sse"; without it, a URL is one of
// "http". Commands are looked up in the PATH, and ${VARIABLE} and ${env:VARIABLE} stand for variables of the
// environment, and ${workspaceFolder} for dir. Comments, and commas before a closing bracket, are allowed. notes name
// the servers that the file marks as disabled, which are left out.
func ReadMCPServers(path, dir string) (servers []acp.MCPServer, notes []string, err error) {
	text, err := input.ReadFile(path, maxMCPFile)
	if err != nil {
		return nil, nil, err
	}
	var file struct {
		MCPServers map[string]mcpServer `json:"mcpServers"`
		Servers    map[string]mcpServer `json:"servers"`
	}
	if text, err = hujson.Standardize(text); err == nil {
		err = json.Unmarshal(text, &file)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // without the names of Go types
		err = fmt.Errorf("%s: unexpected JSON %s", cmp.Or(wrong.Field, "the whole"), wrong.Value)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.MCPServers == nil {
		file.MCPServers = file.Servers
	}
	if file.MCPServers == nil {
		return nil, nil, fmt.Errorf("%s: no member mcpServers", path)
	}
	servers = []acp.MCPServer{}
	for _, name := range slices.Sorted(maps.Keys(file.MCPServers)) {
		s := file.MCPServers[name]
		if s.Disabled {
			notes = append(notes, fmt.Sprintf("the MCP server %q is disabled in %s, and is not started", name, path))
			continue
		}
		server, err := s.server(name, append([]string{s.Command}, s.Args...), dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: server %q: %w", path, name, err)
		}
		servers = append(servers, server)
	}
	return servers, notes, nil
}

// variable matches ${X}, ${X:-default} and ${env:X}, and ${KIND:…}, which only an editor knows.
var variable = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_]\w*)(:-[^}]*)?\}|\$\{\w+:[^-}][^}]*\}`)

// expand replaces the variables in a text. It fails with the name of one that is not set.
func expand(text, dir string) (string, error) {
	var unset error
	text = variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		value, ok := os.LookupEnv(m[1])
		switch {
		case m[1] == "":
			unset = fmt.Errorf("the variable %s is one of the editor: write its value, or ${NAME} for a variable of the "+
				"environment", found)
		case m[1] == "workspaceFolder":
			return dir
		case !ok && m[2] == "":
			unset = cmp.Or(unset, fmt.Errorf("the variable %s is not set", m[1]))
		case !ok:
			return strings.TrimPrefix(m[2], ":-")
		}
		return value
	})
	return text, unset
}

// expanded returns a map with the variables in its values replaced, sorted by its keys.
func expanded[T any](values map[string]string, dir string, to func(key, value string) T) ([]T, error) {
	out := []T{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := expand(values[key], dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, to(key, value))
	}
	return out, nil
}

// server returns the server. The first word of command is "" for one at a URL.
func (s mcpServer) server(name string, command []string, dir string) (server acp.MCPServer, err error) {
	kind := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s.Type))
	switch {
	case (command[0] == "") == (s.URL == ""):
		return server, errors.New("expected either command or url")
	case s.URL == "":
		if kind != "" && kind != "stdio" {
			return server, fmt.Errorf("a command cannot have the type %q: expected \"stdio\" or none", s.Type)
		}
		for i := range command {
			if command[i], err = expand(command[i], dir); err != nil {
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
		env, err := expanded(s.Env, dir,
			func(key, value string) acp.EnvVariable { return acp.EnvVariable{Name: key, Value: value} })
		if err != nil {
			return server, err
		}
		return acp.NewMCPServerStdio(acp.MCPServerStdio{Name: name, Command: program,
			Args: append([]string{}, command[1:]...), Env: env}), nil
	}
	address, err := expand(s.URL, dir)
	if err != nil {
		return server, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return server, errors.New("url: expected http or https") // it may hold a secret
	}
	headers, err := expanded(s.Headers, dir,
		func(key, value string) acp.HTTPHeader { return acp.HTTPHeader{Name: key, Value: value} })
	if err != nil {
		return server, err
	}
	switch kind {
	case "", "http", "streamablehttp":
		return acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: name, URL: address, Headers: headers}), nil
	case "sse":
		return acp.NewMCPServerSSE(acp.MCPServerSSE{Name: name, URL: address, Headers: headers}), nil
	}
	return server, fmt.Errorf("unknown type %q", s.Type)
}
