package acptest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/acptest"
)

type turn = agentkit.Turn[any]

// agent is an agent with a command for each thing that a Client does.
func agent() *agentkit.Sessions[any] {
	edit := func(ctx context.Context, t *turn, _ string) error {
		return t.Tool(ctx, acp.ToolKindEdit, "Edit", func(call *agentkit.ToolCall) error {
			path := filepath.Join(t.Cwd(), "a.txt")
			if err := call.Diff(path, "", "text"); err != nil {
				return err
			}
			if _, err := call.Ask(ctx, acp.RejectOnce("no", "No"), acp.AllowOnce("yes", "Yes")); err != nil {
				return err
			}
			_, err := t.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: "text"})
			return err
		})
	}
	name := func(ctx context.Context, t *turn, _ string) error {
		who, answered, err := acp.Ask(ctx, t, "Who?", struct{ Name string }{})
		if err != nil || !answered {
			return errors.Join(err, t.Sayf(ctx, "no answer"))
		}
		return t.Sayf(ctx, "Hello %s.", who.Name)
	}
	return agentkit.NewSessions(agentkit.Config[any]{
		Commands: []agentkit.Command[any]{{Name: "edit", Description: "Edit", Run: edit}, {Name: "name", Description: "Ask", Run: name}},
		Prompt: func(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if err := t.Plan(ctx, "Answer").Start(0); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonRefusal}, t.Sayf(ctx, "You said: %s", agentkit.PromptText(req))
		},
	})
}

func TestClient(t *testing.T) {
	sessions := agent()
	c := acptest.NewClient(t, sessions.Handlers(), sessions.Options(nil), nil)
	s := c.StartSession(t)
	reply := c.Say(t, s, "Hello")
	if reply.Text != "You said: Hello" || reply.StopReason != acp.StopReasonRefusal || len(reply.Plan) != 1 || reply.Plan[0].Status != acp.PlanEntryStatusInProgress {
		t.Errorf("got %+v", reply)
	}
	reply = c.Say(t, s, "/edit")
	text, err := os.ReadFile(filepath.Join(c.Dir, "a.txt"))
	if string(text) != "text" || err != nil || len(reply.ToolCalls) != 1 || reply.ToolCalls[0].Status != acp.ToolCallStatusCompleted || reply.Text != "" {
		t.Errorf("edited: %q, %v, %+v", text, err, reply)
	}
	c.Permit = func(req *acp.RequestPermissionRequest) acp.RequestPermissionOutcome {
		return acp.PermissionSelected("no")
	}
	if reply := c.Say(t, s, "/edit"); reply.ToolCalls[0].Status != acp.ToolCallStatusFailed {
		t.Errorf("rejected: %+v", reply.ToolCalls)
	}
	if got := c.Say(t, s, "/name").Text; got != "no answer" {
		t.Errorf("declined: %q", got)
	}
	c.Answer = func(*acp.CreateElicitationRequest) acp.CreateElicitationResponse {
		content := map[string]acp.ElicitationContentValue{"Name": acp.NewElicitationContentValueString("Ada")}
		return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)})
	}
	if got := c.Say(t, s, "/name").Text; got != "Hello Ada." {
		t.Errorf("answered: %q", got)
	}
}

// Clients and agents may speak either version of the protocol.
func TestScript(t *testing.T) {
	for _, only := range []int{0, 1, 2} {
		transport := acptest.Script(t, nil,
			func(ctx context.Context, t *turn) error { return t.Sayf(ctx, "one") },
			func(ctx context.Context, t *turn) error { return t.Sayf(ctx, "two") },
		)
		var spoken string
		c := acptest.Dial(t, watched{transport, func(line []byte) { spoken += string(line) }}, &acptest.ClientOptions{Protocol: only})
		s := c.StartSession(t)
		if got := []string{c.Say(t, s, "a").Text, c.Say(t, s, "b").Text}; !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("got %q", got)
		}
		if got := strings.Contains(spoken, `"state_update"`); got != (only == 2) {
			t.Errorf("version %d: the agent says %s", only, spoken)
		}
	}
}

// watched is a transport with a function for each line that is read.
type watched struct {
	acp.Transport
	read func(line []byte)
}

func (w watched) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := w.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rpc.Wrap(stream, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
		line, err := next()
		w.read(line)
		return line, err
	}}), nil
}

// A client can do without what agents may use.
func TestClientOptions(t *testing.T) {
	transport := func() acp.Transport {
		commands := []agentkit.Command[any]{{Name: "x", Description: "X", Run: func(ctx context.Context, t *turn, _ string) error {
			has := t.Conn().Capabilities()
			return t.Sayf(ctx, "%v %v %v", has.FS.ReadTextFile, has.Terminal, has.Elicitation.Value().Form.Present())
		}}}
		return acptest.Script(t, &agentkit.Config[any]{Commands: commands})
	}
	for want, opts := range map[string]*acptest.ClientOptions{
		"true true true":  nil,
		"false true true": {NoFiles: true},
		"true false true": {NoTerminals: true},
		"true true false": {NoElicitation: true},
	} {
		c := acptest.Dial(t, transport(), opts)
		if got := c.Say(t, c.StartSession(t), "/x").Text; got != want {
			t.Errorf("%+v: the client has %s, want %s", opts, got, want)
		}
	}
}

// failures is a test that collects its failures.
type failures struct {
	*testing.T
	texts    []string
	cleanups []func()
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}
func (f *failures) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }
func (f *failures) end() string {
	for _, do := range slices.Backward(f.cleanups) {
		do()
	}
	return strings.Join(f.texts, "\n")
}

// What breaks the protocol fails the test, and so do prompts that are not in a script.
func TestFailures(t *testing.T) {
	f := &failures{T: t}
	c := acptest.NewClient(f, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			return nil, rpc.Notify(ctx, s.Conn().RPC(), acp.MethodSessionUpdate, map[string]string{"sessionId": "s"})
		},
	}, nil, nil)
	c.Say(t, c.StartSession(t), "go")
	if got := f.end(); !strings.Contains(got, "missing property") {
		t.Errorf("the judge said %q", got)
	}
	f = &failures{T: t}
	c = acptest.Dial(f, acptest.Script(f, nil, func(context.Context, *turn) error { return nil }), nil)
	s := c.StartSession(t)
	c.Say(t, s, "one")
	c.Say(t, s, "two")
	if got := f.end(); !strings.Contains(got, "the script has 1 turns, and there is prompt 2") {
		t.Errorf("one prompt too many: %q", got)
	}
	f = &failures{T: t}
	acptest.Dial(f, acptest.Script(f, nil, func(context.Context, *turn) error { return nil }), nil)
	if got := f.end(); !strings.Contains(got, "1 turns, and there were 0 prompts") {
		t.Errorf("one too few: %q", got)
	}
}
