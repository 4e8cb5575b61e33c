package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/internal/await"
	"github.com/acpgo/sdk/internal/gitignore"
)

// List returns the names in a directory of this machine, one a line and sorted, those of directories with a slash.
func (w *Workspace) List(ctx context.Context, path string) (string, error) {
	return await.Do(ctx, patience, func() (string, error) {
		files, name, err := w.find(path)
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
	})
}

// Search returns the lines in the files below a directory of this machine that match a regular expression, in the form
// path:line:text. It leaves out what the .gitignore files in the session's directory exclude, the directories of
// version control and node_modules, and files that are too large or not text. Only the first 64 KiB of a line are
// compared. The result has at most 64 KiB.
func (w *Workspace) Search(ctx context.Context, dir, pattern string) (string, error) {
	expr, err := regexp.Compile(pattern)
	if err != nil {
		return "", acp.Public(err)
	}
	return await.Do(ctx, patience, func() (string, error) {
		files, name, err := w.find(dir)
		if err != nil {
			return "", err
		}
		found := &bounded{left: maxOutput}
		err = w.search(ctx, files, name, w.Path(dir), expr, found)
		return strings.ToValidUTF8(found.String(), ""), err
	})
}

// search searches the files below name, which is dir for the user.
func (w *Workspace) search(ctx context.Context, files fs.FS, name, dir string, expr *regexp.Regexp,
	found *bounded) error {
	rules := map[string]gitignore.Rules{} // by directory
	if name != "." {
		rules[path.Dir(name)] = outerRules(files, path.Dir(name))
	}
	return fs.WalkDir(files, name, func(file string, entry fs.DirEntry, err error) error {
		own := rules[path.Dir(file)]
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && file == name:
			return err
		case err != nil: // the rest can be searched
			return nil
		case found.left == 0:
			return fs.SkipAll
		case file != name && ignored(own, file, entry.IsDir()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			rules[file] = addRules(own, files, file)
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		data, err := readSmall(files, file)
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return nil
		}
		rel, err := filepath.Rel(filepath.FromSlash(name), filepath.FromSlash(file))
		if err != nil {
			return err
		}
		for n := 1; len(data) > 0 && ctx.Err() == nil; n++ {
			var line []byte
			line, data, _ = bytes.Cut(data, []byte("\n"))
			if line = bytes.TrimSuffix(line, []byte("\r")); expr.Match(line[:min(len(line), maxLine)]) {
				fmt.Fprintf(found, "%s:%d:%.300s\n", filepath.Join(dir, rel), n, line)
			}
		}
		return nil
	})
}

const maxLine = 64 << 10 // bytes of a line that are compared

// readSmall reads a file, or nothing of one that is too large.
func readSmall(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > local.DefaultMaxFileSize {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, local.DefaultMaxFileSize))
}

// outerRules returns the rules for what is in a directory: those of outer directories apply first.
func outerRules(files fs.FS, dir string) (rules gitignore.Rules) {
	if dir != "." {
		rules = outerRules(files, path.Dir(dir))
	}
	return addRules(rules, files, dir)
}

// addRules returns rules with those of the .gitignore file in a directory after them.
func addRules(rules gitignore.Rules, files fs.FS, dir string) gitignore.Rules {
	text, err := readSmall(files, path.Join(dir, ".gitignore"))
	if err != nil || len(text) > gitignore.MaxFile {
		return rules
	}
	base := dir
	if dir == "." {
		base = ""
	}
	return rules.With(text, base)
}

// ignored reports whether a file is left out.
func ignored(rules gitignore.Rules, file string, dir bool) bool {
	own := []string{".git", ".hg", ".jj", ".svn", "node_modules"}
	return dir && slices.Contains(own, path.Base(file)) || rules.Match(file, dir)
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
// agentkit.Session has them, and returns them as embedded resources: at most ten files, and 2000 lines and 64 KiB of
// each. Words that name no text file of the session are left out.
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

// Describe describes the session's surroundings in the system prompt of a model: the operating system, the directories,
// and what AGENTS.md in each directory says.
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
