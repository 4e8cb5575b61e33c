// Package tui is the user interface of acp run: a client for people, in a terminal.
//
// Run draws the whole screen. One model owns all state and changes only in its loop; whatever takes time runs as a task
// in a goroutine and sends its result to the loop as a message. RunPlain does the same for terminals that are used line
// by line.
//
// Text of an agent is cleaned before it is drawn: by package draw, and here by clean and cleanText.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// SignalError says that a signal has ended the program.
type SignalError struct{ Signal os.Signal }

// Error implements the error interface.
func (e *SignalError) Error() string { return "ended by signal: " + e.Signal.String() }

// framesPerSecond is how often the screen may be drawn. The first frame, and input, wait for half a frame.
const framesPerSecond = 120

// Run runs the program until the user quits, and restores the terminal.
func Run(ctx context.Context, opts *Options) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in := &input{File: opts.In}
	var program *tea.Program
	model := newModel(ctx, opts, func(msg tea.Msg) { program.Send(msg) })
	program = tea.NewProgram(model, tea.WithInput(in), tea.WithOutput(opts.Out), tea.WithoutSignalHandler(),
		tea.WithFPS(framesPerSecond))
	in.ended = func(err error) { program.Send(leaveMsg(err)) }

	before, _ := term.GetState(int(opts.In.Fd())) // nil if it is not a terminal; then there is nothing to restore
	ended := make(chan struct{})
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case s := <-signals:
			go program.Send(leaveMsg(&SignalError{s})) // waits for the loop
			model.tasks.cancel()                       // a login may be delaying it
			select {
			case <-ended:
			case <-time.After(endTime): // the terminal accepts no output
				program.Kill()
			}
		case <-ended:
		}
	}()
	_, err = program.Run()
	close(ended)
	<-watching
	// On error the terminal is gone. Bubble Tea sets the shape of the cursor, and assumes a blinking block to be the
	// default.
	_, _ = io.WriteString(opts.Out, ansi.SetCursorStyle(0))
	if before != nil {
		_ = term.Restore(int(opts.In.Fd()), before)
	}
	err = errors.Join(model.end(), model.result(err))
	model.sayResume()
	return err
}

// sayResume prints the command that opens the last visible session again, if it has a conversation and the agent can
// open it.
func (m *Model) sayResume() {
	if m.opts.Resume == nil || m.chat == nil || m.chat.firstSaid() == "" {
		return
	}
	if can := m.client.Capabilities(); can.LoadSession || can.SessionCapabilities.Resume.Present() {
		// On error the terminal is gone.
		_, _ = fmt.Fprintf(m.opts.Out, "Resume this session: %s\n", clean(m.opts.Resume(m.chat.id)))
	}
}

// result returns why the program ended; nil if the user quit.
func (m *Model) result(err error) error {
	if m.err != nil {
		return m.err
	}
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("the terminal: %w", err)
	}
	return nil
}

// end ends the agent and everything that runs next to the loop.
func (m *Model) end() error {
	m.tasks.cancel()
	err := m.clients.close()
	m.tasks.end()
	err = errors.Join(err, m.clients.close())
	if m.connection == dead {
		err = nil // it was shown
	}
	return err
}

// endSignals end the program.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// input is the terminal. When it is gone, the program ends, even if it gets no signal.
type input struct {
	*os.File
	ended func(error)
}

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	n, err := i.File.Read(p)
	if n == 0 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO)) {
		go i.ended(nil) // waits for the loop
	}
	return n, err
}
