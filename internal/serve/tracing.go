package serve

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
)

// tracing sends traces to a collector; the zero value sends none.
type tracing struct{ provider *sdk.TracerProvider }

func newTracing(ctx context.Context, c config.Tracing, log *slog.Logger) (tracing, error) {
	if c.Endpoint == "" {
		return tracing{}, nil
	}
	headers := make(map[string]string)
	for _, h := range c.Headers {
		name, value := h.Pair()
		headers[name] = value
	}
	exporter, err := otlptrace.New(ctx, newOTLPClient(c.Endpoint, headers))
	if err != nil {
		return tracing{}, err
	}
	// An unavailable collector is logged and does not stop the server.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("sending traces failed", "err", err) }))
	return tracing{sdk.NewTracerProvider(
		sdk.WithBatcher(exporter), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Sample))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", c.Service), attribute.String("service.version", cli.Version()))),
	)}, nil
}

// tracer returns the tracer; nil if tracing is off.
func (t tracing) tracer() trace.Tracer {
	if t.provider == nil {
		return nil
	}
	return t.provider.Tracer("github.com/fermata-go/fermata")
}

// traceFlushTimeout bounds the final flush: the listeners are closed by then, and a replacement
// server may wait for the store.
const traceFlushTimeout = 3 * time.Second

// close sends the remaining traces.
func (t tracing) close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, traceFlushTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
