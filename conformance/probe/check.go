package probe

import (
	"context"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// T has the methods of *testing.T that a check uses. It exists so that programs that are not tests need not link
// package testing. Self is the type itself.
type T[Self any] interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Logf(format string, args ...any)
	Skip(args ...any)
	TempDir() string
	Context() context.Context
	Run(name string, f func(t Self)) bool
}

// CheckAgent plays all scenarios against an agent in this process, each as a subtest. A subtest fails if the agent
// breaks a MUST, or something that it advertises does not work; recommendations that it does not follow are logged. The
// function connect starts a new instance of the agent and returns the transport for a client to it, such as one end of
// an [rpc.Pipe]:
//
//	func TestProtocol(t *testing.T) {
//		probe.CheckAgent(t, func() rpc.Transport {
//			client, agent := rpc.Pipe()
//			go acp.ServeAgent(t.Context(), agent, handlers(), nil)
//			return client
//		})
//	}
func CheckAgent[Test T[Test]](t Test, connect func() rpc.Transport) {
	t.Helper()
	Check(t, InMemory(connect), nil)
}

// Check is like CheckAgent, for any launch and with options. Since programs in memory are fast, the defaults of the
// options are different: an answer may take 5 s, and a silence lasts 50 ms.
func Check[Test T[Test]](t Test, launch Launch, options *Options) *Report {
	t.Helper()
	return check(t, Agent, launch, options)
}

// check implements Check and CheckClientWith.
func check[Test T[Test]](t Test, run func(context.Context, Launch, *Options) (*Report, error), launch Launch,
	options *Options) *Report {
	t.Helper()
	o := Options{Answer: 5 * time.Second, Quiet: 50 * time.Millisecond, Jobs: 8}
	if options != nil {
		o = *options
	}
	if o.Scratch == "" {
		o.Scratch = t.TempDir()
	}
	r, err := run(context.WithoutCancel(t.Context()), launch, &o)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range r.Scenarios {
		t.Run(out.Name, func(t Test) {
			failed := false
			for _, row := range r.Rows {
				for _, f := range row.Failures {
					switch {
					case f.Scenario != out.Name:
					case f.breaks() && row.Known == "":
						failed = true
						t.Errorf("%s %s: %s\n\t%s", row.ID, row.Level, row.Text, f.describe())
					default:
						t.Logf("%s %s: %s\n\t%s", row.ID, row.Level, row.Text, f.describe())
					}
				}
			}
			if failed {
				t.Logf("what passed:\n%s\n%s", strings.Join(out.Transcript, "\n"), out.Stderr)
			} else if out.Skipped != "" {
				t.Skip(out.Skipped)
			}
		})
	}
	for _, row := range r.Rows {
		if row.Verdict == Fail && row.Known == "" && len(row.Failures) == 0 {
			t.Errorf("%s %s: %s", row.ID, row.Text, row.Reason)
		}
	}
	return r
}

// describe returns the failure, with its excerpt and its evidence on lines of their own.
func (f *Failure) describe() string {
	lines := []string{f.String()}
	if f.Excerpt != "" {
		lines = append(lines, f.Excerpt)
	}
	return strings.Join(append(lines, f.Evidence...), "\n\t\t")
}
