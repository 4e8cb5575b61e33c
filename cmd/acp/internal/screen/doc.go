// Package screen lets tests run a program in a terminal: a real pseudo-terminal of the system, whose screen is kept by an
// emulator that this project did not write, xterm.js. Tests press keys, wait for what the screen shows, and compare it with
// files.
//
// Nothing waits for a time to pass. A test waits for what must appear, and fails after a [Deadline] with the screen and the
// bytes that came.
//
// The emulator is from npm, and runs in one Node process for all terminals of a test program. Without npm the tests are
// skipped, but in CI they fail; the tiers Short and Normal skip them always. The package is for Linux and macOS.
package screen
