package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/ledger"
	"github.com/acpgo/sdk/internal/test/faultpipe"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestCutTraces replays what real agents have said to a client made with this package.
func TestCutTraces(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	var results cutResults
	step, n := tier.Pick(1, 1, 5, 1), 0
	for _, file := range files {
		all, requests, err := readTrace(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		try := func(offset int) {
			if n++; n%step != 0 {
				return
			}
			results.try(t, fmt.Sprintf("%s at byte %d", file, offset), func(t *testing.T) error {
				return cutTrace(t.Context(), all, requests, offset)
			})
		}
		offset := 0
		try(offset)
		for line := range bytes.Lines(all.Sent(conformance.Agent)) {
			try(offset + len(line)/2)
			offset += len(line)
			try(offset)
		}
	}
	t.Logf("%d traces: %v", len(files), results)
}

// readTrace reads a recording, in which the ids of the client are made those of ours, and counts its
// requests.
func readTrace(file string) (all *conformance.Recording, requests int, err error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer text.Close()
	read, err := recording.ReadAll(text)
	if err != nil {
		return nil, 0, err
	}
	all = &conformance.Recording{}
	for _, recorded := range read.Messages() {
		m, err := ledger.Read(recorded.Line)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case recorded.Direction == conformance.ToClient && m.IsAnswer(): // the client of the recordings counts from 0
			id, err := strconv.Atoi(string(m.ID))
			if err != nil {
				return nil, 0, err
			}
			recorded.Line = bytes.Replace(recorded.Line, fmt.Appendf(nil, `"id":%d`, id), fmt.Appendf(nil, `"id":%d`, id+1), 1)
		case recorded.Direction == conformance.ToAgent && m.IsRequest():
			requests++
		}
		all.Add(recorded)
	}
	return all, requests, nil
}

// cutTrace runs a client as the recorded one ran, and cuts what the agent writes.
func cutTrace(ctx context.Context, all *conformance.Recording, requests, offset int) error {
	way := waysToCut[0]
	clientEnd, agentEnd := faultpipe.Pipe(faultpipe.Script{Faults: []faultpipe.Fault{{Byte: offset, Do: way.action}}}, faultpipe.Script{})
	agent, client := &witness{}, &witness{overlapping: true}
	var agentErr error
	var wg sync.WaitGroup
	wg.Go(func() { agentErr = agent.replay(conformance.Agent, agentEnd, all) })
	clientErr := client.follow(ctx, client.transport(clientEnd), all)
	wg.Wait()
	return errors.Join(agentErr, clientErr, client.check(way, requests, agent.read.Bytes(), false))
}

// follow does what the client of a recording did, until the connection ends.
func (w *witness) follow(ctx context.Context, transport acp.Transport, all *conformance.Recording) error {
	f := &follower{w: w, all: all}
	conn, err := acp.Connect(ctx, transport, f.handlers(), &acp.ClientOptions{Conn: w.options()})
	if !w.called(err) {
		w.ended = err
		return nil
	}
	for _, m := range all.Messages() {
		if m.Direction == conformance.ToAgent {
			if err = f.step(ctx, conn, mustParse(m)); err != nil {
				break
			}
		}
	}
	f.finish()
	w.ended = conn.Wait()
	return errors.Join(err, conn.Close())
}

// follower is a client that does what the client of a recording did.
type follower struct {
	w       *witness
	all     *conformance.Recording
	session *acp.ClientSession
	turn    chan error // the end of the turn in progress, or nil
}

// handlers are the client's. In recordings with a cancellation the user does not answer before that.
func (f *follower) handlers() acp.ClientHandlers {
	h := f.w.handlers()
	cancels := func(m conformance.Message) bool { return mustParse(m).Method == acp.MethodCancel }
	if ask := h.RequestPermission; slices.ContainsFunc(f.all.Messages(), cancels) {
		h.RequestPermission = func(ctx context.Context, session *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			res, err := ask(ctx, session, req)
			<-ctx.Done()
			return res, err
		}
	}
	return h
}

// step does what one message of the recorded client did. After a failure there is nothing to do.
func (f *follower) step(ctx context.Context, conn *acp.ClientConn, m ledger.Message) error {
	switch m.Method {
	case "", acp.MethodInitialize: // answers come from the handlers
	case acp.MethodNewSession:
		var req acp.NewSessionRequest
		if err := json.Unmarshal(m.Params, &req); err != nil {
			return err
		}
		var err error
		f.session, err = conn.NewSession(ctx, &req)
		f.w.called(err)
	case acp.MethodPrompt:
		var req acp.PromptRequest
		if err := json.Unmarshal(m.Params, &req); err != nil {
			return err
		}
		f.finish()
		if f.w.err == nil {
			f.turn = make(chan error, 1)
			go func(turn chan<- error) {
				_, err := f.session.Prompt(ctx, req.Prompt...)
				turn <- err
			}(f.turn)
		}
	case acp.MethodCancel:
		synctest.Wait() // what precedes it has come
		if f.turn != nil {
			_ = f.session.Cancel(ctx) // fails when the connection was cut
		}
	default:
		return fmt.Errorf("the client of the recording sent %s", m.Method)
	}
	return nil
}

// finish waits for the end of the turn.
func (f *follower) finish() {
	if f.turn != nil {
		f.w.called(<-f.turn)
		f.turn = nil
	}
}

// mustParse parses a message of a recording that was read.
func mustParse(recorded conformance.Message) ledger.Message {
	m, err := ledger.Read(recorded.Line)
	if err != nil {
		panic(err)
	}
	return m
}
