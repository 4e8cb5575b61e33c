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

// Metrics returns a handler that serves the gateway's metrics.
func (g *Gateway) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = g.writeMetrics(w) // on error the client is gone
	})
}

// sample is a number with its labels.
type sample struct {
	labels string
	value  any
}

func one(value any) []sample { return []sample{{"", value}} }

// labelled returns numbers by the values of a label, sorted.
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
		{"acp_connections", "gauge", "Open connections.", labelled("transport", s.Connections)},
		{"acp_connections_opened_total", "counter", "Connections opened.", labelled("transport", s.Opened)},
		{"acp_streams", "gauge", "Streams of server-sent events that are being read.", one(s.Streams)},
		{"acp_requests_refused_total", "counter", "HTTP requests refused, by status.", labelled("status", s.Refused)},
		{"acp_message_bytes_total", "counter", "Bytes of messages, from and to clients.", []sample{
			{`{direction="in"}`, s.BytesIn}, {`{direction="out"}`, s.BytesOut}}},
		{"acp_buffered_bytes", "gauge", "Bytes of messages waiting for clients.", one(s.Buffered)},
		{"acp_agents", "gauge", "Running agent processes.", one(n.processes.Load())},
		{"acp_agents_started_total", "counter", "Agent processes started.", one(n.started.Load())},
		{"acp_agents_failed_total", "counter", "Agents that could not be started or that ended before their clients.",
			[]sample{
				{`{when="start"}`, n.failedToStart.Load()}, {`{when="later"}`, n.failedLater.Load()}}},
		{"acp_agent_noise_lines_total", "counter", "Lines of agents that were not messages.", one(n.noise.Load())},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, s := range m.samples {
			fmt.Fprintf(w, "%s%s %v\n", m.name, s.labels, s.value)
		}
	}
	return w.Flush()
}
