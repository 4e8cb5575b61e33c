package local

import (
	"errors"
	"io"

	"github.com/acpgo/sdk/acp"
)

// Serve sets the handlers of h for fs/* and terminal/*: all sessions can reach the files in dirs, and commands start in
// the first of them. approval decides about writes and commands: see [Trusted] for child processes, and [Asking] for
// other agents; nil leaves only reading. All options have their defaults. The caller closes the result when the
// connection is over, which ends the commands that are still running and closes the directories.
func Serve(h *acp.ClientHandlers, approval *Approval, dirs ...string) (io.Closer, error) {
	roots, err := OpenRoots(dirs...)
	if err != nil {
		return nil, err
	}
	s := served{roots, NewTerminals(roots, approval, nil)}
	NewFiles(roots, approval, nil).Register(h)
	s.terminals.Register(h)
	return s, nil
}

type served struct {
	roots     *Roots
	terminals *Terminals
}

func (s served) Close() error { return errors.Join(s.terminals.Close(), s.roots.Close()) }
