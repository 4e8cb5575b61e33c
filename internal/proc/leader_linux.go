package proc

import (
	"os"
	"syscall"
)

// A leader refers to a process group by a descriptor of the process that started it. When that process and all others
// in the group have ended, the system may reuse the group's number for another group, but the descriptor never refers
// to that one.
type leader struct {
	fd int // or -1
}

func leaderOf(p *os.Process) leader {
	l := leader{fd: -1}
	// Without a descriptor, the number has to do.
	_ = p.WithHandle(func(handle uintptr) {
		fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, handle, syscall.F_DUPFD_CLOEXEC, 0)
		if errno == 0 {
			l.fd = int(fd)
		}
	})
	return l
}

const (
	sysPidfdSendSignal = 424    // on all architectures
	signalProcessGroup = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP, of Linux 6.9
)

// signal signals the group, whose number is id.
func (l leader) signal(id int, sig syscall.Signal) error {
	if l.fd >= 0 {
		_, _, errno := syscall.Syscall6(sysPidfdSendSignal, uintptr(l.fd), uintptr(sig), 0, signalProcessGroup, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINVAL, syscall.ENOSYS, syscall.EPERM: // an older Linux, or a sandbox
		default:
			return errno
		}
	}
	return syscall.Kill(-id, sig)
}

func (l *leader) free() {
	if l.fd >= 0 {
		syscall.Close(l.fd)
		l.fd = -1
	}
}
