package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
)

// tool is a tool of the model. begin checks the arguments, and returns the title of the call and the function that runs it; nil
// means that an MCP server runs it.
type tool struct {
	name, description string
	schema            map[string]any
	kind              acp.ToolKind
	begin             func(args string) (title string, run runner, err error)
}

type runner func(ctx context.Context, w *work) (string, error)

// reads reports whether a tool is known to change nothing.
func (t *tool) reads() bool {
	return t != nil && (t.kind == acp.ToolKindRead || t.kind == acp.ToolKindSearch)
}

// work is a call in progress.
type work struct {
	*turn
	a    *agent
	call *agentkit.ToolCall
}

// newTool returns a tool whose schema is made from the type of its input. The title of a call is verb and the value of subject.
func newTool[In any](
	name string, kind acp.ToolKind, verb, subject, description string, run func(context.Context, *work, In) (string, error),
) tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(err)
	}
	return tool{name, description, asMap(schema), kind, func(args string) (string, runner, error) {
		var in In
		var members map[string]any
		err := errors.Join(json.Unmarshal([]byte(args), &members), resolved.Validate(members))
		if err == nil {
			err = json.Unmarshal([]byte(args), &in)
		}
		if err != nil {
			return "", nil, fmt.Errorf("the arguments are wrong: %w", err)
		}
		title := verb
		if value, ok := members[subject].(string); ok {
			title += " " + value
		}
		return title, func(ctx context.Context, w *work) (string, error) { return run(ctx, w, in) }, nil
	}}
}

// asMap returns a schema in the form that the clients of the APIs take.
func asMap(schema any) (m map[string]any) {
	if text, err := json.Marshal(schema); err == nil {
		_ = json.Unmarshal(text, &m) // it is JSON
	}
	return m
}

var tools = []tool{
	newTool("read", acp.ToolKindRead, "Read", "path", "Read a text file.", readFile),
	newTool("list", acp.ToolKindRead, "List", "path", "List a directory. The names of directories end with a slash.", listDir),
	newTool("search", acp.ToolKindSearch, "Search", "pattern", "Find the lines that match a regular expression in the files of a directory.", search),
	newTool("edit", acp.ToolKindEdit, "Edit", "path", "Replace a text in a file. It must occur exactly once, unless all occurrences are replaced.", editFile),
	newTool("write", acp.ToolKindEdit, "Write", "path", "Create or replace a file.", writeFile),
	newTool("run", acp.ToolKindExecute, "Run", "command", "Run a shell command in the working directory.", runCommand),
	newTool("plan", acp.ToolKindThink, "Update the plan", "", "Show the user the whole plan. Use it for tasks of several steps, and after each step.", showPlan),
}

type readInput struct {
	Path  string `json:"path"`
	Line  uint32 `json:"line,omitempty" jsonschema:"the first line, from 1"`
	Limit uint32 `json:"limit,omitempty" jsonschema:"how many lines; 2000 if missing"`
}

func readFile(ctx context.Context, w *work, in readInput) (string, error) {
	if _, _, abs, err := w.State.files.locate(in.Path); err == nil {
		if err := w.call.Update(acp.WithLocation(abs, in.Line)); err != nil {
			return "", err
		}
	}
	return w.State.files.read(ctx, in.Path, in.Line, cmp.Or(in.Limit, 2000))
}

type listInput struct {
	Path string `json:"path,omitempty" jsonschema:"the directory; the working directory if missing"`
}

func listDir(_ context.Context, w *work, in listInput) (string, error) {
	root, rel, _, err := w.State.files.locate(in.Path)
	if err != nil {
		return "", err
	}
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(rel))
	var b strings.Builder
	for _, entry := range entries {
		b.WriteString(entry.Name())
		if entry.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return b.String(), err
}

type searchInput struct {
	Pattern string `json:"pattern" jsonschema:"a regular expression"`
	Path    string `json:"path,omitempty" jsonschema:"the directory; the working directory if missing"`
}

const maxFound = 64 << 10 // bytes

func search(ctx context.Context, w *work, in searchInput) (string, error) {
	root, rel, abs, err := w.State.files.locate(in.Path)
	if err != nil {
		return "", err
	}
	if rg, err := exec.LookPath("rg"); err == nil {
		cmd := exec.CommandContext(ctx, rg, "--line-number", "--no-heading", "--max-columns=300", "--max-count=50", "-e", in.Pattern, "--", abs)
		found, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			if err = nil; exit.ExitCode() != 1 { // 1 says that nothing was found
				err = errors.New(string(exit.Stderr))
			}
		}
		return string(found[:min(len(found), maxFound)]), err
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", err
	}
	var found bytes.Buffer
	err = fs.WalkDir(root.FS(), filepath.ToSlash(rel), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // unreadable entries are skipped
			return nil
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		case found.Len() > maxFound:
			return fs.SkipAll
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxFile {
			return nil
		}
		data, err := root.ReadFile(filepath.FromSlash(name))
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return nil
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for n := 1; lines.Scan(); n++ {
			if pattern.Match(lines.Bytes()) {
				fmt.Fprintf(&found, "%s:%d:%.300s\n", filepath.Join(root.Name(), name), n, lines.Text())
			}
		}
		return nil
	})
	return found.String(), err
}

type editInput struct {
	Path string `json:"path"`
	Old  string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file"`
	New  string `json:"new_string"`
	All  bool   `json:"replace_all,omitempty"`
}

func editFile(ctx context.Context, w *work, in editInput) (string, error) {
	before, err := w.State.files.read(ctx, in.Path, 0, 0)
	if err != nil {
		return "", err
	}
	switch n := strings.Count(before, in.Old); {
	case in.Old == "" || n == 0:
		return "", errors.New("old_string is not in the file")
	case n > 1 && !in.All:
		return "", fmt.Errorf("old_string is in the file %d times: add the lines around it", n)
	}
	return w.change(ctx, in.Path, before, strings.ReplaceAll(before, in.Old, in.New))
}

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func writeFile(ctx context.Context, w *work, in writeInput) (string, error) {
	before, err := w.State.files.read(ctx, in.Path, 0, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return w.change(ctx, in.Path, before, in.Content)
}

// change shows a change of a file, asks for permission, and makes it.
func (w *work) change(ctx context.Context, path, before, after string) (string, error) {
	_, _, abs, err := w.State.files.locate(path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(w.call.Diff(abs, before, after), w.a.permit(ctx, w.turn, w.call, false)); err != nil {
		return "", err
	}
	if now, _ := w.State.files.read(ctx, path, 0, 0); now != before {
		return "", errors.New("the file has changed in the meantime: read it again")
	}
	return "Done.", w.State.files.write(ctx, path, after)
}

type runInput struct {
	Command string `json:"command"`
	Seconds uint16 `json:"seconds,omitempty" jsonschema:"how long it may take; 120 if missing"`
}

func runCommand(ctx context.Context, w *work, in runInput) (string, error) {
	if err := w.a.permit(ctx, w.turn, w.call, false); err != nil {
		return "", err
	}
	limit := time.Duration(cmp.Or(in.Seconds, 120)) * time.Second
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shell := local.DefaultShell()
	req := &acp.CreateTerminalRequest{
		SessionID: w.ID(), Command: shell[0], Args: append(shell[1:], in.Command), Cwd: acp.Some(w.Cwd()), OutputByteLimit: acp.Some[uint64](maxFound),
	}
	run := w.runHere
	if w.Conn().Capabilities().Terminal {
		run = w.call.Run
	}
	res, err := run(short, req)
	if res == nil {
		return "", err
	}
	if err == nil {
		err = res.ExitStatus.Value().Err()
	} else if ctx.Err() == nil {
		err = fmt.Errorf("stopped after %v", limit)
	}
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, res.Output)
	}
	return res.Output, nil
}

// runHere runs a command as a process of this machine, and ends it with all that it has started.
func (w *work) runHere(ctx context.Context, req *acp.CreateTerminalRequest) (*acp.TerminalOutputResponse, error) {
	host, free := w.a.terminals, context.WithoutCancel(ctx)
	created, err := host.CreateTerminal(ctx, w, req)
	if err != nil {
		return nil, err
	}
	id := created.TerminalID
	_, err = host.WaitForTerminalExit(ctx, w, &acp.WaitForTerminalExitRequest{SessionID: w.ID(), TerminalID: id})
	if err != nil {
		_, killed := host.KillTerminal(free, w, &acp.KillTerminalRequest{SessionID: w.ID(), TerminalID: id})
		err = errors.Join(err, killed)
	}
	res, failed := host.TerminalOutput(free, w, &acp.TerminalOutputRequest{SessionID: w.ID(), TerminalID: id})
	_, released := host.ReleaseTerminal(free, w, &acp.ReleaseTerminalRequest{SessionID: w.ID(), TerminalID: id})
	if failed == nil {
		failed = w.call.Update(acp.WithContent(acp.ToolText("```\n" + res.Output + "\n```")))
	}
	return res, errors.Join(err, failed, released)
}

type planInput struct {
	Steps []struct {
		Step   string `json:"step"`
		Status string `json:"status" jsonschema:"pending, in_progress or completed"`
	} `json:"steps"`
}

func showPlan(ctx context.Context, w *work, in planInput) (string, error) {
	var entries []acp.PlanEntry
	for _, s := range in.Steps {
		e := acp.PlanEntry{Content: s.Step, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatus(s.Status)}
		if !e.Status.Known() {
			return "", fmt.Errorf("there is no status %q", s.Status)
		}
		entries = append(entries, e)
	}
	return "Done.", w.Update(ctx, acp.WholePlan(entries...))
}
