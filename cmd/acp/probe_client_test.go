package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// badClient is a separate program: a client that does what its first argument says. The other arguments are the agent's
// command.
func badClient() {
	how := os.Args[1]
	if how == "dies" {
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(3)
	}
	if strings.HasPrefix(how, "login") {
		badLogin(how, os.Args[2:])
		return
	}
	if how == "asks" {
		askingClient(os.Args[2:])
		return
	}
	agent := exec.Command(os.Args[2], os.Args[3:]...)
	in, err := agent.StdinPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	switch how {
	case "floods":
		for line := bytes.Repeat([]byte("noise "), 1000); ; {
			os.Stdout.Write(append(line, '\n'))
		}
	case "garbage":
		for range 100 {
			io.WriteString(in, "Welcome to the client!\n{\n[]\n")
		}
	case "forks":
		forks()
	case "stays":
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		for {
			time.Sleep(time.Hour)
		}
	}
	io.Copy(io.Discard, os.Stdin) // its user ends it
}

// askingClient is a correct client that asks its user, and takes no notice of what was typed before.
func askingClient(command []string) {
	ctx := context.Background()
	typed := make(chan string, 100)
	go func() { // ends with standard input
		defer close(typed)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			typed <- lines.Text()
		}
	}()
	granted := func() bool {
		time.Sleep(300 * time.Millisecond) // it draws its screen
		for len(typed) > 0 {
			<-typed
		}
		fmt.Println("Allow? [y/n]")
		return <-typed == "y"
	}
	conn, err := acp.Connect(ctx, rpc.Command(exec.Command(command[0], command[1:]...)), acp.ClientHandlers{
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			for yes := granted(); ; {
				for _, o := range req.Options {
					if (o.Kind == acp.PermissionOptionKindAllowOnce) == yes {
						return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(o.OptionID)}, nil
					}
				}
			}
		},
		CreateElicitation: func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			answer := acp.NewCreateElicitationResponseDecline()
			if granted() {
				answer = acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(map[string]acp.ElicitationContentValue{
					"name": acp.NewElicitationContentValueString("probe"),
				})})
			}
			return &answer, nil
		},
	}, &acp.ClientOptions{
		Info:        acp.Implementation{Name: "asks", Version: "1"},
		Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{})},
	})
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: os.TempDir()})
	if err != nil {
		panic(err)
	}
	for text := range typed {
		_, _ = session.Prompt(ctx, acp.TextBlock(text))
	}
}

// TestProbeClientAsks: a client is typed to when it has asked, and the answers are what the user has decided.
func TestProbeClientAsks(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel() // it mostly waits
	patiently(t, func(answer string) (problems []string) {
		r, _ := runJSON(t, "probe-client", "--only", "permission,permission-refused,form", "--timeout", answer, "--quiet", "2s",
			"--type", "prompt=hello", "--type", "allow=y", "--type", "reject=n", "--", "badclient", "asks")
		for _, out := range r.Scenarios {
			if out.Skipped != "" || len(out.Failed) > 0 {
				problems = append(problems, fmt.Sprintf("%s: skipped %q, failed %q\n%s", out.Name, out.Skipped, out.Failed, strings.Join(out.Transcript, "\n")))
			}
		}
		return append(problems, wrongVerdict(r, "ADD-17", probe.Pass)...)
	})
}

// badLogin is a client that logs in in a terminal when the agent requires it, and then does the wrong thing: it
// continues whatever the result, or never continues.
func badLogin(how string, command []string) {
	agent := func(args ...string) *exec.Cmd { return exec.Command(command[0], slices.Concat(command[1:], args)...) }
	for starts := 1; ; starts++ {
		conn, err := acp.Connect(context.Background(), rpc.Command(agent()), acp.ClientHandlers{},
			&acp.ClientOptions{Info: acp.Implementation{Name: "bad", Version: "1"}, TerminalAuth: true})
		if err != nil {
			panic(err)
		}
		_, _ = conn.NewSession(context.Background(), &acp.NewSessionRequest{Cwd: "/"})
		methods := conn.Initialized().AuthMethods
		if starts > 1 || len(methods) == 0 {
			break
		}
		conn.Close()
		_ = agent(methods[0].Variant.(*acp.AuthMethodTerminal).Args...).Run() // the fault: it ignores whether the login failed
		if how == "login-forgotten" {
			break
		}
	}
	io.Copy(io.Discard, os.Stdin) // its user ends it
}

// TestProbeClient probes the scripted client: nothing fails, no recommendation is broken, and no MUST is missing.
func TestProbeClient(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	args := []string{"--timeout", "1m", "--quiet", "500ms", "--jobs", "4"}
	for _, typed := range []string{
		"prompt=:attach .\nhello", "allow=1", "reject=2", "new=:new", "list=:sessions", "load=:load {session}", "resume=:resume", "close=:close",
		"delete=:delete", "mode=:mode code", "option=:option model large", "toggle=:option brief true", "logout=:logout",
	} {
		args = append(args, "--type", typed)
	}
	args = append(args, "--", must.Get(exampleAgent())(t), "client", "-add", os.TempDir(), "-mcp", "files=true")
	r, status := runJSON(t, "probe-client", args...)
	if status != 0 || !r.Conforms {
		t.Errorf("ended with status %d, conforms: %v", status, r.Conforms)
	}
	// The client has all modes of elicitation, gives up no request of its own accord, and has no extensions. These are
	// recommendations.
	expectOpen(t, r, "INI-17 CAN-2 CAN-5 ELI-23 EXT-1 EXT-6")
	for _, out := range r.Scenarios {
		if out.Skipped != "" && out.Name != "cancel-request-nested" {
			t.Errorf("%s was not played: %s", out.Name, out.Skipped)
		}
	}
}

// TestProbeClientFaults tests faults that only a process can have.
func TestProbeClientFaults(t *testing.T) {
	tier.Need(t, tier.Normal)
	for how, scenario := range map[string]string{"login-ignored": "login-in-a-terminal-fails", "login-forgotten": "login-in-a-terminal-succeeds"} {
		patiently(t, func(answer string) (problems []string) {
			// A client that ignores the login is detected as soon as it continues, so it may take any time.
			r, _ := runJSON(t, "probe-client", "--only", scenario, "--timeout", answer, "--quiet", "2m", "--end-timeout", "200ms", "--", "badclient", how)
			for _, row := range r.Rows {
				if row.ID == "AUT-6" && (len(row.Failures) != 1 || row.Failures[0].Scenario != scenario) {
					problems = append(problems, fmt.Sprintf("%s: AUT-6: %s, %v, %s\n%s", how, row.Verdict, row.Failures, r.Scenarios[0].Skipped, strings.Join(r.Scenarios[0].Transcript, "\n")))
				}
			}
			return problems
		})
	}
}

// TestFakeAgent makes a client start the fake agent twice: the second run continues where the first ended, and the
// report covers both.
func TestFakeAgent(t *testing.T) {
	tier.Need(t, tier.Normal)
	client, file := must.Get(exampleAgent())(t), filepath.Join(t.TempDir(), "seen.jsonl")
	acp := must.Get(exec.LookPath("acp"))(t)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, client, "client", "--", acp, "fake-agent", "--report", file)
		cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(strings.Repeat("1\n", 6)) // prompts, and answers to questions
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Scenario ")) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	seen := must.Get(os.Open(file))(t)
	defer seen.Close()
	outcomes, err := probe.ReadOutcomes(seen)
	must.Do(t, err)
	played := 0
	for _, out := range outcomes {
		if out.Skipped == "" {
			played++
		}
	}
	if played < 4 {
		t.Errorf("%d scenarios were played", played)
	}
	r, status := runJSON(t, "probe-client", "--report", file)
	if status != 0 || !r.Conforms || r.Target != "acp-actor" || r.Summary.Verdicts[probe.Pass] < 20 {
		t.Errorf("ended with status %d, target %q, %v", status, r.Target, r.Summary)
	}
	must.Do(t, os.WriteFile(file, []byte("no outcome\n"), 0o600))
	err = exec.CommandContext(t.Context(), "acp", "probe-client", "--report", file).Run()
	expectExit(t, err, statusFailed)
}

// TestActionTexts: each action is explained.
func TestActionTexts(t *testing.T) {
	for _, a := range probe.Actions {
		if actionTexts[a] == "" {
			t.Errorf("%s is not explained", a)
		}
	}
	if len(actionTexts) != len(probe.Actions) {
		t.Errorf("%d actions are explained, want %d", len(actionTexts), len(probe.Actions))
	}
}
