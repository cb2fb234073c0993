package executor_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// talkative is a provider that reports many events before it completes.
type talkative struct {
	provider.Provider
	words int
}

func (p talkative) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	for range p.words {
		e.ReportProgress(provider.Token{Text: e.Run.StateKey})
	}
	return p.Provider.Execute(ctx, e)
}

type nothing struct{}

// Progress of a run is delivered to its listeners only. A listener that does not read does not
// block the run.
func TestListen_ReceivesProgressWithoutBlockingTheRun(t *testing.T) {
	plain := single(t, "quiet", inproc.FlowConfig[nothing]{}, func(_ context.Context, n nothing) (nothing, error) { return n, nil })
	e := executorOf(t, memory.NewStore(nil), talkative{plain, 1000}, nil)
	mine, stop := e.WatchProgress("acme", "a")
	defer stop()
	foreign, stopForeign := e.WatchProgress("other", "a")
	defer stopForeign()
	gone, stopGone := e.WatchProgress("acme", "a")
	stopGone()
	done := completed(t, began(t, e, "a", "inproc:quiet", `{}`))
	first := <-mine
	if token, ok := first.Progress.(provider.Token); !ok || token.Text != "a" || first.Run != done.Run {
		t.Errorf("received %+v", first)
	}
	if len(foreign) != 0 || len(gone) != 0 {
		t.Errorf("other listeners received %d and %d", len(foreign), len(gone))
	}
	if stats := e.Stats(); len(mine) >= 999 || stats.DroppedProgress+int64(len(mine))+1 < 1000 || stats.Executions != 1 || stats.Running != 0 {
		t.Errorf("%d events are buffered; %+v", len(mine), stats)
	}
}

// Ten thousand clients may listen, most of them without events, so a listener must be small.
func TestListen_UsesLittleMemory(t *testing.T) {
	plain := single(t, "quiet", inproc.FlowConfig[nothing]{}, func(_ context.Context, n nothing) (nothing, error) { return n, nil })
	e := executorOf(t, memory.NewStore(nil), plain, nil)
	const listeners = 10_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range listeners {
		_, stop := e.WatchProgress("acme", "a")
		defer stop()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / listeners; each > 900 {
		t.Errorf("each listener uses %d bytes", each)
	}
}
