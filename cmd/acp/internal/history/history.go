// Package history stores the prompts that a user has sent, for later runs of the program in the same directory.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
	"github.com/acpgo/sdk/internal/filelock"
	"github.com/acpgo/sdk/internal/wholefile"
)

// Prompt is a prompt as the user typed it: its text, and long pasted texts for which the text has placeholders.
type Prompt struct {
	Text   string   `json:"text"`
	Pasted []string `json:"pasted,omitempty"`
}

// entry is a line of the file.
type entry struct {
	Prompt

	Cwd string `json:"cwd"`
}

// The limits of the file, which has the prompts of all directories. The oldest prompts are dropped. A prompt longer
// than maxPrompt is not stored.
const (
	maxBytes  = 1 << 20
	maxPrompt = 64 << 10
)

// lockTime is how long to wait for another process that is writing.
const lockTime = 2 * time.Second

// File has the prompts of a directory. Several processes may use it at once.
type File struct{ path, cwd string }

// For returns the file, in the user's state directory, for the prompts of a directory. It need not exist.
func For(cwd string) (*File, error) {
	state, err := names.StateDir()
	if err != nil {
		return nil, err
	}
	return &File{filepath.Join(state, "prompts.jsonl"), cwd}, nil
}

// Load returns the prompts of the directory, the newest last. Invalid lines are skipped.
func (f *File) Load() ([]Prompt, error) {
	all, err := f.read()
	var prompts []Prompt
	for _, e := range all {
		if e.Cwd == f.cwd {
			prompts = append(prompts, e.Prompt)
		}
	}
	return prompts, err
}

func (f *File) read() (all []entry, err error) {
	text, err := input.ReadFile(f.path, 2*maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var e entry
		if json.Unmarshal(line, &e) == nil && e.Text != "" {
			all = append(all, e)
		}
	}
	return all, err
}

// Add adds prompts, and drops the oldest ones if there are too many.
func (f *File) Add(prompts ...Prompt) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	lock, err := filelock.Wait(ctx, f.path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	for _, p := range prompts {
		line, err := json.Marshal(entry{p, f.cwd})
		if err == nil && len(line) <= maxPrompt {
			// It begins with a newline, because a process may have ended in the middle of a line.
			_, err = file.Write(append([]byte{'\n'}, line...))
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Close()); err != nil || info.Size() <= maxBytes {
		return err
	}
	return f.shorten()
}

// shorten keeps the newest prompts, up to half of the maximum size.
func (f *File) shorten() error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	_, text, _ = bytes.Cut(text[len(text)-maxBytes/2:], []byte{'\n'})
	return wholefile.Replace(f.path, text, 0o600)
}
