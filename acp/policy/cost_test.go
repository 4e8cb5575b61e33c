package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// costlyRules are rules of which none matches a costly request.
func costlyRules(t testing.TB, n int, effect policy.Effect) *policy.Policy {
	t.Helper()
	var all []policy.Rule
	for i := range n {
		all = append(all, policy.Rule{
			Effect: effect, Paths: []string{fmt.Sprintf("/home/*/x%d/**", i), fmt.Sprintf("**/y%d", i)}, Commands: []string{fmt.Sprintf("z%d **", i)},
			Unsafe: effect == policy.Allow,
		})
	}
	p := must.Get(policy.New(all, &policy.Options{POSIXShell: true}))(t)
	return p
}

func costlyPaths(n int) policy.Request {
	req := policy.Request{Cwd: "/proj", ToolCall: acp.ToolCall{Kind: acp.ToolKindRead}}
	for i := range n {
		req.ToolCall.Locations = append(req.ToolCall.Locations, acp.ToolCallLocation{Path: fmt.Sprintf("/home/me/project/internal/file%d.go", i)})
	}
	return req
}

// costlyLines has n commands of 1,000 words, each of which may be a command.
func costlyLines(n int) policy.Request {
	var lines []any
	for range n {
		lines = append(lines, map[string]string{"command": "nice " + strings.Repeat("mysql ", 999)})
	}
	return policy.Request{Cwd: "/proj", ToolCall: acp.ToolCall{Kind: acp.ToolKindExecute, RawInput: acp.Raw(map[string]any{"command": "a", "steps": lines})}}
}

// However many rules there are, and however much an agent names, a decision takes no more than some seconds: that it ends at all is
// what a busy machine can show.
func TestCost(t *testing.T) {
	tier.Need(t, tier.Normal)
	const rules = 10_000
	for _, effect := range []policy.Effect{policy.Allow, policy.Reject} {
		p := costlyRules(t, rules, effect)
		for _, c := range []struct {
			name string
			req  policy.Request
			why  string
		}{
			{"paths that are compared", costlyPaths(200), ""},
			{"too many paths", costlyPaths(10_000), "too many paths"},
			{"lines", costlyLines(10), "too many words"},
			{"more lines", costlyLines(1000), "bytes"},
		} {
			began := time.Now()
			d := must.Get(p.Explain(c.req))(t)
			took := time.Since(began)
			if d.Effect != policy.Ask || !strings.Contains(strings.Join(d.About, "\n"), c.why) {
				t.Errorf("%s, %s: %s: %s", effect, c.name, d.Effect, d.Why)
			}
			if took > 5*time.Minute {
				t.Errorf("%s, %s: took %v", effect, c.name, took)
			}
			t.Log(effect, c.name, took)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	p := newPolicy(b, inProject+"\n"+gitAndGo+"\n"+noSecrets+"\n"+noRemoval+"\n"+askForEtc)
	for name, call := range map[string]string{"path": reads("/proj/a/b.go"), "line": runs("git log -n 3 | head -n 1")} {
		req := request(b, call)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Get(p.Explain(req))(b)
			}
		})
	}
}
