// Package names keeps the names that a user gives to sessions of agents, so that a later run of the program can go on with
// them. What is said in a session is kept by the agent.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/filelock"
)

// Key is what a name is unique for: the same one may be used in another folder, and for another agent.
type Key struct {
	// Agent is the agent as the user calls it, Cwd the folder in which it works.
	Agent string `json:"agent"`
	Cwd   string `json:"cwd"`
	Name  string `json:"name"`
}

// Entry is a name, and what it is the name of.
type Entry struct {
	Key
	Session acp.SessionID `json:"session"`
	Used    time.Time     `json:"used"`
}

// Store keeps names in a folder, one file each. Several programs may use it at once.
type Store struct{ Dir string }

// Default returns the store in the user's folder for state.
func Default() (*Store, error) {
	dir, err := StateDir()
	if err != nil {
		return nil, err
	}
	return &Store{filepath.Join(dir, "sessions")}, nil
}

// StateDir is the folder for the state that this program keeps for the user: $XDG_STATE_HOME/acp, or that of the system.
func StateDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		switch runtime.GOOS {
		case "windows", "darwin", "ios":
			config, err := os.UserConfigDir()
			if err != nil {
				return "", err
			}
			dir = config
		default:
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			dir = filepath.Join(home, ".local", "state")
		}
	}
	return filepath.Join(dir, "acp"), nil
}

// file is the file of a key.
func (s *Store) file(k Key) string {
	sum := sha256.Sum256([]byte(k.Agent + "\x00" + k.Cwd + "\x00" + k.Name))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16]))
}

// Lock has a name for this process alone until it is unlocked, or the process ends. The error matches filelock.ErrLocked
// if another one has it.
func (s *Store) Lock(k Key) (*filelock.Lock, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	return filelock.Try(s.file(k) + ".lock")
}

// Get returns the session of a name; "" if there is none.
func (s *Store) Get(k Key) (acp.SessionID, error) {
	e, err := read(s.file(k) + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && e.Key != k {
		err = fmt.Errorf("%s.json does not belong to session %q", s.file(k), k.Name)
	}
	return e.Session, err
}

func read(path string) (e Entry, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// Set gives a session a name, which is used now.
func (s *Store) Set(k Key, session acp.SessionID) error {
	text, err := json.Marshal(Entry{k, session, time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(s.Dir, "new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), s.file(k)+".json")
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// List returns the names for an agent in a folder, the last used first; for all agents if agent is "". What cannot be read is
// left out.
func (s *Store) List(agent, cwd string) ([]Entry, error) {
	files, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".json") {
			continue
		}
		e, err := read(filepath.Join(s.Dir, file.Name()))
		if err == nil && (agent == "" || e.Agent == agent) && e.Cwd == cwd {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return list, nil
}
