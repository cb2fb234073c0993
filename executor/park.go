package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor/internal/background"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/store"
)

// parkRetryDelay is after how long a run is tried again that could not be parked, because the audit log could not be written.
const parkRetryDelay = time.Minute

// park is the release of a run that failed too often: it waits until an operator calls Retry. The audit line is written before; if the process dies in
// between there is a second line, which is better than a parked run without one. A run that has another owner by now, or is over, has none.
func (e *Executor) park(ctx context.Context, work *store.ClaimedRun) store.Release {
	run := work.Run
	c := newTx(run, runMeta{}, time.Time{})
	if err := e.store.Renew(ctx, work.Lease, e.config.Lease); errors.Is(err, store.ErrFenced) {
		return store.Release{}
	}
	err := c.addAudit(systemActor, c.auditPlace(), audit.RunParked{Attempts: run.Attempts})
	if err == nil {
		err = e.store.CommitWrites(ctx, run.Account, c.Writes)
	}
	if err != nil {
		e.config.Log.Error("a run cannot be parked, as the log cannot be written", "account", run.Account, "run", run.ID, "err", err)
		return store.Release{Delay: parkRetryDelay}
	}
	return store.Release{Park: true}
}

// parked counts a run that is parked, and tells operators.
func (e *Executor) noteParked(run store.Run, why error) {
	e.stats.NoteParked()
	e.config.Log.Error("a run is parked until somebody looks at it", "account", run.Account, "run", run.ID, "attempts", run.Attempts, "why", background.ErrorClass(why))
}

// Retry lets a parked run go on, on somebody's behalf; the zero From is the system. It returns ErrNotParked if the run is not parked.
func (e *Executor) Retry(ctx context.Context, account, stateKey string, by desk.From) error {
	run, err := e.findRun(ctx, account, stateKey)
	if err != nil {
		return err
	}
	if run.Status != store.StatusParked {
		return fmt.Errorf("%w: %q is %s", errs.ErrNotParked, stateKey, run.Status)
	}
	c := newTx(run, runMeta{}, time.Time{})
	if err := c.addAudit(actorOrSystem(by), c.auditPlace(), audit.RunRetried{Attempts: run.Attempts}); err != nil {
		return err
	}
	if _, err = e.store.Retry(ctx, account, run.ID, c.Writes); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q was, and somebody was faster", errs.ErrNotParked, stateKey)
	}
	e.wakeWorker()
	return err
}
