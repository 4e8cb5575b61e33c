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
	"github.com/acpgo/sdk/internal/test/must"
)

func BenchmarkUpdate(b *testing.B) {
	update := acp.AgentMessageText(strings.Repeat("x", 64))
	each(b, func(ctx context.Context, s *acp.AgentSession) error { return s.Update(ctx, update) })
}

func BenchmarkCall(b *testing.B) {
	each(b, func(ctx context.Context, s *acp.AgentSession) error {
		_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/a"})
		return err
	})
}

// each measures what an agent does in a turn, in each way. Both sides have the hooks.
func each(b *testing.B, do func(context.Context, *acp.AgentSession) error) {
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
			agent := agentHandlers(0)
			agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (_ *acp.PromptResponse, err error) {
				for b.Loop() && err == nil {
					err = do(ctx, s)
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
			}
			near, far := acp.Pipe()
			opts := acp.ConnOptions{Hooks: way.hooks}
			served := must.Get(acp.StartAgent(b.Context(), far, agent, &acp.AgentOptions{Conn: opts}))(b)
			conn := must.Get(acp.Connect(b.Context(), near, clientHandlers(0), &acp.ClientOptions{Conn: opts}))(b)
			session := must.Get(conn.NewSession(b.Context(), &acp.NewSessionRequest{Cwd: "/"}))(b)
			turn := session.Stream(b.Context(), acp.TextBlock("go"))
			for range turn.Updates() {
			}
			_, err := turn.Result()
			must.Do(b, errors.Join(err, conn.Close(), served.Wait()))
		})
	}
}
