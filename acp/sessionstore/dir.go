// This file has the store in a directory: its options, and its operations on sessions.
//
// A session has two files. NAME.json has the Info in its first line and the state in its second; it is replaced
// atomically, and the session exists as long as the file does. NAME.jsonl has an update in each line, and only grows. A
// line without a newline was left by a process that died while writing it.

package sessionstore

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// Options configures a Dir. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// MaxSession is the greatest total size of a session's updates, in bytes. The default is 256 MiB.
	MaxSession int64
	// MaxUpdate is the greatest size of one update, in bytes. The default is 32 MiB.
	MaxUpdate int
	// LockTime is how long a method waits for another process that is changing the same session before it fails. The
	// wait also ends with the method's context. The default is 10 s.
	LockTime time.Duration
	// Sync syncs written data to the disk before a method returns, so that it survives a power failure. Without it, the
	// data survives the end of the process.
	Sync bool
	// Damaged is called for data that is skipped because it cannot be read, and for leftovers of sessions that cannot
	// be removed. It must be quick, must not call the store, and may be called by several goroutines at once. Nil means
	// a warning to slog.Default.
	Damaged func(Damage)
}

// Damage is something in a store that cannot be read and was skipped, or that cannot be removed.
type Damage struct {
	// File is the path of the file.
	File string
	// Offset and Length give the bytes of the file; Length 0 means the whole file.
	Offset, Length int64
	// Torn means that the bytes are the beginning of an update, at the end of the file: the process that wrote it died
	// while writing. They are removed when the next update is appended.
	Torn bool
	// Err is the error.
	Err error
}

// Error describes the damage.
func (d Damage) Error() string {
	if d.Length == 0 {
		return fmt.Sprintf("%s: %v", d.File, d.Err)
	}
	return fmt.Sprintf("%s: bytes %d to %d: %v", d.File, d.Offset, d.Offset+d.Length, d.Err)
}

// Unwrap returns Err.
func (d Damage) Unwrap() error { return d.Err }

var (
	errTorn       = errors.New("the last update is incomplete: the process that wrote it died")
	errNotRegular = errors.New("not a regular file")
	errBusy       = errors.New("another process holds the session")
	errLong       = errors.New("the line is too long")
	errName       = errors.New("sessionstore: not the name of a program")
)

// Dir is a Store in a directory. It needs no server, and any number of processes may use the directory at once. The
// directory must be on a file system with locks (flock, LockFileEx), and no one but its owner may write there.
type Dir struct {
	root  *os.Root
	path  string
	opts  Options
	locks *locks
	// reported has the names of files whose damage lists have reported.
	reported sync.Map

	// Set by tests: called before each change to a file, and for each file that is synced.
	cut    func(file *os.File, at int64, data []byte)
	synced func(name string)
}

var _ Store = (*Dir)(nil)

// DefaultDir returns the directory for the sessions of the program app in the user's directory for state:
// $XDG_STATE_HOME or ~/.local/state on Unix, ~/Library/Application Support on macOS, %LocalAppData% on Windows. It
// creates nothing.
func DefaultDir(app string) (string, error) {
	if app == "" || app == "." || app == ".." || strings.ContainsAny(app, `/\:`) || !filepath.IsLocal(app) {
		return "", fmt.Errorf("%w: %q", errName, app)
	}
	base, err := stateHome()
	if err != nil {
		return "", fmt.Errorf("sessionstore: no directory for the user's state: %w", err)
	}
	return filepath.Join(base, app, "sessions"), nil
}

func stateHome() (string, error) {
	switch runtime.GOOS {
	case "windows":
		return os.UserCacheDir() // %LocalAppData%
	case "darwin", "ios":
		return os.UserConfigDir() // ~/Library/Application Support
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // a relative path must be ignored
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err == nil && home == "" {
		err = errors.New("the home directory is not known")
	}
	return filepath.Join(home, ".local", "state"), err
}

// Open opens a store in a directory. If the directory does not exist, Open creates it, accessible only to its owner.
// Open refuses a directory that others can write to. If this process cannot write to it, Open fails with ErrReadOnly,
// because reading a session takes a lock, so that a half-written update of another process is not read. To read such a
// directory, copy it.
func Open(dir string, opts *Options) (*Dir, error) {
	d := &Dir{opts: *cmp.Or(opts, &Options{})}
	d.opts.MaxSession = cmp.Or(max(d.opts.MaxSession, 0), 256<<20)
	d.opts.MaxUpdate = cmp.Or(max(d.opts.MaxUpdate, 0), 32<<20)
	d.opts.LockTime = cmp.Or(max(d.opts.LockTime, 0), 10*time.Second)
	if d.opts.Damaged == nil {
		d.opts.Damaged = func(damage Damage) { slog.Warn("a part of a session was left out", "error", damage) }
	}
	path, err := filepath.Abs(dir)
	if err == nil {
		d.path = path
		err = os.MkdirAll(path, 0o700)
	}
	if err == nil {
		d.root, err = os.OpenRoot(path)
	}
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", unwritable(err))
	}
	info, err := d.root.Stat(".")
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others can write to %s", path)
	}
	if err == nil {
		d.locks, err = openLocks(d)
		err = unwritable(err)
	}
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", errors.Join(err, d.root.Close()))
	}
	return d, nil
}

// unwritable returns the error for a directory that cannot be written to.
func unwritable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

// Close implements Store.
func (d *Dir) Close() error {
	if !d.locks.close() {
		return ErrClosed
	}
	return d.root.Close()
}

// head is the first line of NAME.json.
type head struct {
	Version    int           `json:"version"`
	Protocol   int           `json:"protocol"`
	ID         acp.SessionID `json:"id"`
	Cwd        string        `json:"cwd"`
	Additional []string      `json:"additionalDirectories,omitempty"`
	Title      string        `json:"title,omitempty"`
	Created    time.Time     `json:"created"`
	Updated    time.Time     `json:"updated"`
}

// version is the version of the format, and protocol that of the protocol whose updates it has.
const version, protocol = 1, 1

// encode returns the content of NAME.json.
func encode(r *Record) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(head{
		version, protocol, r.ID, r.Cwd, r.AdditionalDirectories, r.Title,
		r.Created.UTC().Truncate(time.Microsecond), r.Updated.UTC().Truncate(time.Microsecond),
	})
	if err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(append(text, '\n'))
	if len(r.State) > 0 {
		if err := json.Compact(buf, r.State); err != nil {
			return nil, err
		}
		buf.WriteByte('\n')
	}
	return buf.Bytes(), nil
}

// Create implements Store.
func (d *Dir) Create(ctx context.Context, r Record) error {
	name := nameOf(r.ID)
	data, err := encode(&r)
	if err == nil {
		err = d.usable(ctx, r.ID)
	}
	if err == nil {
		err = d.locked(ctx, name, func() error { return d.create(name, data) })
	}
	return failed("creating", r.ID, err)
}

func (d *Dir) create(name string, data []byte) error {
	if _, err := d.regular(name + headSuffix); err == nil {
		return ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Remove files of a session of this name whose deletion was not completed.
	if err := d.remove(name + logSuffix); err != nil {
		return err
	}
	return d.replace(name+headSuffix, data)
}

// Get implements Store.
func (d *Dir) Get(ctx context.Context, id acp.SessionID) (r Record, err error) {
	if err = d.usable(ctx, id); err == nil {
		r, err = d.read(id)
	}
	return r, failed("reading", id, err)
}

// read reads NAME.json, which is replaced as a whole and needs no lock.
func (d *Dir) read(id acp.SessionID) (Record, error) {
	file, _, err := d.open(nameOf(id)+headSuffix, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, ErrNotFound
	}
	if err != nil {
		return Record{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxInfo+MaxState+3))
	if err != nil {
		return Record{}, err
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	r := Record{}
	if r.Info, err = parseHead(line, nameOf(id)); err != nil {
		return Record{}, err
	}
	if state := bytes.TrimSuffix(rest, []byte("\n")); len(state) > 0 {
		if len(state) > MaxState || !json.Valid(state) {
			return Record{}, errors.New("the state cannot be read")
		}
		r.State = state
	}
	return r, nil
}

func parseHead(line []byte, name string) (Info, error) {
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return Info{}, fmt.Errorf("not a session: %w", err)
	}
	if h.Version != version {
		return Info{}, fmt.Errorf("a session in version %d of the format, of which this program knows %d", h.Version, version)
	}
	if h.Protocol != protocol {
		return Info{}, fmt.Errorf("a session of version %d of the protocol, not %d", h.Protocol, protocol)
	}
	if !ValidID(h.ID) || nameOf(h.ID) != name { // otherwise two files would be the same session
		return Info{}, fmt.Errorf("the file of another session, %.64q", h.ID)
	}
	return Info{h.ID, h.Cwd, h.Additional, h.Title, h.Created.UTC(), h.Updated.UTC()}, nil
}

// Change implements Store.
func (d *Dir) Change(ctx context.Context, id acp.SessionID, change func(*Record) error) error {
	err := d.usable(ctx, id)
	if err == nil {
		name := nameOf(id)
		err = d.locked(ctx, name, func() error {
			r, err := d.read(id)
			if err != nil {
				return err
			}
			created := r.Created
			if err := change(&r); err != nil {
				return err
			}
			r.ID, r.Created = id, created
			data, err := encode(&r)
			if err != nil {
				return err
			}
			return d.replace(name+headSuffix, data)
		})
	}
	return failed("changing", id, err)
}

// Append implements Store.
func (d *Dir) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	err := d.usable(ctx, id)
	var data []byte
	for i := 0; err == nil && i < len(updates); i++ {
		start := len(data)
		data, err = codec.Append(data, &updates[i])
		if err == nil && len(data)-start > d.opts.MaxUpdate {
			err = fmt.Errorf("%w: an update of %d bytes", ErrTooLarge, len(data)-start)
		}
		data = append(data, '\n')
	}
	if err == nil {
		name := nameOf(id)
		err = d.locked(ctx, name, func() error {
			if _, err := d.regular(name + headSuffix); errors.Is(err, fs.ErrNotExist) {
				return ErrNotFound
			} else if err != nil || len(data) == 0 {
				return err
			}
			return d.append(name+logSuffix, data)
		})
	}
	return failed("adding to", id, err)
}

func (d *Dir) append(name string, data []byte) (err error) {
	file, size, err := d.open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := d.whole(file, name, size)
	if err == nil && end < size {
		d.cutting(nil, 0, nil)
		err = file.Truncate(end)
	}
	if err != nil {
		return err
	}
	if end+int64(len(data)) > d.opts.MaxSession {
		return fmt.Errorf("%w: the session has %d bytes of updates, and may have %d", ErrTooLarge, end, d.opts.MaxSession)
	}
	d.cutting(file, end, data)
	if _, err = file.WriteAt(data, end); err != nil {
		return errors.Join(err, file.Truncate(end)) // for example if the disk is full
	}
	err = d.sync(file)
	if err == nil && size == 0 { // the file may be new
		err = d.syncDir()
	}
	return err
}

// whole returns the end of the last complete line, and reports the data after it. The session is locked.
func (d *Dir) whole(file *os.File, name string, size int64) (int64, error) {
	end := size
	buf := make([]byte, 1)
	for end > 0 {
		n := min(int64(len(buf)), end)
		if _, err := file.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			end += int64(i) + 1 - n
			break
		}
		end -= n
		buf = make([]byte, 64<<10) // usually the last byte is the newline
	}
	if end < size {
		d.opts.Damaged(Damage{File: d.file(name), Offset: end, Length: size - end, Torn: true, Err: errTorn})
	}
	return end, nil
}

// Updates implements Store.
func (d *Dir) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		more := true
		if err := d.updates(ctx, id, func(u acp.SessionUpdate) bool {
			more = yield(u, nil)
			return more
		}); err != nil && more {
			yield(*new(acp.SessionUpdate), failed("reading", id, err))
		}
	}
}

func (d *Dir) updates(ctx context.Context, id acp.SessionID, yield func(acp.SessionUpdate) bool) error {
	if err := d.usable(ctx, id); err != nil {
		return err
	}
	name := nameOf(id)
	var file *os.File
	var end int64
	// While the lock is held, no one is writing: an incomplete line is torn, and the lines before it no longer change.
	err := d.locked(ctx, name, func() (err error) {
		if _, err := d.regular(name + headSuffix); errors.Is(err, fs.ErrNotExist) {
			return ErrNotFound
		} else if err != nil {
			return err
		}
		var size int64
		file, size, err = d.open(name+logSuffix, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			if end, err = d.whole(file, name+logSuffix, size); err != nil {
				err = errors.Join(err, file.Close())
			}
		}
		return err
	})
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	return d.lines(ctx, file, name+logSuffix, end, yield)
}

// lines yields the updates in the first size bytes of a file. Lines that cannot be read are reported and skipped.
func (d *Dir) lines(ctx context.Context, file *os.File, name string, end int64,
	yield func(acp.SessionUpdate) bool) error {
	in := bufio.NewReaderSize(io.NewSectionReader(file, 0, end), 64<<10)
	for offset := int64(0); offset < end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, length, err := readLine(in, d.opts.MaxUpdate+1)
		if err != nil && err != errLong {
			return err
		}
		var update acp.SessionUpdate
		if err == nil {
			err = codec.Unmarshal(line, &update)
		}
		if err != nil {
			d.opts.Damaged(Damage{File: d.file(name), Offset: offset, Length: length, Err: err})
		} else if !yield(update) {
			return nil
		}
		offset += length
	}
	return nil
}

// readLine reads a line of at most most bytes with its newline, and returns its length. The line is valid until the
// next call.
func readLine(in *bufio.Reader, most int) (line []byte, length int64, err error) {
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		length += int64(len(part))
		switch {
		case err != nil && err != bufio.ErrBufferFull:
			if err == io.EOF {
				err = io.ErrUnexpectedEOF // it has become shorter
			}
			return nil, length, err
		case length > int64(most):
			long = nil
		case err != nil || long != nil:
			long = append(long, part...)
		default:
			return part, length, nil
		}
		if err == nil {
			if length > int64(most) {
				return nil, length, errLong
			}
			return long, length, nil
		}
	}
}

// Delete implements Store.
func (d *Dir) Delete(ctx context.Context, id acp.SessionID) error {
	err := d.usable(ctx, id)
	if err == nil {
		name := nameOf(id)
		err = d.locked(ctx, name, func() error {
			// Without its head the session no longer exists; if the process dies now, List removes the remaining files.
			if err := d.remove(name + headSuffix); err != nil {
				return err
			}
			if err := d.syncDir(); err != nil { // otherwise a power failure could bring it back without its updates
				return err
			}
			return errors.Join(d.remove(name+tempSuffix), d.remove(name+logSuffix), d.syncDir())
		})
	}
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return failed("deleting", id, err)
}

// usable fails if the store is closed, ctx has ended or the id is not valid.
func (d *Dir) usable(ctx context.Context, id acp.SessionID) error {
	switch {
	case d.locks.closed():
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ValidID(id):
		return ErrNotFound
	}
	return nil
}

// failed adds the operation and the session to an error.
func failed(doing string, id acp.SessionID, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrClosed) {
		err = errors.Join(ErrClosed, err)
	}
	return fmt.Errorf("%s session %.64q: %w", doing, id, err)
}

// file returns the path of a file, for messages.
func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }
