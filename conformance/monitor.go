// Transports that validate the messages that pass through them.

package conformance

import (
	"context"
	"fmt"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
)

// Monitor validates the messages of connections, and counts them. Its methods are safe for concurrent use.
type Monitor struct {
	schema  *Schema
	options MonitorOptions

	mu    sync.Mutex
	stats Stats
}

// MonitorOptions configure a Monitor. The functions are called for one message at a time, while a lock is
// held: they must not use the connection or the Monitor.
type MonitorOptions struct {
	// OnMessage is called for every message; each request comes before its answer.
	OnMessage func(Message)
	// Ignore says which findings do not count and are not shown to OnMessage.
	Ignore func(Finding) bool
}

// Message is one message on a watched connection.
type Message struct {
	Direction Direction
	Line      []byte // without the newline; valid during the call only
	Findings  []Finding
}

// Stats are the counts of a Monitor.
type Stats struct {
	Messages int // in both directions
	Errors   int // findings with severity Error
	Warnings int // findings with severity Warning
}

// Findings is the number of findings, errors and warnings alike.
func (s Stats) Findings() int { return s.Errors + s.Warnings }

// String is of the form "123 messages, 0 findings".
func (s Stats) String() string {
	text := fmt.Sprintf("%d messages, %d findings", s.Messages, s.Findings())
	if s.Warnings > 0 {
		text += fmt.Sprintf(" (%d of them warnings)", s.Warnings)
	}
	return text
}

// NewMonitor returns a Monitor for any number of connections that speak the schema's version of the
// protocol. Options may be nil.
func NewMonitor(schema *Schema, options *MonitorOptions) *Monitor {
	m := &Monitor{schema: schema}
	if options != nil {
		m.options = *options
	}
	return m
}

// Stats returns the counts so far.
func (m *Monitor) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// WrapClient returns a transport for a client that connects with the given one. It validates what the
// client writes, before it is sent, and what the client reads.
func (m *Monitor) WrapClient(transport rpc.Transport) rpc.Transport { return m.wrap(Client, transport) }

// WrapAgent is WrapClient for the transport of an agent.
func (m *Monitor) WrapAgent(transport rpc.Transport) rpc.Transport { return m.wrap(Agent, transport) }

func (m *Monitor) wrap(side Side, transport rpc.Transport) rpc.Transport {
	return &watchedTransport{monitor: m, side: side, inner: transport}
}

// see validates one message of a connection.
func (m *Monitor) see(v *Validator, direction Direction, line []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var counted []Finding
	for _, f := range v.Message(direction, line) {
		if m.options.Ignore != nil && m.options.Ignore(f) {
			continue
		}
		counted = append(counted, f)
		if f.Severity == Warning {
			m.stats.Warnings++
		} else {
			m.stats.Errors++
		}
	}
	m.stats.Messages++
	if m.options.OnMessage != nil {
		m.options.OnMessage(Message{direction, line, counted})
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
	return t.watch(inner, NewValidator(t.monitor.schema)), nil
}

// watch validates what is written before it is sent: the answer to it may come at once.
func (t *watchedTransport) watch(inner rpc.Stream, v *Validator) rpc.Stream {
	return rpc.Wrap(inner, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				t.monitor.see(v, t.side.Peer().direction(), line)
			}
			return line, err
		},
		Write: func(line []byte) ([]byte, error) {
			t.monitor.see(v, t.side.direction(), line)
			return line, nil
		},
	})
}
