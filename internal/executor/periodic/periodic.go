package periodic

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	// JobLease is how long a process holds a job without extending its claim.
	JobLease        = 2 * time.Minute
	jobPollInterval = time.Minute // how often a job is checked for being due
	jobRetryDelay   = time.Minute // after a failure
)

// Job is work on all accounts that is done at intervals, in one process at a time. Its document
// says when it is due. The process that runs it claims it by moving that time, and extends the
// claim while it runs; the revision of the document keeps two processes from claiming it.
//
//	due ──claim──▶ held ──done──▶ due after every
//	 ▲              └── silent for jobLease, or stopped ──▶ due
//	 └───────────────── failed ──▶ due after jobRetryDelay
type Job struct {
	Name     string
	Interval time.Duration
	// visit does the work for one account, and counts it in pass. An error ends the pass.
	VisitAccount func(ctx context.Context, account string, pass *JobResult) error
}

// JobResult is the result of the last run of a job, in whichever process.
type JobResult struct {
	// At is when it was over; zero if it never was.
	FinishedAt time.Time `json:"at,omitzero"`
	// Accounts counts the accounts that were visited, Failed those among them where the work could
	// not be done, Invalid those whose log was changed.
	Accounts int64 `json:"accounts"`
	Failed   int64 `json:"failed"`
	Invalid  int64 `json:"invalid"`
	// Findings counts where audit log, runs and effects do not agree, by severity: of one code some
	// are urgent and others are not.
	Findings map[reconcile.Severity]map[reconcile.FindingCode]int64 `json:"bySeverity,omitempty"`
}

// Add counts a finding.
func (p *JobResult) Add(f reconcile.Finding) {
	if p.Findings == nil {
		p.Findings = make(map[reconcile.Severity]map[reconcile.FindingCode]int64)
	}
	if p.Findings[f.Severity] == nil {
		p.Findings[f.Severity] = make(map[reconcile.FindingCode]int64)
	}
	p.Findings[f.Severity][f.Code]++
}

// JobLoop runs a job whenever it is due, until the executor is stopped.
func (r *Runner) JobLoop(c Job) {
	for !r.background.IsStopping() {
		wait, err := r.RunIfDue(c)
		if err != nil && r.background.Ctx.Err() == nil {
			r.background.LogRepeated("job failed", err, "job", c.Name)
			wait = max(wait, r.poll)
		}
		r.background.Sleep(min(wait, jobPollInterval))
	}
}

// RunIfDue runs a job if it is due and no other process runs it. It returns when to check again.
func (r *Runner) RunIfDue(c Job) (wait time.Duration, err error) {
	var pass JobResult
	paper, err := r.docs.ReadIndex(r.background.Ctx, "", docs.JobKind, c.Name, &pass)
	if err != nil {
		return 0, err
	}
	now, err := r.store.Now(r.background.Ctx)
	if err != nil {
		return 0, err
	}
	if wait := paper.DueAt.Sub(now); wait > 0 && wait <= max(c.Interval, JobLease) { //mutate:job-wait-limited
		return wait, nil
	} // a time that is further away was written by a clock that was wrong
	h := &jobRun{Runner: r, document: paper, result: pass}
	if err := h.extend(now.Add(JobLease)); errors.Is(err, store.ErrStale) {
		return jobPollInterval, nil // another process was faster
	} else if err != nil {
		return 0, err
	}
	return c.Interval, h.perform(c)
}

// jobRun is a job that this process has claimed.
type jobRun struct {
	*Runner
	mu       sync.Mutex
	document store.Document
	result   JobResult
}

// extend writes when the job is due next. It returns ErrStale if another process has claimed it.
func (h *jobRun) extend(next time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.docs.UpdateIndex(h.background.Ctx, &h.document, h.result, next)
}

// perform visits all accounts, and writes the result.
func (h *jobRun) perform(c Job) error {
	ctx, cancel := context.WithCancelCause(h.background.Ctx)
	defer cancel(nil)
	var beating sync.WaitGroup
	over := make(chan struct{})
	beating.Go(func() { h.heartbeatLoop(over, cancel) })
	var pass JobResult
	err := h.visitAccounts(ctx, c, &pass)
	close(over)
	beating.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	now, nowErr := h.store.Now(h.background.Ctx)
	if nowErr != nil {
		return errors.Join(err, nowErr) // the lease will end
	}
	next := now.Add(c.Interval)
	switch {
	case errors.Is(err, store.ErrStale): // another process has it
		return nil
	case errors.Is(err, errs.ErrClosed):
		next, err = now, nil // another process does it
	case err != nil:
		next = now.Add(min(jobRetryDelay, c.Interval))
	default:
		pass.FinishedAt = now
		h.result = pass
	}
	return errors.Join(err, h.extend(next))
}

// heartbeatLoop extends the claim until over is closed. It calls end if another process has claimed
// the job, or the executor is stopped.
func (h *jobRun) heartbeatLoop(over <-chan struct{}, end context.CancelCauseFunc) {
	tick := time.NewTicker(JobLease / 4)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-h.background.Stopping:
			end(errs.ErrClosed)
			return
		case <-tick.C:
			now, err := h.store.Now(h.background.Ctx)
			if err == nil {
				err = h.extend(now.Add(JobLease))
			}
			if errors.Is(err, store.ErrStale) {
				end(err)
				return
			} // any other error may pass: the lease is longer than this
		}
	}
}

// accountsPerPage is how many accounts are listed at a time.
const accountsPerPage = 200

// EachAccount calls visit for every account that has an audit log. Every account with a run has
// one.
func (r *Runner) EachAccount(ctx context.Context, visit func(account string) error) error {
	for after := ""; ; {
		accounts, next, err := r.store.AuditAccounts(ctx, after, accountsPerPage)
		if err != nil {
			return err
		}
		for _, account := range accounts {
			if err := visit(account); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

func (h *jobRun) visitAccounts(ctx context.Context, c Job, pass *JobResult) error {
	return h.EachAccount(ctx, func(account string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		pass.Accounts++
		return c.VisitAccount(ctx, account, pass)
	})
}
