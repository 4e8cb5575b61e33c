package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// with is a call of a tool with these arguments, in pairs.
func with(tool string, args ...any) *modelstub.Answer {
	object := map[string]any{}
	for i := 0; i+1 < len(args); i += 2 {
		object[args[i].(string)] = args[i+1]
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return use(tool, string(text))
}

func edit(path, before, after string) *modelstub.Answer {
	return with("edit", "path", path, "old_string", before, "new_string", after)
}

// tasks are small repositories, each with a test that fails, and what a model would do about it. A model that knows the way stands
// in for one that has to find it: the tools are real.
var tasks = []struct {
	name, prompt string
	files        map[string]string
	answers      []*modelstub.Answer
}{
	{"fix a failing test", "The test fails. Fix the code.", map[string]string{
		"sum.go":      "package p\n\nfunc Sum(a, b int) int { return a - b }\n",
		"sum_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif got := Sum(2, 3); got != 5 {\n\t\tt.Error(got)\n\t}\n}\n",
	}, []*modelstub.Answer{with("run", "command", "go test ./..."), with("read", "path", "sum.go"), edit("sum.go", "a - b", "a + b"), with("run", "command", "go test ./...")}},
	{"rename across files", "Rename Colour to Shade.", map[string]string{
		"a.go":      "package p\n\ntype Colour int\n\nfunc New() Colour { return 1 }\n",
		"sub/b.go":  "package sub\n\nimport \"example.com/p\"\n\nfunc Twice(c p.Colour) p.Colour { return 2 * c }\n",
		"a_test.go": "package p_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/p\"\n\t\"example.com/p/sub\"\n)\n\nfunc TestShade(t *testing.T) {\n\tvar s p.Shade = sub.Twice(p.New())\n\tif s != 2 {\n\t\tt.Error(s)\n\t}\n}\n",
	}, []*modelstub.Answer{
		with("search", "pattern", "Colour"),
		with("edit", "path", "a.go", "old_string", "Colour", "new_string", "Shade", "replace_all", true),
		with("edit", "path", "sub/b.go", "old_string", "Colour", "new_string", "Shade", "replace_all", true),
	}},
	{"add a flag", "Add a flag -name.", map[string]string{
		"main.go":      "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc greet([]string) string { return \"Hello world\" }\n\nfunc main() { fmt.Println(greet(os.Args[1:])) }\n",
		"main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestName(t *testing.T) {\n\tif got := greet([]string{\"-name\", \"Ada\"}); got != \"Hello Ada\" {\n\t\tt.Error(got)\n\t}\n}\n",
	}, []*modelstub.Answer{
		with("list"), with("read", "path", "main.go"),
		edit("main.go", "\t\"fmt\"\n", "\t\"flag\"\n\t\"fmt\"\n"),
		edit("main.go", "func greet([]string) string { return \"Hello world\" }",
			"func greet(args []string) string {\n\tflags := flag.NewFlagSet(\"greet\", flag.ExitOnError)\n\tname := flags.String(\"name\", \"world\", \"whom to greet\")\n\t_ = flags.Parse(args)\n\treturn \"Hello \" + *name\n}"),
	}},
	{"write a missing function", "Write Reverse.", map[string]string{
		"r_test.go": "package p\n\nimport \"testing\"\n\nfunc TestReverse(t *testing.T) {\n\tif got := Reverse(\"añb\"); got != \"bña\" {\n\t\tt.Error(got)\n\t}\n}\n",
	}, []*modelstub.Answer{with("read", "path", "r_test.go"), with("write", "path", "r.go", "content",
		"package p\n\nimport \"slices\"\n\nfunc Reverse(s string) string {\n\trunes := []rune(s)\n\tslices.Reverse(runes)\n\treturn string(runes)\n}\n")}},
	{"fix a missing import", "It does not compile.", map[string]string{
		"p.go":      "package p\n\nfunc Up(s string) string { return strings.ToUpper(s) }\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestUp(t *testing.T) {\n\tif Up(\"a\") != \"A\" {\n\t\tt.Fail()\n\t}\n}\n",
	}, []*modelstub.Answer{with("run", "command", "go build ./..."), edit("p.go", "package p\n", "package p\n\nimport \"strings\"\n")}},
	{"move a function to a package", "Move Half to package half.", map[string]string{
		"p.go":              "package p\n\nfunc Half(n int) int { return n / 2 }\n\nfunc Quarter(n int) int { return Half(Half(n)) }\n",
		"half/half_test.go": "package half_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/p\"\n\t\"example.com/p/half\"\n)\n\nfunc TestHalf(t *testing.T) {\n\tif half.Half(4) != 2 || p.Quarter(8) != 2 {\n\t\tt.Fail()\n\t}\n}\n",
	}, []*modelstub.Answer{
		with("write", "path", "half/half.go", "content", "package half\n\nfunc Half(n int) int { return n / 2 }\n"),
		edit("p.go", "package p\n\nfunc Half(n int) int { return n / 2 }\n", "package p\n\nimport \"example.com/p/half\"\n"),
		edit("p.go", "Half(Half(n))", "half.Half(half.Half(n))"),
	}},
	{"return an error", "Port panics on bad input. Return an error.", map[string]string{
		"p.go":      "package p\n\nimport \"strconv\"\n\nfunc Port(s string) (int, error) {\n\tn, err := strconv.Atoi(s)\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\treturn n, nil\n}\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestPort(t *testing.T) {\n\tif _, err := Port(\"x\"); err == nil {\n\t\tt.Fail()\n\t}\n}\n",
	}, []*modelstub.Answer{with("search", "pattern", `panic\(`), edit("p.go", "panic(err)", "return 0, err")}},
	{"fix a nil map", "Count panics.", map[string]string{
		"p.go":      "package p\n\nimport \"strings\"\n\nfunc Count(s string) map[string]int {\n\tvar n map[string]int\n\tfor _, word := range strings.Fields(s) {\n\t\tn[word]++\n\t}\n\treturn n\n}\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestCount(t *testing.T) {\n\tif Count(\"a b a\")[\"a\"] != 2 {\n\t\tt.Fail()\n\t}\n}\n",
	}, []*modelstub.Answer{with("read", "path", "p.go", "line", 5, "limit", 3), edit("p.go", "var n map[string]int", "n := map[string]int{}")}},
	{"fix an off-by-one error", "Last is wrong.", map[string]string{
		"p.go":      "package p\n\nfunc Last(list []int) int { return list[len(list)] }\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestLast(t *testing.T) {\n\tif Last([]int{1, 2}) != 2 {\n\t\tt.Fail()\n\t}\n}\n",
	}, []*modelstub.Answer{
		with("plan", "steps", []map[string]string{{"step": "Fix Last", "status": "in_progress"}}), edit("p.go", "list[len(list)]", "list[len(list)-1]"),
		with("plan", "steps", []map[string]string{{"step": "Fix Last", "status": "completed"}}),
	}},
	{"implement an interface", "Point should be a Stringer.", map[string]string{
		"p.go":      "package p\n\ntype Point struct{ X, Y int }\n",
		"p_test.go": "package p\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc TestString(t *testing.T) {\n\tvar s fmt.Stringer = Point{1, 2}\n\tif s.String() != \"(1, 2)\" {\n\t\tt.Error(s)\n\t}\n}\n",
	}, []*modelstub.Answer{with("write", "path", "string.go", "content",
		"package p\n\nimport \"fmt\"\n\nfunc (p Point) String() string { return fmt.Sprintf(\"(%d, %d)\", p.X, p.Y) }\n"), with("run", "command", "gofmt -l . && go vet ./...")}},
}

func TestTasks(t *testing.T) {
	tier.Need(t, tier.Normal)
	for i, task := range tasks[:tier.Pick(0, 2, len(tasks), len(tasks))] {
		t.Run(task.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, setup{api: apis[i%2], bare: i%4 > 1, script: steps(task.answers...)})
			write(t, h.dir, "go.mod", "module example.com/p\n\ngo 1.26.0\n")
			for name, text := range task.files {
				write(t, h.dir, name, text)
			}
			test := func() error {
				cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
				cmd.Dir, cmd.Env = h.dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off")
				out, err := cmd.CombinedOutput()
				if err != nil {
					err = fmt.Errorf("%w\n%s", err, out)
				}
				return err
			}
			if test() == nil {
				t.Fatal("the test passes before the task is done")
			}
			s := h.session(t)
			if err := s.SetMode(t.Context(), policy.ModeAll); err != nil {
				t.Fatal(err)
			}
			told := h.prompt(t, s, task.prompt)
			if err := test(); err != nil {
				t.Errorf("afterwards: %v. The client was told %s", err, told)
			}
		})
	}
}

var update = flag.Bool("update", false, "replace the recordings in testdata by those of this run")

// A script uses the agent with acp exec, which records the conversations. The judge finds nothing in the recordings, nor in those of
// testdata.
func TestExec(t *testing.T) {
	tier.Need(t, tier.Full)
	program := buildtest.Program(t, "../../cmd/acp")
	model := httptest.NewServer(modelstub.New(&modelstub.Options{Strict: true}))
	defer model.Close()
	s := setup{api: "openai", state: t.TempDir(), dir: t.TempDir()}
	agent := s.command(t, model.URL)
	write(t, s.dir, "notes.txt", "the notes")
	acp := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = s.dir, append(agent.Env, "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		recording := filepath.Join(s.state, name)
		out := acp(slices.Concat([]string{"exec", "--record", recording}, args, []string{"--"}, agent.Args)...)
		stored := filepath.Join("testdata", name)
		if *update {
			text := strings.NewReplacer(s.dir, "/home/ada/project", agent.Args[0], "coder", s.state, "/home/ada/.coder").Replace(read(t, s.state, name))
			write(t, "testdata", name, text)
		}
		for _, recording := range []string{recording, stored} {
			name, err := filepath.Abs(recording)
			if err != nil {
				t.Fatal(err)
			}
			acp("check", "--level", "advice", name)
		}
		return out
	}
	if out := run("read.jsonl", "read the file notes.txt"); !strings.Contains(out, "The file says: the notes") {
		t.Errorf("acp exec printed %s", out)
	}
	run("edit.jsonl", "--allow", `edit the file notes.txt and append the line "the end"`)
	if text := read(t, s.dir, "notes.txt"); text != "the notes\nthe end" {
		t.Errorf("the file has %q", text)
	}
}

// A recording of whole conversations has no findings.
func TestRecorded(t *testing.T) {
	tier.Need(t, tier.Full)
	program := buildtest.Program(t, "../../cmd/acp")
	each(t, func(t *testing.T, s setup) {
		file := filepath.Join(t.TempDir(), "x.jsonl")
		s.within = []string{program, "record", "-o", file, "--"}
		s.script = func(r modelstub.Request) *modelstub.Answer {
			if r.Prompt == "Do it" {
				return steps(everyTool...)(r)
			}
			return say("OK")
		}
		h := start(t, s)
		write(t, h.dir, "main.txt", "one\ntwo\nthree\n")
		session := h.session(t)
		for _, answer := range []acp.PermissionOptionID{"once", "always", "no"} {
			write(t, h.dir, "main.txt", "one\ntwo\nthree\n")
			h.answers(answer)
			h.prompt(t, session, "Do it")
		}
		turn := session.Stream(t.Context(), acp.TextBlock("Do it"))
		for u := range turn.Updates() {
			if _, call := u.Variant.(*acp.SessionUpdateToolCall); call {
				turn.Cancel()
			}
		}
		if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
			t.Errorf("cancelled: %+v, %v", res, err)
		}
		for _, prompt := range []string{"/model fake-model", "/compact", "/review", "And now?"} {
			h.prompt(t, session, prompt)
		}
		if err := session.SetMode(t.Context(), policy.ModeReadOnly); err != nil {
			t.Error(err)
		}
		loaded, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: session.ID(), Cwd: h.dir})
		if err != nil {
			t.Fatal(err)
		}
		h.prompt(t, loaded, "Do it")
		for range h.Sessions(t.Context(), h.dir) {
		}
		if err := loaded.Delete(t.Context()); err != nil {
			t.Error(err)
		}
		h.stop(t)
		out, err := exec.CommandContext(t.Context(), program, "check", "--level", "advice", file).CombinedOutput()
		if err != nil {
			t.Errorf("acp check: %v\n%s", err, out)
		}
	})
}
