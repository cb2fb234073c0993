package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// parkRetryDelay is after how long a run is tried again that could not be parked because the audit
// log could not be written.
const parkRetryDelay = time.Minute

// park returns the release of a run that failed too often: it waits until an operator calls Retry.
// The audit line is written before; if the process fails in between there is a second line, which
// is better than a parked run without one. A run that has another owner by now, or is over, has
// none.
func (w *Worker) park(ctx context.Context, work *store.ClaimedRun) store.Release {
	run := work.Run
	c := txn.New(run, docs.RunMeta{}, time.Time{})
	if err := w.store.Renew(ctx, work.Lease, w.config.Lease); errors.Is(err, store.ErrFenced) {
		return store.Release{}
	}
	err := c.AddAudit(auditrec.SystemActor, c.AuditPlace(), audit.RunParked{Attempts: run.Attempts})
	if err == nil {
		err = w.store.CommitWrites(ctx, run.Account, c.Writes)
	}
	if err != nil {
		w.config.Log.Error("run not parked: audit record cannot be written", "account", run.Account, "run", run.ID, "err", err)
		return store.Release{Delay: parkRetryDelay}
	}
	return store.Release{Park: true}
}

// noteParked counts and logs a parked run.
func (w *Worker) noteParked(run store.Run, why error) {
	w.stats.NoteParked()
	w.config.Log.Error("run parked", "account", run.Account, "run", run.ID, "attempts", run.Attempts, "why", background.ErrorClass(why))
}

// Retry continues a parked or failed run on behalf of an actor; the zero From is the system. It
// returns ErrNotRetryable with the reason.
func (w *Worker) Retry(ctx context.Context, account, stateKey string, by desk.From) error {
	run, err := w.docs.FindRun(ctx, account, stateKey)
	if err != nil {
		return err
	}
	problem, revision, err := w.docs.Problem(ctx, account, run.ID)
	if err != nil {
		return err
	}
	if err := w.checkRetryable(ctx, run, problem); err != nil {
		return err
	}
	c := txn.New(run, docs.RunMeta{}, time.Time{})
	if err := c.AddAudit(auditrec.ActorOrSystem(by), c.AuditPlace(), audit.RunRetried{Attempts: run.Attempts}); err != nil {
		return err
	}
	if revision > 0 { // it gets all its attempts again
		problem.Crashes, problem.AloneCrashes, problem.Excused, problem.AloneFence = 0, 0, 0, 0
		change, err := docs.ProblemChange(run.ID, problem, revision)
		if err != nil {
			return err
		}
		c.Documents = append(c.Documents, change)
	}
	if _, err = w.store.Retry(ctx, account, run.ID, c.Writes); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q was retried by another request, or its state key has a newer run", errs.ErrNotRetryable, stateKey)
	}
	w.WakeWorker()
	return err
}

// checkRetryable returns why a run cannot be retried; nil if it can.
func (w *Worker) checkRetryable(ctx context.Context, run store.Run, problem docs.Problem) error {
	switch run.Status {
	case store.StatusParked:
		return nil
	case store.StatusFailed:
	default:
		return fmt.Errorf("%w: %q is %s", errs.ErrNotRetryable, run.StateKey, run.Status)
	}
	if problem.Code == "" {
		return fmt.Errorf("%w: the reason of the failure of %q was not recorded; start a new run", errs.ErrNotRetryable, run.StateKey)
	}
	if problem.Final {
		return fmt.Errorf("%w: the failure of %q is final (%s: %s); start a new run", errs.ErrNotRetryable, run.StateKey, problem.Code, problem.Message)
	}
	_, err := w.store.Load(ctx, store.Key{Account: run.Account, Run: run.ID})
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q failed before its first step was saved; start a new run", errs.ErrNotRetryable, run.StateKey)
	}
	return err
}
