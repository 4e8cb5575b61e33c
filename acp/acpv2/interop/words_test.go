package interop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// wordsAgent is the agent of v1-words.mjs in version 2.
type wordsAgent struct {
	mu       sync.Mutex
	count    int
	sessions map[acpv2.SessionID]*wordsSession
}

type wordsSession struct {
	open       bool
	cwd        acpv2.AbsolutePath
	mode, tone acpv2.SessionConfigValueID
	history    []acpv2.SessionUpdate
}

func (a *wordsAgent) next(kind string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	return fmt.Sprintf("%s-%d", kind, a.count)
}

func (a *wordsAgent) find(id acpv2.SessionID, open bool) (*wordsSession, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil && (s.open || !open) {
		return s, nil
	}
	return nil, acpv2.SessionNotFound(id)
}

func (s *wordsSession) options() []acpv2.SessionConfigOption {
	values := func(names ...acpv2.SessionConfigValueID) (all []acpv2.SessionConfigSelectOption) {
		for _, name := range names {
			all = append(all, acpv2.SelectValue(name, string(name)))
		}
		return all
	}
	mode := acpv2.SelectOption("style", "Mode", s.mode, values("ask", "code")...)
	mode.Category = acpv2.Some(acpv2.SessionConfigOptionCategoryMode)
	return []acpv2.SessionConfigOption{mode, acpv2.SelectOption("tone", "Tone", s.tone, values("plain", "warm")...)}
}

func (a *wordsAgent) serve(ctx context.Context, t rpc.Transport) error {
	return acpv2.ServeAgent(ctx, t, acpv2.AgentHandlers{
		LoginAuth: func(context.Context, *acpv2.AgentConn, *acpv2.LoginAuthRequest) (*acpv2.LoginAuthResponse, error) {
			return nil, nil
		},
		LogoutAuth: func(context.Context, *acpv2.AgentConn, *acpv2.LogoutAuthRequest) (*acpv2.LogoutAuthResponse, error) {
			return nil, nil
		},
		NewSession: func(_ context.Context, _ *acpv2.AgentConn, req *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
			s := &wordsSession{open: true, cwd: req.Cwd, mode: "ask", tone: "plain"}
			id := acpv2.SessionID(a.next("session"))
			a.sessions[id] = s
			return &acpv2.NewSessionResponse{SessionID: id, ConfigOptions: s.options()}, nil
		},
		ListSessions: func(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
			res := &acpv2.ListSessionsResponse{}
			for id, s := range a.sessions {
				res.Sessions = append(res.Sessions, acpv2.SessionInfo{SessionID: id, Cwd: s.cwd})
			}
			return res, nil
		},
		ResumeSession: func(ctx context.Context, as *acpv2.AgentSession, req *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
			s, err := a.find(as.ID(), false)
			if err != nil {
				return nil, err
			}
			s.open, s.cwd = true, req.Cwd
			begun := map[acpv2.MessageID]bool{}
			for _, u := range s.history {
				if !req.ReplayFrom.Present() {
					break
				}
				if chunk, ok := u.Variant.(*acpv2.SessionUpdateAgentMessageChunk); ok && !begun[chunk.MessageID] {
					begun[chunk.MessageID] = true
					whole := acpv2.AgentMessage{MessageID: chunk.MessageID, Content: acpv2.Some([]acpv2.ContentBlock{})}
					err = as.Update(ctx, acpv2.NewSessionUpdateAgentMessage(whole))
				}
				if err = errors.Join(err, as.Update(ctx, u)); err != nil {
					return nil, err
				}
			}
			return &acpv2.ResumeSessionResponse{ConfigOptions: s.options()}, nil
		},
		CloseSession: func(_ context.Context, as *acpv2.AgentSession, _ *acpv2.CloseSessionRequest) (*acpv2.CloseSessionResponse, error) {
			s, err := a.find(as.ID(), true)
			if err == nil {
				s.open = false
			}
			return nil, err
		},
		DeleteSession: func(_ context.Context, as *acpv2.AgentSession, _ *acpv2.DeleteSessionRequest) (*acpv2.DeleteSessionResponse, error) {
			delete(a.sessions, as.ID())
			return nil, nil
		},
		SetSessionConfigOption: func(_ context.Context, as *acpv2.AgentSession, req *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
			s, err := a.find(as.ID(), true)
			if err != nil {
				return nil, err
			}
			value := acpv2.SessionConfigValueID(req.Variant.(*acpv2.SetSessionConfigOptionRequestID).Value)
			switch {
			case req.ConfigID == "tone":
				s.tone = value
			case value == "ask" || value == "code":
				s.mode = value
			default:
				return nil, acpv2.ErrInvalidParams
			}
			return &acpv2.SetSessionConfigOptionResponse{ConfigOptions: s.options()}, nil
		},
		Prompt: func(ctx context.Context, as *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
			s, err := a.find(as.ID(), true)
			if err != nil {
				return nil, err
			}
			switch req.Prompt[0].Text() {
			case "login":
				return nil, acpv2.ErrAuthRequired
			case "bad":
				return nil, acpv2.ErrInvalidParams
			}
			message := acpv2.UserMessage{MessageID: acpv2.MessageID(a.next("user")), Content: acpv2.Some(req.Prompt)}
			s.history = append(s.history, acpv2.NewSessionUpdateUserMessage(message))
			return as.StartTurnWith(ctx, message, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
				return a.play(ctx, as, s, req.Prompt[0].Text())
			})
		},
	}, &acpv2.AgentOptions{
		Info:        acpv2.Implementation{Name: "words", Version: "1"},
		AuthMethods: []acpv2.AuthMethod{acpv2.NewAuthMethodAgent(acpv2.AuthMethodAgent{MethodID: "none", Name: "None"})},
	})
}

func (a *wordsAgent) play(ctx context.Context, as *acpv2.AgentSession, s *wordsSession, words string) (acpv2.IdleStateUpdate, error) {
	update := func(u acpv2.SessionUpdate) error {
		s.history = append(s.history, u)
		return as.Update(ctx, u)
	}
	message := acpv2.MessageID(a.next("message"))
	for word := range strings.FieldsSeq(words) {
		verb, value, _ := strings.Cut(word, "=")
		id := acpv2.ToolCallID(a.next("call"))
		running, done := acpv2.WithStatus(acpv2.ToolCallStatusInProgress), acpv2.WithStatus(acpv2.ToolCallStatusCompleted)
		start := func(more ...acpv2.ToolCallOption) error {
			return update(acpv2.StartToolCall(id, verb, append(more, running)...))
		}
		end := func(more ...acpv2.ToolCallOption) error { return update(acpv2.UpdateToolCall(id, more...)) }
		var err error
		switch verb {
		case "say":
			err = update(acpv2.AgentMessageText(message, value))
		case "think":
			err = update(acpv2.AgentThoughtText(message, value))
		case "plan":
			for _, status := range []acpv2.PlanEntryStatus{acpv2.PlanEntryStatusPending, acpv2.PlanEntryStatusCompleted} {
				err = errors.Join(err, update(acpv2.UpdatePlan("plan", acpv2.PlanEntry{
					Content: "Plan", Priority: acpv2.PlanEntryPriorityMedium, Status: status,
				})))
			}
		case "diff":
			diff := acpv2.ToolDiff([]acpv2.DiffChange{acpv2.NewDiffChangeModify(acpv2.DiffPathChange{Path: "/w/a.txt"})})
			diff.Variant.(*acpv2.ToolCallContentDiff).Patch = acpv2.Some(acpv2.DiffPatch{Format: "git_patch", Text: patchText})
			err = errors.Join(start(acpv2.WithKind(acpv2.ToolKindEdit), acpv2.WithContent(diff)), end(done))
		case "ask":
			err = update(acpv2.StartToolCall(id, verb, acpv2.WithKind(acpv2.ToolKindEdit)))
			if err != nil {
				break
			}
			var answer acpv2.RequestPermissionOutcome
			answer, err = as.RequestPermission(ctx, &acpv2.RequestPermissionRequest{
				Title: "ask " + value, Subject: acpv2.Some(acpv2.PermissionForToolCall(acpv2.ToolCallRef(id))),
				Options: []acpv2.PermissionOption{acpv2.AllowOnce("y", "Yes"), acpv2.RejectOnce("n", "No")},
			})
			if err != nil {
				break
			}
			chosen, ok := answer.Selected()
			if !ok {
				return acpv2.Cancelled(), nil
			}
			if chosen == "y" {
				err = errors.Join(end(running), end(done))
			} else {
				err = end(acpv2.WithStatus(acpv2.ToolCallStatusFailed))
			}
		case "term":
			terminal := acpv2.TerminalID(a.next("terminal"))
			err = errors.Join(
				update(acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{TerminalID: terminal, Cwd: acpv2.Some(acpv2.AbsolutePath("/w"))})),
				start(acpv2.WithKind(acpv2.ToolKindExecute), acpv2.WithContent(acpv2.ToolTerminal(terminal))),
				update(acpv2.NewSessionUpdateTerminalOutputChunk(acpv2.TerminalOutputChunk{
					TerminalID: terminal, Data: base64.StdEncoding.EncodeToString([]byte("made\n")),
				})),
				update(acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
					TerminalID: terminal, ExitStatus: acpv2.Some(acpv2.TerminalExitStatus{ExitCode: acpv2.Some[int64](0)}),
				})),
				end(done))
		case "mode":
			s.mode = acpv2.SessionConfigValueID(value)
			err = update(acpv2.ConfigUpdate(s.options()...))
		case "wait":
			<-ctx.Done()
			err = ctx.Err()
		case "fail":
			err = errors.New("failed")
		case "refusal":
			return acpv2.Refusal(), nil
		}
		if err != nil {
			return acpv2.IdleStateUpdate{}, err
		}
	}
	return acpv2.EndTurn(), nil
}

const patchText = "diff --git /w/a.txt /w/a.txt\n--- /w/a.txt\n+++ /w/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"

// screen is what a user of either client has seen.
type screen struct {
	Answers                   []string // to the steps
	User, Text, Thought, Plan string
	Calls, Asked              []string
	Mode, Tone                string
}

// wordsClient is the client of v1-words.mjs in version 2.
type wordsClient struct {
	screen
	mu        sync.Mutex
	ids       []acpv2.ToolCallID
	calls     map[acpv2.ToolCallID]*acpv2.ToolCallUpdate
	terminals map[acpv2.TerminalID]string
	cancelAt  string
	turn      *acpv2.Turn
}

// event cancels the turn if its time has come.
func (c *wordsClient) event(name string) {
	if name == c.cancelAt {
		c.cancelAt = ""
		c.turn.Cancel()
	}
}

func (c *wordsClient) options(options []acpv2.SessionConfigOption) {
	for _, o := range options {
		if s, ok := o.Variant.(*acpv2.SessionConfigOptionSelect); ok && o.ConfigID == "tone" {
			c.Tone = string(s.CurrentValue)
		} else if ok && o.Category.Value() == acpv2.SessionConfigOptionCategoryMode {
			c.Mode = string(s.CurrentValue)
		}
	}
}

func (c *wordsClient) update(u acpv2.SessionUpdate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u := u.Variant.(type) {
	case *acpv2.SessionUpdateUserMessage:
		if c.turn == nil { // otherwise it is the prompt
			c.User += text(u.Content.Value())
		}
	case *acpv2.SessionUpdateUserMessageChunk:
		c.User += u.Content.Text()
	case *acpv2.SessionUpdateAgentMessageChunk:
		c.Text += u.Content.Text()
		c.event("text")
	case *acpv2.SessionUpdateAgentThoughtChunk:
		c.Thought += u.Content.Text()
	case *acpv2.SessionUpdatePlanUpdate:
		entry := u.Plan.Variant.(*acpv2.PlanUpdateContentItems).Entries[0]
		c.Plan = entry.Content + " " + string(entry.Status)
	case *acpv2.SessionUpdateConfigOptionUpdate:
		c.options(u.ConfigOptions)
	case *acpv2.SessionUpdateToolCallUpdate:
		call := c.calls[u.ToolCallID]
		if call == nil {
			call = &acpv2.ToolCallUpdate{Kind: acpv2.Some(acpv2.ToolKindOther), Status: acpv2.Some(acpv2.ToolCallStatusPending)}
			c.calls[u.ToolCallID] = call
			c.ids = append(c.ids, u.ToolCallID)
		}
		patch(&call.Title, u.Title)
		patch(&call.Kind, u.Kind)
		patch(&call.Status, u.Status)
		patch(&call.Content, u.Content)
		c.event("call")
	case *acpv2.SessionUpdateTerminalUpdate:
		if exit, ok := u.ExitStatus.Get(); ok {
			c.terminals[u.TerminalID] += fmt.Sprintf("[exit status %d]", exit.ExitCode.Value())
		}
	case *acpv2.SessionUpdateTerminalOutputChunk:
		data, _ := base64.StdEncoding.DecodeString(u.Data)
		c.terminals[u.TerminalID] += string(data)
	}
}

// play does the steps.
func (c *wordsClient) play(ctx context.Context, transport rpc.Transport, steps []string) (*screen, error) {
	conn, err := acpv2.Connect(ctx, transport, acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			c.update(n.Update)
			return nil
		},
		RequestPermission: func(_ context.Context, _ *acpv2.ClientSession, req *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.Asked = append(c.Asked, req.Title)
			c.event("ask")
			wanted := acpv2.PermissionOptionID(req.Title[len(req.Title)-1:])
			outcome := acpv2.PermissionCancelled()
			if slices.ContainsFunc(req.Options, func(o acpv2.PermissionOption) bool { return o.OptionID == wanted }) {
				outcome = acpv2.PermissionSelected(wanted)
			}
			return &acpv2.RequestPermissionResponse{Outcome: outcome}, nil
		},
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "words", Version: "1"}})
	if err != nil {
		return nil, err
	}
	var s *acpv2.ClientSession
	for _, step := range steps {
		verb, value, _ := strings.Cut(step, " ")
		answer, err := "", error(nil)
		resume := &acpv2.ResumeSessionRequest{Cwd: "/w"}
		if s != nil {
			resume.SessionID = s.ID()
		}
		switch verb {
		case "new":
			s, err = conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/w"})
		case "load", "resume":
			if verb == "load" {
				resume.ReplayFrom = acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{}))
			}
			var again *acpv2.ClientSession
			if again, err = conn.ResumeSession(ctx, resume); err == nil {
				s = again
			}
		case "close":
			err = s.Close(ctx)
		case "delete":
			err = s.Delete(ctx)
		case "list":
			for info, err := range conn.Sessions(ctx, "") {
				if err != nil {
					return nil, err
				}
				answer += fmt.Sprint(info.SessionID == s.ID(), " ", info.Cwd)
			}
		case "login":
			_, err = conn.LoginAuth(ctx, &acpv2.LoginAuthRequest{MethodID: "none"})
		case "logout":
			_, err = conn.LogoutAuth(ctx, &acpv2.LogoutAuthRequest{})
		case "mode":
			for _, o := range s.ConfigOptions() {
				if o.Category.Value() == acpv2.SessionConfigOptionCategoryMode {
					err = s.SetConfigOption(ctx, o.ConfigID, acpv2.SessionConfigValueID(value))
				}
			}
		case "tone":
			err = s.SetConfigOption(ctx, "tone", acpv2.SessionConfigValueID(value))
		case "cancel":
			c.cancelAt = value
		case "prompt":
			c.mu.Lock()
			c.turn = s.Stream(ctx, acpv2.TextBlock(value))
			c.event("start")
			c.mu.Unlock()
			turn := c.turn
			for u := range turn.Updates() {
				c.update(u)
			}
			var result *acpv2.TurnResult
			result, err = turn.Result()
			c.mu.Lock()
			c.turn = nil
			c.mu.Unlock()
			if err == nil {
				answer = string(result.Idle.StopReason())
				if failed, ok := result.Idle.Variant.(*acpv2.IdleStateUpdateError); ok {
					answer = fmt.Sprint(int(failed.Error.Value().Code))
				}
			}
		}
		c.options(s.ConfigOptions())
		if answer != "" || err != nil {
			if e, ok := errors.AsType[*rpc.Error](err); ok {
				answer = fmt.Sprint(int(e.Code))
			} else if errors.Is(err, acpv2.ErrTurnCancelled) {
				answer = "cancelled"
			} else if err != nil {
				answer = err.Error()
			}
			c.Answers = append(c.Answers, verb+": "+answer)
		}
	}
	err = conn.Close()
	for _, id := range c.ids {
		call := c.calls[id]
		var line strings.Builder
		fmt.Fprint(&line, call.Title.Value(), " ", call.Kind.Value(), " ", call.Status.Value())
		for _, content := range call.Content.Value() {
			switch v := content.Variant.(type) {
			case *acpv2.ToolCallContentContent:
				line.WriteString(" " + v.Content.Text())
			case *acpv2.ToolCallContentTerminal:
				line.WriteString(" " + c.terminals[v.TerminalID])
			case *acpv2.ToolCallContentDiff:
				before, after := "", ""
				_, hunk, _ := strings.Cut(v.Patch.Value().Text, "@@\n")
				for l := range strings.Lines(hunk) {
					if l[0] != '+' {
						before += l[1:]
					}
					if l[0] != '-' {
						after += l[1:]
					}
				}
				line.WriteString(" " + string(v.Changes[0].Variant.(*acpv2.DiffChangeModify).Path) + " " + before + after)
			}
		}
		c.Calls = append(c.Calls, line.String())
	}
	return &c.screen, err
}

// TestTypeScriptVersion1 connects the TypeScript SDK's programs of version 1 to programs that are written in version 2.
func TestTypeScriptVersion1(t *testing.T) {
	const edited = "diff edit completed /w/a.txt a\nb\na\nc\n"
	script := filepath.Join(installed.Dir(t), "v1-words.mjs")
	for _, scene := range []struct {
		name  string
		steps []string
		want  screen
	}{
		{"text", []string{"new", "prompt say=a think=b plan say=c"}, screen{
			Answers: []string{"prompt: end_turn"}, Text: "ac", Thought: "b", Plan: "Plan completed",
		}},
		{"calls", []string{"new", "prompt diff", "prompt term"}, screen{
			Answers: []string{"prompt: end_turn", "prompt: end_turn"}, Calls: []string{edited, "term execute completed made\n[exit status 0]"},
		}},
		{"ask", []string{"new", "prompt ask=y", "prompt ask=n", "prompt ask=? say=a"}, screen{
			Answers: []string{"prompt: end_turn", "prompt: end_turn", "prompt: cancelled"}, Asked: []string{"ask y", "ask n", "ask ?"},
			Calls: []string{"ask edit completed", "ask edit failed", "ask edit pending"},
		}},
		{"settings", []string{"new", "mode code", "tone warm"}, screen{Mode: "code", Tone: "warm"}},
		{"settings of the agent's own", []string{"new", "prompt mode=code say=a"}, screen{Answers: []string{"prompt: end_turn"}, Text: "a", Mode: "code"}},
		{"errors", []string{"new", "prompt login", "login", "prompt bad", "prompt say=a fail", "prompt refusal", "logout"}, screen{
			Answers: []string{"prompt: -32000", "prompt: -32602", "prompt: -32603", "prompt: refusal"}, Text: "a",
		}},
		{"cancel", []string{
			"new", "cancel start", "prompt wait", "cancel text", "prompt say=a wait", "cancel call", "prompt diff wait",
			"cancel ask", "prompt ask=?", "prompt say=b",
		}, screen{
			Answers: []string{"prompt: cancelled", "prompt: cancelled", "prompt: cancelled", "prompt: cancelled", "prompt: end_turn"},
			Text:    "ab", Asked: []string{"ask ?"}, Calls: []string{edited, "ask edit pending"},
		}},
		{"sessions", []string{"new", "prompt say=a diff", "list", "close", "prompt say=b", "load", "close", "resume", "prompt say=c", "delete", "resume"}, screen{
			Answers: []string{"prompt: end_turn", "list: true /w", "prompt: -32002", "prompt: end_turn", "resume: -32002"},
			User:    "say=a diff", Text: "aac", Calls: []string{edited},
		}},
	} {
		scene.want.Mode, scene.want.Tone = cmp.Or(scene.want.Mode, "ask"), cmp.Or(scene.want.Tone, "plain")
		t.Run(scene.name, func(t *testing.T) {
			for name, play := range map[string]func(*testing.T, context.Context) (*screen, error){
				"client 1, native agent 2": func(t *testing.T, ctx context.Context) (*screen, error) {
					steps, err := json.Marshal(scene.steps)
					if err != nil {
						return nil, err
					}
					node := exec.CommandContext(ctx, "node", script, "client", string(steps))
					var report bytes.Buffer
					node.Stderr = &report
					in, err1 := node.StdinPipe()
					out, err2 := node.StdoutPipe()
					if err := errors.Join(err1, err2, node.Start()); err != nil {
						return nil, err
					}
					far := conformance.Tap(t, conformance.Agent, rpc.IO(out, in, 0), &conformance.TapOptions{Schema: conformance.V1(), Level: conformance.Should})
					near := conformance.Tap(t, conformance.Agent, translate.Transport(far, translate.AgentSide, 2, nil), &conformance.TapOptions{Schema: conformance.V2(), Level: conformance.Should})
					err = (&wordsAgent{sessions: map[acpv2.SessionID]*wordsSession{}}).serve(ctx, near)
					err = errors.Join(err, node.Wait())
					s := &screen{}
					if e := json.Unmarshal(report.Bytes(), s); e != nil {
						return nil, fmt.Errorf("%w, %w: %s", err, e, &report)
					}
					return s, err
				},
				"native client 2, agent 1": func(t *testing.T, ctx context.Context) (*screen, error) {
					far := conformance.Tap(t, conformance.Client, acpv2.Exec("node", script, "agent"), &conformance.TapOptions{
						Schema: conformance.Negotiated(conformance.V1(), conformance.V2()), Level: conformance.Should,
						Accept: map[string]string{"CFG-19": "the modes are to be translated"},
					})
					near := conformance.Tap(t, conformance.Client, translate.Transport(far, translate.ClientSide, 2, nil), &conformance.TapOptions{Schema: conformance.V2(), Level: conformance.Should})
					c := &wordsClient{calls: map[acpv2.ToolCallID]*acpv2.ToolCallUpdate{}, terminals: map[acpv2.TerminalID]string{}}
					return c.play(ctx, near, scene.steps)
				},
			} {
				t.Run(name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					got := must.Get(play(t, ctx))(t)
					if diff := gocmp.Diff(&scene.want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Error(diff)
					}
				})
			}
		})
	}
}
