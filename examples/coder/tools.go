package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// tools has the agent's own tools, for one session. The String method of an input is the title of its calls.
type tools struct{ *session }

func (t tools) addTo(set *mcpacp.Set) {
	mcpacp.AddTool(set, "read", acp.ToolKindRead, "Read a text file.", t.read)
	mcpacp.AddTool(set, "list", acp.ToolKindRead, "List a directory. The names of directories end with a slash.", t.list)
	mcpacp.AddTool(set, "search", acp.ToolKindSearch, "Find the lines that match a regular expression in the files of a directory.", t.search)
	mcpacp.AddTool(set, "edit", acp.ToolKindEdit,
		"Replace a text in a file. It must occur exactly once, unless all occurrences are replaced.", t.edit)
	mcpacp.AddTool(set, "write", acp.ToolKindEdit, "Create or replace a file.", t.write)
	mcpacp.AddTool(set, "run", acp.ToolKindExecute, "Run a shell command in the working directory.", t.run)
	mcpacp.AddTool(set, "plan", acp.ToolKindThink,
		"Show the user the whole plan. Use it for tasks of several steps, and after each step.", t.plan)
}

type readInput struct {
	Path  string `json:"path"`
	Line  uint32 `json:"line,omitempty" jsonschema:"the first line, from 1"`
	Limit uint32 `json:"limit,omitempty" jsonschema:"how many lines; 2000 if missing"`
}

func (in readInput) String() string { return "Read " + in.Path }

func (t tools) read(ctx context.Context, call *agentkit.ToolCall, in readInput) (string, error) {
	if err := call.Update(acp.WithLocation(t.State.files.Path(in.Path), in.Line)); err != nil {
		return "", err
	}
	text, err := t.State.files.Read(ctx, in.Path, in.Line, cmp.Or(in.Limit, 2000))
	return clip(text, maxText), err
}

type listInput struct {
	Path string `json:"path,omitempty" jsonschema:"the directory; the working directory if missing"`
}

func (in listInput) String() string { return strings.TrimSpace("List " + in.Path) }

func (t tools) list(_ context.Context, _ *agentkit.ToolCall, in listInput) (string, error) {
	entries, err := t.State.files.List(in.Path)
	var names strings.Builder
	for _, entry := range entries {
		names.WriteString(entry.Name())
		if entry.IsDir() {
			names.WriteByte('/')
		}
		names.WriteByte('\n')
	}
	return clip(names.String(), maxText), err
}

type searchInput struct {
	Pattern string `json:"pattern" jsonschema:"a regular expression"`
	Path    string `json:"path,omitempty" jsonschema:"the directory; the working directory if missing"`
}

func (in searchInput) String() string { return "Search " + in.Pattern }

func (t tools) search(ctx context.Context, _ *agentkit.ToolCall, in searchInput) (string, error) {
	return t.State.files.Search(ctx, in.Path, in.Pattern)
}

type editInput struct {
	Path string `json:"path"`
	Old  string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file"`
	New  string `json:"new_string"`
	All  bool   `json:"replace_all,omitempty"`
}

func (in editInput) String() string { return "Edit " + in.Path }

func (t tools) edit(ctx context.Context, call *agentkit.ToolCall, in editInput) (string, error) {
	before, err := t.State.files.Read(ctx, in.Path, 0, 0)
	if err != nil {
		return "", err
	}
	switch n := strings.Count(before, in.Old); {
	case in.Old == "" || n == 0:
		return "", errors.New("old_string is not in the file")
	case n > 1 && !in.All:
		return "", fmt.Errorf("old_string is in the file %d times: add the lines around it", n)
	}
	return t.change(ctx, call, in.Path, before, strings.ReplaceAll(before, in.Old, in.New))
}

func (t tools) change(ctx context.Context, call *agentkit.ToolCall, path, before, after string) (string, error) {
	permit := func() error { return permit(ctx, t.session, call) }
	return "Done.", t.State.files.Change(ctx, call, path, before, after, permit)
}

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (in writeInput) String() string { return "Write " + in.Path }

func (t tools) write(ctx context.Context, call *agentkit.ToolCall, in writeInput) (string, error) {
	before, err := t.State.files.Read(ctx, in.Path, 0, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return t.change(ctx, call, in.Path, before, in.Content)
}

type runInput struct {
	Command string `json:"command"`
	Seconds uint16 `json:"seconds,omitempty" jsonschema:"how long it may take; 120 if missing"`
}

func (in runInput) String() string { return "Run " + in.Command }

func (t tools) run(ctx context.Context, call *agentkit.ToolCall, in runInput) (string, error) {
	if err := permit(ctx, t.session, call); err != nil {
		return "", err
	}
	limit := time.Duration(cmp.Or(in.Seconds, 120)) * time.Second
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shell := local.DefaultShell()
	command := &acp.CreateTerminalRequest{Command: shell[0], Args: append(shell[1:], in.Command)}
	res, err := t.State.files.Run(short, call, command)
	switch {
	case res == nil:
		return "", err
	case err == nil:
		err = res.ExitStatus.Value().Err()
	case ctx.Err() == nil:
		err = fmt.Errorf("stopped after %v", limit)
	}
	return res.Output, err
}

type planInput struct {
	Steps []struct {
		Step   string `json:"step"`
		Status string `json:"status" jsonschema:"pending, in_progress or completed"`
	} `json:"steps"`
}

func (in planInput) String() string { return "Update the plan" }

func (t tools) plan(ctx context.Context, _ *agentkit.ToolCall, in planInput) (string, error) {
	var entries []acp.PlanEntry
	for _, s := range in.Steps {
		e := acp.PlanEntry{Content: s.Step, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatus(s.Status)}
		if !e.Status.Known() {
			return "", fmt.Errorf("there is no status %q", s.Status)
		}
		entries = append(entries, e)
	}
	return "Done.", t.Update(ctx, acp.WholePlan(entries...))
}
