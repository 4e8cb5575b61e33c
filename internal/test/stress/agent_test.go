package stress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// plan is the text of a prompt.
type plan struct {
	Together int    // begin when this number of turns has arrived
	Updates  int    // the number to send; the session numbers them from 0
	Size     int    // the length of their texts
	BigEvery int    // every BigEvery-th update has another length,
	Big      int    // which is this
	AskEvery int    // ask for permission after every AskEvery updates
	Reads    int    // then read files this many times,
	Flight   int    // with this many reads at once
	Linger   bool   // then wait until the turn is cancelled, and send another update
	Fail     bool   // work that is not done because of cancellation is an error
	Progress string // the file for the number of updates sent
}

func (p plan) block() acp.ContentBlock {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return acp.TextBlock(string(text))
}

// numberSize is the length of the number in an update's text, in characters.
const numberSize = 20

// numbered returns update n with a text of the given length.
func numbered(n, size int) acp.SessionUpdate {
	return acp.AgentMessageText(fmt.Sprintf("%0*d", numberSize, n) + strings.Repeat("x", max(0, size-numberSize)))
}

// numberOf returns the number of an update, or -1 if it has none.
func numberOf(u *acp.SessionUpdate) int {
	chunk, ok := u.Variant.(*acp.SessionUpdateAgentMessageChunk)
	if !ok {
		return -1
	}
	text := chunk.Content.Text()
	return numberIn(text)
}

func numberIn(text string) int {
	n, err := strconv.Atoi(text[:min(len(text), numberSize)])
	if err != nil {
		return -1
	}
	return n
}

// metaSent is the member of an answer's _meta with the number of updates that the session has sent.
const metaSent = "sent"

// The extension methods of the agent.
const (
	methodEcho   = "_stress/echo"   // answers with its params
	methodHang   = "_stress/hang"   // answers when it is cancelled
	methodFault  = "_stress/fault"  // a notification: apply a fault
	methodQuiet  = "_stress/quiet"  // no more noise
	methodReport = "_stress/report" // the report; answered after everything else
)

type echo struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

// agent is the agent of a connection.
type agent struct {
	books  books
	faults *faults // nil if it has none
	turns  meeting // of prompts, by plan.Together

	mu       sync.Mutex
	sessions map[acp.SessionID]*int // the number of updates sent
}

// serve serves the client on stdio as an agent of some kind.
func serve(kind string) error {
	a := &agent{sessions: map[acp.SessionID]*int{}}
	var transport acp.Transport = acp.Stdio()
	opts := &acp.AgentOptions{}
	switch kind {
	case "agent":
	case "faulty":
		a.faults = &faults{}
		transport = wrapped{transport, a.faults.stream}
		opts.Conn.Hooks = a.books.hooks()
		a.books.ending = true // any time
	default:
		limit, err := strconv.Atoi(kind)
		if err != nil {
			return err
		}
		transport = &acp.StdioTransport{MaxMessage: limit}
	}
	err := acp.ServeAgent(context.Background(), transport, a.handlers(), opts)
	if a.faults != nil {
		err = errors.Join(err, a.faults.tell())
	}
	return err
}

func (a *agent) handlers() acp.AgentHandlers {
	ext := &acp.Extensions[acp.AgentConn]{}
	rpc.Handle(ext, methodEcho, func(_ context.Context, _ *acp.AgentConn, e *echo) (*echo, error) {
		return e, nil
	})
	rpc.Handle(ext, methodHang, func(ctx context.Context, _ *acp.AgentConn, _ *echo) (*echo, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if a.faults != nil {
		rpc.HandleNotification(ext, methodFault, func(_ context.Context, _ *acp.AgentConn, f *fault) error {
			a.faults.set(f)
			return nil
		})
		rpc.Handle(ext, methodQuiet, func(context.Context, *acp.AgentConn, *echo) (*echo, error) {
			a.faults.set(&fault{Kind: faultNone})
			return &echo{}, nil
		})
		rpc.Handle(ext, methodReport, func(ctx context.Context, _ *acp.AgentConn, _ *echo) (*report, error) {
			if err := a.books.settled(ctx, 1); err != nil {
				return nil, err
			}
			return a.books.report(a.faults), nil
		})
	}
	return acp.AgentHandlers{
		Extensions: ext,
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			id := acp.SessionID(fmt.Sprintf("session %d", len(a.sessions)))
			a.sessions[id] = new(int)
			return &acp.NewSessionResponse{SessionID: id}, nil
		},
		Prompt: a.prompt,
	}
}

func (a *agent) prompt(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := req.Prompt[0].Text()
	t := &turn{agent: a, client: session}
	if err := json.Unmarshal([]byte(text), &t.plan); err != nil {
		return nil, acp.InvalidParamsf("%v", err)
	}
	a.mu.Lock()
	t.sent = a.sessions[req.SessionID]
	a.mu.Unlock()
	if t.sent == nil {
		return nil, acp.SessionNotFound(req.SessionID)
	}
	res := &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	if err := t.run(ctx); err != nil {
		if !errors.Is(context.Cause(ctx), acp.ErrTurnCancelled) || t.plan.Fail {
			return nil, acp.Public(err)
		}
		res.StopReason = acp.StopReasonCancelled
	}
	return res, res.Meta.Set(metaSent, *t.sent)
}

// turn is a prompt in progress.
type turn struct {
	agent    *agent
	client   *acp.AgentSession
	plan     plan
	sent     *int // the session's
	progress *progress
}

func (t *turn) run(ctx context.Context) error {
	p := &t.plan
	if p.Progress != "" {
		var err error
		if t.progress, err = openProgress(p.Progress); err != nil {
			return err
		}
		defer t.progress.close()
	}
	if err := t.agent.turns.wait(ctx, p.Together); err != nil {
		return err
	}
	for i := range p.Updates {
		if err := t.update(ctx, i); err != nil {
			return err
		}
		if p.AskEvery > 0 && i%p.AskEvery == p.AskEvery-1 {
			if err := t.ask(ctx); err != nil {
				return err
			}
		}
	}
	if err := t.read(ctx); err != nil {
		return err
	}
	if p.Linger {
		<-ctx.Done()
		return errors.Join(t.update(ctx, 0), ctx.Err())
	}
	return nil
}

// update sends the next update, the ith of the turn. A cancelled turn stops, but not in the middle of an update.
func (t *turn) update(ctx context.Context, i int) error {
	if ctx.Err() != nil && !t.plan.Linger {
		return ctx.Err()
	}
	if t.progress != nil && i%progressStep == 0 {
		if err := t.progress.set(i + progressStep); err != nil {
			return err
		}
	}
	size := t.plan.Size
	if t.plan.BigEvery > 0 && i%t.plan.BigEvery == t.plan.BigEvery-1 {
		size = t.plan.Big
	}
	err := t.client.Update(ctx, numbered(*t.sent, size))
	if err == nil {
		*t.sent++
	}
	return err
}

// ask asks for permission. The tool call's id is the number of updates before.
func (t *turn) ask(ctx context.Context) error {
	_, err := t.client.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(strconv.Itoa(*t.sent))},
		acp.PermissionOption{OptionID: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce})
	t.agent.books.note(err)
	return err
}

// read reads files, several at once.
func (t *turn) read(ctx context.Context) error {
	p := &t.plan
	errs := make(chan error, p.Flight)
	for i := range p.Flight {
		go func() {
			var err error
			for n := i; n < p.Reads && err == nil; n += p.Flight {
				err = t.readFile(ctx, n)
			}
			errs <- err
		}()
	}
	var failed error
	for range p.Flight {
		failed = errors.Join(failed, <-errs)
	}
	return failed
}

func (t *turn) readFile(ctx context.Context, n int) error {
	path := fmt.Sprintf("/%d", n)
	res, err := t.client.Conn().ReadTextFile(ctx, &acp.ReadTextFileRequest{SessionID: t.client.ID(), Path: path})
	t.agent.books.note(err)
	if err == nil && !strings.HasPrefix(res.Content, path+"\n") {
		err = fmt.Errorf("%.20s instead of %s", res.Content, path)
	}
	return err
}

// meeting makes calls wait until enough have arrived.
type meeting struct {
	mu   sync.Mutex
	come int
	full chan struct{} // closed then
}

// wait waits until n calls have arrived. It does not wait if n is 0.
func (m *meeting) wait(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	m.mu.Lock()
	if m.full == nil {
		m.full = make(chan struct{})
	}
	full := m.full
	if m.come++; m.come == n {
		close(full)
	}
	m.mu.Unlock()
	select {
	case <-full:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wrapped is a transport with other streams.
type wrapped struct {
	acp.Transport
	wrap func(rpc.Stream) rpc.Stream
}

func (w wrapped) Connect(ctx context.Context) (rpc.Stream, error) {
	s, err := w.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return w.wrap(s), nil
}
