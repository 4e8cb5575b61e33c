package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
)

// List returns the names in a directory of this machine, one a line and sorted, those of directories with a slash.
func (w *Workspace) List(path string) (string, error) {
	files, name, err := w.roots.Find(w.session, w.Path(path))
	if err != nil {
		return "", err
	}
	entries, err := fs.ReadDir(files, name)
	var names strings.Builder
	for _, entry := range entries {
		names.WriteString(entry.Name())
		if entry.IsDir() {
			names.WriteByte('/')
		}
		names.WriteByte('\n')
	}
	return names.String(), err
}

// Search returns the lines in the files below a directory of this machine that match a regular expression, in the form
// path:line:text. It runs ripgrep if that is installed, which leaves out ignored files, and otherwise searches itself.
// Files that are too large or not text are left out. The result has at most 64 KiB.
func (w *Workspace) Search(ctx context.Context, path, pattern string) (string, error) {
	dir := w.Path(path)
	files, name, err := w.roots.Find(w.session, dir)
	if err != nil {
		return "", err
	}
	found := &bounded{left: maxOutput}
	if rg, missing := exec.LookPath("rg"); missing == nil {
		err = ripgrep(ctx, rg, dir, pattern, found)
	} else {
		err = search(ctx, files, name, dir, pattern, found)
	}
	return strings.ToValidUTF8(found.String(), ""), err
}

func ripgrep(ctx context.Context, rg, dir, pattern string, found io.Writer) error {
	cmd := exec.CommandContext(ctx, rg, "--line-number", "--no-heading", "--max-columns=300", "--max-count=50", "-e", pattern, "--", dir)
	problems := &bounded{left: maxOutput}
	cmd.Stdout, cmd.Stderr = found, problems
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ended && exit.ExitCode() == 1: // nothing was found
		return nil
	case ended && problems.Len() > 0:
		return acp.Public(errors.New(problems.String()))
	}
	return err
}

func search(ctx context.Context, files fs.FS, name, dir, pattern string, found *bounded) error {
	expr, err := regexp.Compile(pattern)
	if err != nil {
		return acp.Public(err)
	}
	return fs.WalkDir(files, name, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && file == name:
			return err
		case err != nil: // the rest can be searched
			return nil
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		case found.left == 0:
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil || info.Size() > local.DefaultMaxFileSize {
			return nil
		}
		data, err := fs.ReadFile(files, file)
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return nil
		}
		rel, err := filepath.Rel(filepath.FromSlash(name), filepath.FromSlash(file))
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for n := 1; lines.Scan(); n++ {
			if expr.Match(lines.Bytes()) {
				fmt.Fprintf(found, "%s:%d:%.300s\n", filepath.Join(dir, rel), n, lines.Text())
			}
		}
		return nil
	})
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}

var mention = regexp.MustCompile(`(?:^|\s)@([^\s@]*[^\s@.,:;!?)])`)

// The bounds of Attach.
const (
	maxMentions     = 10
	maxMentionLines = 2000
)

// Attach adds the files that a prompt names with an @, such as "@main.go", to the stored prompt, so that Messages of
// agentkit.Session has them, and returns them as embedded resources: at most ten files, and 2000 lines and 64 KiB of each.
// Words that name no text file of the session are left out.
func (w *Workspace) Attach(ctx context.Context, prompt *acp.PromptRequest) ([]acp.ContentBlock, error) {
	var blocks []acp.ContentBlock
	for _, match := range mention.FindAllStringSubmatch(agentkit.PromptText(prompt), maxMentions) {
		content, err := w.Read(ctx, match[1], 0, maxMentionLines)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue
		}
		uri := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(w.Path(match[1])), "/")}
		block := acp.ResourceBlock(acp.EmbeddedResourceResource{
			Variant: &acp.TextResourceContents{URI: uri.String(), Text: beginning(content)},
		})
		if err := w.session.Record(ctx, acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: block})); err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// Describe describes the session's surroundings in the system prompt of a model: the operating system, the directories, and
// what AGENTS.md in each directory says.
func (w *Workspace) Describe(ctx context.Context) string {
	var about, guides strings.Builder
	fmt.Fprintf(&about, "Operating system: %s\n", runtime.GOOS)
	for i, dir := range append([]string{w.session.Cwd()}, w.session.AdditionalDirectories()...) {
		what := "Working directory"
		if i > 0 {
			what = "Another directory"
		}
		fmt.Fprintf(&about, "%s: %s\n", what, dir)
		guide := filepath.Join(dir, "AGENTS.md")
		if text, err := w.Read(ctx, guide, 0, 0); err == nil && text != "" {
			fmt.Fprintf(&guides, "\n%s says:\n%s\n", guide, beginning(text))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(&guides, "\n%s cannot be read: %v\n", guide, err)
		}
	}
	return about.String() + guides.String()
}

// beginning returns as much of a text as a model gets.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxOutput)], "")
}
