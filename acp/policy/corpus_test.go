package policy_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
)

// The lines of testdata/commands.txt are allowed, or asked about, as the file says, and by the words of the rule that it says.
func TestCommands(t *testing.T) {
	file := must.Get(os.Open("testdata/commands.txt"))(t)
	defer file.Close()
	var p *policy.Policy
	decided := map[policy.Effect]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) == 1 {
			if strings.HasPrefix(fields[0], "{") {
				p = newPolicy(t, fields[0])
			}
			continue // it is a comment
		}
		effect, line, by := policy.Effect(fields[0]), strings.ReplaceAll(fields[1], "⇥", "\t"), fields[2:]
		d := must.Get(p.Explain(request(t, runs(line))))(t)
		decided[d.Effect]++
		if d.Effect != effect || effect == policy.Allow && !strings.HasSuffix(d.Why, "; "+strings.Join(by, "; ")) {
			t.Errorf("%s: want %s by %q, got %s", line, effect, by, d)
		}
		t.Logf("%s\t%s\t%s", d.Effect, line, d.Verdicts[0].Why)
	}
	if decided[policy.Allow] < 200 || decided[policy.Ask] < 300 || decided[policy.Reject] != 0 {
		t.Errorf("decided %v", decided)
	}
}
