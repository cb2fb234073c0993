package executor

import (
	"github.com/fermata-go/fermata/internal/executor/progress"
	"github.com/fermata-go/fermata/internal/executor/stats"
)

// Stats is what this executor has done since it was made, for operators.
type Stats = stats.Stats

// WaitHistogram says how long some requests were open.
type WaitHistogram = stats.WaitHistogram

// WaitBounds are the upper bounds of the counts in [WaitHistogram], in seconds.
var WaitBounds = stats.WaitBounds

// DeliveryCount counts the deliveries of a channel in this process.
type DeliveryCount = stats.DeliveryCount

// CallBounds are the upper bounds of the counts in [DeliveryCount].Calls, in seconds.
var CallBounds = stats.CallBounds

// Progress is something that happens in a run right now, as a step or a token of a model. It is not
// stored.
type Progress = progress.Progress

// Stats returns what this executor has done so far.
func (e *Executor) Stats() Stats {
	s := e.stats.Snapshot()
	s.Unreadable, s.KeyReloadFailing, s.DroppedProgress = e.store.Unreadable(), e.store.KeyErr() != nil, e.progress.Dropped()
	return s
}

// WatchProgress returns the progress of the runs of a state key from now on, as far as this process
// executes them; for the others there are only [Executor.Events]. A slow listener misses some of
// it. The values are shared between listeners and must not be changed. stop has to be called.
func (e *Executor) WatchProgress(account, stateKey string) (progress <-chan *Progress, stop func()) {
	return e.progress.Watch(account, stateKey)
}
