//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	messages = flag.Int("messages", 0, "how many recorded messages TestManyMessages judges; 0: what the tier says")
	keep     = flag.String("keep", "", "the file to which TestManyMessages writes its recording")
)

// TestManyMessages judges a long recording: whole turns of a recording of ours, repeated with fresh ids on one
// connection. It logs time and memory, and fails if the memory grows with the number of messages.
func TestManyMessages(t *testing.T) {
	name := *keep
	if name == "" {
		name = filepath.Join(t.TempDir(), "many.jsonl")
	}
	total := *messages
	if total == 0 {
		total = tier.Pick(2000, 5000, 20_000, 200_000)
	}
	var memory []int64
	for _, run := range []struct {
		messages int
		args     []string
	}{
		{total / 5, nil},
		{total, nil},
		{total, []string{"--only", "INI-6"}}, // only the schema
	} {
		size := writeMany(t, name, run.messages)
		peak := filepath.Join(t.TempDir(), "peak")
		cmd := exec.CommandContext(t.Context(), "measured", append(append([]string{peak, "check"}, run.args...), name)...)
		began := time.Now()
		out, err := cmd.Output()
		took := time.Since(began)
		if err != nil || !bytes.Contains(out, fmt.Appendf(nil, "conforms (%d messages, version 1)", run.messages)) {
			t.Fatalf("%v\n%.3000s", err, out)
		}
		text, err := os.ReadFile(peak)
		if err != nil {
			t.Fatal(err)
		}
		most, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Skipf("this system does not tell the memory of a process: %s", text)
		}
		memory = append(memory, most>>10)
		t.Logf("acp check %s: %d messages, %d MiB: %s (%s of processor), %.0f messages a second, peak memory %d MiB",
			strings.Join(run.args, " "), run.messages, size>>20, took.Round(time.Millisecond),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Millisecond),
			float64(run.messages)/took.Seconds(), most>>10)
	}
	if memory[1] > memory[0]+64 {
		t.Errorf("five times the messages: memory grows from %d to %d MiB", memory[0], memory[1])
	}
}

func init() { programs["measured"] = measured }

// measured is acp, but it writes its peak memory in KiB to the file that its first argument names. The figure that a
// parent gets from the system includes the memory of the parent, which the child shares until it executes acp.
func measured() {
	peak := os.Args[1]
	os.Args = slices.Delete(os.Args, 1, 2)
	status := run(&program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}, os.Args[1:])
	most := "no VmHWM in /proc/self/status"
	if text, err := os.ReadFile("/proc/self/status"); err != nil {
		most = err.Error()
	} else if match := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(text); match != nil {
		most = string(match[1])
	}
	if err := os.WriteFile(peak, []byte(most), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = statusFailed
	}
	os.Exit(status)
}

// BenchmarkJudge judges the same messages without reading a recording: by the schema alone, and by schema and rules.
func BenchmarkJudge(b *testing.B) {
	name := filepath.Join(b.TempDir(), "many.jsonl")
	writeMany(b, name, 10_000)
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	recorded, err := recording.ReadAll(file)
	if err != nil {
		b.Fatal(err)
	}
	all := recorded.Messages()
	schema := conformance.Negotiated(conformance.V1Unstable(), conformance.V2Unstable())
	run := func(b *testing.B, begin func() func(conformance.Message) []conformance.Finding) {
		b.ReportAllocs()
		var judge func(conformance.Message) []conformance.Finding
		n := 0
		for b.Loop() {
			if n%len(all) == 0 {
				judge = begin()
			}
			if found := judge(all[n%len(all)]); len(found) > 0 {
				b.Fatal(found)
			}
			n++
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
	}
	b.Run("schema", func(b *testing.B) {
		run(b, func() func(conformance.Message) []conformance.Finding {
			v := conformance.NewValidator(schema)
			return func(m conformance.Message) []conformance.Finding { return v.Message(m.Direction, m.Line) }
		})
	})
	b.Run("rules", func(b *testing.B) {
		run(b, func() func(conformance.Message) []conformance.Finding {
			return conformance.NewJudge(schema, nil).Message
		})
	})
}

// turn is the recording that is repeated.
const turn = "../../conformance/testdata/clean/v1-turns.jsonl"

// named matches the members whose values are ids of things on the connection.
var named = regexp.MustCompile(`"(?:sessionId|toolCallId|terminalId|messageId)":"((?:[^"\\]|\\.)*)"`)

// writeMany writes a recording with n messages, and returns its size.
func writeMany(t testing.TB, name string, n int) int64 {
	t.Helper()
	text, err := os.ReadFile(turn)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := recording.ReadAll(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := recorded.Messages()
	start := slices.IndexFunc(all, func(m conformance.Message) bool { return bytes.Contains(m.Line, []byte(`"method":"session/new"`)) })
	if start < 2 {
		t.Fatalf("%s does not begin with initialize", turn)
	}
	var ids []string
	for _, m := range all {
		for _, match := range named.FindAllSubmatch(m.Line, -1) {
			if id := string(match[1]); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	w, err := recording.NewWriter(buffered, recording.Header{Tool: "test", Date: at}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, round := 0, 0; i < n; round++ {
		from := all
		if round > 0 {
			from = all[start:]
		}
		for _, m := range from {
			if i++; i > n {
				break
			}
			at = at.Add(time.Millisecond)
			e := recording.Entry{Kind: recording.KindMessage, Time: at, Direction: m.Direction, Line: fresh(t, m.Line, round, ids)}
			if err := w.Write(&e); err != nil {
				t.Fatal(err)
			}
		}
	}
	zero := 0
	err = errors.Join(w.Write(&recording.Entry{Kind: recording.KindEnd, Time: at, End: &recording.End{Code: &zero}}), buffered.Flush())
	if err != nil {
		t.Fatal(err)
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// fresh returns a message with the ids replaced, differently in each round.
func fresh(t testing.TB, line []byte, round int, ids []string) []byte {
	t.Helper()
	if round == 0 {
		return line
	}
	var envelope struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(line, &envelope); err != nil {
		t.Fatal(err)
	}
	if id, err := strconv.Atoi(string(envelope.ID)); err == nil {
		line = bytes.Replace(line, fmt.Appendf(nil, `"id":%d`, id), fmt.Appendf(nil, `"id":%d`, id+1_000_000*round), 1)
	}
	for _, id := range ids {
		line = bytes.ReplaceAll(line, []byte(`"`+id+`"`), fmt.Appendf(nil, `"%s-%d"`, id, round))
	}
	return line
}
