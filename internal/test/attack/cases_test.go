//go:build linux

package attack

import (
	"os"
	"path/filepath"
	"time"

	"github.com/acpgo/sdk/internal/test/gentest"
)

// A testCase is an attack on a victim.
type testCase struct {
	attack    string
	victim    string
	bound     int      // MiB of memory that the victim may have
	flags     []string // of the victim
	fatal     bool     // the connection need not survive: the victim may fail, but must end
	outlive   bool     // processes may be left, as SECURITY.md says
	amount    bool     // it is only about memory, like all attacks with a bound larger than small
	inNightly bool     // it has no small version: another victim shares the code, or the tests of the victim have a small one
	procs     int      // the maximum number of processes at a time; 0 is any number
	check     func(r *attackRun)
}

// The bounds of memory, in MiB. A connection holds 256 MiB at most by default, and Go's collector lets the heap grow to
// about twice the memory in use. A message of the maximum size is in memory more than once while it is read and
// decoded. Unbounded growth would take many times as much.
const (
	small  = 192           // nothing large is sent
	medium = 2*256 + 64    // the limit of a connection, and the memory of the program itself
	large  = medium + 5*64 // and a message of the maximum size while it is decoded
)

// outputs is the bound if commands write endlessly. The output kept by terminals is not part of the connection's
// memory: it is 64 MiB, which are in memory twice before they are collected.
const outputs = medium + 2*64

// timeLimit returns how long an attack may take, by a hostile.Clock. Each takes a small part of it.
func timeLimit() time.Duration {
	limit := 2 * time.Minute
	if full() {
		limit *= 10
	}
	if gentest.Race {
		limit *= 3
	}
	return limit
}

// memory returns the bound. The race detector has its own memory, about ten times that of the program, and more if
// there are many goroutines one after the other. The numbers that a victim records do not include it.
func (c *testCase) memory() int {
	if gentest.Race {
		return 20 * c.bound
	}
	return c.bound
}

// cases returns all attacks.
func cases() []*testCase {
	all := []*testCase{
		{attack: "none", victim: "local", bound: small},
		{attack: "read-flood", victim: "local", inNightly: true, bound: medium},
		{attack: "read-flood-unread", victim: "local", inNightly: true, bound: medium},
		{attack: "write-flood", victim: "local", inNightly: true, bound: large},
		{attack: "output-flood", victim: "local", inNightly: true, bound: medium},
		{attack: "permission-flood", victim: "local", inNightly: true, bound: large, flags: []string{"-ask", "wait"}},
		{attack: "session-flood", victim: "local", bound: medium, flags: []string{"-callback"}},
		{attack: "update-flood", victim: "local", bound: small},
		{attack: "echoes", victim: "local", inNightly: true, bound: medium},
		{attack: "big-initialize", victim: "local", bound: large},
		{attack: "many-ids", victim: "local", inNightly: true, bound: medium},
		{attack: "cancellations", victim: "local", bound: small, flags: []string{"-ask", "wait"}},
		{attack: "deep", victim: "local", bound: medium},
		{attack: "long-lines", victim: "local", inNightly: true, bound: medium},
		{attack: "bad-lines", victim: "local", bound: small},
		{attack: "garbage", victim: "local", bound: small},
		{attack: "answers-to-nothing", victim: "local", bound: small},
		{attack: "duplicate-ids", victim: "local", bound: small},
		{attack: "slow", victim: "local", bound: small},
		{attack: "paths", victim: "local", bound: small, check: secretKept},
		{attack: "swaps", victim: "local", bound: small, check: secretKept},
		{attack: "sparse", victim: "local", bound: small},
		{attack: "root-swap", victim: "local", bound: small},
		{attack: "attributes", victim: "local", bound: small},
		{attack: "other-files", victim: "local", bound: small, flags: []string{"-others"}},
		{attack: "setsid", victim: "local", bound: small, outlive: true},
		{attack: "fork-bomb", victim: "local", bound: small, procs: 64*16 + 20},
		{attack: "endless-output", victim: "local", bound: outputs},
		{attack: "close-session", victim: "local", bound: small, flags: []string{"-sessions", map[bool]string{false: "15", true: "500"}[full()]}},
		{attack: "v2-ids", victim: "victim-v2", inNightly: true, bound: medium},
		{attack: "v2-sessions", victim: "victim-v2", bound: small},

		{attack: "texts", victim: "proxy", bound: small, check: screenClean},
		{attack: "error-text", victim: "proxy", bound: small, fatal: true, check: screenClean},
		{attack: "many-ids", victim: "proxy", inNightly: true, bound: large},
		{attack: "long-lines", victim: "proxy", inNightly: true, bound: large},

		{attack: "no-login", victim: "kit-agent", bound: small, flags: []string{"-login"}},
		{attack: "state-fifo", victim: "kit-agent", bound: small},
		{attack: "state-names", victim: "kit-agent", bound: small},
		{attack: "cursors", victim: "kit-agent", bound: medium},
	}
	for _, attack := range []string{"unread", "stubborn", "half-closed-out", "half-closed-in", "dies", "no-newline", "no-answer", "chatter"} {
		all = append(all, &testCase{attack: attack, victim: "local", bound: medium, flags: []string{"-anew", "-patience", "1s", "-grace", "1s"}})
	}
	for _, attack := range []string{"answer-id", "answer-form"} {
		all = append(all, &testCase{attack: attack, victim: "local", bound: small, flags: []string{"-anew", "-patience", "3s", "-grace", "1s"}})
	}
	for _, victim := range []string{"agent", "kit-agent"} {
		for attack, bound := range map[string]int{
			"none": small, "bad-lines": small, "garbage": small, "answers-to-nothing": small, "many-ids": medium,
			"duplicate-ids": small, "deep": medium, "long-lines": medium, "cancellations": small, "slow": small,
			"too-early": small, "initialize-again": small, "big-initialize": large, "prompt-flood": medium,
			"big-prompts": large, "session-flood": medium, "wide-prompt": 2 * large,
		} {
			all = append(all, &testCase{attack: attack, victim: victim, bound: bound, inNightly: victim == "kit-agent" && bound > small})
		}
		for _, attack := range []string{"unread", "vanishes", "half-closed", "no-newline"} {
			all = append(all, &testCase{attack: attack, victim: victim, bound: medium, fatal: true, inNightly: victim == "kit-agent" && attack == "no-newline"})
		}
	}
	return all
}

// secretKept requires that nothing outside the session's directories was changed.
func secretKept(r *attackRun) {
	entries, err := os.ReadDir(filepath.Dir(r.secret))
	if err != nil || len(entries) != 1 {
		r.find("outside the root there is: %v, %v", entries, err)
	}
	if text, err := os.ReadFile(r.secret); err != nil || string(text) != r.secretText {
		r.find("the secret was changed to %.100q, %v", text, err)
	}
}

// screenClean requires that the output of the other side only showed text.
func screenClean(r *attackRun) {
	for _, problem := range r.screen.problems() {
		r.find("%s", problem)
	}
}
