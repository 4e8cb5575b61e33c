package subject

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// sweepTime is how long a sweep may take. Only processes that keep starting others make it take so long.
const sweepTime = 5 * time.Second

// sweep kills the processes that a launch left behind: those that have its variable, in any process group or session,
// and waits until they have ended. It does not find processes that have cleared their environment.
func sweep(mark string) {
	// A process that executes another program has no environment for a moment, so two passes are needed.
	for end, clean := time.Now().Add(sweepTime), 0; clean < 2 && time.Now().Before(end); {
		if found := carrying(mark); len(found) > 0 {
			clean = 0
			for _, pid := range found {
				// Since it was found, the process may have ended and another one got its number. A handle stays with its process.
				if p, err := os.FindProcess(pid); err == nil && carries(strconv.Itoa(pid), mark) {
					_ = p.Kill() // may just have ended
				}
			}
			time.Sleep(time.Millisecond) // gives them time to end
			continue
		}
		clean++
	}
}

// carrying returns the processes, other than this one, whose environment contains mark.
func carrying(mark string) (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // use what could be read
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if carries(name, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// carries reports whether the environment of a process contains mark. Those of other users cannot be read, and some
// processes have just ended.
func carries(pid, mark string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/environ")
	return err == nil && bytes.Contains(text, []byte(mark))
}
