package server_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// tracedSite is a server with tracing.
func tracedSite(t *testing.T, kept store.Store) (*site, *tracetest.SpanRecorder) {
	t.Helper()
	drawn := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(drawn)).Tracer("test")
	return openWith(t, func(c *server.Config) { c.Tracer = tracer }, func(c *executor.Config) { c.Tracer, c.Store = tracer, kept }), drawn
}

// A caller that traces finds the request, and what the run did, in its own trace.
func TestTrace_JoinsTheCallersTrace(t *testing.T) {
	s, drawn := tracedSite(t, memory.NewStore(nil))
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

// A method may be any text of a caller; traces do not contain it.
func TestI7_UnknownMethodIsNotTraced(t *testing.T) {
	s, drawn := tracedSite(t, memory.NewStore(nil))
	s.call("agent@acme", canary, "/api/v1/runs", "")
	if len(drawn.Ended()) == 0 {
		t.Fatal("there are no spans")
	}
	for _, span := range drawn.Ended() {
		s.checkNoCanary("a span", span.Name())
		for _, a := range span.Attributes() {
			s.checkNoCanary(string(a.Key), a.Value.String())
		}
	}
}

// The metrics have the route with and without tracing.
func TestTrace_RouteIsRecorded(t *testing.T) {
	s, _ := tracedSite(t, memory.NewStore(nil))
	s.chat("agent@acme", startDemo)
	s.call("agent@acme", "GET", "/api/v1/runs/unknown", "")
	for _, want := range []string{
		`fermata_http_request_seconds_count{method="POST",route="/api/v1/ai/chat",status="200"} 1`,
		`fermata_http_request_seconds_count{method="GET",route="/api/v1/runs/{stateKey}",status="404"} 1`,
	} {
		if text := s.metrics(); !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}

// A stream may be open for hours. Its span covers its opening: it ends while the stream is open,
// and is marked as a stream.
func TestTrace_StreamSpanEndsWithTheOpening(t *testing.T) {
	s, drawn := tracedSite(t, memory.NewStore(nil))
	s.chat("agent@acme", startDemo)
	open := s.follow("/api/v1/runs/demo-1/events")
	eventsIn(open.Body, func(e event) bool { return e.kind != "outcome" })
	streams := make(map[string]bool)
	for _, span := range drawn.Ended() {
		attributes := attribute.NewSet(span.Attributes()...)
		_, streams[span.Name()] = attributes.Value("fermata.stream")
	}
	if got, drawn := streams["GET /api/v1/runs/{stateKey}/events"]; !got || !drawn {
		t.Errorf("drawn: %v", streams)
	}
	if got, drawn := streams["POST /api/v1/ai/chat"]; got || !drawn {
		t.Errorf("drawn: %v", streams)
	}
}

// brokenStore panics when runs are listed.
type brokenStore struct{ store.Store }

func (brokenStore) List(context.Context, string, store.RunFilter) ([]store.Run, error) { panic(canary) }

// A panic is traced with its route, as an error.
func TestTrace_PanicIsRecorded(t *testing.T) {
	s, drawn := tracedSite(t, brokenStore{memory.NewStore(nil)})
	s.call("agent@acme", "GET", "/api/v1/runs", "")
	spans := drawn.Ended()
	if len(spans) != 1 || spans[0].Name() != "GET /api/v1/runs" || spans[0].Status().Code != codes.Error {
		t.Errorf("drawn: %v", spans)
	}
	if !strings.Contains(s.metrics(), `{method="GET",route="/api/v1/runs",status="500"} 1`) {
		t.Error(s.metrics())
	}
}
