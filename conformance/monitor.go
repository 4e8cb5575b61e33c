package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// Monitor validates the messages of connections, and counts them. Its methods are safe for concurrent use.
type Monitor struct {
	schema  *Schema
	options MonitorOptions

	mu    sync.Mutex
	stats Stats
}

// MonitorOptions configures a Monitor. The functions are called for one message at a time while a lock is held, so they
// must not use the connection or the Monitor.
type MonitorOptions struct {
	// OnMessage is called for every message, for each request before its answer.
	OnMessage func(Message)
	// OnEnd is called with the findings that the end of a connection proves, such as a request that was never answered.
	// It is not called if there are none.
	OnEnd func([]Finding)
	// Ignore reports whether a finding is to be neither counted nor passed to OnMessage and OnEnd.
	Ignore func(Finding) bool
}

// Message is one message on a watched connection.
type Message struct {
	Direction Direction
	Line      []byte // without the newline; valid during the call only
	Findings  []Finding
	Time      time.Time // when it passed; zero if unknown
}

// Stats has the counts of a Monitor.
type Stats struct {
	Messages int // in both directions
	Must     int // findings of level Must or MustNot
	Should   int // findings of level Should or ShouldNot
	Advice   int // findings of level Advice
}

// Findings returns the number of findings of all levels.
func (s Stats) Findings() int { return s.Must + s.Should + s.Advice }

// String returns the counts in the form "123 messages, 0 findings" or "123 messages, 4 findings (1 MUST, 3 SHOULD, 0
// advice)".
func (s Stats) String() string {
	text := fmt.Sprintf("%d messages, %d findings", s.Messages, s.Findings())
	if s.Findings() > 0 {
		text += fmt.Sprintf(" (%d MUST, %d SHOULD, %d advice)", s.Must, s.Should, s.Advice)
	}
	return text
}

// count counts a finding.
func (s *Stats) count(f Finding) {
	switch {
	case f.Level <= MustNot:
		s.Must++
	case f.Level <= ShouldNot:
		s.Should++
	default:
		s.Advice++
	}
}

// NewMonitor returns a Monitor for any number of connections that use the schema's version of the protocol. Options may
// be nil.
func NewMonitor(schema *Schema, options *MonitorOptions) *Monitor {
	return &Monitor{schema: schema, options: *cmp.Or(options, &MonitorOptions{})}
}

// Stats returns the counts so far.
func (m *Monitor) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// WrapClient returns a transport for a client that connects by the given transport. It validates what the client reads,
// and what the client writes before it is sent.
func (m *Monitor) WrapClient(transport rpc.Transport) rpc.Transport { return m.wrap(Client, transport) }

// WrapAgent is like WrapClient, for the transport of an agent.
func (m *Monitor) WrapAgent(transport rpc.Transport) rpc.Transport { return m.wrap(Agent, transport) }

func (m *Monitor) wrap(side Side, transport rpc.Transport) rpc.Transport {
	return &watchedTransport{monitor: m, side: side, inner: transport}
}

// see judges one message of a connection.
func (m *Monitor) see(j *Judge, direction Direction, line []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	message := Message{Direction: direction, Line: line, Time: time.Now()}
	message.Findings = m.count(j.Message(message))
	m.stats.Messages++
	if m.options.OnMessage != nil {
		m.options.OnMessage(message)
	}
}

// count counts the findings that are not ignored, and returns them.
func (m *Monitor) count(findings []Finding) (counted []Finding) {
	for _, f := range findings {
		if m.options.Ignore != nil && m.options.Ignore(f) {
			continue
		}
		counted = append(counted, f)
		m.stats.count(f)
	}
	return counted
}

// end counts and reports the findings that the end of a connection proves.
func (m *Monitor) end(j *Judge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if findings := m.count(j.End()); len(findings) > 0 && m.options.OnEnd != nil {
		m.options.OnEnd(findings)
	}
}

type watchedTransport struct {
	monitor *Monitor
	side    Side
	inner   rpc.Transport
}

func (t *watchedTransport) Connect(ctx context.Context) (rpc.Stream, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return t.watch(inner, NewJudge(t.monitor.schema, nil)), nil
}

// watch judges messages before they are written, because the answer may arrive immediately.
func (t *watchedTransport) watch(inner rpc.Stream, j *Judge) rpc.Stream {
	return rpc.Wrap(inner, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				t.monitor.see(j, t.side.Peer().Direction(), line)
			} else if _, goesOn := wire.AsUnread(err); !goesOn {
				j.Closed(t.side.Peer()) // unless this side has closed before
				t.monitor.end(j)
			}
			return line, err
		},
		Write: func(line []byte) ([]byte, error) {
			t.monitor.see(j, t.side.Direction(), line)
			return line, nil
		},
		CloseWrite: func() error {
			j.Closed(t.side)
			if half, ok := inner.(interface{ CloseWrite() error }); ok {
				return half.CloseWrite()
			}
			return errors.ErrUnsupported
		},
		Close: func() error {
			j.Closed(t.side)
			return inner.Close()
		},
	})
}
