package acp_test

// This file owns which test shows which requirement of the protocol, and which rule of package rpc: by
// name, so that a requirement without a test, and a test that is gone, fail here.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gentest"
)

// Tests, or rows of one, have the ids of the requirements that they show in their names: SES27_SES30_…
// These are shown by tests that are named otherwise.
var shownElsewhere = map[string][]string{
	"OVW-2":  {"TestPathsAndLinesAreChecked"},
	"TRN-6":  {"TestClientKeeps", "TestTypeScriptAgent"}, // under conformance.Tap, which judges each line
	"LST-13": {"TestRoundTrip", "TestOpt"},               // absent, null and a value are three things
	"TOL-3":  {"TestRoundTrip", "TestOpt"},
	"FS-4":   {"TestPathsAndLinesAreChecked"},
	"TRM-3":  {"TestPathsAndLinesAreChecked"},
	"ERR-4":  {"TestHostileParams", "TestPathsAndLinesAreChecked"},
}

// leftToAuthors are requirements that a runtime could enforce and this one does not, or not whole.
var leftToAuthors = map[string]string{
	"LST-6":  "whether the paths of listed sessions are absolute is the agent's author's; they are not checked",
	"TOL-7":  "the same for the paths of diffs and locations",
	"SCH-10": "how an elicitation is shown is the client's author's; unknown property types are kept as such",
	"CFG-3":  "boolean options are not filtered: SupportsBooleanConfig tells the author (CFG3_INI18_PlainClient)",
	"ELI-34": "an elicitation of no scope is refused, one of both scopes is read as the session's: the schema allows both",
	"EXT-3":  "names of extensions are not checked for their underscore",
}

// The tests of the rules that package rpc states, by number.
var rules = map[int][]string{
	1:  {"TestNothingIsLeftBehind", "TestCloseWhileAHandlerDoesNotEnd"},
	2:  {"TestScheduleProperties", "TestOrderAndBarrier", "TestCallsInsideNotificationHandlers"},
	3:  {"TestNotificationsOfManySessions", "TestOverflowFailsTheCall", "TestQueueOfEmptyNotifications"},
	4:  {"TestCancelBehindPrompt", "TestCancelOfIdleSession"},
	5:  {"TestServedTurnCancelled", "TestAfterResponse", "TestKeepTurn"},
	6:  {"TestTurnCancelled", "TestTurnGivenUpAfterGrace", "TestPermissionWhileCancelled", "TestTurnUntil"},
	7:  {"TestCallCancelled", "TestCancelRequest"},
	8:  {"TestCallsAreGated", "TestAgentsCallsAreGated", "TestRequestsBeforeInitialize"},
	9:  {"TestBadInput", "TestHostileLines", "TestHostileParams", "TestInvalidParamsLeakNothing"},
	10: {"TestTooLong", "TestAllocationIsLinear", "TestErrorsRepeatLittle"},
	11: {"TestIDsAreEchoed", "TestIDsThatAreNoText"},
	12: {"TestCutAtEveryByte", "TestEndOfInput", "TestFaultyProcesses"},
	13: {"TestFaultyProcesses", "TestCloseOutlastsTheProcess"},
	14: {"TestErrorsThatReachThePeer"},
	15: {"TestCall", "TestPanicInMarshaling"},
}

func TestRules(t *testing.T) {
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

// The requirements that a runtime can enforce, those marked R, as protocol/requirements.md lists them.
func TestRequirements(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(gentest.Shared(t, "protocol"), "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOfTheModule(t)
	row := regexp.MustCompile(`(?m)^\| ([A-Z]{2,3}-\d+) \|[^|]*\|[^|]*\| [SWM,]*R[SWM,]* \|`)
	found := row.FindAllSubmatch(data, -1)
	seen, shown := map[string]bool{}, 0
	for _, m := range found {
		id := string(m[1])
		seen[id] = true
		names := tests.ids[strings.ReplaceAll(id, "-", "")]
		for _, name := range shownElsewhere[id] {
			if !tests.functions[name] {
				t.Errorf("%s: there is no %s", id, name)
			}
			names = append(names, name)
		}
		reason, left := leftToAuthors[id]
		switch {
		case left:
			t.Logf("%s: left out: %s", id, reason)
		case len(names) > 0:
			shown++
			t.Logf("%s: %s", id, strings.Join(names, ", "))
		default:
			t.Errorf("%s: no test shows it", id)
		}
	}
	for _, id := range slices.Concat(slices.Collect(maps.Keys(shownElsewhere)), slices.Collect(maps.Keys(leftToAuthors))) {
		if !seen[id] {
			t.Errorf("%s is no requirement", id)
		}
	}
	t.Logf("%d requirements: %d shown, %d left to authors", len(found), shown, len(leftToAuthors))
	if len(found) == 0 {
		t.Error("no requirement was read")
	}
}

// named are the tests of the module.
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
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
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
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
