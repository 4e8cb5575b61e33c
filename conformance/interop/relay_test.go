package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
)

// traceVariable names the file of a relay's recording. A process of this test in whose environment it
// is set is a relay: it starts the agent that its arguments name and records what passes. That is how
// the test sees what a client and an agent say that are both not its own.
const traceVariable = "ACP_INTEROP_TRACE"

// relay is the main function of a relay.
func relay(path string, command []string) int {
	code, err := record(path, command)
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return 1
	}
	return code
}

func record(path string, command []string) (code int, err error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	agent := exec.Command(command[0], command[1:]...)
	agent.Stderr = os.Stderr
	stdin, err := agent.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := agent.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := agent.Start(); err != nil {
		return 0, err
	}
	writer, err := recording.NewWriter(file, recording.Header{Tool: "relay", Command: command}, nil)
	if err != nil {
		return 0, err
	}
	// A line is recorded before it is handed on, so that no answer is recorded before its request.
	forward := func(direction conformance.Direction, from io.Reader, to io.Writer) error {
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				if err := writer.Message(conformance.Message{Direction: direction, Line: line}); err != nil {
					return err
				}
				if _, err := to.Write(line); err != nil {
					return nil // the other end is gone, as its exit status tells
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	go func() {
		// Ends with the client, or with this process.
		if err := errors.Join(forward(conformance.ToAgent, os.Stdin, stdin), stdin.Close()); err != nil {
			fmt.Fprintln(os.Stderr, "relay:", err)
		}
	}()
	if err := forward(conformance.ToClient, stdout, os.Stdout); err != nil {
		return 0, err
	}
	if _, exited := errors.AsType[*exec.ExitError](agent.Wait()); exited {
		return agent.ProcessState.ExitCode(), nil
	}
	return 0, nil
}

// validate judges a recording, and returns its messages.
func validate(t *testing.T, path string, schema *conformance.Schema) []conformance.Message {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := recording.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	judge := conformance.NewJudge(schema, nil)
	messages, findings := all.Messages(), 0
	report := func(found []conformance.Finding) {
		for _, f := range found {
			findings++
			t.Errorf("%s: %s\n\t%.300s", f.Direction, f, messages[max(f.Number, 1)-1].Line)
		}
	}
	for _, m := range messages {
		report(judge.Message(m))
	}
	judge.Closed(conformance.Client)
	report(judge.End())
	t.Logf("%d messages, %d findings", len(messages), findings)
	if len(messages) == 0 {
		t.Error("nothing was recorded")
	}
	return messages
}
