package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// untapped holds the reasons why tests connect an agent or a client without conformance.Tap. The keys are a folder, a
// file, or a function of a file.
var untapped = map[string]string{
	"acp/rpc/":         "the methods of its tests are not ACP's",
	"internal/engine/": "the methods of its tests are not ACP's",

	"acp/proxy/bench_test.go":                 "it measures time",
	"acp/acpv2/memory_test.go":                "it measures memory",
	"acp/agentkit/scale_test.go":              "it measures time and memory, and counts allocations",
	"acp/alloc_test.go":                       "it counts allocations",
	"acp/growth_test.go":                      "it measures time and memory",
	"acp/faults_test.go":                      "what is cut in the middle is not a message; the whole turn is recorded under the tap",
	"acp/faults_children_test.go":             "the same, with processes that break off",
	"acp/fuzz_conn_test.go":                   "it gives what our side sends to a validator of its own",
	"conformance/interop/remote_load_test.go": "it measures time and memory",
	"conformance/probe/":                      "the probe judges what it plays",

	"acp/acp_test.go TestAgentNeedsHandlers":               "nothing is sent",
	"acp/acp_test.go TestClientNeedsAllTerminalHandlers":   "nothing is sent",
	"acp/acp_test.go TestEXT3_ExtensionNames":              "nothing is sent",
	"acp/acp_test.go TestNilExtensions":                    "nothing is sent",
	"acp/diagnosis_test.go TestNoTransport":                "nothing is sent",
	"acp/checks_test.go TestReadNamesMayBeSent":            "what passes has names that the protocol does not have, which the tap reports",
	"acp/experimental_test.go TestExperimentalIsOff":       "nothing is sent",
	"acp/experimental_test.go TestExperimentalTogether":    "nothing is sent",
	"acp/acpv2/memory_test.go TestLongIDsAreNotRemembered": "states of sessions that nobody has opened",
	"acp/acpv2/initialize_test.go TestStartErrors":         "nothing is sent",
	"acp/acpv2/checks_test.go TestLoginsAreChecked":        "nothing is sent",
	"acp/experimental_test.go TestProxy":                   "the schema says nothing of messages between proxies as a client or an agent sees them",

	"acp/agentkit/settings_test.go start":                                   "the client's end is tapped",
	"acp/acpv2/translate/programs_test.go agent":                            "its callers tap",
	"acp/acpv2/translate/programs_test.go client":                           "its callers tap",
	"acp/reconnect/client_test.go TestMain":                                 "a process of its own; the client's end is tapped",
	"acp/launch/main_test.go agent":                                         "a process of its own, which is examined and not judged",
	"acp/reconnect/client_test.go transport":                                "the client's end is tapped",
	"acp/remote/server_websocket_test.go TestREM72_PermissionOfALostClient": "its client is lost in a turn",
	"cmd/acp/doctor_test.go TestDoctorAtURL":                                "the agent is examined and not judged",
	"cmd/acp/internal/talk/talk_test.go":                                    "the client judges the connection itself, and open fails a test for a finding",
	"cmd/acp/script_test.go beAgent":                                        "processes of their own, of which the clients tap or judge; some are only examined",
	"cmd/acp/tricks_test.go":                                                "processes of their own, which also do what agents must not do",
	"cmd/acp/internal/inspect/tricks_test.go TestTricks":                    "the agent does what agents must not do, and the inspection judges it",
	"cmd/acp/probe_client_test.go askingClient":                             "a process of its own, which the probe judges",
	"cmd/acp/probe_client_test.go badLogin":                                 "a process of its own, which the probe judges",
	"cmd/acp/internal/terminal/stage_test.go stage":                         "a process of its own, which also does what agents must not do",
	"cmd/acp/serve_test.go TestServeAndConnect":                             "who connects here is refused; heard taps the others",
	"cmd/acp/serve_test.go TestServeEnds":                                   "the server ends in a turn",

	"contrib/natsacp/bench_test.go":                        "it measures time and memory",
	"contrib/natsacp/chaos_test.go open":                   "its connections are cut anywhere, and it keeps accounts of its own",
	"contrib/otelacp/bench_test.go":                        "it measures time",
	"contrib/otelacp/meta_test.go TestTEL6_TEL7_Envelopes": "the schema says nothing of messages between proxies as a client or an agent sees them",
	"contrib/otelacp/process_test.go child":                "a process of its own; the client's end is tapped",
	"examples/kit-client/main_test.go mortal":              "a process of its own; the relay judges what it sends",
}

// TestTapped finds the test functions that start an agent or a client of the packages under acp, and requires that they
// tap the connection or are listed in the table above.
func TestTapped(t *testing.T) {
	tier.Need(t, tier.Normal)
	used := map[string]bool{}
	tapped, others := 0, 0
	walkTree(t, func(path string) {
		path = filepath.ToSlash(path)
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "example_test.go") || strings.HasPrefix(path, "bench/") {
			return // an example has no testing.TB, and bench is another module
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !calls(f, starts) {
				continue
			}
			if calls(f, isTap) {
				tapped++
				continue
			}
			others++
			name := path + " " + f.Name.Name
			reason := ""
			for prefix, why := range untapped {
				if strings.HasPrefix(name, prefix) {
					reason, used[prefix] = why, true
				}
			}
			if reason == "" {
				t.Errorf("%s connects without conformance.Tap", name)
			}
		}
	})
	for name := range untapped {
		if !used[name] {
			t.Errorf("the entry for %s is not needed", name)
		}
	}
	t.Logf("%d functions tap their connections, %d have a reason not to", tapped, others)
}

// calls reports whether a function calls a name in another package, or a name in its own package.
func calls(f *ast.FuncDecl, is func(pkg, name string) bool) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				found = found || is("", fun.Name)
			case *ast.SelectorExpr:
				if pkg, ok := fun.X.(*ast.Ident); ok {
					found = found || is(pkg.Name, fun.Sel.Name)
				}
			}
		}
		return !found
	})
	return found
}

// starts reports whether a function starts an agent, a client or a proxy.
func starts(pkg, name string) bool {
	switch pkg {
	case "", "acp", "unstable", "acpv2":
		switch name {
		case "StartAgent", "ServeAgent", "StartProxy", "ServeProxy", "ConnectProxy", "Connect":
			return true
		}
	}
	return false
}

// isTap reports whether a function is conformance.Tap, or a test function that is named after it.
func isTap(pkg, name string) bool {
	return pkg == "conformance" && name == "Tap" || pkg == "" && strings.HasPrefix(name, "tap")
}
