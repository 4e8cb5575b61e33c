package dual

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// programs are the two, built.
var programs struct{ agent, client string }

func TestMain(m *testing.M) {
	buildtest.Main(m, map[string]*string{"./agent": &programs.agent, "./client": &programs.client})
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
permission: ls: allow
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
permission: ls: reject
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
	tier.Need(t, tier.Normal)
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

// What no rule finds fault with does not depend on whether the command prints something.
func TestCommandWithoutOutput(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, version := range []int{1, 2} {
		stdout, stderr := play(t, t.TempDir(), version, version)
		if !strings.HasSuffix(steady(stdout), "\nN messages, 0 findings\n") || stderr != "" {
			t.Errorf("version %d: the client prints\n%s\nand complains %q", version, stdout, stderr)
		}
	}
}

// A shown keeps what a client shows of a session: what an update replaces is replaced, what a chunk adds is added.
type shown struct {
	messages  map[acpv2.MessageID]string
	terminals map[acpv2.TerminalID]string
}

func newShown() *shown {
	return &shown{map[acpv2.MessageID]string{}, map[acpv2.TerminalID]string{}}
}

func (s *shown) update(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
	switch u := n.Update.Variant.(type) {
	case *acpv2.SessionUpdateUserMessage:
		s.replace(u.MessageID, u.Content)
	case *acpv2.SessionUpdateAgentMessage:
		s.replace(u.MessageID, u.Content)
	case *acpv2.SessionUpdateAgentMessageChunk:
		text, _ := u.Content.Text()
		s.messages[u.MessageID] += text
	case *acpv2.SessionUpdateTerminalUpdate:
		if u.Output.Present() {
			s.terminals[u.TerminalID] = u.Output.Value().Data
		}
	case *acpv2.SessionUpdateTerminalOutputChunk:
		s.terminals[u.TerminalID] += u.Data
	}
	return nil
}

func (s *shown) replace(id acpv2.MessageID, content acpv2.Opt[[]acpv2.ContentBlock]) {
	if !content.Present() {
		return
	}
	s.messages[id] = ""
	for _, block := range content.Value() {
		text, _ := block.Text()
		s.messages[id] += text
	}
}

// Who resumes a session that it knows has it as before, and who does not, too.
func TestReplay(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "apple.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := newShown()
	handlers := acpv2.ClientHandlers{
		SessionUpdate: func(ctx context.Context, s *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			return got.update(ctx, s, n)
		},
		RequestPermission: func(context.Context, *acpv2.ClientSession, *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
			return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected("allow")}, nil
		},
	}
	state := t.TempDir()
	connect := func() *acpv2.ClientConn {
		t.Helper()
		cmd := exec.Command(programs.agent, "-version=2", "-state="+state)
		transport := conformance.Tap(t, conformance.Client, acpv2.Command(cmd), &conformance.TapOptions{Schema: conformance.V2()})
		conn, err := acpv2.Connect(t.Context(), transport, handlers, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "test", Version: "0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	conn := connect()
	session, err := conn.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: acpv2.AbsolutePath(dir)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Prompt(t.Context(), acpv2.TextBlock("look")); err != nil {
		t.Fatal(err)
	}
	live := *got
	live.messages, live.terminals = maps.Clone(got.messages), maps.Clone(got.terminals)
	if len(live.messages) != 3 || len(live.terminals) != 1 {
		t.Fatalf("the turn showed %v", live)
	}
	for _, who := range []string{"knows the session", "does not know it", "resumes it in another process"} {
		if strings.Contains(who, "process") {
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			conn = connect()
		}
		_, err := conn.ResumeSession(t.Context(), &acpv2.ResumeSessionRequest{
			SessionID: session.ID(), Cwd: acpv2.AbsolutePath(dir),
			ReplayFrom: acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{})),
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(live, *got, cmp.AllowUnexported(shown{})); diff != "" {
			t.Errorf("who %s has (-want +got):\n%s", who, diff)
		}
		*got = *newShown()
	}
}

// play runs the client with the agent. It returns what the client prints, and the last of what it complains
// about.
func play(t *testing.T, dir string, client, agent int) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
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
