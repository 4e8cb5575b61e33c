//go:build linux || darwin

package screen

import (
	"bufio"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

//go:embed emulator
var programs embed.FS

// emulator is the Node process that keeps the screens. It ends when its standard input ends, and so with the test
// program.
type emulator struct {
	in io.Writer

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	replies map[int]func([]byte) // by terminal: sends the terminal's answers to its program
	err     error                // why there are no more answers
}

// request is a request to the emulator.
type request struct {
	ID   int    `json:"id"`
	Op   string `json:"op"`
	Term int    `json:"term"`
	Cols int    `json:"cols,omitzero"`
	Rows int    `json:"rows,omitzero"`
	Data []byte `json:"data,omitzero"`
	// Cells asks for a frame with its cells.
	Cells bool `json:"cells,omitzero"`
}

// answer is the response to a request or, without an ID, a notification.
type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
	Term   int             `json:"term"`
	Reply  []byte          `json:"reply"`
}

// theEmulator starts the process once.
var theEmulator = sync.OnceValues(startEmulator)

// need returns the emulator or skips the test.
func need(t testing.TB) *emulator {
	t.Helper()
	tier.Need(t, tier.Full)
	npmtest.Need(t)
	e := must.Get(theEmulator())(t)
	return e
}

func startEmulator() (_ *emulator, err error) {
	dir, err := os.MkdirTemp("", "acp-screen-")
	if err != nil {
		return nil, err
	}
	// Node has read all of it once it is ready.
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, programs); err != nil {
		return nil, err
	}
	work := filepath.Join(dir, "emulator")
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-timeout",
		"60000")
	npm.Dir = work
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	node := exec.Command("node", "emulator.mjs")
	node.Dir, node.Stderr = work, os.Stderr
	out, err := node.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := node.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := node.Start(); err != nil {
		return nil, err
	}
	answers := bufio.NewReaderSize(out, 1<<20)
	if line, err := answers.ReadBytes('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the emulator has not started: %q %w", line, err), node.Process.Kill(),
			node.Wait())
	}
	e := &emulator{in: in, waiting: map[int]chan answer{}, replies: map[int]func([]byte){}}
	go func() { // ends with the process
		err := e.read(answers)
		e.end(errors.Join(errors.New("the emulator has ended"), err, node.Wait()))
	}()
	return e, nil
}

// read distributes the answers.
func (e *emulator) read(answers *bufio.Reader) error {
	for {
		line, err := answers.ReadBytes('\n')
		if err != nil {
			return err
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("%w: %q", err, line)
		}
		e.mu.Lock()
		reply, waiting := e.replies[a.Term], e.waiting[a.ID]
		delete(e.waiting, a.ID)
		e.mu.Unlock()
		switch {
		case a.ID != 0:
			waiting <- a
		case reply != nil:
			reply(a.Reply)
		}
	}
}

func (e *emulator) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	for _, waiting := range e.waiting {
		waiting <- answer{Error: err.Error()}
	}
	clear(e.waiting)
}

// ask makes a request, and stores the result in v unless v is nil.
func (e *emulator) ask(r request, v any) error {
	got := make(chan answer, 1)
	e.mu.Lock()
	if e.err != nil {
		defer e.mu.Unlock()
		return e.err
	}
	e.last++
	r.ID = e.last
	e.waiting[r.ID] = got
	line, err := json.Marshal(r)
	if err == nil {
		_, err = e.in.Write(append(line, '\n'))
	}
	if err != nil {
		delete(e.waiting, r.ID)
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	a := <-got
	switch {
	case a.Error != "":
		return fmt.Errorf("emulator: %s: %s", r.Op, a.Error)
	case v == nil:
		return nil
	}
	return json.Unmarshal(a.Result, v)
}

// open creates a screen. What the terminal answers to the program is passed to reply, which must not block.
func (e *emulator) open(cols, rows int, reply func([]byte)) (term int, err error) {
	e.mu.Lock()
	e.last++
	term = e.last
	e.replies[term] = reply
	e.mu.Unlock()
	return term, e.ask(request{Op: "open", Term: term, Cols: cols, Rows: rows}, nil)
}

// close removes a screen.
func (e *emulator) close(term int) error {
	e.mu.Lock()
	delete(e.replies, term)
	e.mu.Unlock()
	return e.ask(request{Op: "close", Term: term}, nil)
}
