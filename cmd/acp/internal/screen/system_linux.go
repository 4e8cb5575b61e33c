package screen

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TCGETS

// Processes are all that the program has started, and that they have started, and that have not ended.
func (x *Terminal) Processes() (pids []int) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		x.t.Fatal(err)
	}
	for _, file := range files {
		env, err := os.ReadFile(file) // of processes that have ended there is none
		if err != nil || !bytes.Contains(append(env, 0), append([]byte(x.mark), 0)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// patience is how long processes may take to end that were killed.
const patience = time.Minute

// survivors are the processes that do not end within [patience]. Nothing tells of their end but /proc.
func (x *Terminal) survivors() (pids []int) {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if pids = x.Processes(); len(pids) == 0 || time.Now().After(end) {
			return pids
		}
	}
}
