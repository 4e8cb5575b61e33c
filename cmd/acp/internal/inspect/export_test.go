package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
)

// root is the root of the repository.
const root = "../../../.."

// wrongTurn records a turn of an agent that sends a wrong update, and returns the page and the row with the finding.
func wrongTurn(t *testing.T) (*browser, *testPage, rowEvent) {
	t.Helper()
	i := serveTest(t, Options{Agent: processAgent("wrong")})
	b := i.browser()
	p := b.open(0, "")
	p.connect("1")
	p.response("1", p.prompt("1", hostile[0]))
	p.do(map[string]any{"do": "kill", "source": "1", "how": "close"})
	p.row("1", "the end", func(r *rowEvent) bool { return r.Kind == "end" })
	return b, p, p.row("1", "the finding", func(r *rowEvent) bool { return len(r.Findings) > 0 && r.Update == "tool_call_update" })
}

func TestExports(t *testing.T) {
	b, _, wrong := wrongTurn(t)
	if f := wrong.Findings[0]; f.Pointer != "/params/update/status" || f.Side != "agent" || f.Level != "MUST" {
		t.Errorf("the finding is %+v", f)
	}
	exported := b.get("/export?source=1&as=recording")
	all := must.Get(recording.ReadAll(bytes.NewReader(exported)))(t)
	judge, found := conformance.NewJudge(nil, nil), 0
	for _, m := range all.Messages() {
		found += len(judge.Message(m))
	}
	if found == 0 {
		t.Error("the exported recording has no findings")
	}
	for as, want := range map[string]int{"html": 200, "junit": 404} {
		res := must.Get(b.ask("/export?source=1&as=" + as))(t)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s", as, res.Status)
		}
	}
}

// The two directions of a connection are recorded by two goroutines, and its times are in order all the same.
func TestTimesInOrder(t *testing.T) {
	in := must.Get(New(Options{}))(t)
	defer in.Close()
	s, err := in.source(sourceOptions{kind: "agent", name: "agent", header: recording.Header{Date: time.Now()}})
	must.Do(t, err)
	var both sync.WaitGroup
	for _, direction := range []conformance.Direction{conformance.ToAgent, conformance.ToClient} {
		both.Go(func() {
			for range 2000 {
				s.happens(recording.Entry{Kind: recording.KindMessage, Direction: direction, Line: []byte(`{"jsonrpc":"2.0","method":"_x"}`)}, false)
			}
		})
	}
	both.Wait()
	s.happens(recording.Entry{Kind: recording.KindEnd, End: &recording.End{}}, false)
	must.Do(t, s.reading(func(text *io.SectionReader) error {
		all, err := recording.ReadAll(text)
		if err == nil && len(all.Messages()) != 4000 {
			t.Errorf("the recording has %d messages", len(all.Messages()))
		}
		return err
	}))
}

// Conversations in version 2 are shown like those in version 1.
func TestConversationOfVersion2(t *testing.T) {
	for _, name := range []string{"v2-typescript-client-typescript", "v2-turns"} {
		text := must.Get(os.ReadFile(root + "/conformance/testdata/clean/" + name + ".jsonl"))(t)
		in := must.Get(New(Options{}))(t)
		defer in.Close()
		must.Do(t, in.Read(name, bytes.NewReader(text), ""))
		kinds := map[string]int{}
		in.mu.Lock()
		for _, s := range in.sources {
			for _, c := range s.conversations.order {
				for item := range c.state.Snapshot().Items() {
					kinds[newItemEvent(item, nil).Kind]++
				}
			}
		}
		in.mu.Unlock()
		for _, kind := range []string{"user", "agent", "tool"} {
			if kinds[kind] == 0 {
				t.Errorf("%s: no item is a %s: %v", name, kind, kinds)
			}
		}
	}
}

// A report loads nothing, and hostile text in it is text.
func TestReport(t *testing.T) {
	in := must.Get(New(Options{Version: "v0", NoMask: true}))(t)
	defer func() {
		must.Do(t, in.Close())
	}()
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, recording.Header{Tool: hostile[0], Command: hostile, Date: time.Now()}, nil)
	must.Do(t, err)
	for _, text := range hostile {
		quoted := must.Get(json.Marshal(text))(t)
		for _, line := range []string{
			text, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%s,"params":{%s:1}}`, quoted, quoted, quoted),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":{"sessionUpdate":"tool_call","toolCallId":%s,"title":%s}}}`, quoted, quoted, quoted),
		} {
			must.Do(t, w.Message(conformance.Message{Direction: conformance.ToClient, Line: []byte(line)}))
		}
	}
	long := strings.Repeat("<é>", 100_000)
	must.Do(t, w.Message(conformance.Message{Direction: conformance.ToClient, Line: []byte(long)}))
	must.Do(t, in.Read(hostile[0]+".jsonl", &file, ""))
	var out bytes.Buffer
	must.Do(t, in.WriteReport(&out))
	html := out.String()
	// The only elements are those of the page: nothing of the recording begins one.
	_, data, ok := strings.Cut(html, `<script type="application/json" id="report">`)
	data, rest, ok2 := strings.Cut(data, "</script>")
	if !ok || !ok2 || strings.Contains(data, "<") || strings.Contains(data, "\u2028") {
		t.Error("the data could end its element")
	}
	var r reportData
	must.Do(t, json.Unmarshal([]byte(data), &r))
	if len(r.Events) < len(hostile)*3 || r.Hello.Live || len(r.Schemas) != 1 || len(r.State.Sources) != 1 {
		t.Errorf("the report has %d events, %d schemas, %d states, live %v", len(r.Events), len(r.Schemas), len(r.State.Sources), r.Hello.Live)
	}
	for _, text := range append(slices.Clone(hostile), long) {
		if !slices.ContainsFunc(r.Events, func(e json.RawMessage) bool {
			var row rowEvent
			return json.Unmarshal(e, &row) == nil && row.Raw == text
		}) {
			t.Errorf("%q is not in the report", text)
		}
	}
	page := strings.Replace(html, data, "", 1)
	for _, pattern := range []string{`(?i)<link[^>]*href="[^d]`, `(?i)<script[^>]*\bsrc`, `(?i)<(img|iframe|object|embed|base)\b`, `(?i)@import`, `(?i)\burl\(\s*["']?(https?:)?//`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the report has %s", found)
		}
	}
	if !strings.Contains(page, `http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-`) || strings.Contains(page, "unsafe-inline") {
		t.Error("the report has no policy")
	}
	if !strings.Contains(rest, "</html>") {
		t.Error("the report is not complete")
	}
}

// The capabilities that methods need are those that the generator knows.
func TestCapabilitiesOfMethods(t *testing.T) {
	paths, err := filepath.Glob(root + "/gen/overrides/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no overrides: %v", err)
	}
	known := map[string]bool{}
	for _, path := range paths {
		text := must.Get(os.ReadFile(path))(t)
		for _, r := range regexp.MustCompile(`(?m)^Capability +(\S+) = (\S+)`).FindAllStringSubmatch(string(text), -1) {
			method, path := r[1], r[2]
			known[method+" "+path] = true
			if capabilityOf[1][method] != path && capabilityOf[2][method] != path {
				t.Errorf("%s needs %s", method, path)
			}
		}
	}
	for version, methods := range capabilityOf {
		for method, path := range methods {
			if !known[method+" "+path] && method != "elicitation/create" { // whose modes have capabilities
				t.Errorf("version %d: %s does not need %s", version, method, path)
			}
		}
	}
	for _, test := range []struct {
		capabilities, path string
		want               bool
	}{{`{"fs":{"readTextFile":true}}`, "fs.readTextFile", true}, {`{"fs":{}}`, "fs.readTextFile", false}, {`{"a":{"list":{}}}`, "a.list", true}, {``, "a", false}, {`null`, "a", false}, {``, "", true}} {
		if got := claims(json.RawMessage(test.capabilities), test.path); got != test.want {
			t.Errorf("claims(%s, %s) = %v", test.capabilities, test.path, got)
		}
	}
}

func TestMethods(t *testing.T) {
	for _, want := range []methodInfo{
		{"session/prompt", 1, "client", "PromptRequest", "PromptResponse", true},
		{"session/update", 1, "agent", "SessionNotification", "", true},
		{"fs/read_text_file", 1, "agent", "ReadTextFileRequest", "ReadTextFileResponse", true},
		{"session/fork", 1, "client", "ForkSessionRequest", "ForkSessionResponse", false},
		{"session/prompt", 2, "client", "PromptRequest", "PromptResponse", true},
		{"$/cancel_request", 1, "client", "CancelRequestNotification", "", true},
		{"$/cancel_request", 1, "agent", "CancelRequestNotification", "", true},
	} {
		if !slices.Contains(methods(), want) {
			t.Errorf("%+v is not listed", want)
		}
	}
	for _, m := range methods() {
		if m.Params == "" || strings.HasPrefix(m.Method, "proxy/") {
			t.Errorf("%+v", m)
		}
	}
}

// The page's types are those of the server.
func TestProtocol(t *testing.T) {
	text := must.Get(os.ReadFile("page/protocol.ts"))(t)
	interfaces := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?s)export interface (\w+) \{\n(.*?)\n\}`).FindAllStringSubmatch(string(text), -1) {
		for _, field := range regexp.MustCompile(`(?m)^  (\w+)\??:`).FindAllStringSubmatch(m[2], -1) {
			interfaces[m[1]] = append(interfaces[m[1]], field[1])
		}
	}
	for name, value := range map[string]any{
		"Hello": hello{}, "Limits": limits{}, "Method": methodInfo{}, "Rule": ruleInfo{}, "Log": logMessage{}, "Source": sourceEvent{}, "Row": rowEvent{},
		"Finding": findingInfo{}, "Evidence": evidenceInfo{}, "Late": lateEvent{}, "Item": itemEvent{}, "State": stateMessage{}, "SourceState": sourceState{},
		"SideState": sideState{}, "Observed": observed{}, "Reply": reply{}, "Found": found{}, "Report": reportData{}, "Answers": answers{},
		"Stats": sourceState{}.Stats, "MethodStats": show.MethodStats{}, "SessionStats": sourceState{}.Stats.Total,
	} {
		var fields []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(value)) {
			fields = append(fields, strings.Split(f.Tag.Get("json"), ",")[0])
		}
		if want := interfaces[name]; !slices.Equal(slices.Sorted(slices.Values(fields)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the server has %q, the page %q", name, fields, want)
		}
	}
}
