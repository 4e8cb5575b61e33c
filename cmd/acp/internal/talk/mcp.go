package talk

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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

// The maximum number of bytes of a file that are sent: of an image or a sound, and of a text. A longer text is linked.
const (
	maxMedia = 20 << 20
	maxText  = 1 << 20
)

// UnsupportedError says that the agent does not accept a file.
type UnsupportedError struct {
	// Path is the file, and Kind what it contains: "images" or "sounds".
	Path, Kind string
}

// Error implements the error interface.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: the agent does not accept %s", e.Path, e.Kind)
}

// Attachment returns a file as a part of a prompt, in a form that the agent accepts: images and sounds as such, a text
// embedded if the agent accepts that and it is not too long, and everything else as a link. The error is an
// *UnsupportedError if the agent does not accept images or sounds.
func Attachment(path string, can acp.PromptCapabilities) (block acp.ContentBlock, err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return block, err
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return block, err
	}
	uri := FileURL(absolute)
	link := acp.ResourceLinkBlock(filepath.Base(absolute), uri)
	if info.IsDir() {
		return link, nil
	}
	if !info.Mode().IsRegular() {
		return block, fmt.Errorf("%s: not a regular file", path)
	}
	v := link.Variant.(*acp.ContentBlockResourceLink)
	v.Size = acp.Some(info.Size())
	data, err := readStart(absolute, maxMedia+1)
	if err != nil {
		return block, err
	}
	kind := mediaType(absolute, data)
	if kind != "" {
		v.MimeType = acp.Some(kind)
	}
	media, _, _ := strings.Cut(kind, "/")
	switch {
	case media == "image" && kind != "image/svg+xml", media == "audio":
		name, takes := "images", can.Image
		if media == "audio" {
			name, takes = "sounds", can.Audio
		}
		if !takes {
			return block, &UnsupportedError{path, name}
		}
		if len(data) > maxMedia {
			return block, fmt.Errorf("%s: longer than %d MiB", path, maxMedia>>20)
		}
		encoded := base64.StdEncoding.EncodeToString(data)
		if media == "audio" {
			return acp.AudioBlock(encoded, kind), nil
		}
		return acp.ImageBlock(encoded, kind), nil
	case can.EmbeddedContext && len(data) <= maxText && isText(data):
		text := acp.TextResource(string(data), uri)
		if kind != "" {
			text.Variant.(*acp.TextResourceContents).MimeType = acp.Some(kind)
		}
		return acp.ResourceBlock(text), nil
	}
	return link, nil
}

// isText reports whether a file can be sent as text.
func isText(data []byte) bool { return utf8.Valid(data) && !slices.Contains(data, 0) }

// mediaType returns the type of a file, by its name or else by its beginning; "" if it is unknown.
func mediaType(path string, data []byte) string {
	kind := mime.TypeByExtension(strings.ToLower(filepath.Ext(path)))
	if kind == "" {
		kind = http.DetectContentType(data)
	}
	kind, _, _ = strings.Cut(kind, ";")
	if kind == "application/octet-stream" {
		return ""
	}
	return kind
}

// readStart reads at most the given number of bytes of a file.
func readStart(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := input.HasEnd(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// FileURL returns the URL of a file with an absolute path.
func FileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// namedServer is an MCP server as NAME=COMMAND or NAME=URL.
var namedServer = regexp.MustCompile(`^([A-Za-z0-9_.-]+)=(.*)$`)

// MCPServers returns the MCP servers of a list: each element is NAME=COMMAND, NAME=URL, or a file; see ReadMCPServers.
// A command is split into words, and variables in it are replaced, as a shell does. A file whose name looks like
// NAME=COMMAND needs a path before it, such as ./a=b.json. dir is the working directory of the session. Servers that a
// file marks as disabled are skipped, and named in notes.
func MCPServers(list []string, dir string) (servers []acp.MCPServer, notes []string, err error) {
	for _, text := range list {
		m := namedServer.FindStringSubmatch(text)
		if m == nil {
			more, said, err := ReadMCPServers(text, dir)
			if err != nil {
				return nil, nil, err
			}
			servers, notes = append(servers, more...), append(notes, said...)
			continue
		}
		s, command := mcpServer{}, []string{""}
		if lower := strings.ToLower(m[2]); strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
			s.URL = m[2]
		} else if words, err := input.Words(m[2]); err != nil || len(words) == 0 {
			return nil, nil, fmt.Errorf("MCP server %q: expected a command or a URL: %w", m[1],
				cmp.Or(err, errors.New("there is none")))
		} else {
			command = words
		}
		server, err := s.server(m[1], command, dir)
		if err != nil {
			return nil, nil, fmt.Errorf("MCP server %q: %w", m[1], err)
		}
		servers = append(servers, server)
	}
	names := map[string]bool{}
	for _, server := range servers {
		name, _ := describe(server)
		if names[name] {
			return nil, nil, fmt.Errorf("two MCP servers have the name %q", name)
		}
		names[name] = true
	}
	return servers, notes, nil
}

// describe returns the name of a server, and the capability that it needs, or "".
func describe(server acp.MCPServer) (name, needs string) {
	switch s := server.Variant.(type) {
	case *acp.MCPServerStdio:
		return s.Name, ""
	case *acp.MCPServerHTTP:
		return s.Name, "http"
	case *acp.MCPServerSSE:
		return s.Name, "sse"
	default:
		return "", ""
	}
}

// accepts returns an error that matches acp.ErrUnsupported if an agent does not connect to one of the servers.
func accepts(can acp.MCPCapabilities, servers []acp.MCPServer) error {
	for _, server := range servers {
		name, needs := describe(server)
		if needs == "http" && !can.HTTP || needs == "sse" && !can.SSE {
			return fmt.Errorf("MCP server %q: the agent does not connect to servers over %s: %w (mcpCapabilities.%s)",
				name, strings.ToUpper(needs), acp.ErrUnsupported, needs)
		}
	}
	return nil
}
