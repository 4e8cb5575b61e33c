package dual

// This file owns the pairings of the two programs, over real processes, with every message validated.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// programs are the two, built.
var programs struct{ agent, client string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dual-test")
	if err == nil {
		programs.agent, programs.client = filepath.Join(dir, "agent.exe"), filepath.Join(dir, "client.exe")
		err = errors.Join(build(programs.agent, "./agent"), build(programs.client, "./client"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the programs:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func build(program, dir string) error {
	cmd := exec.Command("go", "build", "-o", program, dir)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// asV1 and asV2 are what a client prints of the three turns that both versions have.
const (
	asV1 = `version 1
> look
plan: 0 of 2 done
agent: I look at what is there.
tool: ls: pending
permission: ls: allow
output: apple.txt pear.txt 
tool: completed
plan: 2 of 2 done
agent: There is: apple.txt, pear.txt
stopped: end_turn
> look again
plan: 0 of 2 done
agent: I look at what is there.
tool: ls: pending
permission: ls: reject
tool: failed
plan: 2 of 2 done
agent: I was not allowed to look.
stopped: end_turn
> Write a very long story
agent: And then they walked on. 
stopped: cancelled
N messages, 0 findings
`
	asV2 = `version 2
> look
user: look
state: running
plan: 0 of 2 done
agent: I look at what is there.
tool: ls: pending
state: requires action
permission: Run ls?: allow
state: running
terminal: ls
output: apple.txt pear.txt 
terminal: exit status 0
tool: completed
plan: 2 of 2 done
agent: There is: apple.txt, pear.txt
stopped: end_turn
> look again
user: look again
state: running
plan: 0 of 2 done
agent: I look at what is there.
tool: ls: pending
state: requires action
permission: Run ls?: reject
state: running
tool: failed
plan: 2 of 2 done
agent: I was not allowed to look.
stopped: end_turn
> Write a very long story
user: Write a very long story
state: running
agent: And then they walked on. 
stopped: cancelled
N messages, 0 findings
`
	failed = "N messages, 0 findings\n"
)

// What a client says when there is no version that both speak.
const (
	agentRefuses = `client: initialize: Unsupported protocol version (-32022): {"requested":1,"supported":[2]}`
	clientCloses = "client: acp: the agent speaks protocol version 1, not 2"
)

// TestPairings plays the same turns between clients and agents that speak one version, or both (0). The
// agent answers with the newest version of its own that is not newer than the one asked for; an agent that
// has none, and a client that does not speak what is answered, say so and end the connection.
func TestPairings(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"apple.txt", "pear.txt"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	versions := map[int]string{0: "1 and 2", 1: "1", 2: "2"}
	table := []string{fmt.Sprintf("%-9s %-9s %-32s %s", "client", "agent", "messages", "outcome")}
	for _, test := range []struct {
		client, agent int
		stdout        string
		stderr        string // its last line
	}{
		{1, 1, asV1, ""},
		{1, 2, failed, agentRefuses},
		{1, 0, asV1, ""},
		{2, 1, failed, clientCloses},
		{2, 2, asV2, ""},
		{2, 0, asV2, ""},
		{0, 1, asV1, ""},
		{0, 2, asV2, ""},
		{0, 0, asV2, ""},
	} {
		t.Run(fmt.Sprintf("client %s, agent %s", versions[test.client], versions[test.agent]), func(t *testing.T) {
			stdout, stderr := play(t, root, test.client, test.agent)
			lines := strings.Split(strings.TrimSpace(stdout), "\n")
			if diff := cmp.Diff(test.stdout, steady(stdout)); diff != "" {
				t.Errorf("the client prints (-want +got):\n%s", diff)
			}
			if stderr != test.stderr {
				t.Errorf("the client complains %q, want %q", stderr, test.stderr)
			}
			outcome := stderr
			if outcome == "" {
				outcome = lines[0]
			}
			table = append(table, fmt.Sprintf("%-9s %-9s %-32s %s",
				versions[test.client], versions[test.agent], lines[len(lines)-1], outcome))
		})
	}
	t.Logf("\n%s", strings.Join(table, "\n"))
}

// play runs the client with the agent. It returns what the client prints, and the last of what it complains
// about.
func play(t *testing.T, dir string, client, agent int) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs.client, fmt.Sprintf("-version=%d", client), "-check",
		"allow: look", "look again", "cancel: Write a very long story",
		"--", programs.agent, fmt.Sprintf("-version=%d", agent))
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(complaints.String()), "\n")
	stderr = lines[len(lines)-1]
	if (err != nil) != (stderr != "") {
		t.Errorf("the client ended with %v and complained:\n%s", err, &complaints)
	}
	return out.String(), stderr
}

var (
	count = regexp.MustCompile(`(?m)^\d+ messages`)
	story = regexp.MustCompile(`(And then they walked on\. )+`)
)

// steady leaves out what differs from run to run: how many messages there were, and how much of the
// story was written before it was cancelled.
func steady(text string) string {
	return story.ReplaceAllString(count.ReplaceAllString(text, "N messages"), "And then they walked on. ")
}
