package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// sweep kills the processes that a launch has left behind: those that have its variable, in whatever group or session they
// are. One that has cleared its environment is not found.
func sweep(mark string) {
	for range 5 { // they may start others meanwhile
		found := false
		files, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return // never: the pattern is right
		}
		for _, file := range files {
			// Those of others cannot be read, and some have just ended.
			text, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(text, []byte(mark)) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
				found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
	}
}
