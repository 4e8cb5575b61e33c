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

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
)

// maxMCPFile is the maximum size of a file of MCP servers in bytes.
const maxMCPFile = 4 << 20

// ReadMCPServers reads a file of MCP servers as editors have it:
//
//	{"mcpServers": {"NAME": {"command": "…", "args": ["…"], "env": {"…": "…"}},
//	               "OTHER": {"url": "…", "headers": {"…": "…"}}}}
//
// A member type tells "http" from "sse"; without it, a URL that ends with /sse is one of "sse". Commands are looked up
// in the PATH, and ${VARIABLE} and ${env:VARIABLE} stand for variables of the environment, ${workspaceFolder} for dir,
// and ${userHome} for the home directory. The shapes of other editors are read too, and so are comments and commas
// before a closing bracket. notes name the servers that are left out, such as those that the file marks as disabled.
func ReadMCPServers(path, dir string) (servers []acp.MCPServer, notes []string, err error) {
	text, err := input.ReadFile(path, maxMCPFile)
	if err != nil {
		return nil, nil, err
	}
	var file struct {
		MCPServers     mcpServers `json:"mcpServers"`
		Servers        mcpServers `json:"servers"`         // VS Code
		ContextServers mcpServers `json:"context_servers"` // Zed
		Amp            mcpServers `json:"amp.mcpServers"`
		Codex          mcpServers `json:"mcp_servers"`
		MCP            mcpSection `json:"mcp"`
		Excluded       []string   `json:"excludeMCPServers"` // Gemini CLI, formerly
		Rejected       []string   `json:"disabledMcpjsonServers"`
		Disabled       []string   `json:"disabledMcpServers"`
	}
	all := mcpServers{}
	if text, err = toJSON(path, text); err == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &all)
	} else if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, readable(err))
	}
	known := len(all) > 0
	for _, some := range []mcpServers{file.Amp, file.Codex, file.MCP.servers, file.ContextServers, file.Servers,
		file.MCPServers} {
		maps.Copy(all, some)
		known = known || some != nil
	}
	if !known && (json.Unmarshal(text, &all) != nil || len(all) == 0 ||
		slices.ContainsFunc(slices.Collect(maps.Values(all)), mcpServer.nothing)) {
		return nil, nil, fmt.Errorf("%s: no member mcpServers", path) // nor are its members servers
	}
	off := slices.Concat(file.Excluded, file.Rejected, file.Disabled, file.MCP.Excluded)
	servers = []acp.MCPServer{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		notAllowed := file.MCP.Allowed != nil && !slices.Contains(file.MCP.Allowed, name)
		if s.disabled() || slices.Contains(off, name) || notAllowed {
			notes = append(notes, fmt.Sprintf("the MCP server %q is disabled in %s, and is not started", name, path))
			continue
		}
		if s.Source == "extension" || s.Settings != nil && len(s.Command.list) == 0 && s.URL == "" {
			notes = append(notes, fmt.Sprintf("the MCP server %q in %s is part of an extension of the editor, and is "+
				"not started", name, path))
			continue
		}
		server, err := s.server(name, dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: server %q: %w", path, name, err)
		}
		if s.Cwd != "" {
			notes = append(notes, fmt.Sprintf("the MCP server %q starts in the session's directory, and not in its cwd", name))
		}
		servers = append(servers, server)
	}
	return servers, notes, nil
}

// toJSON returns the content of a file, which is TOML if its name ends so, as plain JSON.
func toJSON(path string, text []byte) ([]byte, error) {
	if filepath.Ext(path) != ".toml" {
		return plainJSON(text), nil
	}
	var table map[string]any
	if err := toml.Unmarshal(text, &table); err != nil {
		return nil, err
	}
	return json.Marshal(table)
}

// mcpServers are servers by their names: an object, or an array of objects with a member name.
type mcpServers map[string]mcpServer

// UnmarshalJSON implements json.Unmarshaler.
func (m *mcpServers) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		return json.Unmarshal(text, (*map[string]mcpServer)(m))
	}
	var list []mcpServer
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*m = mcpServers{}
	for _, s := range list {
		if s.Name == "" {
			return errors.New("a server in an array has no name")
		}
		(*m)[s.Name] = s
	}
	return nil
}

// mcpSection is the member mcp of a file: servers by their names (opencode), or settings with a member servers (VS
// Code), or without one (Gemini CLI).
type mcpSection struct {
	servers mcpServers

	Servers           mcpServers
	Allowed, Excluded []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *mcpSection) UnmarshalJSON(text []byte) error {
	type plain mcpSection
	if err := json.Unmarshal(text, (*plain)(m)); err == nil &&
		(m.Servers != nil || m.Allowed != nil || m.Excluded != nil) {
		m.servers = m.Servers
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for name, one := range members {
		if one[0] != '{' { // another setting
			continue
		}
		var server mcpServer
		if err := json.Unmarshal(one, &server); err != nil {
			return fmt.Errorf("mcp.%s: %w", name, readable(err))
		}
		if m.servers == nil {
			m.servers = mcpServers{}
		}
		m.servers[name] = server
	}
	return nil
}

// readable returns an error of encoding/json without the names of Go types.
func readable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: unexpected JSON %s", cmp.Or(wrong.Field, "the whole"), wrong.Value)
	}
	return err
}

// plainJSON returns JSON without a byte order mark, comments, and commas before closing brackets. Errors in the result
// are at the same places as in the text. Windows writes some files in UTF-16.
func plainJSON(text []byte) []byte {
	if decoded, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), text); err == nil {
		text = decoded
	}
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
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	Transport     string          `json:"transport"`
	TransportType string          `json:"transportType"`
	Source        string          `json:"source"`   // Zed
	Settings      json.RawMessage `json:"settings"` // Zed
	Command       words           `json:"command"`
	Args          []scalar        `json:"args"`
	Cwd           string          `json:"cwd"`
	Env           variables       `json:"env"`
	Environment   variables       `json:"environment"` // opencode
	EnvFile       string          `json:"envFile"`
	URL           string          `json:"url"`
	ServerURL     string          `json:"serverUrl"` // Windsurf
	HTTPURL       string          `json:"httpUrl"`   // Gemini CLI, where url is for SSE
	BaseURL       string          `json:"baseUrl"`   // Cherry Studio
	Headers       variables       `json:"headers"`
	HTTPHeaders   variables       `json:"http_headers"`         // Codex
	TokenVariable string          `json:"bearer_token_env_var"` // Codex
	Disabled      bool            `json:"disabled"`
	Enabled       *bool           `json:"enabled"`
	Active        *bool           `json:"active"`   // Jan
	IsActive      *bool           `json:"isActive"` // Cherry Studio
}

// nothing reports whether neither a command nor an address is known.
func (s mcpServer) nothing() bool {
	return len(s.Command.list) == 0 && cmp.Or(s.HTTPURL, s.URL, s.ServerURL, s.BaseURL) == ""
}

func (s mcpServer) disabled() bool {
	off := func(on *bool) bool { return on != nil && !*on }
	return s.Disabled || off(s.Enabled) || off(s.Active) || off(s.IsActive)
}

// scalar is a text, a number or a boolean, as the text that a program gets; null is "".
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(text []byte) error {
	switch {
	case text[0] == '{' || text[0] == '[' || text[0] == '"':
		return json.Unmarshal(text, (*string)(s))
	case string(text) != "null":
		*s = scalar(text)
	}
	return nil
}

// variables are variables of the environment, or headers: an object, or an array of names and values.
type variables map[string]scalar

// UnmarshalJSON implements json.Unmarshaler.
func (v *variables) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		return json.Unmarshal(text, (*map[string]scalar)(v))
	}
	var list []struct {
		Name  string
		Value scalar
	}
	err := json.Unmarshal(text, &list)
	*v = variables{}
	for _, one := range list {
		(*v)[one.Name] = one.Value
	}
	return err
}

// words are a command: a program, a list of words, or an object of Zed.
type words struct {
	list []string
	env  variables
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(text []byte) error {
	switch text[0] {
	case '[':
		return json.Unmarshal(text, &w.list)
	case '{':
		var command struct {
			Path string    `json:"path"`
			Args []string  `json:"args"`
			Env  variables `json:"env"`
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

// variable matches ${X}, ${X:-default}, ${env:X}, {env:X} of opencode, and ${KIND:…} and {file:…}, which only an editor
// knows.
var variable = regexp.MustCompile(`\$?\{env:([A-Za-z_]\w*)(:-[^}]*)?\}|\$\{([A-Za-z_]\w*|/)(:-[^}]*)?\}|\$\{\w+:[^-}][^}]*\}|\{file:[^}]*\}`)

// bareVariable matches a value that is a variable, as Gemini CLI writes it.
var bareVariable = regexp.MustCompile(`^\$([A-Za-z_]\w*)$`)

// expand replaces the variables in a text. It fails with the name of one that is not set.
func expand(text, dir string) (string, error) {
	var unset error
	text = variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		name, standard := m[1]+m[3], m[2]+m[4]
		value, ok := os.LookupEnv(name)
		switch name {
		case "":
			unset = fmt.Errorf("the variable %s is one of the editor: write its value, or ${NAME} for a variable of the "+
				"environment", found)
			return ""
		case "workspaceFolder", "workspaceRoot":
			return dir
		case "workspaceFolderBasename":
			return filepath.Base(dir)
		case "pathSeparator", "/":
			return string(filepath.Separator)
		case "userHome":
			home, err := os.UserHomeDir()
			unset = cmp.Or(unset, err)
			return home
		}
		if !ok && standard == "" {
			unset = cmp.Or(unset, fmt.Errorf("the variable %s is not set", name))
		}
		if !ok {
			return strings.TrimPrefix(standard, ":-")
		}
		return value
	})
	return text, unset
}

// expanded returns a map with the variables in its values replaced, sorted by its keys.
func expanded[T any](values variables, dir string, to func(key, value string) T) ([]T, error) {
	out := []T{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := expand(bareVariable.ReplaceAllString(string(values[key]), "$${$1}"), dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, to(key, value))
	}
	return out, nil
}

// readEnvFile reads a file of variables: NAME=VALUE in each line, or a comment.
func readEnvFile(path, dir string) (variables, error) {
	path, err := expand(path, dir)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	text, err := input.ReadFile(path, maxMCPFile)
	if err != nil {
		return nil, err
	}
	found := variables{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if name = strings.TrimSpace(name); !ok || strings.HasPrefix(name, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : n-1]
		}
		found[name] = scalar(value)
	}
	return found, nil
}

func (s mcpServer) server(name, dir string) (server acp.MCPServer, err error) {
	s.Type = cmp.Or(s.Type, s.Transport, s.TransportType)
	address, kind := cmp.Or(s.HTTPURL, s.URL, s.ServerURL, s.BaseURL),
		strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s.Type))
	command := slices.Clone(s.Command.list)
	for _, arg := range s.Args {
		command = append(command, string(arg))
	}
	switch {
	case (len(s.Command.list) == 0) == (address == ""):
		return server, errors.New("expected either command or url")
	case address == "":
		if kind != "" && kind != "stdio" && kind != "local" {
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
		env := variables{}
		if s.EnvFile != "" {
			if env, err = readEnvFile(s.EnvFile, dir); err != nil {
				return server, fmt.Errorf("envFile: %w", err)
			}
		}
		for _, more := range []variables{s.Command.env, s.Environment, s.Env} {
			maps.Copy(env, more)
		}
		variables, err := expanded(env, dir,
			func(key, value string) acp.EnvVariable { return acp.EnvVariable{Name: key, Value: value} })
		if err != nil {
			return server, err
		}
		return acp.NewMCPServerStdio(acp.MCPServerStdio{Name: name, Command: program,
			Args: append([]string{}, command[1:]...), Env: variables}), nil
	}
	if address, err = expand(address, dir); err != nil {
		return server, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return server, errors.New("url: expected http or https") // it may hold a secret
	}
	if kind == "" && s.HTTPURL == "" && strings.HasSuffix(u.Path, "/sse") {
		kind = "sse"
	}
	given := variables{}
	if s.TokenVariable != "" {
		given["Authorization"] = scalar("Bearer ${" + s.TokenVariable + "}")
	}
	maps.Copy(given, s.HTTPHeaders)
	maps.Copy(given, s.Headers)
	headers, err := expanded(given, dir,
		func(key, value string) acp.HTTPHeader { return acp.HTTPHeader{Name: key, Value: value} })
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
