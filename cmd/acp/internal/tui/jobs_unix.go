//go:build !windows

package tui

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// jobs watches for the signals that stop and continue the program.
type jobs struct {
	signals  chan os.Signal
	stopping atomic.Bool // the program stops itself, and knows what to do afterwards
	ended    chan struct{}
}

// watchJobs begins to watch. Each signal is passed to the loop as a jobMsg.
func (m *Model) watchJobs() (stop func()) {
	j := &m.jobs
	j.signals, j.ended = make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(j.signals, syscall.SIGTSTP, syscall.SIGCONT)
	over := make(chan struct{})
	go func() {
		defer close(j.ended)
		for {
			select {
			case s := <-j.signals:
				switch {
				case s == syscall.SIGTSTP:
					go m.send(jobMsg{stop: true}) // waits for the loop
				case !j.stopping.Swap(false):
					go m.send(jobMsg{})
				}
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(j.signals)
		close(over)
		<-j.ended
	}
}

// suspend stops the program until the shell continues it.
func (m *Model) suspend() tea.Cmd {
	sid, err := unix.Getsid(0)
	switch {
	case err != nil || sid == unix.Getpgrp(): // not a job that a shell started
		m.tellHere("No shell could resume the program.")
		return nil
	case m.plain:
		return func() tea.Msg {
			_ = syscall.Kill(0, syscall.SIGSTOP) // on error there is no way to report it
			return nil
		}
	}
	return tea.Exec(released{&stopping{j: &m.jobs}}, nil)
}

// retake takes over the terminal again after a stop that the program did not see: the shell has used it meanwhile.
func (m *Model) retake() tea.Cmd {
	if m.plain {
		return nil
	}
	if _, err := term.MakeRaw(int(m.opts.In.Fd())); err != nil {
		return m.leave(fmt.Errorf("the terminal: %w", err))
	}
	modes := ansi.SetModeAltScreenSaveCursor + ansi.SetModeBracketedPaste + ansi.SetModifyOtherKeys2
	if !m.opts.NoMouse {
		modes += ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr
	}
	if m.opts.Notify == NotifyUnfocused {
		modes += ansi.SetModeFocusEvent
	}
	return tea.Sequence(tea.Raw(modes), tea.ClearScreen)
}

// stopping stops the program while the terminal is released.
type stopping struct {
	j   *jobs
	out io.Writer
}

func (s *stopping) SetStdin(io.Reader)    {}
func (s *stopping) SetStderr(io.Writer)   {}
func (s *stopping) SetStdout(w io.Writer) { s.out = w }

// Run implements tea.ExecCommand.
func (s *stopping) Run() error {
	if _, err := io.WriteString(s.out, ansi.SetCursorStyle(0)); err != nil {
		return err
	}
	s.j.stopping.Store(true)
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil { // stops the whole job; SIGTSTP is handled
		s.j.stopping.Store(false)
		return err
	}
	<-goesOn
	return nil
}
