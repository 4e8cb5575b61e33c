package screen

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acpgo/sdk/internal/test/must"
)

const getTermios = unix.TCGETS

// Processes returns the running processes that the program, or processes started by it, have started.
func (x *Terminal) Processes() (pids []int) {
	files := must.Get(filepath.Glob("/proc/[0-9]*/environ"))(x.t)
	for _, file := range files {
		env, err := os.ReadFile(file) // missing for processes that have ended
		if err != nil || !bytes.Contains(append(env, 0), append([]byte(x.mark), 0)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// patience is how long killed processes may take to end.
const patience = time.Minute

// survivors returns the processes that do not end within [patience]. Only /proc shows their end.
func (x *Terminal) survivors() (pids []int) {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if pids = x.Processes(); len(pids) == 0 || time.Now().After(end) {
			return pids
		}
	}
}
