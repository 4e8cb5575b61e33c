package main

import (
	"context"
	"runtime"
	"syscall"

	"github.com/acpgo/sdk/acp/rpc"
)

// starter starts programs that the system kills when this one is killed, which can do it no more. The system takes the
// end of a thread for that of the program: so they are started by one thread that lives as long as the program.
type starter struct{ work chan func() }

// transport starts a command in that way.
func (s *starter) transport(command *rpc.CommandTransport) rpc.Transport {
	if s.work == nil {
		s.work = make(chan func())
		go func() {
			runtime.LockOSThread()
			for start := range s.work {
				start()
			}
		}()
	}
	if command.Cmd.SysProcAttr == nil {
		command.Cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.Cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return startedBy{s, command}
}

type startedBy struct {
	*starter
	rpc.Transport
}

// Connect starts the command.
func (t startedBy) Connect(ctx context.Context) (stream rpc.Stream, err error) {
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		stream, err = t.Transport.Connect(ctx)
	}
	<-done
	return stream, err
}
