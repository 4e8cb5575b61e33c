//go:build !darwin && !(linux && (386 || amd64 || arm || arm64 || loong64 || riscv64 || s390x))

package tty

func discard(uintptr) {}
