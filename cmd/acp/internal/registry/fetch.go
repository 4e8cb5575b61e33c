// The network: whether addresses and packages exist, and what is fetched from there.

package registry

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// addresses looks whether what the entry names is there.
func (c *checker) addresses(e *entry) {
	for _, platform := range sorted(e.binary) {
		if d := e.binary[platform]; isAddress(d.archive) {
			c.ran("REG-8")
			if err := c.exists(d.archive); err != nil {
				c.fail("REG-8", d.pointer+"/archive", "%v", err)
			}
		}
	}
	if e.npx != nil {
		name, version := splitPackage("npx", e.npx.pkg)
		c.published(e.npx, strings.TrimSuffix(c.NPM, "/")+"/"+strings.ReplaceAll(name, "/", "%2f")+"/"+url.PathEscape(version), version)
	}
	if e.uvx != nil {
		name, version := splitPackage("uvx", e.uvx.pkg)
		c.published(e.uvx, strings.TrimSuffix(c.PyPI, "/")+"/pypi/"+url.PathEscape(name)+"/"+url.PathEscape(version)+"/json", version)
	}
}

func (c *checker) published(d *distribution, address, version string) {
	if version == "" {
		return // which is told already
	}
	c.ran("REG-8")
	if err := c.exists(address); err != nil {
		c.fail("REG-8", d.pointer+"/package", "%s: %v", d.pkg, err)
	}
}

// exists asks whether an address can be read: by HEAD, and by GET where that is not served.
func (c *checker) exists(address string) error {
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	var err error
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		var request *http.Request
		if request, err = http.NewRequestWithContext(ctx, method, address, nil); err != nil {
			return err
		}
		var response *http.Response
		if response, err = c.http.Do(request); err != nil {
			continue
		}
		if err = response.Body.Close(); err != nil {
			continue
		}
		if response.StatusCode == http.StatusOK {
			return nil
		}
		err = fmt.Errorf("%s is answered with %s", address, response.Status)
	}
	return err
}

// Bounds of what is fetched and unpacked.
const (
	maxArchive  = 1 << 30
	maxUnpacked = 4 << 30
	maxFiles    = 200_000
)

// brokenArchive is an error that is the archive's fault, and not the network's.
type brokenArchive struct{ error }

func brokenf(format string, args ...any) error { return brokenArchive{fmt.Errorf(format, args...)} }

// unpack fetches a binary and unpacks it into a folder. It returns the path of what is to be started.
func (c *checker) unpack(ctx context.Context, d *distribution, dir string) (string, error) {
	archive := filepath.Join(dir, "archive")
	sum, err := c.fetch(ctx, d.archive, archive)
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", d.archive, err)
	}
	if d.sha256 != "" && !strings.EqualFold(sum, d.sha256) {
		return "", brokenf("the SHA-256 of %s is %s, and not %s", d.archive, sum, d.sha256)
	}
	into := filepath.Join(dir, "unpacked")
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return "", err
	}
	defer root.Close()
	u := &unpacker{root: root, left: maxUnpacked}
	name := strings.ToLower(fileName(d.archive))
	switch {
	case strings.HasSuffix(name, ".zip"):
		err = u.zip(archive)
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		err = u.compressed(archive, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	case strings.HasSuffix(name, ".tar.bz2"), strings.HasSuffix(name, ".tbz2"):
		err = u.compressed(archive, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil })
	default: // the program itself
		return program(into, d.cmd, archive)
	}
	if err != nil {
		return "", err
	}
	return program(into, d.cmd, "")
}

// fetch writes what is at an address into a file, and returns its SHA-256.
func (c *checker) fetch(ctx context.Context, address, name string) (sum string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it is answered with %s", response.Status)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(response.Body, maxArchive+1))
	if err != nil {
		return "", err
	}
	if n > maxArchive {
		return "", brokenf("it has more than %d bytes", maxArchive)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// unpacker writes the files of an archive into a folder, and never out of it.
type unpacker struct {
	root  *os.Root
	left  int64 // bytes
	files int
}

// local checks the name of a file of the archive.
func (u *unpacker) local(name string) (string, error) {
	if u.files++; u.files > maxFiles {
		return "", brokenf("the archive has more than %d files", maxFiles)
	}
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", brokenf("the archive has the file %q, which is outside its folder", name)
	}
	return filepath.FromSlash(clean), nil
}

func (u *unpacker) folder(name string) error {
	if name == "." {
		return nil
	}
	return u.wrong(name, u.root.MkdirAll(name, 0o700))
}

// wrong is an error of writing a file: the archive's fault if the file would be outside, or two things have one name.
func (u *unpacker) wrong(name string, err error) error {
	if err == nil {
		return nil
	}
	return brokenf("the archive's file %q: %w", name, err)
}

func (u *unpacker) file(name string, mode fs.FileMode, text io.Reader) error {
	if err := u.folder(filepath.Dir(name)); err != nil {
		return err
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600|mode&0o100)
	if err != nil {
		return u.wrong(name, err)
	}
	n, err := io.Copy(file, io.LimitReader(text, u.left+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return u.wrong(name, err)
	}
	if u.left -= n; u.left < 0 {
		return brokenf("the archive has more than %d bytes when it is unpacked", int64(maxUnpacked))
	}
	return nil
}

func (u *unpacker) link(name, to string) error {
	target := path.Join(path.Dir(filepath.ToSlash(name)), to)
	if path.IsAbs(to) || !filepath.IsLocal(filepath.FromSlash(target)) {
		return brokenf("the archive has the link %q to %q, which is outside its folder", name, to)
	}
	if err := u.folder(filepath.Dir(name)); err != nil {
		return err
	}
	return u.wrong(name, u.root.Symlink(filepath.FromSlash(to), name))
}

func (u *unpacker) zip(archive string) error {
	r, err := zip.OpenReader(archive)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return brokenf("the archive is no zip: %w", err)
	}
	defer r.Close()
	for _, f := range r.File {
		name, err := u.local(f.Name)
		if err != nil {
			return err
		}
		mode := f.Mode()
		if mode.IsDir() {
			if err := u.folder(name); err != nil {
				return err
			}
			continue
		}
		text, err := f.Open()
		if err != nil {
			return brokenf("the archive's file %q: %w", f.Name, err)
		}
		switch {
		case mode&fs.ModeSymlink != 0:
			var to []byte
			if to, err = io.ReadAll(io.LimitReader(text, 4096)); err == nil {
				err = u.link(name, string(to))
			}
		case mode.IsRegular():
			err = u.file(name, mode, text)
		}
		if err = errors.Join(err, text.Close()); err != nil {
			return asBroken(err)
		}
	}
	return nil
}

// asBroken is an error of reading an archive.
func asBroken(err error) error {
	if _, ok := errors.AsType[brokenArchive](err); ok {
		return err
	}
	return brokenArchive{err}
}

func (u *unpacker) compressed(archive string, open func(io.Reader) (io.Reader, error)) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := open(file)
	if err != nil {
		return brokenf("the archive is not compressed as its name says: %w", err)
	}
	r := tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return brokenf("the archive is no tar: %w", err)
		}
		name, err := u.local(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.folder(name)
		case tar.TypeReg:
			err = u.file(name, h.FileInfo().Mode(), r)
		case tar.TypeSymlink:
			err = u.link(name, h.Linkname)
		case tar.TypeLink:
			var to string
			if to, err = u.local(h.Linkname); err == nil {
				err = u.wrong(name, u.root.Link(to, name))
			}
		}
		if err != nil {
			return err
		}
	}
}

// interpreters are commands that mean the system's.
var interpreters = map[string]bool{"node": true, "python": true, "python3": true, "java": true, "ruby": true}

// program finds the command of a binary in its folder, and makes it executable. A lone file takes the command's name.
func program(dir, cmd, lone string) (string, error) {
	cmd = filepath.FromSlash(strings.TrimPrefix(strings.ReplaceAll(cmd, `\`, "/"), "./"))
	if interpreters[cmd] {
		return cmd, nil
	}
	if !filepath.IsLocal(cmd) {
		return "", brokenf("the command %q is outside the archive", cmd)
	}
	found := filepath.Join(dir, cmd)
	if lone != "" {
		found = filepath.Join(dir, filepath.Base(cmd))
		if err := os.Rename(lone, found); err != nil {
			return "", err
		}
	} else if info, err := os.Stat(found); err != nil || !info.Mode().IsRegular() {
		found = ""
		err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if found == "" && entry.Type().IsRegular() && strings.HasSuffix(name, string(filepath.Separator)+cmd) {
				found = name
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		if found == "" && filepath.Dir(cmd) != "." {
			return program(dir, filepath.Base(cmd), "")
		}
		if found == "" {
			return "", brokenf("the archive has no file %q", cmd)
		}
	}
	return found, os.Chmod(found, 0o700)
}
