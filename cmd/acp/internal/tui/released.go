package tui

import (
	"bytes"
	"runtime"
	"time"

	tea "charm.land/bubbletea/v2"
)

// rendererTime is how long the renderer may take to stop. Other Bubble Tea programs in the process, such as in tests,
// have their own renderer.
const rendererTime = 10 * time.Second

// released is a command for the released terminal that begins only when the renderer has stopped.
//
// Bubble Tea signals the renderer's goroutine to stop and does not wait for it. If the goroutine stops the ticker of
// the frames only after the terminal has been taken back, which restarts the ticker, nothing is ever drawn again. That
// happens on a busy machine, and when the process is stopped in between.
type released struct{ tea.ExecCommand }

// Run implements tea.ExecCommand.
func (r released) Run() error {
	for end := time.Now().Add(rendererTime); rendering() && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	return r.ExecCommand.Run()
}

// rendering reports whether a goroutine of Bubble Tea's renderer runs.
func rendering() bool {
	for size := 1 << 16; ; size *= 2 {
		stacks := make([]byte, size)
		if n := runtime.Stack(stacks, true); n < size {
			return bytes.Contains(stacks[:n], []byte(".(*Program).startRenderer.func"))
		}
	}
}
