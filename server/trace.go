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
//
// The span of a stream is that of its opening, and says so: it ends when the operation is left, and fermata.stream is true. A stream stays open for
// hours; its span would not be seen until then, would be lost with the process, and would cost each of many streams its memory.
func (s *Server) traced(next http.Handler) http.Handler {
	if s.config.Tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		method := methodOf(r, "_OTHER") // as OpenTelemetry has it
		ctx, span := s.config.Tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		inner, served := r.WithContext(ctx), false
		defer func() {
			r.Pattern = inner.Pattern // the mux has written it into the copy; the frame counts and logs by it
			traceResponse(span, inner, w, served)
		}()
		next.ServeHTTP(w, inner)
		served = true
	})
}

// traceResponse says in the span of a request what became of it, and ends it. What was not served to its end panicked: the frame answers after this.
func traceResponse(span trace.Span, r *http.Request, w http.ResponseWriter, served bool) {
	if r.Pattern != "" { // else no route was looked for yet, and the method stands for it
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
