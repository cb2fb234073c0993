package tracing

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/store"
)

// A trace shows what a run did, what it waited for, and which decision resumed it. No span is open
// while a run waits: the execution that asks ends, the span of the wait is recorded after it, and
// the execution that continues is linked to the start of the run and to the decision. Spans hold
// names and ids, and no run data.

// Tracer is the configured one, or one that does nothing.
func (t *Tracer) Tracer() trace.Tracer {
	if t.spans == nil {
		return noop.Tracer{}
	}
	return t.spans
}

func runAttributes(run store.Run) trace.SpanStartEventOption {
	return trace.WithAttributes(
		attribute.String("fermata.run.id", run.ID), attribute.String("gen_ai.workflow.name", run.Provider+":"+run.Graph), attribute.Int("fermata.run.attempt", run.Attempts),
	)
}

// linkToStart makes a link of the place that was kept when a run began.
func linkToStart(parent string) []trace.Link {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent})
	at := trace.SpanContextFromContext(ctx)
	if !at.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: at, Attributes: []attribute.KeyValue{attribute.String("fermata.link", "start")}}}
}

// TraceExecution begins the span of an execution.
func (t *Tracer) TraceExecution(ctx context.Context, work *store.ClaimedRun, d docs.RunMeta) (context.Context, trace.Span) {
	return t.Tracer().Start(ctx, "fermata.execute", runAttributes(work.Run), trace.WithLinks(linkToStart(d.Trace)...), trace.WithAttributes(attribute.Bool("fermata.run.taken_over", work.TakenOver)))
}

// TraceWaits draws how long the questions were open that an execution has applied the answers to.
// One that is tried again draws none: a webhook that its receiver takes at the tenth try would be
// ten waits.
func (t *Tracer) TraceWaits(span trace.Span, work *store.ClaimedRun, d docs.RunMeta, applied []string) {
	ctx, links := trace.ContextWithSpan(context.Background(), span), linkToStart(d.Trace)
	for _, i := range work.Decided {
		if !slices.Contains(applied, ids.ProviderID(i.ID)) {
			continue
		}
		_, wait := t.Tracer().Start(ctx, "fermata.wait", trace.WithTimestamp(i.Created), trace.WithLinks(links...), trace.WithAttributes(
			attribute.String("fermata.request.id", i.ID), attribute.String("fermata.kind", i.Kind), attribute.String("fermata.outcome", string(i.Verdict)),
			attribute.String("fermata.decided.source", string(i.Source)), attribute.Int64("fermata.wait_ms", i.DecidedAt.Sub(i.Created).Milliseconds()),
		))
		wait.End(trace.WithTimestamp(i.DecidedAt))
	}
}

// TraceOutcome says in the span of an execution what came of it. What waits is neither good nor
// bad.
func TraceOutcome(span trace.Span, outcome fermata.Outcome, err error) {
	switch o := outcome.(type) {
	case fermata.Completed:
		span.SetStatus(codes.Ok, "")
		span.SetAttributes(attribute.String("fermata.run.status", string(store.StatusCompleted)))
	case fermata.Failed:
		span.SetStatus(codes.Error, o.Code)
		span.SetAttributes(attribute.String("fermata.run.status", string(store.StatusFailed)))
	case fermata.NeedsInput:
		span.SetAttributes(attribute.String("fermata.run.status", string(store.StatusWaiting)))
		for _, i := range o.Interrupts {
			span.AddEvent("fermata.asked", trace.WithAttributes(attribute.String("fermata.request.id", i.ID), attribute.String("fermata.kind", i.Kind)))
		}
	case nil:
		if err != nil {
			// what the error says may be anything
			span.SetStatus(codes.Error, "the execution was not finished")
		}
	}
	span.End()
}

// TraceDecision begins the span of a decision. end ends it, with the result.
func (t *Tracer) TraceDecision(ctx context.Context, run store.Run, via string) (_ context.Context, end func(result string, failed bool)) {
	ctx, span := t.Tracer().Start(ctx, "fermata.decide", runAttributes(run), trace.WithAttributes(attribute.String("fermata.channel", via)))
	return ctx, func(result string, failed bool) {
		if failed {
			span.SetStatus(codes.Error, result)
		}
		span.SetAttributes(attribute.String("fermata.outcome", result))
		if span.IsRecording() {
			if d, err := t.docs.MetaOf(ctx, run.Account, run.ID); err == nil {
				for _, link := range linkToStart(d.Trace) {
					span.AddLink(link)
				}
			}
		}
		span.End(trace.WithTimestamp(time.Now()))
	}
}

// TraceParent returns the traceparent of a context, as it is stored with a run; "" without tracing.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}
