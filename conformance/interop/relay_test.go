package interop

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
)

// traceVariable is the environment variable with the name of a relay's recording. A process of this test that has the
// variable is a relay: it starts the agent in its arguments and records the traffic. In this way the test sees the
// messages between a client and an agent from other projects.
const traceVariable = "ACP_INTEROP_TRACE"

// record is the main function of a relay.
func record(path string, command []string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	writer, err := recording.NewWriter(file, recording.Header{Tool: "interop", Command: command}, nil)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	result, err := relay.Run(exec.Command(command[0], command[1:]...), relay.Options{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Writer: writer,
	})
	if err == nil {
		err = result.Err
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	relay.Exit(result.State)
	return nil
}

// validate judges a recording, and returns its messages.
func validate(t *testing.T, path string, schema *conformance.Schema) []conformance.Message {
	t.Helper()
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	all := must.Get(recording.ReadAll(file))(t)
	messages := all.Messages()
	findings := cleantest.Judge(schema, messages, conformance.Client)
	for _, f := range findings {
		t.Errorf("%s: %s\n\t%.300s", f.Direction, f, messages[max(f.Number, 1)-1].Line)
	}
	t.Logf("%d messages, %d findings", len(messages), len(findings))
	if len(messages) == 0 {
		t.Error("nothing was recorded")
	}
	return messages
}
