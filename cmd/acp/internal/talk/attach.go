package talk

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/shell"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
)

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
		} else if words, err := shell.Fields(m[2], nil); err != nil || len(words) == 0 {
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
