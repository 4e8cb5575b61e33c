package local

import "os"

// statusOf returns how a command ended.
func statusOf(state *os.ProcessState) exitStatus {
	return exitStatus{code: int64(uint32(state.ExitCode()))}
}
