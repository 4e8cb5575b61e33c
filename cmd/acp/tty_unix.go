//go:build !windows

package main

// ttyName is the terminal of the process.
const ttyName = "/dev/tty"
