package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustParse reads rules, one a line.
func mustParse(t testing.TB, lines string) []policy.Rule {
	t.Helper()
	var rules []string
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			rules = append(rules, line)
		}
	}
	parsed, err := policy.Parse([]byte(`{"rules":[` + strings.Join(rules, ",\n") + `]}`))
	if err != nil {
		t.Fatalf("%s: %v", lines, err)
	}
	return parsed
}

func newPolicy(t testing.TB, rules string) *policy.Policy {
	t.Helper()
	p := must.Get(policy.New(mustParse(t, rules), &policy.Options{Home: "/home/me", POSIXShell: true}))(t)
	return p
}

// request is what an agent called A wants in /proj, but for what is given.
func request(t testing.TB, call string) policy.Request {
	t.Helper()
	req := policy.Request{Agent: "A", Cwd: "/proj"}
	if !strings.Contains(call, `"title"`) {
		call += `,"title":"T"`
	}
	if err := json.Unmarshal([]byte(`{"toolCallId":"t",`+call+`}`), &req.ToolCall); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return req
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Calls of the table, in short.
func reads(paths ...string) string { return touching("read", paths...) }
func edits(paths ...string) string { return touching("edit", paths...) }

func touching(kind string, paths ...string) string {
	var locations []string
	for _, path := range paths {
		locations = append(locations, fmt.Sprintf(`{"path":%s}`, quoted(path)))
	}
	return fmt.Sprintf(`"kind":%q,"locations":[%s]`, kind, strings.Join(locations, ","))
}

func runs(line string) string {
	return fmt.Sprintf(`"kind":"execute","rawInput":{"command":%s}`, quoted(line))
}

const (
	inProject   = `{"effect":"allow","kind":["read","edit"],"path":["/proj/**"]}`
	gitAndGo    = `{"effect":"allow","readOnly":true,"command":["go test ./..."],"path":["/proj/**"]}`
	noSecrets   = `{"effect":"reject","path":["**/.env","**/*.pem"]}`
	noRemoval   = `{"effect":"reject","command":["rm **"]}`
	askForEtc   = `{"effect":"ask","path":["/etc/**"]}`
	gitInLogs   = `{"effect":"allow","command":["git **"],"unsafe":true,"path":["/proj/logs/**"]}`
	allCommands = `{"effect":"allow","command":["**"],"unsafe":true}`
)

// The requests of testdata/requests.txt are decided as the file says, in whatever order the rules are.
func TestRequests(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/requests.txt"))(t)
	names := map[string]bool{}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		var rules []policy.Rule
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "{") {
				rules = append(rules, mustParse(t, line)...)
				continue
			} else if strings.HasPrefix(line, "#") {
				continue
			}
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			effect, name, call := policy.Effect(fields[0]), fields[1], fields[2]
			if names[name] {
				t.Errorf("two cases are called %q", name)
			}
			names[name] = true
			turned := slices.Clone(rules)
			slices.Reverse(turned)
			for _, rules := range [][]policy.Rule{rules, turned} {
				p := must.Get(policy.New(rules, &policy.Options{Home: "/home/me", POSIXShell: true}))(t)
				d, err := p.Explain(request(t, call[1:len(call)-1]))
				if err != nil || d.Effect != effect || d.Why == "" || len(d.Verdicts) != len(rules) {
					t.Errorf("%s: want %s, got %s, %v", name, effect, d, err)
				}
			}
		}
	}
	if len(names) < 409 {
		t.Errorf("only %d requests were read", len(names))
	}
}

// Nothing allows an input that is not JSON, but it is rejected for what it contains.
func TestBrokenInputs(t *testing.T) {
	p := newPolicy(t, `{"effect":"allow","path":["**"]}`+"\n"+noSecrets)
	for raw, want := range map[string]policy.Effect{
		`{"path":"/proj/a"}`:                            policy.Allow,
		`{"path":"/proj/a"`:                             policy.Ask,
		`{"path":"/proj/a"}{"path":"/proj/b"}`:          policy.Ask,
		`{"path":"/proj/a","n":01}`:                     policy.Ask,
		"\ufeff" + `{"path":"/proj/a"}`:                 policy.Ask,
		"{\"path\":\"/proj/a\",\"n\":\"\xff\"}":         policy.Ask,
		"{\"path\":\"/proj/a\",\"n\":\"\x00\"}":         policy.Ask,
		`{"path":"/proj/.env","n":`:                     policy.Reject,
		"{\"n\":\"\xff\",\"path\":\"/proj/.env\"}":      policy.Reject,
		"{\"\xff\":[[]],\"in\":{\"path\":\"/a/.env\"}}": policy.Reject,
	} {
		req := request(t, reads("/proj/a"))
		req.ToolCall.RawInput = json.RawMessage(raw)
		if d, err := p.Explain(req); err != nil || d.Effect != want {
			t.Errorf("%q: want %s, got %s, %v", raw, want, d, err)
		}
	}
}

// Rules that name an agent or a working directory allow nothing if the agent or the directory of a request is unknown.
func TestUnknownSession(t *testing.T) {
	p := newPolicy(t, `{"effect":"allow","agent":["*"],"kind":["think"]}
		{"effect":"allow","path":["src/**"],"kind":["read"]}
		{"effect":"allow","cwd":["**"],"kind":["fetch"]}`)
	for _, call := range []string{`"kind":"think"`, reads("/proj/src/a"), `"kind":"fetch"`} {
		for effect, known := range map[policy.Effect]bool{policy.Allow: true, policy.Ask: false} {
			req := request(t, call)
			if !known {
				req.Agent, req.Cwd = "", ""
			}
			if d, err := p.Explain(req); err != nil || d.Effect != effect {
				t.Errorf("%s, known %v: %s, %v", call, known, d, err)
			}
		}
	}
}

// An agent's own tool calls are decided about by kinds of options.
func TestAnswer(t *testing.T) {
	p := must.Get(policy.New([]policy.Rule{
		{Effect: policy.Allow, Kinds: []acp.ToolKind{acp.ToolKindRead}, Paths: []string{"src/**"}},
		{Effect: policy.Reject, Paths: []string{"**/.env"}},
	}, nil))(t)
	for path, want := range map[string]acp.PermissionOptionKind{
		"/w/src/a.go": acp.PermissionOptionKindAllowOnce, "/w/.env": acp.PermissionOptionKindRejectOnce, "/w/a.go": "",
	} {
		kind, why, err := p.Decide(session{"s", "/w", ""}, acp.ToolCall{Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{{Path: path}}})
		if err != nil || kind != want || why == "" {
			t.Errorf("%s: %q because %q, %v", path, kind, why, err)
		}
	}
}
