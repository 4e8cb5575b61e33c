package subject

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

const (
	// sweepTime is how long a sweep may take. Only processes that keep starting others make it take so long.
	sweepTime = 5 * time.Second

	// hiddenTime is how long a sweep waits for processes that execute another program, and have no environment meanwhile.
	// Some never have one.
	hiddenTime = 200 * time.Millisecond
)

// sweep kills the processes that a launch left behind: those that have its variable, in any process group or session,
// and waits until they have ended. It does not find processes that have cleared their environment.
func sweep(mark string) {
	last := time.Now() // when one was found
	// A process that is not listed yet may be started by one that is no longer there, so two passes are needed.
	for end, clean := last.Add(sweepTime), 0; clean < 2 && time.Now().Before(end); {
		found, hidden := carrying(mark)
		for _, p := range found {
			_ = p.Kill() // may just have ended
		}
		switch {
		case len(found) > 0:
			last, clean = time.Now(), 0
		case !hidden || time.Since(last) > hiddenTime:
			clean++
			continue
		}
		time.Sleep(time.Millisecond) // gives them time to end, or to execute
	}
}

// carrying returns the processes, other than this one, whose environment contains mark, and whether there are processes
// without an environment.
func carrying(mark string) (found []*os.Process, hidden bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // use what could be read
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Another process may get the number of one that ends. The handle is older than what is read, so it never refers
		// to a process without the mark.
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// Those of other users cannot be read, and some have just ended.
		text, err := os.ReadFile("/proc/" + name + "/environ")
		if err == nil && bytes.Contains(text, []byte(mark)) {
			found = append(found, p)
			continue
		}
		_ = p.Release()
		if err == nil && len(text) == 0 {
			_, err := os.Readlink("/proc/" + name + "/exe") // the kernel's threads have none
			hidden = hidden || err == nil
		}
	}
	return found, hidden
}
