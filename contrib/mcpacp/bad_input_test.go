package mcpacp_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// What the user sees of servers that misbehave. A second server, "good", works in all cases.
func TestBadInput(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, test := range []struct {
		name   string
		mode   string // of the server "bad"
		opts   mcpacp.Options
		prompt []string
		after  string // the prompt is sent when the user sees this
		until  string // and then the user sees this
		want   []string
	}{
		{
			name: "missing", mode: "missing", after: "notice", prompt: []string{"tools"},
			want: []string{
				`notice: The MCP server "bad" did not start: fork/exec DIR/missing: no such file or directory`,
				`agent: tools: good__ask good__echo. `,
			},
		}, {
			name: "not executable", mode: "not executable", after: "notice", prompt: []string{"tools"},
			want: []string{
				`notice: The MCP server "bad" did not start: fork/exec DIR/text: permission denied`,
				`agent: tools: good__ask good__echo. `,
			},
		}, {
			name: "exits at once", mode: "exit", after: "notice", prompt: []string{"tools"},
			want: []string{
				"notice: The MCP server \"bad\" did not start: subprocess ended: exit status 3: no configuration file",
				`agent: tools: good__ask good__echo. `,
			},
		}, {
			name: "prints a banner", mode: "banner", prompt: []string{"tools", "bad__ask"},
			want: []string{
				`agent: tools: bad__ask bad__echo good__ask good__echo. `, `other: bad: ask, completed: "fine"`, `agent: result: fine. `,
			},
		}, {
			name: "prints without end", mode: "noise", opts: mcpacp.Options{StartTime: 3 * time.Second},
			prompt: []string{"tools", "good__ask"}, until: "notice",
			want: []string{
				`agent: tools: good__ask good__echo. `, `other: good: ask, completed: "fine"`, `agent: result: fine. `,
				`notice: The MCP server "bad" did not start: it does not answer`,
			},
		}, {
			name: "never answers", mode: "never", opts: mcpacp.Options{StartTime: 3 * time.Second}, after: "notice", prompt: []string{"tools"},
			want: []string{
				`notice: The MCP server "bad" did not start: it does not answer`, `agent: tools: good__ask good__echo. `,
			},
		}, {
			name: "never answers a call", mode: "silent", opts: mcpacp.Options{CallTime: 2 * time.Second},
			prompt: []string{"bad__ask", "bad__echo {}"},
			want: []string{
				`other: bad: ask, failed: "1/2 half" "the MCP server \"bad\": it does not answer; the tool may have run"`,
				`agent: failed: the MCP server "bad": it does not answer; the tool may have run. `,
				`other: bad: echo, completed: "{} after 1 cancellations"`, `agent: result: {} after 1 cancellations. `,
			},
		}, {
			name: "answers late", mode: "late", opts: mcpacp.Options{CallTime: 2 * time.Second},
			prompt: []string{"bad__ask", "bad__echo {}"},
			want: []string{
				`other: bad: ask, failed: "1/2 half" "the MCP server \"bad\": it does not answer; the tool may have run"`,
				`agent: failed: the MCP server "bad": it does not answer; the tool may have run. `,
				`other: bad: echo, completed: "{} after 1 cancellations"`, `agent: result: {} after 1 cancellations. `,
			},
		}, {
			name: "answers twice", mode: "twice", prompt: []string{"bad__ask", "bad__echo {}"},
			want: []string{
				`other: bad: ask, completed: "first"`, `agent: result: first. `,
				`other: bad: echo, completed: "{} after 0 cancellations"`, `agent: result: {} after 0 cancellations. `,
			},
		}, {
			name: "answers with invalid JSON", mode: "json", prompt: []string{"bad__ask"}, until: "notice",
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": calling \"tools/call\": it sent an invalid message: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":4,oops\"; the tool may have run"`,
				`agent: failed: the MCP server "bad": calling "tools/call": it sent an invalid message: "{\"jsonrpc\":\"2.0\",\"id\":4,oops"; the tool may have run. `,
				`notice: The MCP server "bad" has ended: it sent an invalid message: "{\"jsonrpc\":\"2.0\",\"id\":4,oops"`,
			},
		}, {
			name: "answers without a version", mode: "version", prompt: []string{"bad__ask", "bad__echo {}"},
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": calling \"tools/call\": its answer has no member \"jsonrpc\"; the tool may have run"`,
				`agent: failed: the MCP server "bad": calling "tools/call": its answer has no member "jsonrpc"; the tool may have run. `,
				`other: bad: echo, completed: "{} after 0 cancellations"`, `agent: result: {} after 0 cancellations. `,
			},
		}, {
			name: "sends batches", mode: "batch", prompt: []string{"bad__ask"},
			want: []string{`other: bad: ask, completed: "fine"`, `agent: result: fine. `},
		}, {
			name: "answers with another type", mode: "answer", prompt: []string{"bad__ask", "bad__echo {}"},
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": ANY"`, `agent: failed: the MCP server "bad": ANY. `,
				`other: bad: echo, completed: "{} after 0 cancellations"`, `agent: result: {} after 0 cancellations. `,
			},
		}, {
			name: "answers with 64 MiB", mode: "huge", prompt: []string{"bad__ask", "good__ask"}, until: "notice",
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": calling \"tools/call\": ANY 8388608 bytes; the tool may have run"`,
				`agent: failed: the MCP server "bad": calling "tools/call": ANY 8388608 bytes; the tool may have run. `,
				`other: good: ask, completed: "fine"`, `agent: result: fine. `,
				`notice: The MCP server "bad" has ended: ANY 8388608 bytes`,
			},
		}, {
			name: "floods a call with progress", mode: "flood", prompt: []string{"bad__ask"},
			want: []string{`other: bad: ask, completed: "after the flood"`, `agent: result: after the flood. `},
		}, {
			name: "tools that are not valid", mode: "schema", after: "notice", prompt: []string{"tools"},
			want: []string{
				"notice: Some tools of the MCP server \"bad\" are missing: " +
					"the tool \"number\" is left out: the schema of its input is not that of an object\n" +
					"the tool \"text\" is left out: the schema of its input is not that of an object\n" +
					"the tool \"wrong\" is left out: the schema of its input is not valid: ANY\n" +
					"the tool \"\" is left out: it has no name\n" +
					"the tool \"echo\" is left out: it is listed twice",
				`agent: tools: bad__ask bad__echo good__ask good__echo. `,
			},
		}, {
			name: "no capabilities", mode: "bare", prompt: []string{"tools"}, want: []string{`agent: tools: good__ask good__echo. `},
		}, {
			name: "pages in a circle", mode: "circle", after: "notice", prompt: []string{"tools"},
			want: []string{
				`notice: Some tools of the MCP server "bad" are missing: the rest of its list was left out: its pages go in a circle`,
				`agent: tools: bad__page bad__pagex good__ask good__echo. `,
			},
		}, {
			name: "too many tools", mode: "plain", opts: mcpacp.Options{MaxTools: 1}, after: `notice: Some tools of the MCP server "bad"`,
			prompt: []string{"tools"}, until: `notice: Some tools of the MCP server "good"`,
			want: []string{
				`agent: tools: bad__ask good__ask. `,
				`notice: Some tools of the MCP server "bad" are missing: the rest of its list was left out: it has more than 1 items`,
				`notice: Some tools of the MCP server "good" are missing: the rest of its list was left out: it has more than 1 items`,
			},
		}, {
			name: "renames a tool during a turn", mode: "rename", prompt: []string{"tools", "bad__ask", "bad__echo", "tools"},
			want: []string{
				`agent: tools: bad__ask bad__echo good__ask good__echo. `, `other: bad: ask, completed: "renamed"`, `agent: result: renamed. `,
				`other: bad__echo, failed: "there is no tool \"bad__echo\""`,
				`agent: failed: there is no tool "bad__echo". tools: bad__ask bad__sing good__ask good__echo. `,
			},
		}, {
			name: "dies during a call", mode: "die", prompt: []string{"bad__ask", "good__ask"}, until: "notice",
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": calling \"tools/call\": subprocess ended: exit status 1: out of memory; the tool may have run"`,
				`agent: failed: the MCP server "bad": calling "tools/call": subprocess ended: exit status 1: out of memory; the tool may have run. `,
				`other: good: ask, completed: "fine"`, `agent: result: fine. `,
				`notice: The MCP server "bad" has ended: subprocess ended: exit status 1: out of memory`,
			},
		}, {
			name: "stops reading", mode: "deaf", prompt: []string{"bad__ask", "good__ask"}, until: "notice",
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": ANY"`, `agent: failed: the MCP server "bad": ANY. `,
				`other: good: ask, completed: "fine"`, `agent: result: fine. `,
				`notice: The MCP server "bad" has ended: write ANY: broken pipe`,
			},
		}, {
			name: "pings and reads nothing", mode: "pings", prompt: []string{"bad__ask", "good__ask"}, until: "notice",
			want: []string{
				`other: bad: ask, failed: "the MCP server \"bad\": ANY"`, `agent: failed: the MCP server "bad": ANY. `,
				`other: good: ask, completed: "fine"`, `agent: result: fine. `,
				`notice: The MCP server "bad" has ended: it does not read its input`,
			},
		}, {
			name: "input that is no object", mode: "plain", prompt: []string{"bad__ask [1]", "bad__ask {"},
			want: []string{
				`other: bad: ask, failed: "the input is not a JSON object: [1]"`, `agent: failed: the input is not a JSON object: [1]. `,
				`other: bad: ask, failed: "the input is not a JSON object: {"`, `agent: failed: the input is not a JSON object: {. `,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bad := server(t, "bad", test.mode)
			switch test.mode {
			case "missing":
				bad = stdio("bad", filepath.Join(dir, "missing"), nil)
			case "not executable":
				if err := os.WriteFile(filepath.Join(dir, "text"), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				bad = stdio("bad", filepath.Join(dir, "text"), nil)
			}
			h := open(t, &test.opts, bad, server(t, "good", "plain"))
			if test.after != "" {
				h.await(t, test.after)
			}
			if got := h.prompt(t, test.prompt...); got != acp.StopReasonEndTurn {
				t.Errorf("the turn ended with %s", got)
			}
			if test.until != "" {
				h.await(t, test.until)
			}
			seen := h.seen()
			for i := range seen {
				seen[i] = strings.ReplaceAll(seen[i], dir, "DIR")
			}
			if test.until != "" { // a notice may also come earlier
				slices.SortStableFunc(seen, func(a, b string) int { return notice(a) - notice(b) })
			}
			if diff := cmp.Diff(test.want, seen, cmp.Comparer(like)); diff != "" {
				t.Errorf("the user saw (-want +got):\n%s", diff)
			}
		})
	}
}

func notice(line string) int {
	if !strings.HasPrefix(line, "notice") {
		return 0
	}
	return 1 + strings.Count(line, `"good"`)
}

// like compares two lines, where ANY in one stands for any text.
func like(a, b string) bool {
	if strings.Contains(b, "ANY") {
		a, b = b, a
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(a), "ANY", ".*")
	return regexp.MustCompile("(?s)^" + pattern + "$").MatchString(b)
}
