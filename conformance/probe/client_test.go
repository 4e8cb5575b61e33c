package probe_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// ask is the reference client's own method.
const ask = "_reference/ask"

// sleepers are terminals whose commands run until they are killed or released. In a bubble, where time stops while a
// process runs, these are the only terminals.
type sleepers struct {
	mu    sync.Mutex
	ended map[acp.TerminalID]chan struct{}
}

func (s *sleepers) find(id acp.TerminalID) (ended chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, ok := s.ended[id]
	if !ok {
		return nil, acp.ErrInvalidParams.WithMessagef("no terminal %s", id)
	}
	return ended, nil
}

func (s *sleepers) end(id acp.TerminalID, release bool) error {
	ended, err := s.find(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-ended:
	default:
		close(ended)
	}
	if release {
		delete(s.ended, id)
	}
	return nil
}

// Register sets the handlers of terminals.
func (s *sleepers) Register(h *acp.ClientHandlers) {
	h.CreateTerminal = func(context.Context, *acp.ClientSession, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		id := acp.TerminalID(rand.Text())
		s.ended[id] = make(chan struct{})
		return &acp.CreateTerminalResponse{TerminalID: id}, nil
	}
	h.TerminalOutput = func(_ context.Context, _ *acp.ClientSession, req *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
		_, err := s.find(req.TerminalID)
		return &acp.TerminalOutputResponse{}, err
	}
	h.WaitForTerminalExit = func(ctx context.Context, _ *acp.ClientSession, req *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
		ended, err := s.find(req.TerminalID)
		if err != nil {
			return nil, err
		}
		select {
		case <-ended:
			return &acp.WaitForTerminalExitResponse{Signal: acp.Some("SIGKILL")}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	h.KillTerminal = func(_ context.Context, _ *acp.ClientSession, req *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
		return &acp.KillTerminalResponse{}, s.end(req.TerminalID, false)
	}
	h.ReleaseTerminal = func(_ context.Context, _ *acp.ClientSession, req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
		return &acp.ReleaseTerminalResponse{}, s.end(req.TerminalID, true)
	}
}

// bubbleClient is the reference client with terminals that need no processes.
func bubbleClient(user *probe.User, agent rpc.Transport) {
	serveUser(user, agent, &sleepers{ended: map[acp.TerminalID]chan struct{}{}})
}

// referenceClient is a client with everything that the SDK offers, whose user decides.
func referenceClient(user *probe.User, agent rpc.Transport) {
	serveUser(user, agent, nil)
}

// serveUser is the reference client with the given terminals, or with those of the SDK if there are none.
func serveUser(user *probe.User, agent rpc.Transport, sleep *sleepers) {
	ctx := user.Context
	handlers := acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error { return nil },
		RequestPermission: func(ctx context.Context, session *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			// It also asks the agent, which may know an answer; most agents do not.
			if _, err := rpc.Call[struct{}](ctx, session.RPC(), ask, struct{}{}); err != nil && ctx.Err() != nil {
				return nil, err
			}
			allowed, err := user.Allows(ctx)
			if err != nil {
				return nil, err
			}
			for _, o := range req.Options {
				if (o.Kind == acp.PermissionOptionKindAllowOnce) == allowed && o.Kind != "_perhaps" {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(o.OptionID)}, nil
				}
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), user.Dir)
	if err != nil {
		panic(err)
	}
	defer machine.Close()
	if sleep != nil {
		sleep.Register(&handlers)
	}
	elicit(user, &handlers)
	conn, err := acp.Connect(ctx, agent, handlers, &acp.ClientOptions{
		Info: acp.Implementation{Name: "reference", Version: "1"}, BooleanConfig: true,
		Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{}), URL: acp.Some(acp.ElicitationURLCapabilities{})},
		Initialize: func(req *acp.InitializeRequest) {
			req.ClientCapabilities.Meta = acp.Meta{"reference": json.RawMessage(`{"ask":true}`)}
		},
		Session: acp.ClientSessionCapabilities{Notices: acp.Some(acp.NoticeCapabilities{})},
	})
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	servers := []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "files", Command: "/bin/true"})}
	additional := func() []string {
		if _, ok := conn.Capabilities().SessionCapabilities.AdditionalDirectories.Get(); ok {
			return []string{user.Dir}
		}
		return nil
	}
	var open sync.Mutex
	var session *acp.ClientSession
	authenticated := func(f func() error) error {
		err := f()
		if !errors.Is(err, acp.ErrAuthRequired) {
			return err
		}
		for _, m := range conn.Initialized().AuthMethods {
			if m, ok := m.Variant.(*acp.AuthMethodAgent); ok {
				if _, err := conn.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: m.ID}); err != nil {
					return err
				}
				return f()
			}
		}
		return err
	}
	begin := func() error {
		open.Lock()
		defer open.Unlock()
		return authenticated(func() (err error) {
			session, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: user.Dir, MCPServers: servers, AdditionalDirectories: additional()})
			return err
		})
	}
	for step := range user.Steps() {
		if session == nil && begin() != nil {
			continue
		}
		// The SDK refuses methods that the agent does not offer. Other errors are the agent's.
		switch step.Action {
		case probe.ActPrompt:
			_, _ = session.Prompt(step.Context, acp.TextBlock("Hello"))
		case probe.ActNew:
			_, _ = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: user.Dir})
		case probe.ActList:
			for _, err := range conn.Sessions(ctx, user.Dir) {
				if err != nil {
					break
				}
			}
		case probe.ActLoad:
			_, _ = conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: session.ID(), Cwd: user.Dir, AdditionalDirectories: additional()})
		case probe.ActResume:
			_, _ = conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: session.ID(), Cwd: user.Dir, AdditionalDirectories: additional()})
		case probe.ActClose:
			_ = session.Close(ctx)
		case probe.ActDelete:
			_ = session.Delete(ctx)
		case probe.ActMode:
			if modes, ok := session.Modes().Get(); ok {
				_ = session.SetMode(ctx, modes.AvailableModes[len(modes.AvailableModes)-1].ID)
			}
		case probe.ActOption:
			if options, ok := session.ConfigOptions().Get(); ok && len(options) > 0 {
				_ = session.SetConfigOption(ctx, options[0].ID, "code")
			}
		case probe.ActToggle:
			if options, ok := session.ConfigOptions().Get(); ok && len(options) > 0 {
				_ = session.SetBooleanConfigOption(ctx, options[0].ID, true)
			}
		case probe.ActLogout:
			_, _ = conn.Logout(ctx, &acp.LogoutRequest{})
		}
	}
}

// elicit answers elicitations as the user decides.
func elicit(user *probe.User, handlers *acp.ClientHandlers) {
	values := map[string]acp.ElicitationContentValue{
		"name": acp.NewElicitationContentValueString("probe"), "age": acp.NewElicitationContentValueInteger(7),
		"ok": acp.NewElicitationContentValueBoolean(true), "size": acp.NewElicitationContentValueString("l"),
	}
	handlers.CreateElicitation = func(ctx context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
		allowed, err := user.Allows(ctx)
		if err != nil {
			return nil, err
		}
		answer := acp.NewCreateElicitationResponseDecline()
		if allowed {
			content := map[string]acp.ElicitationContentValue{}
			if form, ok := req.Variant.(*acp.CreateElicitationRequestForm); ok {
				for name := range form.RequestedSchema.Properties {
					if value, ok := values[name]; ok {
						content[name] = value
					}
				}
			}
			answer = acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)})
		}
		return &answer, nil
	}
	handlers.CompleteElicitation = func(context.Context, *acp.ClientConn, *acp.CompleteElicitationNotification) error { return nil }
}

// outside are the scenarios for clients that wait for processes or the network, while the time of a bubble stops. In a
// bubble, periods of silence take no real time, and they are long enough even on a busy machine.
var outside = []string{"terminal", "terminal-limits", "terminal-killed", "terminal-released", "link"}

// referenceRuns plays the scenarios for clients in a bubble, and those that wait for something outside of it.
func referenceRuns(t *testing.T, o probe.Options) (reports []*probe.Report) {
	t.Helper()
	run := func(t *testing.T, o probe.Options, client func(*probe.User, rpc.Transport)) {
		o.Scratch = t.TempDir()
		r := must.Get(probe.Client(t.Context(), probe.InMemoryClient(client), &o))(t)
		t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
		reports = append(reports, r)
	}
	synctest.Test(t, func(t *testing.T) {
		o := o
		o.Skip = outside
		run(t, o, bubbleClient)
	})
	o.Only, o.Jobs, o.Quiet, o.Answer = outside, len(outside), time.Second, time.Minute
	run(t, o, referenceClient)
	return reports
}

// TestReferenceClient: the reference client meets all requirements in each run, and leaves unexercised only those about
// things that it does not do.
func TestReferenceClient(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	open := map[string]int{}
	reports := referenceRuns(t, probe.Options{Jobs: 8, Runs: tier.Pick(1, 1, 3, 10)})
	for _, r := range reports {
		if len(r.Summary.Unstable) > 0 {
			t.Errorf("differ between runs: %s", strings.Join(r.Summary.Unstable, " "))
		}
		for _, row := range r.Rows {
			if len(row.Failures) > 0 {
				t.Errorf("%s: %v", row.ID, row.Failures)
			}
			if row.Verdict == probe.NotExercised && row.Reason != "only people can judge it" {
				open[row.ID]++
			}
		}
	}
	maps.DeleteFunc(open, func(_ string, n int) bool { return n < len(reports) })
	// TRN-7 and AUT-6 need a process; INI-17 and ELI-23 need clients without a mode of elicitation; the others are
	// about things that the client does not do.
	if got := strings.Join(slices.Sorted(maps.Keys(open)), " "); got != "AUT-6 CAN-2 CON-3 ELI-23 EXT-1 INI-17 TRN-7" {
		t.Errorf("not exercised: %s", got)
	}
}

// TestCheckClient is the test that users write.
func TestCheckClient(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	probe.CheckClient(t, referenceClient)
}
