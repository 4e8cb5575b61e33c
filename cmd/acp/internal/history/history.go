// Package history stores the prompts that a user has sent in a directory, for later runs of the program.
package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
	"github.com/acpgo/sdk/internal/filelock"
)

// Prompt is a prompt as the user typed it: its text, and long pasted texts for which the text has placeholders.
type Prompt struct {
	Text   string   `json:"text"`
	Pasted []string `json:"pasted,omitempty"`
}

// The limits of a file. The oldest prompts are dropped. A prompt longer than maxPrompt is not stored.
const (
	maxPrompts = 1000
	maxBytes   = 1 << 20
	maxPrompt  = 64 << 10
)

// maxFiles is the number of directories whose prompts are stored: those in which a prompt was sent last.
const maxFiles = 500

// lockTime is how long to wait for another process that is writing.
const lockTime = 2 * time.Second

// File stores the prompts of a directory. Several processes may use it at once.
type File struct{ path string }

// For returns the file of a directory, in the user's state directory. The file need not exist.
func For(cwd string) (*File, error) {
	state, err := names.StateDir()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(cwd))
	return &File{filepath.Join(state, "prompts", hex.EncodeToString(sum[:16])+".jsonl")}, nil
}

// Load returns the prompts, the newest last. Invalid lines are skipped.
func (f *File) Load() ([]Prompt, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-2*maxBytes) // another process may have made it longer
	text := make([]byte, info.Size()-from)
	n, err := file.ReadAt(text, from)
	if n < len(text) && err != nil {
		return nil, err
	}
	prompts := []Prompt{}
	for line := range bytes.Lines(text) {
		var p Prompt
		if json.Unmarshal(line, &p) == nil && p.Text != "" {
			prompts = append(prompts, p)
		}
	}
	return prompts[max(0, len(prompts)-maxPrompts):], nil
}

// Add adds prompts, and drops the oldest ones if there are too many.
func (f *File) Add(prompts ...Prompt) (err error) {
	var text []byte
	for _, p := range prompts {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if len(line) <= maxPrompt {
			text = append(append(text, line...), '\n')
		}
	}
	if len(text) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	// one lock for all files, which are created and removed
	lock, err := filelock.Wait(ctx, filepath.Join(filepath.Dir(f.path), "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	size, err := write(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if size == int64(len(text)) { // it is new
		return f.forgetFolders()
	}
	if size > maxBytes {
		return f.shorten()
	}
	return nil
}

// write appends text to a file, beginning on a new line, and returns the size of the file.
func write(file *os.File, text []byte) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	if size > 0 { // a process may have ended in the middle of a line
		var last [1]byte
		if _, err := file.ReadAt(last[:], size-1); err != nil {
			return 0, err
		}
		if last[0] != '\n' {
			text = append([]byte{'\n'}, text...)
		}
	}
	n, err := file.Write(text)
	return size + int64(n), err
}

// shorten keeps the newest prompts, up to half of the maximum size.
func (f *File) shorten() error {
	prompts, err := f.Load()
	if err != nil {
		return err
	}
	var lines [][]byte
	size := 0
	for _, p := range slices.Backward(prompts) {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if size += len(line) + 1; size > maxBytes/2 {
			break
		}
		lines = append(lines, append(line, '\n'))
	}
	slices.Reverse(lines)
	return input.Replace(f.path, bytes.Join(lines, nil), 0o600)
}

// forgetFolders removes the files of the directories in which no prompt was sent for longest, if there are too many.
func (f *File) forgetFolders() error {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var files []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".jsonl") {
			files = append(files, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return b.at.Compare(a.at) })
	for _, old := range files[min(len(files), maxFiles):] {
		err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(f.path), old.name)))
	}
	return err
}
