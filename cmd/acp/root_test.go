package main

import (
	"bytes"
	"testing"
)

// Arguments cannot control the terminal: a script may pass on what others have sent.
func TestErrorsAreSafe(t *testing.T) {
	for _, args := range [][]string{{"\x1b[2Jx"}, {"version", "\x1b[2Jx"}, {"version", "--\x1b[2Jx"}} {
		var stdout, stderr bytes.Buffer
		status := run(&program{stdout: &stdout, stderr: &stderr}, args)
		if status != statusUsage || stdout.Len() > 0 || !bytes.Contains(stderr.Bytes(), []byte(`x1b[2Jx`)) || bytes.ContainsRune(stderr.Bytes(), '\x1b') {
			t.Errorf("%q: %d, %q, %q", args, status, &stdout, &stderr)
		}
	}
}
