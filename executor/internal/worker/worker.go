package worker

import (
	"time"

	"github.com/fermata-go/fermata/store"
)

// WakeWorker wakes one idle worker.
func (w *Worker) WakeWorker() {
	select {
	case w.workReady <- struct{}{}:
	default:
	}
}

// waitForWork waits until there may be work, but no longer than saturatingAdd.
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

// WorkLoop is a worker: it claims runs and executes them, one at a time. What only waits for somebody elsewhere it leaves to itself.
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

// maxDetached is how many executions that only wait for somebody elsewhere have no worker. Each renews its lease meanwhile. If there are more, they take
// workers.
const maxDetached = 512

// runDetached executes a claimed run without its worker, if all that it does is to wait. It returns false if the worker has to execute it.
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
