// Package names stores the names that a user gives to sessions of agents, so that a later run of the program can
// continue the sessions. The conversations are stored by the agents.
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
	"github.com/acpgo/sdk/internal/wholefile"
)

// Key identifies a session: the same name may be used in another directory, and for another agent.
type Key struct {
	// Agent is the user's name for the agent, and Cwd the directory in which it works. All paths of a directory are the
	// same to the Store.
	Agent string `json:"agent"`
	Cwd   string `json:"cwd"`
	Name  string `json:"name"`
}

// Entry is a name with its session.
type Entry struct {
	Key
	Session acp.SessionID `json:"session"`
	Used    time.Time     `json:"used"`
}

// Store stores names in a directory, one file each. Several programs may use it at once.
type Store struct{ Dir string }

// Default returns the store in the user's state directory.
func Default() (*Store, error) {
	dir, err := StateDir()
	if err != nil {
		return nil, err
	}
	return &Store{filepath.Join(dir, "sessions")}, nil
}

// StateDir returns the directory for the user's state of this program: $XDG_STATE_HOME/acp, or the system's default.
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

// HomeVariables returns the variables by which programs find the user's files, for a home.
func HomeVariables(home string) []string {
	in := func(variable string, below ...string) string {
		return variable + "=" + filepath.Join(append([]string{home}, below...)...)
	}
	return []string{
		in("HOME"), in("XDG_STATE_HOME", ".local", "state"), in("XDG_DATA_HOME", ".local", "share"),
		in("XDG_CONFIG_HOME", ".config"),
		in("XDG_CACHE_HOME", ".cache"), in("USERPROFILE"), in("LOCALAPPDATA", "AppData", "Local"),
		in("APPDATA", "AppData", "Roaming"),
	}
}

// HomeOf makes the home of a principal below a directory, with mode 0700. Names that a file system would confuse, such
// as Ada and ada, have different homes. A home that others can use is refused.
func HomeOf(dir, principal string) (string, error) {
	sum := sha256.Sum256([]byte(principal))
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, principal)
	home := filepath.Join(dir, readable[:min(len(readable), 32)]+"-"+hex.EncodeToString(sum[:16]))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(home)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a directory", home)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s: accessible to others (mode %v)", home, info.Mode().Perm())
	}
	return home, nil
}

// real returns the path of a directory without symbolic links, or just cleaned if there is no such directory.
func real(dir string) string {
	if path, err := filepath.EvalSymlinks(dir); err == nil {
		return path
	}
	return filepath.Clean(dir)
}

// file returns the path of the file of a key, without its extension. The key's directory is real.
func (s *Store) file(k Key) string {
	sum := sha256.Sum256([]byte(k.Agent + "\x00" + k.Cwd + "\x00" + k.Name))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16]))
}

// Lock locks a name for this process until it is unlocked or the process ends. The error matches filelock.ErrLocked if
// another process has locked it.
func (s *Store) Lock(k Key) (*filelock.Lock, error) {
	k.Cwd = real(k.Cwd)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	return filelock.Try(s.file(k) + ".lock")
}

// Get returns the session with a name; "" if there is none.
func (s *Store) Get(k Key) (acp.SessionID, error) {
	k.Cwd = real(k.Cwd)
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

// Set gives a session a name and sets its time of use.
func (s *Store) Set(k Key, session acp.SessionID) error {
	k.Cwd = real(k.Cwd)
	text, err := json.Marshal(Entry{k, session, time.Now().UTC()})
	if err != nil {
		return err
	}
	return wholefile.Replace(s.file(k)+".json", append(text, '\n'), 0o600)
}

// List returns the names in a directory, the last used first. Unreadable files are skipped.
func (s *Store) List(cwd string) ([]Entry, error) {
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
		if err == nil && e.Cwd == real(cwd) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return list, nil
}
