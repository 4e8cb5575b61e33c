//go:build !windows

package tui

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// suspension returns the command that stops the program until the shell continues it, or why there is none.
func suspension(plain bool) (stop tea.Cmd, whyNot string) {
	sid, err := unix.Getsid(0)
	switch {
	case err != nil || sid == unix.Getpgrp(): // not a job that a shell started
		return nil, "No shell could resume the program."
	case plain:
		return func() tea.Msg {
			_ = syscall.Kill(0, syscall.SIGSTOP) // on error there is no way to report it
			return nil
		}, ""
	}
	return tea.Exec(released{&stopping{}}, nil), ""
}

// stopping stops the program while the terminal is released.
type stopping struct{ out io.Writer }

func (s *stopping) SetStdin(io.Reader)    {}
func (s *stopping) SetStderr(io.Writer)   {}
func (s *stopping) SetStdout(w io.Writer) { s.out = w }

// Run implements tea.ExecCommand.
func (s *stopping) Run() error {
	if _, err := io.WriteString(s.out, ansi.SetCursorStyle(0)); err != nil {
		return err
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil { // stops the whole job
		return err
	}
	<-continued
	return nil
}
