// Package dialogue plays what a user and an agent say to each other. The dialogues are data: the sections of a txtar
// file are
//
//	file NAME      a file in the user's directory
//	disk NAME      what the file has then
//	user [ARG…]    starts the agent with these arguments, and types these lines to the client of internal/test/actor
//	screen         texts that the client prints then, in this order; a line "! TEXT" says that it does not print TEXT
//
// <dir> is the user's directory, and <session> the session that the client has listed last. The agents of one file have
// one directory for their state. What agent and client send is judged, advice included. An agent may have sections of its
// own.
package dialogue

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/tier"
)

var listed = regexp.MustCompile(`session (\S+): `)

// Agent is what dialogues are played with.
type Agent struct {
	// Start returns the command that starts the agent with arguments and a directory for its state. It may change the
	// client.
	Start func(t *testing.T, client *actor.Client, state string, args []string) *exec.Cmd
	// Section, if it is not nil, handles other sections.
	Section func(t *testing.T, dir string, words []string, text string)
}

// Run plays the dialogues in testdata, each with an agent of its own.
func Run(t *testing.T, agent func() Agent) {
	tier.Need(t, tier.Normal)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, archive, agent())
		})
	}
}

func play(t *testing.T, archive *txtar.Archive, agent Agent) {
	t.Helper()
	state, dir, session, printed := t.TempDir(), t.TempDir(), "none", ""
	for _, section := range archive.Files {
		places := strings.NewReplacer("<dir>", dir, "<session>", session)
		words, text := strings.Fields(section.Name), places.Replace(string(section.Data))
		switch words[0] {
		case "file":
			path := filepath.Join(dir, words[1])
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case "disk":
			if got, err := os.ReadFile(filepath.Join(dir, words[1])); string(got) != text {
				t.Errorf("%s has %q, %v; want %q", words[1], got, err, text)
			}
		case "user":
			printed = Talk(t, dir, text, func(client *actor.Client) *exec.Cmd { return agent.Start(t, client, state, words[1:]) })
			for _, m := range listed.FindAllStringSubmatch(printed, -1) {
				session = m[1]
			}
		case "screen":
			inOrder(t, printed, text)
		default:
			if agent.Section == nil {
				t.Fatalf("the section %s is unknown", section.Name)
			}
			agent.Section(t, dir, words, text)
		}
	}
}

// inOrder checks that texts are printed one after the other.
func inOrder(t *testing.T, printed, texts string) {
	t.Helper()
	rest := printed
	for want := range strings.Lines(texts) {
		want = strings.TrimSuffix(want, "\n")
		if not, ok := strings.CutPrefix(want, "! "); ok {
			if strings.Contains(printed, not) {
				t.Errorf("the client prints %q:\n%s", not, printed)
			}
			continue
		}
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("the client does not print %q in what follows the text before:\n%s", want, printed)
		}
		rest = after
	}
}

// Talk has a client in a directory run against an agent, type lines, and return what it prints. The agent must end on
// its own.
func Talk(t *testing.T, dir, lines string, start func(*actor.Client) *exec.Cmd) string {
	t.Helper()
	var printed strings.Builder
	client := actor.NewClient(dir, strings.NewReader(lines), &printed)
	agent := start(client)
	if agent.Stderr == nil {
		agent.Stderr = t.Output()
	}
	tap := &conformance.TapOptions{Level: conformance.Advice, Schema: conformance.V1Unstable()}
	if err := client.Run(context.Background(), conformance.Tap(t, conformance.Client, acp.Command(agent), tap)); err != nil {
		t.Errorf("the client ended with %v", err)
	}
	return printed.String()
}
