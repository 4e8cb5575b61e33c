package inspect

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/conformance/recording"
)

// probe plays a scenario of the probe against the agent, in the background. Each launch of the agent is a source.
func (in *Inspection) probe(scenario string) error {
	agent := in.options.Agent
	if agent.Launch == nil {
		return fmt.Errorf("only an agent that is a command can be probed")
	}
	if !slices.ContainsFunc(probe.AgentScenarios(), func(s probe.Scenario) bool { return s.Name == scenario }) {
		return fmt.Errorf("there is no scenario %q", scenario)
	}
	scratch, err := os.MkdirTemp(in.dir, "probe-")
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return errClosed
	}
	in.running.Go(func() {
		var last *source
		launch := func(ctx context.Context, dir string) (*probe.Target, error) {
			s, err := in.source(sourceOptions{
				kind: "probe", name: scenario,
				header: recording.Header{Tool: "acp", Version: in.options.Version, Command: agent.Words, Date: time.Now()},
			})
			if err != nil {
				return nil, err
			}
			last = s
			target, err := agent.Launch(ctx, dir)
			if err != nil {
				s.note(err)
				s.end(true)
				return nil, err
			}
			target.Stream = s.watch(target.Stream)
			return target, nil
		}
		// The judge of the source has the findings; what only the scenario sees is in the report.
		r, err := probe.Agent(in.context, launch,
			&probe.Options{Version: in.options.Version, Scratch: scratch, Only: []string{scenario}})
		if last == nil {
			return
		}
		if err != nil {
			last.note(err)
		}
		if r == nil {
			return
		}
		for _, row := range r.Rows {
			for _, failure := range row.Failures {
				if failure.Scenario == scenario {
					last.note(fmt.Errorf("%s %s: %s", row.ID, failure.Level, failure.Message))
				}
			}
		}
	})
	return nil
}

// watch returns a stream that records what a client reads and writes.
func (s *source) watch(inner rpc.Stream) rpc.Stream {
	add := func(d conformance.Direction, line []byte) {
		s.happens(recording.Entry{Kind: recording.KindMessage, Direction: d, Line: line}, false)
	}
	return rpc.Wrap(inner, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				add(conformance.ToClient, line)
			}
			return line, err
		},
		Write: func(line []byte) ([]byte, error) {
			add(conformance.ToAgent, line)
			return line, nil
		},
		Close: func() error {
			err := inner.Close()
			s.end(false)
			return err
		},
	})
}
