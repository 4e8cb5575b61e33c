package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Only y and yes count as yes, nothing of the next line is consumed, and the question cannot control the terminal.
func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{
		"y\n": true, "YES\r\n": true, " yes \n": true, "y": true, "n\n": false, "\n": false, "": false, "yess\n": false, "yes please\n": false,
		strings.Repeat("y", 2*maxAnswer): false,
	} {
		var out bytes.Buffer
		in := strings.NewReader(answer + "rest")
		if !strings.HasSuffix(answer, "\n") {
			in = strings.NewReader(answer)
		}
		p := &program{stdin: in, stderr: &out}
		got, err := p.ask(t.Context(), "install \x1b[2J?")
		if got != want || err != nil || !strings.HasPrefix(out.String(), `install \x1b[2J? [y/N] `) {
			t.Errorf("%.20q: %v, %v, %q", answer, got, err, &out)
		}
		if rest, _ := io.ReadAll(in); strings.HasSuffix(answer, "\n") && string(rest) != "rest" {
			t.Errorf("%q: %q is left", answer, rest)
		}
	}
	failed := errors.New("no terminal any more")
	p := &program{stdin: iotest.ErrReader(failed), stderr: io.Discard}
	if yes, err := p.ask(t.Context(), "?"); yes || !errors.Is(err, failed) {
		t.Errorf("%v, %v", yes, err)
	}
	if p.asker() != nil {
		t.Error("there is a terminal")
	}
}

// An interrupt ends the question, although nothing ends the read.
func TestAskInterrupted(t *testing.T) {
	in, answer := io.Pipe()
	defer answer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &program{stdin: in, stderr: io.Discard}
	if yes, err := p.ask(ctx, "?"); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", yes, err)
	}
}
