package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/otelacp"
)

// telemetry returns hooks that export traces and metrics, if the OTEL_* environment names a collector. end sends what
// is left.
func telemetry(ctx context.Context, log *slog.Logger) (hooks rpc.Hooks, end func(), err error) {
	set := func(kind string) bool {
		return os.Getenv("OTEL_SDK_DISABLED") != "true" && os.Getenv("OTEL_"+kind+"_EXPORTER") != "none" &&
			(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+kind+"_ENDPOINT") != "")
	}
	if !set("TRACES") && !set("METRICS") {
		return rpc.Hooks{}, func() {}, nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "acp-fleet")),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return rpc.Hooks{}, nil, err
	}
	traces := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if set("TRACES") {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return rpc.Hooks{}, nil, err
		}
		traces = append(traces, sdktrace.WithBatcher(exporter))
	}
	metrics := []sdkmetric.Option{sdkmetric.WithResource(about)}
	if set("METRICS") {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return rpc.Hooks{}, nil, err
		}
		metrics = append(metrics, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	tracer, meter := sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(metrics...)
	end = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(tracer.Shutdown(ctx), meter.Shutdown(ctx)); err != nil {
			log.Warn("telemetry was not sent", "error", err)
		}
	}
	return otelacp.Instrument(rpc.Hooks{}, &otelacp.Options{TracerProvider: tracer, MeterProvider: meter}), end, nil
}
