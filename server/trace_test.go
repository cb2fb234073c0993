package server_test

import (
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server"
)

// A caller that traces finds the request, and what the run did, in its own trace.
func TestTrace_RequestsArePartsOfTheCallersTrace(t *testing.T) {
	drawn := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(drawn)).Tracer("test")
	s := openWith(t, func(c *server.Config) { c.Tracer = tracer }, func(c *executor.Config) { c.Tracer = tracer })
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
	s.chat("agent@acme", startDemo, "Traceparent", "00-"+theirs+"-00f067aa0ba902b7-01")
	s.call("agent@acme", "GET", "/api/v1/runs/demo-1", "")
	found := make(map[string]string)
	for _, span := range drawn.Ended() {
		found[span.Name()] = span.SpanContext().TraceID().String()
	}
	if found["POST /api/v1/ai/chat"] != theirs || found["fermata.start"] != theirs {
		t.Errorf("drawn: %v", found)
	}
	if own := found["GET /api/v1/runs/{stateKey}"]; own == "" || own == theirs {
		t.Errorf("drawn: %v", found)
	}
}
