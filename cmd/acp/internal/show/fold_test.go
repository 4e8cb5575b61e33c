package show

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
)

func TestFold(t *testing.T) {
	long := strings.Repeat("ä", maxString+1)
	for value, want := range map[string]string{
		``:                         ``,
		`null`:                     `null`,
		`1e400`:                    `1e400`,
		`12345678901234567890123`:  `12345678901234567890123`,
		`"a\u001bb"`:               `"a\x1bb"`,
		`"` + long + `"`:           `"` + long[2:] + `"… (61)`,
		`{"a":1,"b":[true,{}]}`:    `{a: 1, b: [true, {}]}`,
		`{"secret":1,"b":2}`:       `{b: 2}`,
		`{"b":2,"secret":1}`:       `{b: 2}`,
		`[1,2,3,4,5]`:              `[1, 2, 3, …2]`,
		`[[[[1]]]]`:                `[[[[…1]]]]`,
		`[[[[]]]]`:                 `[[[[]]]]`,
		`{"a":{"b":{"c":{"d":1}}}`: `{"a":{"b":{"c":{"d":1}}}`, // not JSON
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`: `{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, …1}`,
	} {
		if got := Fold([]byte(value), "secret"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", value, got, want)
		}
	}
	if got := Fold([]byte("[" + strings.Repeat("1,", maxFolded) + "1]")); len(got) > 2*maxString {
		t.Errorf("%d bytes", len(got))
	}
}

// The percentiles of delays are right, even with more delays than are kept, and nothing grows without bound.
func TestStats(t *testing.T) {
	s := NewStats()
	m := Message{Direction: conformance.ToClient, Kind: conformance.Response, Method: "session/prompt", Delayed: true, Session: "s"}
	for _, ms := range rand.Perm(2 * maxDelays) {
		m.Delay = time.Duration(ms) * time.Millisecond
		s.Add(&m)
	}
	for i := range 2 * maxKeys {
		s.Add(&Message{Direction: conformance.ToClient, Kind: conformance.Notification, Method: fmt.Sprint("m", i), Session: fmt.Sprint("s", i)})
	}
	doc := s.Document()
	if len(doc.Methods) != maxKeys || len(doc.Sessions) != maxKeys || doc.Uncounted == 0 || doc.Messages != 2*maxDelays+2*maxKeys {
		t.Errorf("%d methods, %d sessions, %d uncounted, %d messages", len(doc.Methods), len(doc.Sessions), doc.Uncounted, doc.Messages)
	}
	long := Message{Direction: conformance.ToClient, Kind: conformance.Notification, Method: strings.Repeat("m", 10_000), Session: strings.Repeat("s", 10_000)}
	short := NewStats()
	short.Add(&long)
	short.Add(&long)
	if doc := short.Document(); len(doc.Methods) != 1 || doc.Methods[0].Count != 2 || len(doc.Sessions) != 1 || doc.Sessions[0].Messages != 2 {
		t.Errorf("long names: %d methods, %d sessions", len(doc.Methods), len(doc.Sessions))
	}
	if len(s.methods[methodKey{sender: conformance.Client, method: "session/prompt"}].delays) != maxDelays {
		t.Error("the delays are not bounded")
	}
	for _, method := range doc.Methods {
		if method.Delay == nil {
			continue
		}
		for name, at := range map[string][2]float64{
			"p50": {method.Delay.P50, 0.5}, "p95": {method.Delay.P95, 0.95}, "p99": {method.Delay.P99, 0.99}, "max": {method.Delay.Max, 1},
		} {
			if want := at[1] * 2 * maxDelays; at[0] < 0.98*want || at[0] > 1.02*want {
				t.Errorf("%s: %.0f ms, want about %.0f", name, at[0], want)
			}
		}
	}
}
