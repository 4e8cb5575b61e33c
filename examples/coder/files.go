package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

const maxFile = 10 << 20 // bytes

// files are the files in the session's directories. Their text comes from the client, which knows unsaved text, or else from the disk.
type files struct {
	s     *session
	roots []*os.Root // they refuse links that lead out
}

func openFiles(s *session, dirs []string) (*files, error) {
	f := &files{s: s}
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			f.close()
			return nil, acp.Public(err)
		}
		f.roots = append(f.roots, root)
	}
	return f, nil
}

func (f *files) close() {
	for _, root := range f.roots {
		root.Close() // a directory that was only read: always nil
	}
}

// locate finds a path from the model, which is absolute or relative to the working directory.
func (f *files) locate(path string) (root *os.Root, rel, abs string, err error) {
	if abs = filepath.Clean(path); !filepath.IsAbs(abs) {
		abs = filepath.Join(f.s.Cwd(), path)
	}
	for _, root := range f.roots {
		rel, err := filepath.Rel(root.Name(), abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if _, err := root.Stat(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", "", err // a link that leads out, for example
		}
		return root, rel, abs, nil
	}
	return nil, "", "", fmt.Errorf("%s is outside the directories of the session", abs)
}

// read returns the text of a file, or limit lines of it from line on; 0 is no limit, and the first line.
func (f *files) read(ctx context.Context, path string, line, limit uint32) (string, error) {
	root, rel, abs, err := f.locate(path)
	if err != nil {
		return "", err
	}
	if f.s.Conn().Capabilities().FS.ReadTextFile {
		req := &acp.ReadTextFileRequest{Path: abs}
		if line > 0 {
			req.Line = acp.Some(line)
		}
		if limit > 0 {
			req.Limit = acp.Some(limit)
		}
		res, err := f.s.ReadTextFile(ctx, req)
		if errors.Is(err, acp.ErrResourceNotFound) {
			return "", &fs.PathError{Op: "read", Path: abs, Err: fs.ErrNotExist}
		} else if err != nil {
			return "", err
		}
		return res.Content, nil
	}
	info, err := root.Stat(rel)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file", abs)
	case info.Size() > maxFile:
		return "", fmt.Errorf("%s has %d bytes, more than %d: search it instead", abs, info.Size(), maxFile)
	}
	data, err := root.ReadFile(rel)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return "", fmt.Errorf("%s is not a text", abs)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = lines[min(int(max(line, 1))-1, len(lines)):]
	if limit > 0 {
		lines = lines[:min(int(limit), len(lines))]
	}
	return strings.Join(lines, ""), nil
}

// write writes a file, with its directory.
func (f *files) write(ctx context.Context, path, text string) error {
	root, rel, abs, err := f.locate(path)
	if err != nil {
		return err
	}
	if f.s.Conn().Capabilities().FS.WriteTextFile {
		_, err := f.s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: abs, Content: text})
		return err
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o777); err != nil {
		return err
	}
	return root.WriteFile(rel, []byte(text), 0o666)
}
