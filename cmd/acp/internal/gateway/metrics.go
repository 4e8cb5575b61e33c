package gateway

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// Metrics is a handler that answers with the gateway's metrics.
func (g *Gateway) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = g.writeMetrics(w) // a client that is gone
	})
}

// sample is one number, with its labels.
type sample struct {
	labels string
	value  any
}

func one(value any) []sample { return []sample{{"", value}} }

// labelled are numbers by the values of a label, in their order.
func labelled[K cmp.Ordered, V any](label string, values map[K]V) []sample {
	var all []sample
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, sample{fmt.Sprintf("{%s=%q}", label, fmt.Sprint(key)), values[key]})
	}
	return all
}

func (g *Gateway) writeMetrics(out io.Writer) error {
	s, n := g.agent.Stats(), &g.numbers
	w := bufio.NewWriter(out)
	for _, m := range []struct {
		name, kind, help string
		samples          []sample
	}{
		{"acp_connections", "gauge", "Connections that are open.", labelled("transport", s.Connections)},
		{"acp_connections_opened_total", "counter", "Connections that were opened.", labelled("transport", s.Opened)},
		{"acp_streams", "gauge", "Streams of server-sent events that are read.", one(s.Streams)},
		{"acp_requests_refused_total", "counter", "Requests of HTTP that were refused, by status.", labelled("status", s.Refused)},
		{"acp_message_bytes_total", "counter", "Bytes of messages, from and to clients.", []sample{
			{`{direction="in"}`, s.BytesIn}, {`{direction="out"}`, s.BytesOut}}},
		{"acp_buffered_bytes", "gauge", "Bytes of messages that wait for clients.", one(s.Buffered)},
		{"acp_agents", "gauge", "Processes of agents that run.", one(n.processes.Load())},
		{"acp_agents_started_total", "counter", "Processes of agents that were started.", one(n.started.Load())},
		{"acp_agents_failed_total", "counter", "Agents that could not be started, or ended before their clients.", []sample{
			{`{when="start"}`, n.failedToStart.Load()}, {`{when="later"}`, n.failedLater.Load()}}},
		{"acp_agent_noise_lines_total", "counter", "Lines of agents that were no messages.", one(n.noise.Load())},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, s := range m.samples {
			fmt.Fprintf(w, "%s%s %v\n", m.name, s.labels, s.value)
		}
	}
	return w.Flush()
}
