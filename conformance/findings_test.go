package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestConversations judges the conversations of the archives in testdata by the schema, those of judge.txtar, rules.txtar,
// excuses.txtar and replays.txtar also by the rules. Many show messages that cross in transit, which is not a reason for a
// finding.
func TestConversations(t *testing.T) {
	negotiated := conformance.Negotiated(conformance.V1(), conformance.V2())
	unstable := conformance.Negotiated(conformance.V1Unstable(), conformance.V2Unstable())
	judge := func() talker { return conformance.NewJudge(negotiated, nil) }
	for name, start := range map[string]func() talker{
		"findings":   func() talker { return validator{conformance.NewValidator(conformance.V1())} },
		"negotiated": func() talker { return validator{conformance.NewValidator(negotiated)} },
		"judge":      judge,
		"excuses":    judge,
		"replays":    judge,
		"rules":      func() talker { return conformance.NewJudge(unstable, nil) },
	} {
		t.Run(name, func(t *testing.T) { converse(t, "testdata/"+name+".txtar", start) })
	}
}

// talker is a Judge, or a validator that looks like one.
type talker interface {
	Message(conformance.Message) []conformance.Finding
	Closed(conformance.Side)
	End() []conformance.Finding
}

type validator struct{ *conformance.Validator }

func (v validator) Message(m conformance.Message) []conformance.Finding {
	return v.Validator.Message(m.Direction, m.Line)
}

func (validator) Closed(conformance.Side)    {}
func (validator) End() []conformance.Finding { return nil }

var update = flag.Bool("update", false, "write the findings into the archives of conversations")

// converse runs the conversations of an archive. Each file is one connection, and each message is followed by exactly
// the findings that it must cause. "== client" is the end of the connection, closed by that side. A file whose name
// ends with "…" is the beginning of the files after it, up to the next such file.
func converse(t *testing.T, path string, start func() talker) {
	t.Helper()
	archive := must.Get(txtar.ParseFile(path))(t)
	messages := 0
	var beginning string
	for i, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			var updated strings.Builder
			v := start()
			if strings.HasSuffix(file.Name, "…") {
				beginning = string(file.Data)
			} else {
				for line := range strings.Lines(beginning) {
					if mark, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); mark == "->" || mark == "<-" {
						v.Message(conformance.Message{Direction: directions[mark], Line: []byte(text)})
					}
				}
			}
			var got, want []string
			var last string
			check := func() {
				for _, finding := range got {
					updated.WriteString("! " + finding + "\n")
				}
				if !slices.Equal(got, want) && !*update {
					t.Errorf("%s\n got %s\nwant %s", last, list(got), list(want))
				}
				got, want = nil, nil
			}
			for line := range strings.Lines(string(file.Data)) {
				line = strings.TrimSuffix(line, "\n")
				mark, text, _ := strings.Cut(line, " ")
				switch mark {
				case "->", "<-":
					check()
					messages++
					last = line
					for _, f := range v.Message(conformance.Message{Direction: directions[mark], Line: []byte(text)}) {
						got = append(got, f.String())
					}
				case "==":
					check()
					last = line
					switch text {
					case "client":
						v.Closed(conformance.Client)
					case "agent":
						v.Closed(conformance.Agent)
					}
					for _, f := range v.End() {
						got = append(got, f.String())
					}
				case "!":
					want = append(want, text)
					continue
				case "", "#":
					check()
				default:
					t.Fatalf("neither a message nor a finding: %q", line)
				}
				updated.WriteString(line + "\n")
			}
			check()
			archive.Files[i].Data = []byte(updated.String())
		})
	}
	if *update {
		must.Do(t, os.WriteFile(path, txtar.Format(archive), 0o644))
	}
	t.Logf("%d messages", messages)
}

var directions = map[string]conformance.Direction{"->": conformance.ToAgent, "<-": conformance.ToClient}

func list(findings []string) string {
	if len(findings) == 0 {
		return "nothing"
	}
	return "\n\t" + strings.Join(findings, "\n\t")
}

// TestFindingFields looks at the fields that String leaves out.
func TestFindingFields(t *testing.T) {
	v := conformance.NewValidator(conformance.V1())
	v.Message(conformance.ToAgent, []byte(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`))
	got := v.Message(conformance.ToClient, []byte(`{"jsonrpc":"2.0","id":"p","result":{"stopReason":"tired"}}`+"\n"))
	want := []conformance.Finding{{
		Rule:       "INI-6",
		Level:      conformance.Must,
		Side:       conformance.Agent,
		Number:     2,
		Direction:  conformance.ToClient,
		Method:     "session/prompt",
		Kind:       conformance.Response,
		ID:         `"p"`,
		Pointer:    "/stopReason",
		Message:    `unknown value "tired"; known: end_turn, max_tokens, max_turn_requests, refusal, cancelled`,
		Definition: "StopReason",
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf(" got %+v\nwant %+v", got, want)
	}
	if got, want := conformance.ToClient.String(), "agent → client"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestManyFindings shows that a message full of mistakes causes a bounded number of findings.
func TestManyFindings(t *testing.T) {
	tier.Need(t, tier.Normal)
	for name, line := range map[string]string{
		"elements": `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[` + strings.Repeat("1,", 100_000) + `1]}}`,
		"members":  `{"jsonrpc":"2.0","id":1,"method":"logout","params":{"x` + strings.Repeat(`":1,"x`, 10_000) + `":1}}`,
		"unknown":  `{"jsonrpc":"2.0","id":1,"method":"logout","params":{` + numbered(10_000) + `}}`,
		"envelope": `{"jsonrpc":"2.0","id":1,"method":"logout",` + numbered(10_000) + `}`,
		"long":     `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 1<<20) + `","method":"` + strings.Repeat("m", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			findings := conformance.NewValidator(conformance.V1()).Message(conformance.ToAgent, []byte(line))
			if len(findings) == 0 || len(findings) > 50 {
				t.Fatalf("got %d findings", len(findings))
			}
			for _, f := range findings {
				if len(f.String()) > 4096 {
					t.Errorf("a finding of %d bytes", len(f.String()))
				}
			}
		})
	}
}

// numbered lists n members with different names.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"x` + strings.Repeat("y", i%100) + string(rune('a'+i%26)) + strings.Repeat("z", i/100) + `":1`)
	}
	return b.String()
}

// TestManyRequests shows that a validator remembers a bounded number of requests, and reports once that it forgets.
func TestManyRequests(t *testing.T) {
	tier.Need(t, tier.Normal)
	const most = 1 << 16
	v := conformance.NewValidator(conformance.V1())
	var warnings []string
	for i := range most + 2 {
		line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"_x"}`, i)
		for _, f := range v.Message(conformance.ToAgent, line) {
			warnings = append(warnings, f.String())
		}
	}
	want := []string{"advice: _x request 65536: more than 65536 unanswered requests: the answers to further ones are not validated (JSON-RPC)"}
	if !slices.Equal(warnings, want) {
		t.Errorf("got %s\nwant %s", list(warnings), list(want))
	}
	if f := v.Message(conformance.ToClient, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":0}`, most+1)); len(f) > 0 {
		t.Errorf("got %v for an answer to a request that was forgotten", f)
	}
}
