package mcpacp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/plain"
)

// identify returns Tool.Declaration. Values count as well: another PATH or NODE_OPTIONS starts another program.
func identify(config acp.MCPServer) string {
	var parts []string
	var values [][2]string
	program := ""
	remote := func(kind, address string, headers []acp.HTTPHeader) {
		parts = []string{kind, address}
		if u, err := url.Parse(address); err == nil {
			program = u.Host
		}
		for _, h := range headers {
			values = append(values, [2]string{strings.ToLower(h.Name), h.Value})
		}
	}
	switch c := config.Variant.(type) {
	case *acp.MCPServerStdio:
		parts, program = append([]string{"stdio", c.Command}, c.Args...), filepath.Base(c.Command)
		for _, e := range c.Env {
			values = append(values, [2]string{e.Name, e.Value})
		}
	case *acp.MCPServerHTTP:
		remote("http", c.URL, c.Headers)
	case *acp.MCPServerSSE:
		remote("sse", c.URL, c.Headers)
	case *acp.MCPServerACP:
		parts, program = []string{"acp", c.Name}, "the client"
	default: // it is not connected to
	}
	// Of two values of one name, the last may be the one that counts.
	slices.SortStableFunc(values, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	text, _ := json.Marshal([]any{parts, values}) // strings cannot fail
	return fmt.Sprintf("%s %x", strings.ReplaceAll(program, "*", "?"), sha256.Sum256(text))
}

// mark says in a tool call which server the tool is of.
func (t *Tool) mark(u *acp.ToolCallUpdate) {
	_ = u.Meta.Set(plain.ServerKey, t.Declaration) // a string cannot fail
}

// kind returns the kind of a tool. What a server says of its tools counts once the user trusts it.
func (v *server) kind(tool *Tool) acp.ToolKind {
	kind := kindOf(tool.Annotations)
	if reads(kind) && !v.trusted.Load() {
		return acp.ToolKindOther
	}
	return kind
}

// permit is the default of Options.Permit.
func (s *Set) permit(ctx context.Context, _ agentkit.Asker, tool *Tool, call *agentkit.ToolCall) error {
	v := s.servers[slices.IndexFunc(s.servers, func(v *server) bool { return v.name == tool.Server })]
	hinted := reads(kindOf(tool.Annotations))
	if hinted && v.trusted.Load() {
		return nil
	}
	title, options := shorten(v.title, maxTitle), call.Options()
	always := slices.IndexFunc(options,
		func(o acp.PermissionOption) bool { return o.Kind == acp.PermissionOptionKindAllowAlways })
	switch {
	case hinted && always < 0:
		name := fmt.Sprintf("Allow all that %q, as it is declared now, says only reads, in this session", title)
		options = slices.Insert(options, 1, acp.AllowAlways("always", name))
	case hinted:
		options[always].Name = fmt.Sprintf("Always allow this tool, and in this session all that %q, as it is declared "+
			"now, says only reads", title)
	case always >= 0:
		options[always].Name = fmt.Sprintf("Always allow this tool of %q, as it is declared now, with any input about the "+
			"same files and commands", title)
	}
	chosen, err := call.Ask(ctx, options...)
	if err == nil && hinted && chosen.Kind == acp.PermissionOptionKindAllowAlways {
		v.trusted.Store(true)
	}
	return err
}
