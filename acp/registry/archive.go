package registry

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// asBroken returns the error for an archive that cannot be read.
func asBroken(err error) error {
	if _, ok := errors.AsType[*ArchiveError](err); ok || err == nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &ArchiveError{err}
}

// installers are the suffixes of installers, which the Client refuses.
var installers = []string{".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage"}

// otherArchives are the suffixes of archives and compressed files that are not unpacked.
var otherArchives = []string{".tar", ".xz", ".txz", ".zst", ".gz", ".bz2", ".7z", ".rar", ".lz", ".lzma", ".br"}

// tarSuffixes are those of archives that are unpacked although they end like compressed files.
var tarSuffixes = []string{".tar.gz", ".tar.bz2"}

// hasSuffix reports whether a file's name has one of some suffixes, in upper or lower case.
func hasSuffix(name string, suffixes ...string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// unpack unpacks a file, whose type follows from the name in its address, into the empty directory of root. alone
// reports that the file is not an archive but a program; then nothing was done.
//
// Names must be valid on every system, and must not differ only by case. Links must lead to something in the archive.
// They are created last, so that no file is written through one.
func unpack(ctx context.Context, file, name string, root *os.Root, limits Limits) (alone bool, err error) {
	u := &unpacker{
		ctx: ctx, root: root, limits: limits, left: limits.Unpacked,
		names: map[string]*entryName{},
	}
	switch {
	case hasSuffix(name, ".zip"):
		err = u.zip(file)
	case hasSuffix(name, ".tar.gz", ".tgz"):
		err = u.tar(file, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	case hasSuffix(name, ".tar.bz2", ".tbz2"):
		err = u.tar(file, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil })
	default:
		return true, nil
	}
	if err == nil {
		err = u.makeLinks()
	}
	return false, causeOf(ctx, err)
}

// unpacker writes the files of an archive into a directory, and never outside it.
type unpacker struct {
	ctx    context.Context
	root   *os.Root
	limits Limits
	left   int64                 // bytes
	files  int                   // files so far
	names  map[string]*entryName // by the name that is the same on systems that ignore case
	links  []link
}

// entryName is a name in the archive, or one of its directories.
type entryName struct {
	name   string
	folder bool
	file   bool // a regular file
}

type link struct{ name, to string }

// clean checks a name, and returns it without its redundant parts.
func (u *unpacker) clean(raw string) (string, error) {
	if u.files++; u.files > u.limits.Files {
		return "", brokenf("the archive has more than %d files", u.limits.Files)
	}
	if err := u.ctx.Err(); err != nil {
		return "", err
	}
	wrong := func(why string) (string, error) {
		return "", brokenf("the archive has the file %q: %s", short(raw), why)
	}
	var elements []string
	for element := range strings.SplitSeq(raw, "/") {
		switch element {
		case "", ".":
			continue
		case "..":
			return wrong("it is outside its folder")
		}
		if why := windowsName(element); why != "" {
			return wrong(why)
		}
		elements = append(elements, element)
	}
	name := path.Join(elements...)
	switch {
	case strings.HasPrefix(raw, "/"):
		return wrong("it is outside its folder")
	case len(name) > maxName || len(elements) > maxDepth:
		return wrong("the name is too long")
	case name == "":
		return ".", nil
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return wrong("it is outside its folder")
	}
	return name, nil
}

// add adds a cleaned name, and the directories above it. Directories may already exist.
func (u *unpacker) add(name string, folder, file bool) error {
	if name == "." {
		if !folder {
			return brokenf("the archive has a file without a name")
		}
		return nil
	}
	if err := u.add(path.Dir(name), true, false); err != nil {
		return err
	}
	key := plain.Fold(name)
	if known := u.names[key]; known != nil {
		switch {
		case known.name != name:
			return brokenf("the archive has the names %q and %q, which differ only by case", short(known.name), short(name))
		case known.folder && folder:
			return nil
		}
		return brokenf("the archive has %q twice", short(name))
	}
	if len(u.names) > 2*u.limits.Files {
		return brokenf("the archive has more than %d files", u.limits.Files)
	}
	u.names[key] = &entryName{name, folder, file}
	if !folder {
		return nil
	}
	return u.wrote(name, u.root.Mkdir(filepath.FromSlash(name), 0o700))
}

// wrote returns the error for a file of the archive that cannot be written.
func (u *unpacker) wrote(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the archive's file %q: %w", short(name), err)
}

func (u *unpacker) file(name string, mode fs.FileMode, text io.Reader) error {
	if err := u.add(name, false, true); err != nil {
		return err
	}
	// From the archive's mode, only the owner's execute permission counts: setuid and the like are ignored.
	file, err := u.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|mode&0o100)
	if err != nil {
		return u.wrote(name, err)
	}
	n, err := io.Copy(file, io.LimitReader(contextReader{u.ctx, text}, u.left+1))
	if u.left -= n; u.left < 0 {
		err = u.tooLarge()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return u.wrote(name, asBroken(err))
	}
	return nil
}

func (u *unpacker) tooLarge() error {
	return brokenf("the archive has more than %d bytes when it is unpacked", u.limits.Unpacked)
}

// maxLink bounds the target of a link, in bytes.
const maxLink = 4096

// link records a link.
func (u *unpacker) link(name, to string) error {
	target := path.Join(path.Dir(name), to)
	if to == "" || len(to) > maxLink || path.IsAbs(to) || strings.ContainsAny(to, "\\:\x00") ||
		!filepath.IsLocal(filepath.FromSlash(target)) {
		return brokenf("the archive has the link %q to %q, which is outside its folder", short(name), short(to))
	}
	if err := u.add(name, false, false); err != nil {
		return err
	}
	u.links = append(u.links, link{name, to})
	return nil
}

// makeLinks creates the links, and checks whether each leads to something in the directory, including through other
// links.
func (u *unpacker) makeLinks() error {
	for _, l := range u.links {
		if err := u.root.Symlink(filepath.FromSlash(l.to), filepath.FromSlash(l.name)); err != nil {
			return u.wrote(l.name, err)
		}
	}
	for _, l := range u.links {
		if _, err := u.root.Stat(filepath.FromSlash(l.name)); err != nil {
			return brokenf("the archive has the link %q to %q, which cannot be resolved in it: %w", short(l.name), short(l.to),
				err)
		}
		if err := u.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// maxDirectory bounds the directory at the end of a zip, in bytes for each file that may be in it.
const maxDirectory = 1 << 10

func (u *unpacker) zip(archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	// Package zip allocates memory for as many files as the zip claims to have, before it looks at them.
	if n, err := zipFiles(file, info.Size()); err != nil {
		return err
	} else if n > uint64(u.limits.Files) {
		return brokenf("the archive has more than %d files", u.limits.Files)
	}
	bounded := &boundedReaderAt{r: file, left: 1<<20 + maxDirectory*int64(u.limits.Files), bounded: true}
	r, err := zip.NewReader(bounded, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return brokenf("the archive is not a zip file: %w", err)
	}
	bounded.bounded = false
	for _, f := range r.File {
		name, err := u.clean(f.Name)
		if err != nil {
			return err
		}
		mode := f.Mode()
		if mode.IsDir() {
			if err := u.add(name, true, false); err != nil {
				return err
			}
			continue
		}
		if !mode.IsRegular() && mode.Type() != fs.ModeSymlink {
			return brokenf("the archive has %q, which is not a file, folder or link: %v", short(f.Name), mode)
		}
		text, err := f.Open()
		if err != nil {
			return brokenf("the archive's file %q: %w", short(f.Name), err)
		}
		if mode.IsRegular() {
			err = u.file(name, mode, text)
		} else {
			var to []byte
			if to, err = io.ReadAll(io.LimitReader(text, maxLink+1)); err == nil {
				err = u.link(name, string(to))
			}
		}
		if err = errors.Join(err, text.Close()); err != nil {
			return asBroken(err)
		}
	}
	return nil
}

// zipFiles returns the number of files that the end of a zip claims. For a file that is not a zip it returns 0; that is
// refused later.
func zipFiles(r io.ReaderAt, size int64) (uint64, error) {
	const (
		endLen     = 22       // length of the end record, without its comment
		locatorLen = 20       // length of the locator of the end record of a zip with more than 65,535 files
		end64Len   = 56       // length of that record, as far as it is read
		most       = 65 << 10 // length of the end with its comment, as package zip searches it
	)
	tail := make([]byte, min(size, most+locatorLen))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	at := bytes.LastIndex(tail[:max(0, len(tail)-endLen+len("PK\x05\x06"))], []byte("PK\x05\x06"))
	if at < 0 {
		return 0, nil
	}
	files := uint64(binary.LittleEndian.Uint16(tail[at+10:]))
	locator := tail[max(0, at-locatorLen):at]
	if len(locator) < locatorLen || !bytes.HasPrefix(locator, []byte("PK\x06\x07")) {
		return files, nil
	}
	end := make([]byte, end64Len)
	if _, err := r.ReadAt(end, int64(binary.LittleEndian.Uint64(locator[8:])&math.MaxInt64)); err != nil ||
		!bytes.HasPrefix(end, []byte("PK\x06\x06")) {
		return files, nil // it is elsewhere, which package zip does not accept
	}
	return max(files, binary.LittleEndian.Uint64(end[32:])), nil
}

// boundedReaderAt reads up to the given number of bytes while it is bounded.
type boundedReaderAt struct {
	r       io.ReaderAt
	left    int64
	bounded bool
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.bounded {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, errors.New("the list of files is too long")
		}
	}
	return b.r.ReadAt(p, off)
}

// contextReader fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// boundedReader fails after the given number of bytes.
type boundedReader struct {
	r    io.Reader
	left int64
	over error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.over
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// tarOverhead is how many bytes a tar may have in addition to the contents of its files, for each file that it may
// have.
const tarOverhead = 2 << 10

func (u *unpacker) tar(archive string, open func(io.Reader) (io.Reader, error)) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := open(contextReader{u.ctx, file})
	if err != nil {
		return asBroken(fmt.Errorf("the archive is not compressed as its name says: %w", err))
	}
	r := tar.NewReader(&boundedReader{contextReader{u.ctx, plain}, u.limits.Unpacked + tarOverhead*int64(u.limits.Files),
		u.tooLarge()})
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return asBroken(fmt.Errorf("the archive is not a tar archive: %w", err))
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // it applies to all other entries
			if u.files++; u.files > u.limits.Files {
				return brokenf("the archive has more than %d files", u.limits.Files)
			}
			continue
		}
		name, err := u.clean(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.add(name, true, false)
		case tar.TypeReg, tar.TypeGNUSparse:
			err = u.file(name, h.FileInfo().Mode(), r)
		case tar.TypeSymlink:
			err = u.link(name, h.Linkname)
		case tar.TypeLink:
			err = u.hardLink(name, h.Linkname)
		default:
			err = brokenf("the archive has %q, which is not a file, folder or link: type %q", short(h.Name), h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

// hardLink gives a file of the archive a second name.
func (u *unpacker) hardLink(name, raw string) error {
	to, err := u.clean(raw)
	if err != nil {
		return err
	}
	if known := u.names[plain.Fold(to)]; known == nil || !known.file || known.name != to {
		return brokenf("the archive has the link %q to %q, which is not a file of it", short(name), short(raw))
	}
	if err := u.add(name, false, true); err != nil {
		return err
	}
	return u.wrote(name, u.root.Link(filepath.FromSlash(to), filepath.FromSlash(name)))
}

// program finds the command of an archive in the directory that it was unpacked to, and makes it executable. It returns
// its path there.
func program(dir, cmd string) (string, error) {
	wanted, err := localCommand(cmd)
	if err != nil {
		return "", err
	}
	found, err := lookFor(dir, wanted)
	if err != nil {
		return "", err
	}
	if found == "" {
		return "", brokenf("the archive has no file %q", short(cmd))
	}
	return found, makeExecutable(dir, found, cmd)
}

func makeExecutable(dir, name, cmd string) error {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil {
		return err
	} else if info.Size() == 0 {
		return brokenf("the program %q is empty", short(cmd))
	}
	return os.Chmod(path, 0o700)
}

// lookFor finds a file in a directory: at its path, or else somewhere below with a path that ends with it, or with its
// name; "" if there is none. It may be a link: links in archives lead to something in them.
func lookFor(dir, wanted string) (string, error) {
	isFile := func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	}
	if isFile(filepath.Join(dir, wanted)) {
		return wanted, nil
	}
	suffixes := []string{string(filepath.Separator) + wanted}
	if base := filepath.Base(wanted); base != wanted {
		suffixes = append(suffixes, string(filepath.Separator)+base)
	}
	for _, suffix := range suffixes {
		found := ""
		err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !strings.HasSuffix(name, suffix) || !isFile(name) {
				return nil
			}
			if found, err = filepath.Rel(dir, name); err != nil {
				return err
			}
			return fs.SkipAll
		})
		if err != nil || found != "" {
			return found, err
		}
	}
	return "", nil
}

// localCommand returns the path of a command in an archive.
func localCommand(cmd string) (string, error) {
	wanted := filepath.FromSlash(strings.TrimPrefix(strings.ReplaceAll(cmd, `\`, "/"), "./"))
	if !filepath.IsLocal(wanted) || wanted == "." {
		return "", brokenf("the command %q is outside the archive", short(cmd))
	}
	return wanted, nil
}

// placeArchive unpacks the download into the empty directory of the version, and finds its program there; a program
// without an archive gets the name of the command.
func (i *Installed) placeArchive(ctx context.Context, file string, a *Archive, limits Limits) error {
	dir := i.Folder()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	alone, err := unpack(ctx, file, fileName(a.Archive), root, limits)
	if err != nil {
		return err
	}
	i.Args = a.Args
	if !alone {
		i.Program, err = program(dir, a.Cmd)
		return err
	}
	wanted, err := localCommand(a.Cmd)
	if err != nil {
		return err
	}
	wanted = filepath.Base(wanted)
	if why := windowsName(wanted); why != "" {
		return brokenf("the command %q: %s", short(a.Cmd), why)
	}
	if err := os.Rename(file, filepath.Join(dir, wanted)); err != nil {
		return err
	}
	i.Program = wanted
	return makeExecutable(dir, wanted, a.Cmd)
}

// verify compares the checksum of the download with that of the entry, if that has one.
func (a *Archive) verify(sum string) error {
	if a.SHA256 != "" && !strings.EqualFold(sum, a.SHA256) {
		return brokenf("the SHA-256 of %s is %s, expected %s", plain.Line(a.Archive), sum, short(a.SHA256))
	}
	return nil
}
