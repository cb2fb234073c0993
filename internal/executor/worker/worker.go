package worker

import (
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// WakeWorker wakes one idle worker.
func (w *Worker) WakeWorker() {
	select {
	case w.workReady <- struct{}{}:
	default:
	}
}

// waitForWork waits until there may be work, but no longer than atMost.
func (w *Worker) waitForWork(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.workReady:
		if w.background.IsStopping() {
			w.WakeWorker() // a nudge wakes one worker, and all have to stop
		}
	case <-w.background.Ctx.Done():
	}
}

// WorkLoop claims runs and executes them, one at a time. Executions that only wait for a remote
// call run outside the worker pool.
func (w *Worker) WorkLoop() {
	for !w.background.IsStopping() {
		work, err := w.claimNext()
		w.background.LogRepeated("claiming work", w.background.NoteWriteError(err))
		if work == nil {
			w.waitForWork(w.config.Poll)
			continue
		}
		if !w.runDetached(work) {
			w.execute(work, Preloaded{})
		}
	}
}

// claimNext claims a run, if one has something to do.
func (w *Worker) claimNext() (*store.ClaimedRun, error) {
	if err := w.RenewOverdue(w.background.Ctx); err != nil {
		return nil, err
	}
	if waits, err := w.contact.InGracePeriod(w.background.Ctx); waits || err != nil { //mutate:takeover-pause-after-outage
		return nil, err
	}
	work, err := w.store.Claim(w.background.Ctx, store.Claim{Owner: w.config.Owner, Lease: w.config.Lease})
	if err == nil {
		w.contact.NoteReply()
	}
	return work, err
}

// maxDetached is how many executions that only wait for a remote call run outside the worker pool.
// Each renews its lease. Further ones use workers.
const maxDetached = 512

// runDetached executes a claimed run outside the worker pool if it only waits for a remote call. It
// returns false if the worker has to execute it.
func (w *Worker) runDetached(work *store.ClaimedRun) bool {
	p, err := w.providers.Of(work.Run)
	if err != nil || !p.Capabilities().Remote {
		return false
	}
	if w.detachedNow.Add(1) <= maxDetached && w.background.Go(func() {
		defer w.detachedNow.Add(-1)
		w.execute(work, Preloaded{})
	}) {
		return true
	}
	w.detachedNow.Add(-1)
	return false
}
