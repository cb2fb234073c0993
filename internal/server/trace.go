package server

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-go/fermata/internal/server/metrics"
)

// traced records a span for a request, as part of the caller's trace if there is one. Paths may
// contain values that callers chose, so the span uses the route pattern.
//
// The span of a stream covers only its opening: it ends when the operation returns, and
// fermata.stream is true. A stream stays open for hours; its span would not be visible until then,
// would be lost with the process, and would cost memory for each stream.
func (s *Server) traced(next http.Handler) http.Handler {
	if s.config.Tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		method := metrics.Method(r, "_OTHER") // as OpenTelemetry defines
		ctx, span := s.config.Tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		inner, served := r.WithContext(ctx), false
		defer func() {
			// the mux sets it in the copy; the middleware uses it for metrics and logs
			r.Pattern = inner.Pattern
			traceResponse(span, inner, w, served)
		}()
		next.ServeHTTP(w, inner)
		served = true
	})
}

// traceResponse records the result of a request in its span and ends it. A request that was not
// served completely has panicked; the middleware answers it afterwards.
func traceResponse(span trace.Span, r *http.Request, w http.ResponseWriter, served bool) {
	// otherwise no route was matched yet, and the span is named after the method
	if r.Pattern != "" {
		span.SetName(r.Pattern)
		span.SetAttributes(attribute.String("http.route", r.Pattern))
	}
	seen, ok := w.(*statusWriter)
	if ok && seen.status > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", seen.status))
	}
	if ok && seen.stream != nil {
		span.SetAttributes(attribute.Bool("fermata.stream", true))
	}
	if !served || ok && seen.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
