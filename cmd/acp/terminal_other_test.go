//go:build !linux && !darwin

package main

// terminalPrograms are those for tests in terminals, which are for Linux and macOS.
var terminalPrograms map[string]func()
