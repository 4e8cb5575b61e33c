package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Tests, rows of a test, or transcripts, have the ids of the requirements that they show in their names: SES27_SES30_…
// These requirements are shown by tests with other names.
var shownElsewhere = map[string][]string{
	"TRN-6":  {"TestRequirements", "TestTypeScriptAgent"}, // with conformance.Tap, which judges each line
	"LST-13": {"TestRoundTrip", "TestOpt"},                // absent, null and a value are three cases
	"TOL-3":  {"TestRoundTrip", "TestOpt"},
	"TOL-7":  {"TestAgentCallsAreChecked"},
	"ERR-4":  {"TestHostileParams"},
}

// The tests of the rules that package rpc states, by number.
var rules = map[int][]string{
	1:  {"TestNothingIsLeftBehind", "TestHandlersThatDoNotEnd"},
	2:  {"TestScheduleProperties", "TestOrderAndBarrier", "TestCallsInsideNotificationHandlers"},
	3:  {"TestNotificationsOfManySessions", "TestOverflowFailsTheCall", "TestQueueOfEmptyNotifications"},
	4:  {"TestCancelBehindPrompt", "TestCancelOfIdleSession"},
	5:  {"TestServedTurnCancelled", "TestAfterResponse", "TestKeepTurn"},
	6:  {"TestPRM14_TurnCancelled", "TestTurnGivenUpAfterGrace", "TestPermissionWhileCancelled", "TestTurnUntil"},
	7:  {"TestCallCancelled", "TestCancelRequest"},
	8:  {"TestRequirements", "TestEditedCapabilities"},
	9:  {"TestBadInput", "TestHostileLines", "TestHostileParams", "TestInvalidParamsLeakNothing"},
	10: {"TestTooLong", "TestAllocationIsLinear", "TestErrorsRepeatLittle"},
	11: {"TestIDsAreEchoed", "TestIDsThatAreNoText"},
	12: {"TestCutAtEveryByte", "TestEndOfInput", "TestFaultyProcesses"},
	13: {"TestFaultyProcesses", "TestCloseOutlastsTheProcess"},
	14: {"TestErrorsThatReachThePeer"},
	15: {"TestCall", "TestPanicInMarshaling"},
}

func TestRules(t *testing.T) {
	tier.Need(t, tier.Normal)
	tests := testsOfTheModule(t)
	for rule := 1; rule <= 15; rule++ {
		for _, name := range rules[rule] {
			if !tests.functions[name] {
				t.Errorf("rule %d: there is no %s", rule, name)
			}
		}
		if len(rules[rule]) == 0 {
			t.Errorf("rule %d has no test", rule)
		}
		t.Logf("rule %d: %s", rule, strings.Join(rules[rule], ", "))
	}
}

// TestRequirements compares the table of requirements with the names of the tests: the requirements that the runtime
// guarantees are shown.
func TestRequirements(t *testing.T) {
	tier.Need(t, tier.Normal)
	tests := testsOfTheModule(t)
	ids, kept := map[string]bool{}, map[string]int{}
	for _, r := range conformance.Requirements() {
		if ids[r.ID] {
			t.Errorf("%s has two rows", r.ID)
		}
		ids[r.ID] = true
		kept[r.KeptBy]++
		names := tests.ids[strings.ReplaceAll(r.ID, "-", "")]
		for _, name := range shownElsewhere[r.ID] {
			if !tests.functions[name] {
				t.Errorf("%s: there is no %s", r.ID, name)
			}
			names = append(names, name)
		}
		switch shown := strings.Join(names, ", "); r.KeptBy {
		case "runtime", "author":
			if r.KeptBy == "runtime" && shown == "" {
				t.Errorf("%s: no test shows it", r.ID)
			}
			t.Logf("%s: %s: %s", r.ID, r.KeptBy, shown)
		case "":
		default:
			t.Errorf("%s is kept by %q", r.ID, r.KeptBy)
		}
	}
	for id := range shownElsewhere {
		if !ids[id] {
			t.Errorf("%s is not a requirement", id)
		}
	}
	t.Logf("%d requirements: %d kept by the runtime, %d by authors", len(ids), kept["runtime"], kept["author"])
	if kept["runtime"] == 0 || kept["author"] == 0 {
		t.Error("the table does not show which requirements the runtime and authors keep")
	}
}

// TestCitedRequirements looks for ids in the code, in the documents, and in the names of tests: each id is a
// requirement, and each requirement that the runtime or authors keep is cited.
func TestCitedRequirements(t *testing.T) {
	tier.Need(t, tier.Normal)
	cited := map[string]bool{} // all requirements
	for _, r := range conformance.Requirements() {
		cited[r.ID] = false
	}
	// REM, REG, TEL, MOA and PRX are the ids for the transports over the network, the registry, telemetry, MCP over
	// ACP, and proxies.
	other := map[string]bool{"UTF": true, "SHA": true, "REM": true, "REG": true, "TEL": true, "MOA": true, "PRX": true}
	id := regexp.MustCompile(`\b([A-Z]{2,3})-\d+\b`)
	// The judge has all requirements, in a table that its own test checks.
	judged := regexp.MustCompile(`^(conformance/|cmd/acp/|docs/reference/(real-agents|requirements)\.md$)`)
	walkFiles(t, func(path string) {
		ext := filepath.Ext(path)
		if judged.MatchString(filepath.ToSlash(path)) || !slices.Contains([]string{".go", ".md", ".mjs", ".txtar"}, ext) {
			return
		}
		for _, m := range id.FindAllStringSubmatch(readFile(t, path), -1) {
			if _, ok := cited[m[0]]; ok {
				cited[m[0]] = true
			} else if !other[m[1]] {
				t.Errorf("%s cites %s, which is not a requirement", path, m[0])
			}
		}
	})
	tests := testsOfTheModule(t)
	for _, r := range conformance.Requirements() {
		if r.KeptBy != "" && !cited[r.ID] && len(tests.ids[strings.ReplaceAll(r.ID, "-", "")]) == 0 && shownElsewhere[r.ID] == nil {
			t.Errorf("%s is not cited", r.ID)
		}
	}
}

// named holds the tests of the module.
type named struct {
	functions map[string]bool
	ids       map[string][]string // the tests and rows that name a requirement
}

// testsOfTheModule reads the names of all tests, and of the rows of their tables.
func testsOfTheModule(t *testing.T) named {
	t.Helper()
	tests := named{functions: map[string]bool{}, ids: map[string][]string{}}
	id := regexp.MustCompile(`[A-Z]{2,3}[0-9]+`)
	add := func(name string) {
		for _, one := range id.FindAllString(name, -1) {
			tests.ids[one] = append(tests.ids[one], name)
		}
	}
	like := regexp.MustCompile(`^"([A-Z]{2,3}[0-9]+_)+[A-Za-z0-9]+"$`)
	walkFiles(t, func(path string) {
		if filepath.Base(filepath.Dir(path)) == "requirements" && strings.HasSuffix(path, ".txtar") {
			add(strings.ReplaceAll(filepath.Base(path), "-", "")) // a transcript, see internal/test/actor
		}
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name, ok := strings.CutPrefix(n.Name.Name, "Test"); ok && n.Recv == nil {
					tests.functions["Test"+name] = true
					if strings.Contains(name, "_") {
						add(n.Name.Name)
					}
				}
			case *ast.BasicLit:
				if like.MatchString(n.Value) {
					add(strings.Trim(n.Value, `"`))
				}
			}
			return true
		})
	})
	return tests
}
