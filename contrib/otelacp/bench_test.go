package otelacp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/otelacp"
)

func BenchmarkUpdate(b *testing.B) {
	update := acp.AgentMessageText(strings.Repeat("x", 64))
	each(b, func(b *testing.B, run func(turn)) {
		run(func(ctx context.Context, s *acp.AgentSession) error {
			for b.Loop() {
				if err := s.Update(ctx, update); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func BenchmarkCall(b *testing.B) {
	each(b, func(b *testing.B, run func(turn)) {
		run(func(ctx context.Context, s *acp.AgentSession) error {
			for b.Loop() {
				if _, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/a"}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

type turn = func(context.Context, *acp.AgentSession) error

// each measures a turn in each way. Both sides have the hooks.
func each(b *testing.B, measure func(b *testing.B, run func(turn))) {
	o := newObserver()
	for _, way := range []struct {
		name  string
		hooks rpc.Hooks
	}{
		{"without", rpc.Hooks{}},
		{"dropped", otelacp.Instrument(rpc.Hooks{}, &otelacp.Options{
			TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
		})},
		{"sdk", otelacp.Instrument(rpc.Hooks{}, &otelacp.Options{TracerProvider: sdktrace.NewTracerProvider(), MeterProvider: o.meter})},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			measure(b, func(body turn) { runTurn(b, way.hooks, body) })
		})
	}
}

// runTurn runs a turn between a client and an agent.
func runTurn(b *testing.B, hooks rpc.Hooks, body turn) {
	near, far := acp.Pipe()
	agent := agentHandlers(0)
	agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, body(ctx, s)
	}
	served, err := acp.StartAgent(b.Context(), far, agent, &acp.AgentOptions{Conn: acp.ConnOptions{Hooks: hooks}})
	if err != nil {
		b.Fatal(err)
	}
	conn, err := acp.Connect(b.Context(), near, clientHandlers(0), &acp.ClientOptions{Conn: acp.ConnOptions{Hooks: hooks}})
	if err != nil {
		b.Fatal(err)
	}
	session, err := conn.NewSession(b.Context(), &acp.NewSessionRequest{Cwd: "/"})
	if err != nil {
		b.Fatal(err)
	}
	turn := session.Stream(b.Context(), acp.TextBlock("go"))
	for range turn.Updates() {
	}
	_, err = turn.Result()
	if err := errors.Join(err, conn.Close(), served.Wait()); err != nil {
		b.Fatal(err)
	}
}
