package mcpacp

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/agentkit/workspace"
)

// AddWorkspace adds tools for the files and commands of a session to a set: read, list, search, edit, write and run.
// The last three ask the user with agentkit.ToolCall.Ask, edit and write after they have shown the difference;
// Config.Decide of agentkit decides first.
func AddWorkspace(s *Set, w *workspace.Workspace) {
	AddTool(s, "read", acp.ToolKindRead, "Read a text file.",
		func(ctx context.Context, call *agentkit.ToolCall, in readInput) (string, error) {
			if err := call.Update(acp.WithLocation(w.Path(in.Path), in.Line)); err != nil {
				return "", err
			}
			return w.Read(ctx, in.Path, in.Line, cmp.Or(in.Limit, 2000))
		})
	AddTool(s, "list", acp.ToolKindRead, "List a directory. The names of directories end with a slash.",
		func(ctx context.Context, _ *agentkit.ToolCall, in listInput) (string, error) {
			return w.List(ctx, in.Path)
		})
	AddTool(s, "search", acp.ToolKindSearch, "Find the lines that match a regular expression in the files of a directory.",
		func(ctx context.Context, _ *agentkit.ToolCall, in searchInput) (string, error) {
			return w.Search(ctx, in.Path, in.Pattern)
		})
	AddTool(s, "edit", acp.ToolKindEdit,
		"Replace a text in a file. It must occur exactly once, unless all occurrences are replaced.",
		func(ctx context.Context, call *agentkit.ToolCall, in editInput) (string, error) {
			return "", w.Edit(ctx, call, in.Path, in.Old, in.New, in.All)
		})
	AddTool(s, "write", acp.ToolKindEdit, "Create or replace a file.",
		func(ctx context.Context, call *agentkit.ToolCall, in writeInput) (string, error) {
			return "", w.Replace(ctx, call, in.Path, in.Content)
		})
	AddTool(s, "run", acp.ToolKindExecute, "Run a shell command in the working directory.",
		func(ctx context.Context, call *agentkit.ToolCall, in runInput) (string, error) {
			return w.Shell(ctx, call, in.Command, time.Duration(cmp.Or(in.Seconds, 120))*time.Second)
		})
}

// The inputs of the tools; their texts are the titles of calls.
type (
	readInput struct {
		Path  string `json:"path"`
		Line  uint32 `json:"line,omitempty" jsonschema:"the first line, from 1"`
		Limit uint32 `json:"limit,omitempty" jsonschema:"how many lines; 2000 if missing"`
	}
	listInput struct {
		Path string `json:"path,omitempty" jsonschema:"the directory; the working directory if missing"`
	}
	searchInput struct {
		Pattern string `json:"pattern" jsonschema:"a regular expression"`
		Path    string `json:"path,omitempty" jsonschema:"the directory; the working directory if missing"`
	}
	editInput struct {
		Path string `json:"path"`
		Old  string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file"`
		New  string `json:"new_string"`
		All  bool   `json:"replace_all,omitempty"`
	}
	writeInput struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	runInput struct {
		Command string `json:"command"`
		Seconds uint16 `json:"seconds,omitempty" jsonschema:"how long it may take; 120 if missing"`
	}
)

func (in readInput) String() string   { return "Read " + in.Path }
func (in listInput) String() string   { return strings.TrimSpace("List " + in.Path) }
func (in searchInput) String() string { return "Search " + in.Pattern }
func (in editInput) String() string   { return "Edit " + in.Path }
func (in writeInput) String() string  { return "Write " + in.Path }
func (in runInput) String() string    { return "Run " + in.Command }
