// This file owns what outlives the process: the sessions, one file each, and whether somebody is
// logged in.

package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
)

// record is a session as it is kept.
type record struct {
	Info     acp.SessionInfo     `json:"info"`
	Settings settings            `json:"settings"`
	History  []acp.SessionUpdate `json:"history"` // the conversation, as the updates that replay it
}

// timestamp is the time as ISO 8601 writes it, in a form whose order is that of time.
func timestamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// store is the directory of the state. Two processes may share it, but not a session. It is the user's own, but what is
// in there may be damaged, or be no file at all: only regular files are opened, for a pipe would keep us waiting.
type store struct {
	dir *os.Root
}

// maxSessionFile is how large a file of a session may be, in bytes: much more than defaultMaxHistory and the longest
// turn.
const maxSessionFile = 64 << 20

const (
	sessionPrefix = "sess_"
	sessionSuffix = ".json"
	loginFile     = "login"
)

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("everybody may write in %s", dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &store{root}, nil
}

func (s *store) close() error { return s.dir.Close() }

func newSessionID() acp.SessionID { return sessionPrefix + acp.SessionID(rand.Text()) }

// sessionFile is the name of a session's file. Ids come from the client: one that is not of ours names
// no file.
func sessionFile(id acp.SessionID) (name string, ok bool) {
	text, ours := strings.CutPrefix(string(id), sessionPrefix)
	foreign := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }
	if !ours || text == "" || strings.ContainsFunc(text, foreign) {
		return "", false
	}
	return string(id) + sessionSuffix, true
}

// save writes a session, whole or not at all, and returns its size in bytes.
func (s *store) save(r *record) (int, error) {
	name, ok := sessionFile(r.Info.SessionID)
	if !ok {
		return 0, fmt.Errorf("saving session %q: not an id of ours", r.Info.SessionID)
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = s.replace(name, data)
	}
	if err != nil {
		return 0, fmt.Errorf("saving session %s: %w", r.Info.SessionID, err)
	}
	return len(data), nil
}

// replace puts a file in place in one step, of a regular one if there is one.
func (s *store) replace(name string, data []byte) error {
	if _, err := s.regular(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := name + "." + rand.Text()
	file, err := s.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = s.dir.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, s.dir.Remove(temp))
	}
	return nil
}

// regular fails for what is no regular file, without waiting for it.
func (s *store) regular(name string) (fs.FileInfo, error) {
	info, err := s.dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	return info, err
}

// open opens the file of a session.
func (s *store) open(name string) (*os.File, error) {
	info, err := s.regular(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSessionFile {
		return nil, fmt.Errorf("%s is too large", name)
	}
	return s.dir.Open(name)
}

// load reads a session; the error matches fs.ErrNotExist if there is none.
func (s *store) load(id acp.SessionID) (*record, error) {
	name, ok := sessionFile(id)
	if !ok {
		return nil, fs.ErrNotExist
	}
	file, err := s.open(name)
	if err != nil {
		return nil, fmt.Errorf("loading session %s: %w", id, err)
	}
	defer file.Close()
	r := &record{}
	data, err := io.ReadAll(file)
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err == nil && r.Info.SessionID != id { // saving it would replace another's file
		err = fmt.Errorf("the file is of session %q", r.Info.SessionID)
	}
	if err != nil {
		return nil, fmt.Errorf("loading session %s: %w", id, err)
	}
	return r, nil
}

// remove removes a session, with what a process that died has left of it; there being none is success (DEL-5).
func (s *store) remove(id acp.SessionID) error {
	name, ok := sessionFile(id)
	if !ok {
		return nil
	}
	unfinished, err := fs.Glob(s.dir.FS(), name+".*")
	if err != nil {
		return err
	}
	for _, temp := range unfinished {
		if err := s.dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := s.dir.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// list returns all sessions, the one used last first. A file that cannot be read is reported and left
// out.
func (s *store) list(broken func(name string, err error)) ([]acp.SessionInfo, error) {
	files, err := fs.Glob(s.dir.FS(), sessionPrefix+"*"+sessionSuffix)
	if err != nil {
		return nil, err
	}
	var infos []acp.SessionInfo
	for _, name := range files {
		info, err := s.info(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			broken(name, err)
			continue
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(x, y acp.SessionInfo) int { return comparePosition(positionOf(y), positionOf(x)) })
	return infos, nil
}

// info reads the beginning of a session's file, which is its info: a list need not read all conversations.
func (s *store) info(name string) (info acp.SessionInfo, err error) {
	file, err := s.open(name)
	if err != nil {
		return info, err
	}
	defer file.Close()
	d := json.NewDecoder(file)
	for _, want := range []json.Token{json.Delim('{'), "info"} {
		if got, err := d.Token(); err != nil || got != want {
			return info, cmp.Or(err, errors.New("not the file of a session"))
		}
	}
	if err := d.Decode(&info); err != nil {
		return info, err
	}
	if string(info.SessionID)+sessionSuffix != name {
		return info, fmt.Errorf("the file is of session %q", info.SessionID)
	}
	return info, nil
}

// position is where a session stands in the list.
type position struct {
	UpdatedAt string        `json:"t"`
	ID        acp.SessionID `json:"id"`
}

func positionOf(info acp.SessionInfo) position {
	return position{info.UpdatedAt.Value(), info.SessionID}
}

func comparePosition(x, y position) int {
	return cmp.Or(cmp.Compare(x.UpdatedAt, y.UpdatedAt), cmp.Compare(x.ID, y.ID))
}

func (s *store) loggedIn() bool {
	_, err := s.regular(loginFile)
	return err == nil
}

func (s *store) logIn() error { return s.replace(loginFile, nil) }

func (s *store) logOut() error {
	if err := s.dir.Remove(loginFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
