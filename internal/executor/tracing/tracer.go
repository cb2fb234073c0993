// Package tracing draws the spans of runs and decisions.
package tracing

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-go/fermata/internal/executor/docs"
)

// Tracer makes spans. With a nil trace.Tracer it makes none.
type Tracer struct {
	spans trace.Tracer
	docs  *docs.Docs
}

// New returns a tracer.
func New(spans trace.Tracer, docs *docs.Docs) *Tracer { return &Tracer{spans: spans, docs: docs} }
