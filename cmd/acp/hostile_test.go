package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// spoof is text that a terminal, a CI server or a reader might take for something else.
const spoof = "\x1b]0;x\a\x1b[2J\u202e\u2028\n::add-mask::x\n##[error]x\n0 findings"

// hostileRecordings are files that no recorder writes.
func hostileRecordings() map[string]string {
	quoted := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	line := func(from, raw string) string { return fmt.Sprintf(`{"t":1,"from":%q,"raw":%s}`, from, quoted(raw)) }
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`
	recording := func(lines ...string) string {
		head := []string{`{"recording":1}`, line("client", initialize), line("agent", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`)}
		return strings.Join(append(head, lines...), "\n") + "\n"
	}
	repeat := func(n int, f func(i int) string) (all []string) {
		for i := range n {
			all = append(all, f(i))
		}
		return all
	}
	s := quoted(spoof)
	return map[string]string{
		"escapes": `{"recording":1,"tool":` + s + `,"command":[` + s + "]}\n" + recording(
			line("client", `{"jsonrpc":"2.0","id":`+s+`,"method":`+s+`,"params":{`+s+`:`+s+`}}`),
			line("agent", `{"jsonrpc":"2.0","id":`+s+`,"error":{"code":1,"message":`+s+`,"data":`+s+`}}`),
			line("agent", spoof), `{"t":2,"from":"agent","stderr":`+s+`}`, `{"from":`+s+`,"raw":"x"}`, `{"exit":{"code":null,"signal":`+s+`}}`),
		"a date that is none": `{"recording":1,"date":` + s + "}\n" + recording(),
		"numbers": recording(
			line("client", `{"jsonrpc":"2.0","id":1e1000000000,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`),
			line("agent", `{"jsonrpc":"2.0","id":1e1000000000,"result":{"sessionId":"s"}}`),
			line("agent", `{"jsonrpc":"2.0","id":2,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x","line":1e999999999,"limit":-1e-999999999}}`),
			line("client", `{"jsonrpc":"2.0","id":`+strings.Repeat("9", 100_000)+`,"method":"session/new","params":{}}`)),
		"times":    `{"t":1e300,"from":"client","raw":"{}"}` + "\n" + `{"t":-1e300,"from":"agent","raw":"{}"}` + "\n" + `{"t":1e1000,"from":"agent","raw":"{}"}` + "\n",
		"an exit":  recording(`{"exit":{"code":99999999999999999999,"signal":null}}`),
		"losses":   recording(`{"from":"agent","lost":-5}`, `{"from":"agent","lost":1e300}`, `{"lost":5}`),
		"a form":   `{"recording":99999999999999999999}` + "\n",
		"no bytes": recording(`{"from":"client","bytes":"!!!!"}`, `{"from":"agent","bytes":"`+base64.StdEncoding.EncodeToString([]byte("\x00\xff\x1b"))+`"}`),
		"depth": recording(line("client", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":`+strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)+`}`),
			strings.Repeat(`{"a":`, 200_000), line("agent", strings.Repeat("[", 200_000))),
		"members twice": recording(`{"from":"client","from":"agent","raw":"{}","raw":"[]"}`),
		"a batch":       recording(line("client", "["+strings.Join(repeat(20_000, func(int) string { return initialize }), ",")+"]")),
		"many headers":  strings.Repeat(recording(), 500),
		"many kinds": recording(repeat(3000, func(i int) string {
			return line("agent", fmt.Sprintf(`{"jsonrpc":"2.0","method":"m%d","params":{"x%d":1}}`, i, i))
		})...),
		"many sessions": recording(repeat(3000, func(i int) string {
			return line("agent", fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%d","update":{"sessionUpdate":"plan","entries":[]}}}`, i))
		})...),
		"a long method":   recording(line("client", `{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("m", 1<<20)+`"}`)),
		"no UTF-8":        "\xff\xfe\x00\n{\"from\":\"client\",\"raw\":\"\xff\"}\n",
		"an open array":   strings.Repeat("[", 500_000),
		"arrows":          strings.Repeat("->", 200_000) + initialize + "\n",
		"braces in a log": "sent " + strings.Repeat("{", 500_000) + "\n",
		"a log":           strings.Repeat("received {\"a\":1} ", 50_000) + "\n",
	}
}

// TestHostileRecordings reads files made to do harm. Whatever they contain, the commands exit with a documented status,
// stay within their memory, and print only text.
func TestHostileRecordings(t *testing.T) {
	all := hostileRecordings()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i%tier.Pick(8, 2, 1, 1) != 0 {
			continue
		}
		text := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "run.jsonl")
			must.Do(t, os.WriteFile(file, []byte(text), 0o600))
			for _, args := range [][]string{
				{"check", file}, {"check", "--format", "json", file}, {"show", file},
				{"replay", file, "--as", "agent", "--speed", "1e300"},
			} {
				attacked(t, args, nil)
			}
		})
	}
}

// TestHostilePrograms records programs made to do harm.
func TestHostilePrograms(t *testing.T) {
	tier.Need(t, tier.Normal)
	const flood = `head -c 20000000 /dev/zero`
	scripts := map[string]string{
		"a line without end":     flood,
		"an error without end":   flood + ` >&2`,
		"many lines":             `yes | head -n 200000`,
		"closes its files":       `exec >&- 2>&- <&-; sleep 1`,
		"leaves a child behind":  `sleep 3 &`,
		"a message without end":  `printf '{"jsonrpc":"2.0","method":"session/update","params":{"x":"'; ` + flood + ` | tr '\000' x`,
		"a message cut off":      `printf '{"jsonrpc":"2.0","id":0,"resu'; exit 3`,
		"ends itself":            `kill -KILL $$`,
		"answers before a query": `echo '{"jsonrpc":"2.0","id":0,"result":{}}'; cat >/dev/null`,
	}
	for i, name := range slices.Sorted(maps.Keys(scripts)) {
		if i%tier.Pick(4, 2, 1, 1) != 0 {
			continue
		}
		script := scripts[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "run.jsonl")
			cmd := exec.CommandContext(t.Context(), "acp", "record", "-o", file, "--", "sh", "-c", script)
			cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
			cmd.WaitDelay = time.Minute
			if err := cmd.Run(); cmd.ProcessState == nil {
				t.Fatal(err)
			}
			attacked(t, []string{"check", file}, nil)
		})
	}
}

var workflowCommand = regexp.MustCompile(`(?m)^\s*::|##\w*\[`)

// attacked runs a command on hostile input.
func attacked(t *testing.T, args []string, env []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "acp", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader("")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	timer := time.AfterFunc(4*time.Minute, func() { cmd.Process.Kill() })
	err := cmd.Run()
	timer.Stop()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.ExitCode(); !slices.Contains([]int{0, statusFindings, statusFailed}, status) {
		t.Errorf("%s: %v: %.2000s", args[0], cmd.ProcessState, out.Bytes())
	}
	if found := workflowCommand.Find(out.Bytes()); found != nil {
		t.Errorf("%s prints a command for a CI server: %q", args[0], found)
	}
	for _, r := range out.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s prints %U", args[0], r)
			break
		}
	}
}
