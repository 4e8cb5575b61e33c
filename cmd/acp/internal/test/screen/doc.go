// Package screen lets tests run a program in a terminal: a real pseudo-terminal of the system, whose screen is kept by
// xterm.js, an emulator that this project did not write. Tests press keys, wait for the screen to show something, and
// compare it with files.
//
// Tests never wait for a fixed time. They wait for what must appear, and fail after a [Deadline] with the screen and
// the bytes received.
//
// The emulator comes from npm, and runs in one Node process for all terminals of a test program. Without npm the tests
// are skipped, except in CI, where they fail; the tiers Short and Normal always skip them. The package is for Linux and
// macOS.
package screen
