package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
)

// Roots holds the directories that agents may reach, the same for all sessions or set for each. A file is reached by
// the absolute path of such a directory, as it was given or with its symbolic links resolved, followed by a path inside
// it. Inside it, symbolic links are followed if they are relative and stay within the same directory; the rules are
// those of [os.Root].
//
// A Roots keeps each directory open as it was when it was opened. A directory that is moved stays reachable, for files
// and for commands, by its old name, and a directory put in its place is not reached. Commands cannot start in a
// directory that was moved, except on Linux with a mounted /proc.
//
// A Roots may be used concurrently, and by several connections.
type Roots struct {
	mu       sync.RWMutex
	fixed    rootSet
	sessions map[sessionKey]rootSet
	conns    watcher // connections of sessions
	hidden   []string
	closed   bool
}

// A rootSet holds the directories that one session may reach.
type rootSet struct {
	home   *root    // where commands start
	dirs   []*root  // outermost first, so that links between nested ones work
	hidden []string // see Roots.Hide
}

// A root is one open directory.
type root struct {
	dir    *os.Root
	names  []string // absolute paths by which it is known
	escape error    // the error of dir for a path that leads out, which package os does not export
}

// A place is a path of an agent, found inside a root.
type place struct {
	root *root
	rel  string // relative to root, and inside it except for links
	path string // absolute, as the agent names it
	// hidden are directories in which the place is not; see walk.
	hidden []string
}

// OpenRoots opens directories that all sessions may reach, except those that get their own from [Roots.SetSession].
// Commands start in the first one by default. With no directories, only sessions with their own are served. Relative
// names are resolved against the working directory of this process.
func OpenRoots(dirs ...string) (*Roots, error) {
	fixed, err := openSet(dirs)
	if err != nil {
		return nil, err
	}
	return &Roots{fixed: fixed, sessions: make(map[sessionKey]rootSet), conns: newWatcher()}, nil
}

// SetSession gives a session its own directories: the cwd and the additional directories with which it is created,
// loaded or resumed. They replace those of OpenRoots, and those of an earlier call, until the session's connection
// ends. For a session that is loaded or resumed, call SetSession first, because the agent may ask for files at once;
// ClientConn.Session returns the session for its id.
//
// It fails with ErrClosed if the Roots is closed or the connection is over, and with another error if a directory
// cannot be opened; the session then keeps its previous directories.
func (r *Roots) SetSession(session Session, cwd string, additional ...string) error {
	set, err := openSet(append([]string{cwd}, additional...))
	if err != nil {
		return fmt.Errorf("session %q: %w", session.ID(), err)
	}
	key := keyOf(session)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !r.conns.watch(key.conn, r.removeAll) {
		set.close()
		return ErrClosed
	}
	r.sessions[key].close()
	r.sessions[key] = set
	return nil
}

// RemoveSession forgets the directories of a session, which can then reach those of OpenRoots. It does nothing for a
// session that has no directories of its own.
func (r *Roots) RemoveSession(session Session) {
	key := keyOf(session)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[key].close()
	delete(r.sessions, key)
}

// removeAll forgets the directories of a connection that is over.
func (r *Roots) removeAll(conn *rpc.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns.conns, conn)
	for key, set := range r.sessions {
		if key.conn == conn {
			set.close()
			delete(r.sessions, key)
		}
	}
}

// Close closes all directories. Requests in progress may fail, and later ones fail. It returns nil.
func (r *Roots) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.conns.stop)
		r.fixed.close()
		for _, set := range r.sessions {
			set.close()
		}
		clear(r.sessions)
	}
	r.mu.Unlock()
	r.conns.tasks.Wait()
	return nil
}

// rootsOf returns the directories that a session may reach.
func (r *Roots) rootsOf(session sessionKey) (rootSet, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return rootSet{}, ErrClosed
	}
	set, ok := r.sessions[session]
	if !ok {
		set = r.fixed
	}
	set.hidden = r.hidden
	if len(set.dirs) == 0 {
		return rootSet{}, unknownSession(session.id)
	}
	return set, nil
}

// Find returns the file system of the directory that contains an absolute path, and the path's name in it, for programs
// that list or search files. The path need not exist. A path outside the session's directories is refused, as is one
// that a symbolic link leads out of them, with an error that matches ErrOutside. The file system refuses such links
// too, and what is neither a directory nor a regular file, with an error that matches ErrNotRegular, without blocking;
// it works until the session's directories are removed or the Roots is closed.
func (r *Roots) Find(session Session, path string) (files fs.FS, name string, err error) {
	set, err := r.rootsOf(keyOf(session))
	if err != nil {
		return nil, "", err
	}
	at, err := set.locate(opFind, path)
	if err != nil {
		return nil, "", err
	}
	if _, err := at.root.dir.Stat(at.rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", pathError(opFind, at, err)
	}
	if len(at.hidden) > 0 {
		dir, _, _, err := at.walk(false)
		if err == nil {
			dir.Close() // it was only read
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", pathError(opFind, at, err)
		}
	}
	return tree{at}, filepath.ToSlash(at.rel), nil
}

// Hide refuses all that is in these directories, by whatever name and while links change, with errors that match
// ErrOutside; "" is ignored, and they need not exist yet. Commands reach them.
func (r *Roots) Hide(dirs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hidden = slices.DeleteFunc(slices.Concat(r.hidden, dirs), func(dir string) bool { return dir == "" })
}

// hides reports whether a directory is hidden.
func (p place) hides(dir fs.FileInfo) bool {
	return slices.ContainsFunc(p.hidden, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(info, dir)
	})
}

// errLinks says that walk has followed maxLinks links, and errChanging that what was checked is not what was opened.
var (
	errLinks    = errors.New("too many symbolic links")
	errChanging = errors.New("it is being changed")
)

// walk follows the place from directory to directory, none of which is hidden, and each of which is open while the next
// one is looked for, so that no link can change in the meantime. It returns the last one, which the caller closes, and
// what the place is called there. That is not a link; info is nil if it does not exist. With create it makes
// directories that are missing.
func (p place) walk(create bool) (_ *os.Root, name string, info fs.FileInfo, err error) {
	for _, at := range p.root.names {
		for ; at != filepath.Dir(at); at = filepath.Dir(at) {
			if info, err := os.Stat(at); err == nil && p.hides(info) {
				return nil, "", nil, ErrOutside
			}
		}
	}
	first, err := p.root.dir.OpenRoot(".")
	if err != nil {
		return nil, "", nil, err
	}
	way := []*os.Root{first}
	defer func() {
		for i, dir := range way {
			if err != nil || i < len(way)-1 {
				dir.Close() // it was only read
			}
		}
	}()
	elements := func(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }
	rest := elements(p.rel)
	for links := 0; len(rest) > 0; {
		dir := way[len(way)-1]
		name, rest = rest[0], rest[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && len(way) == 1:
			return nil, "", nil, ErrOutside
		case name == "..":
			dir.Close()
			way = way[:len(way)-1]
			continue
		}
		info, err = dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) && len(rest) == 0 {
			return dir, name, nil, nil
		} else if errors.Is(err, fs.ErrNotExist) && create {
			if err = dir.Mkdir(name, 0o777); err == nil {
				info, err = dir.Lstat(name)
			}
		}
		switch {
		case err != nil:
			return nil, "", nil, err
		case info.Mode().Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return nil, "", nil, errLinks
			}
			target, err := dir.Readlink(name)
			if err != nil {
				return nil, "", nil, err
			}
			if filepath.IsAbs(target) {
				return nil, "", nil, ErrOutside
			}
			rest = append(elements(target), rest...)
			continue
		case !info.IsDir() && len(rest) == 0:
			return dir, name, info, nil
		case !info.IsDir():
			return nil, "", nil, errDirectory
		}
		next, err := dir.OpenRoot(name + "/.") // with the dot it does not wait for a FIFO
		if err != nil {
			return nil, "", nil, err
		}
		way = append(way, next)
		is, err := next.Stat(".")
		if err == nil && !os.SameFile(is, info) {
			err = errChanging
		} else if err == nil && p.hides(is) {
			err = ErrOutside
		}
		if err != nil {
			return nil, "", nil, err
		}
	}
	dir := way[len(way)-1]
	info, err = dir.Stat(".")
	return dir, ".", info, err
}

func openSet(dirs []string) (rootSet, error) {
	var set rootSet
	for _, dir := range dirs {
		root, err := openRoot(dir)
		if err != nil {
			set.close()
			return rootSet{}, err
		}
		set.dirs = append(set.dirs, root)
	}
	if len(set.dirs) > 0 {
		set.home = set.dirs[0]
	}
	slices.SortStableFunc(set.dirs, func(a, b *root) int { return len(a.names[0]) - len(b.names[0]) })
	return set, nil
}

func openRoot(dir string) (*root, error) {
	name, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// On macOS /tmp is a link, and an agent may know a directory by either name.
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	// OpenRoot would wait for a FIFO.
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errDirectory}
	}
	opened, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	_, out := opened.Lstat("..") // refused before the disk is touched
	return &root{opened, slices.Compact([]string{name, real}), reason(out)}, nil
}

func (s rootSet) close() {
	for _, root := range s.dirs {
		root.dir.Close() // for a directory that was only read, always nil
	}
}

// locate finds the place of an absolute path. It does not access the disk: os.Root detects links that lead out.
func (s rootSet) locate(op, path string) (place, error) {
	if len(path) > maxPath {
		return place{}, &placeError{op, path, errLong}
	}
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return place{}, &placeError{op, path, errPath}
	}
	path = filepath.Clean(path)
	for _, root := range s.dirs {
		for _, name := range root.names {
			if rel, err := filepath.Rel(name, path); err == nil && filepath.IsLocal(rel) {
				return place{root, rel, path, s.hidden}, nil
			}
		}
	}
	return place{}, &placeError{op, path, ErrOutside}
}
