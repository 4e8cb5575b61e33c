package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/transcript"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// recorded reads a recording of messages that are written with arrows, -> for those of the client. A number before the
// arrow is the time in milliseconds.
func recorded(t *testing.T, lines ...string) *transcript.Recorded {
	t.Helper()
	var file bytes.Buffer
	began := time.Unix(0, 0)
	w := must.Get(recording.NewWriter(&file, recording.Header{Date: began}, nil))(t)
	for _, line := range lines {
		var at int
		before, message, ok := strings.Cut(line, "> ")
		d := conformance.ToAgent
		if !ok || strings.Contains(before, "{") {
			before, message, _ = strings.Cut(line, "- ")
			d = conformance.ToClient
		}
		if _, err := fmt.Sscan(strings.TrimRight(before, " -<>"), &at); err != nil && err != io.EOF && err.Error() != "unexpected newline" {
			t.Fatal(line, err)
		}
		e := recording.Entry{Kind: recording.KindMessage, Direction: d, Line: []byte(message), Time: began.Add(time.Duration(at) * time.Millisecond)}
		must.Do(t, w.Write(&e))
	}
	must.Do(t, w.Write(&recording.Entry{Kind: recording.KindEnd}))
	return must.Get(transcript.ReadRecorded("r.jsonl", recording.NewReader(&file, nil), 1, func(err error) { t.Error(err) }))(t)
}

// against replays a recording to a peer. Each string of the peer is a line that it writes, "<" to read a line first,
// "EOF" for the end of the connection, or how long it waits. It returns the lines that the peer has read.
func against(t *testing.T, r *transcript.Recorded, side conformance.Side, options *transcript.ReplayOptions, peer ...string) (read, differences []string, result *transcript.ReplayResult) {
	t.Helper()
	ours, theirs := rpc.Pipe()
	live := must.Get(theirs.Connect(t.Context()))(t)
	if options == nil {
		options = &transcript.ReplayOptions{}
	}
	options.OnDifference = func(d transcript.Difference) { differences = append(differences, d.String()) }
	var wg sync.WaitGroup
	wg.Go(func() {
		defer live.Close()
		for _, line := range peer {
			if line == "<" {
				line, err := live.Read()
				if err != nil {
					t.Errorf("the peer: %v", err)
					return
				}
				read = append(read, string(line))
			} else if line == "EOF" {
				return
			} else if d, err := time.ParseDuration(line); err == nil {
				time.Sleep(d)
			} else if err := live.Write([]byte(line)); err != nil {
				t.Errorf("the peer: %v", err)
				return
			}
		}
		if side == conformance.Client {
			for {
				line, err := live.Read()
				if err != nil {
					return
				}
				read = append(read, string(line))
			}
		}
	})
	var err error
	if result, err = r.Replay(t.Context(), side, ours, options); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if len(differences) != result.Differences {
		t.Errorf("%d differences, %d are counted", len(differences), result.Differences)
	}
	return read, differences, result
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

var turn = []string{
	`-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
	`<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"}}}`,
	`-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`,
	`<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"old"}}`,
	`-> {"jsonrpc":"2.0", "id":2,"method":"session/prompt","params":{"sessionId":"old","prompt":[{"type":"text","text":"in /w: old"}]}}`,
	`<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}}`,
	`<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}}}}`,
	`<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x"}}}`,
	`<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"old","toolCall":{"toolCallId":"c1"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}}`,
	`-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`,
	`<- {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`,
}

const liveUpdate = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"new","update":`

var liveTurn = []string{
	"<", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"version":"2","name":"b","_meta":{}}}}`,
	"<", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"new"}}`,
	"<", liveUpdate + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"c"}}}}`,
	liveUpdate + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"d"}}}}`,
	liveUpdate + `{"sessionUpdate":"tool_call","toolCallId":"k9","title":"y"}}}`,
	`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"new","toolCall":{"toolCallId":"k9"},"options":[{"optionId":"go","name":"Go","kind":"allow_once"}]}}`,
	"<", `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`,
}

// The recorded client communicates with a live agent that does the same with other ids and texts.
func TestReplayAsClient(t *testing.T) {
	read, differences, result := against(t, recorded(t, turn...), conformance.Client, &transcript.ReplayOptions{Replace: []string{"/w", "/tmp/x"}}, liveTurn...)
	same(t, "differences", differences)
	same(t, "the agent read", read,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp/x","mcpServers":[]}}`,
		`{"jsonrpc":"2.0", "id":2,"method":"session/prompt","params":{"sessionId":"new","prompt":[{"type":"text","text":"in /tmp/x: old"}]}}`,
		`{"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"selected","optionId":"go"}}}`)
	if result.Played != 4 || result.Met != 7 || result.Dropped != 0 || result.Ended != nil {
		t.Errorf("got %+v", result)
	}
}

// The recorded agent communicates with a live client that does the same with its own ids.
func TestReplayAsAgent(t *testing.T) {
	read, differences, result := against(t, recorded(t, turn...), conformance.Agent, nil,
		`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1}}`, "<",
		`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/elsewhere","mcpServers":[]}}`, "<",
		`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"old","prompt":[{"type":"text","text":"hello"}]}}`, "<", "<", "<", "<",
		`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, "<")
	same(t, "differences", differences)
	if len(read) != 7 || result.Played != 7 || result.Met != 4 {
		t.Fatalf("got %q, %+v", read, result)
	}
	same(t, "the client read", []string{read[0], read[1], read[6]},
		`{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"n","result":{"sessionId":"old"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}`)
}

// If the live side deviates from the recording, the replay reports that once and continues.
func TestReplayDifferences(t *testing.T) {
	change := func(at int, lines ...string) []string {
		out := append([]string{}, liveTurn[:at]...)
		return append(append(out, lines...), liveTurn[at+1:]...)
	}
	const chunk = liveUpdate + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"e"}}}}`
	for name, test := range map[string]struct {
		peer []string
		want []string
	}{
		"more pieces of a text": {change(6, chunk, chunk, chunk), nil},
		"fewer pieces":          {change(6), nil},
		"no pieces": {append(append([]string{}, liveTurn[:5]...), liveTurn[7:]...), []string{
			"line 7: missing: session/update agent_message_chunk"}},
		"missing": {change(7), []string{"line 9: missing: session/update tool_call"}},
		"late":    {append(append([]string{}, liveTurn[:7]...), liveTurn[8], liveTurn[7], liveTurn[9], liveTurn[10]), []string{"line 9: out of order: session/update tool_call"}},
		"other members": {change(1, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`), []string{
			`line 3: different: answer to initialize: /result: missing "agentInfo"`}},
		"other type":    {change(7, liveUpdate+`{"sessionUpdate":"tool_call","toolCallId":"k9","title":null}}}`), []string{`line 9: different: session/update tool_call: /params/update/title: got null, want a value of type string`}},
		"other kind":    {change(5, liveUpdate+`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","text":"c"}}}}`), []string{`line 7: different: session/update agent_message_chunk: /params/update/content/type: got "image", want "text"`}},
		"other version": {change(1, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"agentInfo":{"name":"a","version":"1"}}}`), []string{`line 3: different: answer to initialize: /result/protocolVersion: got 2, want 1`}},
		"other session": {change(7, strings.Replace(liveTurn[7], `"new"`, `"wrong"`, 1)), []string{
			`line 9: different: session/update tool_call: /params/sessionId: got "wrong", want "new" (the value of $sessionId=old)`}},
		"an error": {change(10, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"oops"}}`), []string{
			`line 12: different: answer to session/prompt: got error answer to session/prompt, want answer to session/prompt: {"error":{"code":-32603,"message":"oops"},"id":2,"jsonrpc":"2.0"}`}},
		"additional":         {change(7, liveTurn[7], liveUpdate+`{"sessionUpdate":"plan","entries":[]}}}`), []string{"line 10: additional: session/update plan"}},
		"additional request": {change(7, liveTurn[7], `{"jsonrpc":"2.0","id":"x","method":"fs/read_text_file","params":{}}`, "<"), []string{"line 10: additional: fs/read_text_file"}},
		"noise":              {change(7, "Debugger attached.", liveTurn[7]), []string{"line 9: additional: a line that is not a message"}},
		"at the end": {append(append([]string{}, liveTurn...), chunk, `{"jsonrpc":"2.0","id":"y","method":"terminal/create","params":{}}`), []string{
			"at the end: additional: session/update agent_message_chunk", "at the end: additional: terminal/create"}},
		"ends": {append(append([]string{}, liveTurn[:5]...), "EOF"), []string{"line 7: missing: session/update agent_message_chunk",
			"line 9: missing: session/update tool_call", "line 10: missing: session/request_permission", "line 12: missing: answer to session/prompt"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, differences, result := against(t, recorded(t, turn...), conformance.Client, nil, test.peer...)
				same(t, "differences", differences, test.want...)
				if ended := name == "ends"; ended {
					if result.Ended == nil && result.Dropped != 1 {
						t.Errorf("got %+v", result)
					}
				} else if result.Played != 4 {
					t.Errorf("got %+v", result)
				}
			})
		})
	}
}

// Texts and numbers are compared on demand.
func TestReplayExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, differences, _ := against(t, recorded(t, turn...), conformance.Client, &transcript.ReplayOptions{Exact: true}, liveTurn...)
		same(t, "differences", differences,
			`line 3: different: answer to initialize: /result/agentInfo/name: got "b", want "a"`,
			`line 7: different: session/update agent_message_chunk: /params/update/content/text: got "c", want "a"`,
			`line 8: different: session/update agent_message_chunk: /params/update/content/text: got "d", want "b"`,
			`line 9: different: session/update tool_call: /params/update/title: got "y", want "x"`,
			`line 10: different: session/request_permission: /params/options/0/name: got "Go", want "Yes"`)
	})
}

// The delays of the recording are kept on demand, and silence has a time limit.
func TestReplayTime(t *testing.T) {
	lines := []string{`10 -> {"method":"a"}`, `510 -> {"method":"b"}`, `600 <- {"method":"c"}`, `1600 -> {"method":"d"}`}
	for speed, want := range map[float64]time.Duration{0: 0, 1: 1500 * time.Millisecond, 2: 750 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, differences, _ := against(t, recorded(t, lines...), conformance.Client, &transcript.ReplayOptions{Speed: speed}, "<", "<", `{"method":"c"}`, "<")
			same(t, "differences", differences)
			if took := time.Since(began).Truncate(250 * time.Millisecond); took != want {
				t.Errorf("speed %v: it took %v, want %v", speed, took, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, differences, result := against(t, recorded(t, lines...), conformance.Client, &transcript.ReplayOptions{Silence: time.Minute}, "<", "<", "<")
		same(t, "differences", differences, "line 4: missing: c")
		if took := time.Since(began).Truncate(time.Minute); took != time.Minute || result.Played != 3 {
			t.Errorf("it took %v, %+v", took, result)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		a, b := rpc.Pipe()
		live := must.Get(b.Connect(t.Context()))(t)
		defer live.Close()
		if _, err := recorded(t, lines[2:]...).Replay(ctx, conformance.Client, a, nil); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
}

// Both sides of each recording are replayed against each other without a difference.
func TestReplayRecordings(t *testing.T) {
	t.Run("clean", func(t *testing.T) { replayAll(t, "../testdata/clean/*.jsonl") })
	t.Run("traces", func(t *testing.T) { replayAll(t, filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl")) })
}

// replayAll replays the recordings that match a pattern.
func replayAll(t *testing.T, pattern string) {
	files := cleantest.Files(t, pattern)
	for _, file := range files {
		text := must.Get(os.Open(file))(t)
		r, err := transcript.ReadRecorded(file, recording.NewReader(text, nil), 1, nil)
		text.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, exact := range []bool{false, true} {
			a, b := rpc.Pipe()
			options := &transcript.ReplayOptions{Exact: exact, OnDifference: func(d transcript.Difference) { t.Errorf("%s: %v", file, d) }}
			var wg sync.WaitGroup
			wg.Go(func() {
				if result, err := r.Replay(t.Context(), conformance.Agent, b, options); err != nil || result.Dropped > 0 || result.Ended != nil {
					t.Errorf("%s: %+v, %v", file, result, err)
				}
			})
			if result, err := r.Replay(t.Context(), conformance.Client, a, options); err != nil || result.Dropped > 0 || result.Ended != nil {
				t.Errorf("%s: %+v, %v", file, result, err)
			}
			wg.Wait()
		}
	}
	t.Logf("%d recordings", len(files))
}

func TestReadRecordedErrors(t *testing.T) {
	read := func(text string, connection int) error {
		_, err := transcript.ReadRecorded("r", recording.NewReader(strings.NewReader(text), nil), connection, nil)
		return err
	}
	if err := read(`{"from":"agent","raw":"x"}`, 2); !errors.Is(err, transcript.ErrNoConversation) {
		t.Errorf("got %v", err)
	}
	if err := read("", 1); !errors.Is(err, transcript.ErrNoConversation) {
		t.Errorf("got %v", err)
	}
}
