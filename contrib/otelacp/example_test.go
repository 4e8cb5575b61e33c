package otelacp_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/otelacp"
)

// A client's spans. An agent is instrumented in the same way, by its options.
func Example() {
	spans := tracetest.NewInMemoryExporter() // a program has an exporter of OTLP
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	var opts acp.ClientOptions
	opts.Conn.Hooks = otelacp.Instrument(opts.Conn.Hooks, &otelacp.Options{TracerProvider: provider})

	ctx := context.Background()
	conn, err := acp.Connect(ctx, startAgent(), acp.ClientHandlers{}, &opts)
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Prompt(ctx, acp.TextBlock("hello")); err != nil {
		log.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.SpanKind, span.Name)
	}
	// Output:
	// client initialize
	// client session/new
	// client session/prompt
}

func startAgent() acp.Transport {
	near, far := acp.Pipe()
	_, err := acp.StartAgent(context.Background(), far, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.AgentMessageText("hello"))
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return near
}
