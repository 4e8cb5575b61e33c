package conformance_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/conformance"
)

const chunk = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_abc123def456","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"0123456789012345678901234567890123456789012345678901234567890123"}}}}`

// FuzzMessage shows that no pair of lines makes a validator panic or return endless findings.
func FuzzMessage(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/findings.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		before := ""
		for line := range strings.Lines(string(file.Data)) {
			if mark, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); mark == "->" || mark == "<-" {
				f.Add(before, text, mark == "->")
				before = text
			}
		}
	}
	f.Add("", `{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"usage_update","used":-0.0e-99999999999,"size":0.00000000000000000000000000000000001}}}`, false)
	schema := conformance.V1()
	f.Fuzz(func(t *testing.T, first, second string, toAgent bool) {
		there, back := conformance.ToAgent, conformance.ToClient
		if !toAgent {
			there, back = back, there
		}
		v := conformance.NewValidator(schema)
		for _, findings := range [][]conformance.Finding{
			v.Message(there, []byte(first)),
			v.Message(back, []byte(second)),
			v.Message(there, []byte(second)),
		} {
			if len(findings) > 60 {
				t.Fatalf("%d findings", len(findings))
			}
			for _, finding := range findings {
				s := finding.String()
				if len(s) > 4096 || !utf8.ValidString(s) || strings.Contains(s, "\n") {
					t.Fatalf("not one short line: %q", s)
				}
			}
		}
	})
}
