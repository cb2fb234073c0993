package server

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced draws a request, as a part of the caller's trace if it has one. Paths may hold what callers chose, so the pattern of the route stands
// for them.
func (s *Server) traced(next http.Handler) http.Handler {
	if s.config.Tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := s.config.Tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", r.Method)))
		defer span.End()
		r = r.WithContext(ctx)
		next.ServeHTTP(w, r)
		span.SetName(r.Pattern)
		span.SetAttributes(attribute.String("http.route", r.Pattern))
		if seen, ok := w.(*seenWriter); ok && seen.status > 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", seen.status))
			if seen.status >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, "")
			}
		}
	})
}
