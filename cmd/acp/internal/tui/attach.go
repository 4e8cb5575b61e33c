package tui

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// files are the files of a directory.
type files struct {
	dir   string
	items []item // to choose from
	at    time.Time
}

// filesMsg has the result of a search for files.
type filesMsg files

// maxFiles is how many files of a directory are offered, and filesAge the age at which the list is renewed.
const (
	maxFiles = 20_000
	filesAge = 10 * time.Second
)

// filesOf returns the files of a directory as last found. If the list is old, it starts a new search.
func (m *Model) filesOf(dir string) []item {
	if m.files.dir != dir || m.now().Sub(m.files.at) > filesAge {
		if m.files.dir != dir {
			m.files = files{dir: dir}
		}
		m.files.at = m.now()
		find := m.tasks.cmd(func(ctx context.Context) tea.Msg { return filesMsg(findFiles(ctx, dir, m.now())) })
		m.pending = append(m.pending, find)
	}
	return m.files.items
}

// findFiles finds the files in dir.
func findFiles(ctx context.Context, dir string, now time.Time) files {
	found := files{dir: dir, at: now}
	walkSources(ctx, dir, func(path string, _ fs.DirEntry) bool {
		if relative, err := filepath.Rel(dir, path); err == nil && harmless(relative) {
			relative = filepath.ToSlash(relative)
			found.items = append(found.items, item{label: "@" + relative, value: fileMention(relative)})
		}
		return len(found.items) < maxFiles
	})
	return found
}

// fileMention returns a file as a prompt names it: in quotes if its name contains a space.
func fileMention(path string) string {
	if strings.ContainsAny(path, " \t") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// mention matches the names of files in a prompt.
var mention = regexp.MustCompile(`(?:^|\s)@("[^"\n]+"|[^\s"]+)`)

// mentioned returns the path of a file that is named, without punctuation that follows it.
func mentioned(cwd, name string) (path string, ok bool) {
	for _, name := range []string{strings.Trim(name, `"`), strings.TrimRight(name, ".,;:!?)]}")} {
		path = filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		if _, err := os.Stat(path); err == nil && name != "" {
			return path, true
		}
	}
	return "", false
}

// blocks returns the content blocks of a prompt: its text with pasted texts in their places, and the files that it
// names.
func (p prompt) blocks(cwd string, can acp.PromptCapabilities) ([]acp.ContentBlock, error) {
	text := p.text
	for i, pasted := range p.pasted {
		text = strings.Replace(text, pasteMark(i+1, strings.Count(pasted, "\n")+1), pasted, 1)
	}
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	for _, found := range mention.FindAllStringSubmatch(p.text, -1) {
		path, ok := mentioned(cwd, found[1])
		if !ok {
			continue // "@" may precede other words
		}
		block, err := talk.Attachment(path, can)
		if _, unsupported := errors.AsType[*talk.UnsupportedError](err); unsupported {
			block, err = acp.ResourceLinkBlock(filepath.Base(path), talk.FileURL(path)), nil
		}
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}
