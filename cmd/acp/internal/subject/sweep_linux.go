package subject

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// sweepTime is how long a sweep may take. Only processes that start others without end make it take so long.
const sweepTime = 5 * time.Second

// sweep kills the processes that a launch has left behind: those that have its variable, in whatever group or session they
// are, and waits until they have ended. One that has cleared its environment is not found.
func sweep(mark string) {
	// A process that is replaced by another program has no environment for a moment, so that it takes two looks.
	for end, clean := time.Now().Add(sweepTime), 0; clean < 2 && time.Now().Before(end); {
		if found := carrying(mark); len(found) > 0 {
			clean = 0
			for _, pid := range found {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
			}
			time.Sleep(time.Millisecond) // for them to end
			continue
		}
		clean++
	}
}

// carrying finds the processes, other than this one, that have something in their environment.
func carrying(mark string) (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read is looked at
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Those of others cannot be read, and some have just ended.
		if text, err := os.ReadFile("/proc/" + name + "/environ"); err == nil && bytes.Contains(text, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
