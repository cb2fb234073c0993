package executor_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// A trace shows the start, the wait and the resume with their links, and no data of the run.
func TestTrace_WaitIsVisibleAndTheResumeLinksToTheStart(t *testing.T) {
	drawn := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(drawn)).Tracer("test")
	d := new(dropper)
	e := d.executor(t, memory.NewStore(nil), func(c *executor.Config) { c.Tracer = tracer })
	startDrop(t, e)
	completed(t, mustRun(t, e, addressed(t, e, decision("1", "approve"))))
	byName := make(map[string][]sdk.ReadOnlySpan)
	for _, span := range drawn.Ended() {
		byName[span.Name()] = append(byName[span.Name()], span)
		for _, a := range append(span.Attributes(), attribute.String("status", span.Status().Description)) {
			if text := a.Value.String(); strings.Contains(text, "users") || strings.Contains(text, "drop-1") {
				t.Errorf("I7: span %s contains %s", span.Name(), text)
			}
		}
	}
	if len(byName["fermata.start"]) != 1 || len(byName["fermata.execute"]) != 2 || len(byName["fermata.wait"]) != 1 || len(byName["fermata.decide"]) != 1 {
		t.Fatalf("spans: %v", byName)
	}
	begun := byName["fermata.start"][0].SpanContext().SpanID()
	for _, name := range []string{"fermata.execute", "fermata.wait", "fermata.decide"} {
		span := byName[name][len(byName[name])-1]
		if links := span.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != begun {
			t.Errorf("%s links to %v, not to the start", name, links)
		}
	}
	asks, goesOn, wait := byName["fermata.execute"][0], byName["fermata.execute"][1], byName["fermata.wait"][0]
	if len(asks.Events()) != 1 || asks.Events()[0].Name != "fermata.asked" {
		t.Errorf("events of the asking span: %v", asks.Events())
	}
	if wait.StartTime().Before(asks.StartTime()) || wait.EndTime().After(goesOn.EndTime()) || wait.Parent().SpanID() != goesOn.SpanContext().SpanID() {
		t.Errorf("the wait is from %v to %v", wait.StartTime(), wait.EndTime())
	}
}

// Regression: each attempt of the following execution recorded the wait again. A webhook that
// succeeded at the tenth attempt looked like ten requests.
func TestTrace_RetriedExecutionRecordsTheWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn := tracetest.NewSpanRecorder()
		p := &scripted{execute: func(n int64, e provider.Execution) (provider.Result, error) {
			switch {
			case n == 1:
				return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}}}}}, nil
			case n < 4:
				return provider.Result{}, &fermata.RetryError{After: time.Minute, Err: errors.New("not now")}
			}
			return provider.Result{Outcome: provider.Completed{Content: "done"}, Applied: []string{e.Answers[0].InterruptID}}, nil
		}}
		e := executorOf(t, memory.NewStore(nil), p, func(c *executor.Config) {
			c.Tracer, c.Poll = sdk.NewTracerProvider(sdk.WithSpanProcessor(drawn)).Tracer("test"), time.Second
		})
		e.StartWorkers()
		asked := mustRun(t, e, scriptedStart()).(fermata.NeedsInput)
		answer := answerTo(asked.Interrupts[0].ID, "1")
		answer.Wait = time.Hour
		completed(t, mustRun(t, e, answer))
		synctest.Wait() // the outcome is returned before its span ends
		counts := make(map[string]int)
		for _, span := range drawn.Ended() {
			counts[span.Name()]++
		}
		if counts["fermata.execute"] != 4 || counts["fermata.wait"] != 1 {
			t.Errorf("spans: %v", counts)
		}
	})
}
