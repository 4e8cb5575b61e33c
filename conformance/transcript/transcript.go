// Package transcript plays written conversations against an agent or a client.
//
// A transcript is a txtar archive. Its comment describes what it shows, and its file "transcript" has the messages in
// order:
//
//	# The client asks, the agent answers.
//	-> {"jsonrpc": "2.0", "id": 1, "method": "session/new",
//	    "params": {"cwd": "/tmp", "mcpServers": []}}
//	<- {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "$session", "...": "..."}}
//
// An arrow to the right marks a message of the client, and an arrow to the left a message of the agent. A message
// continues in the indented lines below it. Lines that begin with # are comments. One side is played: its messages are
// written as they are, one per line. The other side is tested: its messages must be the same JSON in the same order,
// with two exceptions:
//
//   - a string with a dollar sign and a name ("$session") stands for any value, and for the same value wherever the
//     name occurs again, including in messages that are written; "$any" stands for any value each time;
//   - an object with the member "..." may have more members than are listed.
//
// A character after the arrow changes the meaning:
//
//	<-*   any number of such messages, including none
//	<-&   consecutive messages with this mark may arrive in any order
//	->!   the line as a Go string literal, byte for byte, for lines that are not JSON
//
// The optional file "values" is a JSON object with the values of the names that the played side chooses. With it,
// either side of a transcript can be played.
//
// Recordings can be played too, without a transcript: see [Recorded].
package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/conformance"
)

// Script is a parsed transcript. It may be played any number of times, also concurrently.
type Script struct {
	name   string
	steps  []step
	values map[string]any
}

// step is one message of a script.
type step struct {
	line     int // in the archive's file, for errors
	writer   conformance.Side
	repeated bool
	anyOrder bool
	raw      []byte // the line itself, if it is not JSON to compare
	message  any
}

// Load parses the transcript in a file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(filepath.Base(path), data)
}

// Parse parses a transcript. The name is for errors.
func Parse(name string, archive []byte) (*Script, error) {
	s := &Script{name: name, values: map[string]any{}}
	found := false
	for _, file := range txtar.Parse(archive).Files {
		var err error
		switch file.Name {
		case "transcript":
			found = true
			err = s.parseSteps(lineOf(archive, file.Data), string(file.Data))
		case "values":
			err = decode(file.Data, &s.values)
		default:
			err = fmt.Errorf("unknown file %q", file.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if !found {
		return nil, fmt.Errorf("%s: no file \"transcript\"", name)
	}
	return s, nil
}

// lineOf returns the number of the line on which a file of the archive begins.
func lineOf(archive, file []byte) int {
	return 1 + bytes.Count(archive[:max(0, bytes.Index(archive, file))], []byte("\n"))
}

var arrow = regexp.MustCompile(`^(->|<-)([*&!]?) (.*)$`)

func (s *Script) parseSteps(first int, text string) error {
	var current *step
	var body strings.Builder
	finish := func() error {
		if current == nil || current.raw != nil {
			return nil
		}
		if err := decode([]byte(body.String()), &current.message); err != nil {
			return fmt.Errorf("line %d: %w", current.line, err)
		}
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		number := first + i
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			body.WriteString(line)
			continue
		}
		if err := finish(); err != nil {
			return err
		}
		parts := arrow.FindStringSubmatch(line)
		if parts == nil {
			return fmt.Errorf("line %d: the line neither begins with an arrow nor is indented: %q", number, line)
		}
		s.steps = append(s.steps, step{line: number, writer: conformance.Agent, repeated: parts[2] == "*",
			anyOrder: parts[2] == "&"})
		current = &s.steps[len(s.steps)-1]
		if parts[1] == "->" {
			current.writer = conformance.Client
		}
		body.Reset()
		body.WriteString(parts[3])
		if parts[2] == "!" {
			raw, err := strconv.Unquote(parts[3])
			if err != nil || strings.Contains(raw, "\n") {
				return fmt.Errorf("line %d: expected a string literal on one line, got %s", number, parts[3])
			}
			current.raw = []byte(raw)
		}
	}
	return finish()
}

// decode reads exactly one JSON value, with its numbers as they are written.
func decode(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}
