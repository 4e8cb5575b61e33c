package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
)

// library is one way to speak the protocol.
type library struct {
	name string
	// serve is an agent. It returns when the client is gone.
	serve func(ctx context.Context, l *link) error
	// connect is a client, initialized.
	connect func(ctx context.Context, l *link, c *consumer) (client, error)
}

// client is one side of a connection.
type client interface {
	NewSession(ctx context.Context) (id string, err error)
	// Prompt runs a turn. Its updates go to the consumer.
	Prompt(ctx context.Context, session, text string) error
	Close() error
}

const (
	nameACP        = "acp"
	nameCoder      = "coder"
	nameTypeScript = "TypeScript"
)

// libraries are those that converse in this program. The TypeScript SDK is a program of its own.
var libraries = []library{
	{nameACP, serveACP, connectACP},
	{nameCoder, serveCoder, connectCoder},
}

func libraryNamed(name string) (library, error) {
	for _, l := range libraries {
		if l.name == name {
			return l, nil
		}
	}
	return library{}, fmt.Errorf("no library %q", name)
}

// link is what a side of a connection runs on: a reader and a writer, which a subprocess has when it is
// started.
type link struct {
	r       io.ReadCloser
	w       io.WriteCloser
	command *exec.Cmd
}

// stdio is the link of a subprocess.
func stdio() *link { return &link{r: os.Stdin, w: os.Stdout} }

// start starts the subprocess, as most documentation says.
func (l *link) start() (err error) {
	if l.w, err = l.command.StdinPipe(); err != nil {
		return err
	}
	if l.r, err = l.command.StdoutPipe(); err != nil {
		return err
	}
	return l.command.Start()
}

// Close ends the link, and waits for the subprocess.
func (l *link) Close() error {
	return errors.Join(l.w.Close(), l.command.Wait())
}

var sessionCount atomic.Int64

// newSessionID is as long as those of known agents.
func newSessionID() string { return fmt.Sprintf("sess_0196f8c0a1%06d", sessionCount.Add(1)-1) }

// sessionNumber reads what newSessionID made.
func sessionNumber(id string) int { return number(id[len(id)-numberWidth:]) }
