package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// replaces reports that existing files are replaced if nothing is lost, because on this system their attributes are
// known.
const replaces = true

// resemble gives file the owner and the permissions of old. It fails if file would still differ from old in more than
// its text: in its access control list, its label, or any other extended attribute.
func resemble(file, old *os.File) error {
	is, err := status(file)
	if err != nil {
		return err
	}
	was, err := status(old)
	if err != nil {
		return err
	}
	if is.Uid != was.Uid || is.Gid != was.Gid {
		if err := file.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	// A new file must not be setuid or setgid because the old one was.
	if err := file.Chmod(os.FileMode(was.Mode) & os.ModePerm); err != nil {
		return err
	}
	has, err := attributes(file)
	if err != nil {
		return err
	}
	had, err := attributes(old)
	if err != nil {
		return err
	}
	if len(has) != len(had) {
		return errAttributes
	}
	for name, value := range had {
		if other, ok := has[name]; !ok || !bytes.Equal(value, other) {
			return fmt.Errorf("%w: %q", errAttributes, name)
		}
	}
	return nil
}

var errAttributes = errors.New("a new file has other extended attributes")

func status(file *os.File) (*syscall.Stat_t, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return info.Sys().(*syscall.Stat_t), nil
}

// attributes returns the extended attributes of a file by name.
func attributes(file *os.File) (map[string][]byte, error) {
	path := handlePath(file) // package syscall has no such calls for open files
	buf := make([]byte, maxAttribute)
	n, err := syscall.Listxattr(path, buf)
	if errors.Is(err, syscall.ENOTSUP) {
		return nil, nil // the file system has none
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string][]byte)
	for name := range strings.FieldsFuncSeq(string(buf[:n]), func(r rune) bool { return r == 0 }) {
		n, err := syscall.Getxattr(path, name, buf)
		if err != nil {
			return nil, err
		}
		all[name] = bytes.Clone(buf[:n])
	}
	return all, nil
}

// maxAttribute is the limit of Linux, in bytes, for a value and for all names together.
const maxAttribute = 64 << 10

// handlePath returns a path that refers to an open file, even if it has been renamed, on systems with a mounted /proc.
func handlePath(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }
