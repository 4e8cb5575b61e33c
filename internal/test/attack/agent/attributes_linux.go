package main

import (
	"errors"
	"syscall"
)

// setAttribute gives a file an extended attribute. Not every file system has them.
func setAttribute(path, name, value string) (ok bool, err error) {
	err = syscall.Setxattr(path, name, []byte(value), 0)
	if errors.Is(err, syscall.ENOTSUP) {
		return false, nil
	}
	return err == nil, err
}

// attribute returns an extended attribute, or "".
func attribute(path, name string) string {
	value := make([]byte, 100)
	n, err := syscall.Getxattr(path, name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}
