// Package inspect shows the traffic between clients and agents in a browser, judged, and lets the user talk to an agent
// there.
//
// An Inspection has sources, each of which is one connection: a recording, an agent that the user talks to, or an agent
// of an editor whose command is a tap. All become entries of recordings; the source judges them, and appends rows to a
// log, which the pages follow over a WebSocket. page/protocol.ts describes what they exchange.
package inspect

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/report"
)

// Options configure an Inspection.
type Options struct {
	// Version is that of the program.
	Version string
	// NoMask shows secrets.
	NoMask bool
	// Agent is the agent that the pages may talk to; nil if there is none.
	Agent *Agent
	// Folder is the folder whose files the pages may serve to the agent, and where they may run its commands; "" if there
	// is none.
	Folder string
	// Cwd is where the agent starts; "" if it is not a program of this machine.
	Cwd string
}

// Agent is an agent to talk to.
type Agent struct {
	// Words are the command or the address, for display.
	Words []string
	// Connect returns the transport of a new connection. The standard error of the agent goes to stderr.
	Connect func(ctx context.Context, stderr io.Writer) (rpc.Transport, error)
	// Remote says that the agent is not a process that this program starts. Its writes and commands in the folder then
	// need the user's consent, each one.
	Remote bool
}

// Inspection is a set of sources with the log of their events.
type Inspection struct {
	options Options
	dir     string // for the files of the sources and the log
	run     string
	log     *eventLog
	logFile *os.File

	mu      sync.Mutex
	sources []*source
	live    map[string]*live
	closed  bool
	running sync.WaitGroup // connections
	context context.Context
	cancel  context.CancelFunc
}

// New returns an inspection without sources. Close must be called at the end.
func New(o Options) (*Inspection, error) {
	dir, err := os.MkdirTemp("", "acp-inspect-")
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	in := &Inspection{options: o, dir: dir, run: rand.Text(), log: newEventLog(file), logFile: file,
		live: map[string]*live{}}
	in.context, in.cancel = context.WithCancel(context.Background())
	return in, nil
}

// Close ends the agents, and removes all files.
func (in *Inspection) Close() error {
	in.mu.Lock()
	in.closed = true
	sources := in.sources
	in.mu.Unlock()
	in.cancel()
	in.running.Wait()
	err := in.logFile.Close()
	for _, s := range sources {
		if closed := s.spool.Close(); !errors.Is(closed, os.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}
	return errors.Join(err, os.RemoveAll(in.dir))
}

// enter reports whether a connection may begin, which then is one of those that run.
func (in *Inspection) enter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.running.Add(1)
	}
	return !in.closed
}

var errClosed = errors.New("the inspection has ended")

// source begins a source.
func (in *Inspection) source(o sourceOptions) (*source, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, errClosed
	}
	id := strconv.Itoa(len(in.sources) + 1)
	if !in.options.NoMask && !o.header.Masked {
		o.masker = recording.NewMasker()
	}
	file, err := os.OpenFile(filepath.Join(in.dir, id+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s, err := newSource(id, file, in.log, o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	in.sources = append(in.sources, s)
	return s, nil
}

// find returns a source by its id, or nil.
func (in *Inspection) find(id string) *source {
	n, err := strconv.Atoi(id)
	in.mu.Lock()
	defer in.mu.Unlock()
	if err != nil || n < 1 || n > len(in.sources) {
		return nil
	}
	return in.sources[n-1]
}

// all returns the sources.
func (in *Inspection) all() []*source {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sources[:len(in.sources):len(in.sources)]
}

// ErrNoMessages means that a file has no messages.
var ErrNoMessages = errors.New("no messages")

// Read reads a recording, in any format of package recording. Each connection in it becomes a source. hop selects a hop
// of a conductor's trace; with "", all are read if the file can be read again, each as a source.
func (in *Inspection) Read(name string, from io.Reader, hop string) error {
	if again, ok := from.(io.ReadSeeker); ok && hop == "" {
		found, err := chainOf(again)
		if err == nil {
			_, err = again.Seek(0, io.SeekStart)
		}
		if err != nil {
			return err
		}
		if len(found) > 2 {
			for i, hop := range found[:len(found)-1] {
				if _, err := again.Seek(0, io.SeekStart); err != nil {
					return err
				}
				o := sourceOptions{kind: "file", name: name + ", " + hop + " to " + found[i+1], lanes: [2]string{hop, found[i+1]}}
				if err := in.read(o, recording.NewReader(from, &recording.ReaderOptions{Hop: hop})); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return in.read(sourceOptions{kind: "file", name: name}, recording.NewReader(from, &recording.ReaderOptions{Hop: hop}))
}

// read reads a recording. Its connections become sources with the given options.
func (in *Inspection) read(o sourceOptions, r *recording.Reader) error {
	name := o.name
	var s *source
	var header recording.Header
	var early []*recording.Entry // problems before the first connection
	connection, messages := 0, 0
	for {
		e, err := r.Read()
		if err != nil && s != nil {
			if err != io.EOF {
				s.add(&recording.Entry{Err: err})
			}
			s.end(err != io.EOF)
			if messages == 0 && err == io.EOF {
				return fmt.Errorf("%s: %w", name, ErrNoMessages)
			}
			return nil
		}
		if err != nil {
			if err == io.EOF && len(early) > 0 {
				err = early[0].Err
			} else if err == io.EOF {
				err = ErrNoMessages
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case e.Kind == recording.KindHeader:
			header = *e.Header
			continue
		case e.Kind == recording.KindNone && s == nil:
			early = append(early, &recording.Entry{Err: e.Err})
			continue
		case e.Kind != recording.KindNone && (s == nil || e.Connection != connection):
			if s != nil {
				s.end(false)
			}
			connection = e.Connection
			shown := cmp.Or(name, strings.Join(header.Command, " "))
			if connection > 1 {
				shown = fmt.Sprintf("%s, connection %d", name, connection)
			}
			if header.Date.IsZero() && e.Time.Year() > 1970 {
				header.Date = e.Time
			}
			o.name, o.header = shown, header
			if s, err = in.source(o); err != nil {
				return err
			}
			header = recording.Header{Masked: header.Masked}
			for _, problem := range early {
				s.add(problem)
			}
			early = nil
		}
		if e.Kind == recording.KindMessage {
			messages++
		}
		s.add(e)
	}
}

// hello describes the inspection to a page.
func (in *Inspection) hello() *hello {
	h := &hello{
		Is: "hello", Run: in.run, Version: in.options.Version, Agent: []string{}, Folder: in.options.Folder,
		Cwd: in.options.Cwd, Methods: methods(), Rules: ruleInfos(),
		Limits: limits{Raw: rowRaw, Message: rpc.DefaultMaxMessage},
	}
	if a := in.options.Agent; a != nil {
		h.Live, h.Agent = true, a.Words
	}
	return h
}

// schemas are the schemas of the versions of the protocol, with experimental features.
var schemas = [...]func() string{1: sdk.SchemaV1Unstable, 2: sdk.SchemaV2Unstable}

// schemaFor returns the schema of a version, or false.
func schemaFor(version int) (string, bool) {
	if version < 1 || version >= len(schemas) {
		return "", false
	}
	return schemas[version](), true
}

// methods lists the methods of both versions, from the schemas.
var methods = sync.OnceValue(func() []methodInfo {
	var list []methodInfo
	for version, stable := range [...]func() string{1: sdk.SchemaV1, 2: sdk.SchemaV2} {
		if stable == nil {
			continue
		}
		known := map[string]bool{}
		for _, m := range methodsOf(stable(), version) {
			known[m.Method+m.Side] = true
		}
		for _, m := range methodsOf(schemas[version](), version) {
			m.Stable = known[m.Method+m.Side]
			list = append(list, m)
		}
	}
	return list
})

// ruleInfos lists the rules.
var ruleInfos = sync.OnceValue(func() []ruleInfo {
	var list []ruleInfo
	for _, r := range conformance.Rules() {
		list = append(list, ruleInfo{
			ID: r.ID, Level: r.Level.String(), Side: report.SideName(r.Side), Text: r.Text, Breaks: r.Breaks, Right: r.Right,
			Wrong: r.Wrong,
			URL:   report.PageURL(r),
		})
	}
	return list
})
