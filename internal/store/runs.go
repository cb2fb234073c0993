package store

import (
	"context"
	"time"
)

// Runs stores the state of runs that the executor needs: ownership, interrupts, decisions and
// effects. Every method is one transaction, is durable when it returns, and is safe for concurrent
// use by any number of processes. An error that is not named here means that the outcome is
// unknown; repeating the call is always safe.
//
// The state machine of a run. Each arrow into running raises the fence. An expired lease only
// allows another worker to claim the run.
//
//	          Create                 Claim                 EndExecution
//	            │        ┌───────────────────────┐  ┌─────▶ completed, failed
//	            ▼        │                       ▼  │
//	waiting ──Decide──▶ ready ◀──EndExecution───running ──EndExecution──▶ waiting
//	   │         Expire    ▲     after a decision  │  ▲
//	   │                   └─ Retry ─ parked ◀─────┘  └── Claim: the lease expired
//	   │                      or failed            │
//	   └──────────────┴──── Cancel ────┴───────────┴─────▶ cancelled, superseded
//
// An interrupt is pending until it is decided, exactly once, by a person, the clock or a policy, or
// until it is withdrawn because the run no longer raises it. An effect is started, and then
// succeeded or failed. While its outcome is unknown, it stays started, and the executor asks a
// person; to the store that is an interrupt like any other.
type Runs interface {
	// Create creates a run that is owned by NewRun.Owner, with fence 1. It returns ErrExists if the
	// state key has an active run, or if NewRun.AfterGeneration is no longer the newest generation.
	Create(ctx context.Context, run NewRun) (Lease, error)

	// Get returns the newest run of a state key, or ErrNotFound.
	Get(ctx context.Context, account, stateKey string) (Run, error)

	// List returns runs of an account, newest first, without their sealed values.
	List(ctx context.Context, account string, filter RunFilter) ([]Run, error)

	// Claim takes ownership of a run that has work: one that is ready and not delayed or, if there
	// is none, one whose lease expired. With a run id it considers only that run. It returns nil if
	// there is no work.
	Claim(ctx context.Context, claim Claim) (*ClaimedRun, error)

	// Renew extends a lease. It returns ErrFenced if the run has another owner; the caller must
	// stop and must not write for the run again.
	Renew(ctx context.Context, lease Lease, duration time.Duration) error

	// SetProviderRef stores the provider's reference of the run. It returns ErrFenced like Renew.
	SetProviderRef(ctx context.Context, lease Lease, ref []byte) error

	// EndExecution ends an execution. Interrupts in end become visible, and interrupts that the run
	// no longer raises are withdrawn, in one transaction with everything else in end. A run that
	// would wait although it has a decision that was not applied becomes ready instead.
	// EndExecution returns the new status. It returns ErrFenced if the run has another owner, or if
	// the version of the checkpoint is not the one that end.Checkpoint was prepared on.
	EndExecution(ctx context.Context, lease Lease, end ExecutionEnd) (Status, error)

	// Release ends an execution without a result and counts the attempt. The run becomes ready but
	// is not claimed before the delay is over, or it becomes parked until Retry. Nothing else
	// changes. It returns ErrFenced.
	Release(ctx context.Context, lease Lease, release Release) error

	// Retry makes a parked or failed run ready and sets its attempts to 0. It returns ErrNotFound
	// if the run is neither, or if it failed and its state key has a newer run; then it writes
	// nothing. The outcome of a failed run stays until its next execution ends.
	Retry(ctx context.Context, account, run string, writes Writes) (Run, error)

	// Decide records a decision, either all of its answers or none, and returns a receipt.
	//
	// A resume id gets one receipt. Repeating the same decision returns the same receipt; another
	// decision with the same id returns ErrResumeIDReused. A decision that cannot be accepted is
	// not an error: the receipt has the reason. For a run that does not exist the result is
	// ResultNotFound, and no receipt is stored, because it would never be deleted.
	//
	// A waiting run that has work now becomes ready. With Decision.Claim it is claimed in the same
	// transaction.
	//
	// Decide returns ErrInvalid for a decision without answers, and for an acceptable decision that
	// approves an action without naming its digest. It returns ErrStale, and records nothing, for
	// an acceptable decision whose Writes do not change the request of each interrupt that it
	// decides. It also returns ErrStale for a decision that has Writes and cannot be accepted,
	// because the Writes were prepared for open interrupts.
	Decide(ctx context.Context, decision Decision) (DecisionReceipt, error)

	// Receipt returns the receipt of a resume id, or ErrNotFound. The receipt has the outcome of
	// the execution that applied the decision once there is one.
	Receipt(ctx context.Context, account, actor, resumeID string) (DecisionReceipt, error)

	// Interrupts returns all interrupts of a run in the order in which they became visible.
	Interrupts(ctx context.Context, account, run string) ([]Interrupt, error)

	// BeginEffect records in the effect ledger that an effect is about to be called. It returns
	// ErrFenced, or ErrNotApproved if no decision approves exactly this effect. If the effect was
	// begun before, it returns the existing entry with begun false; the caller must not call the
	// effect as if it were new. For an effect that a policy allows, the ruling is recorded with it.
	// If people were asked about the effect, they decide, and the result is ErrNotApproved.
	BeginEffect(ctx context.Context, lease Lease, effect NewEffect) (entry Effect, begun bool, err error)

	// EndEffect records in the effect ledger how an effect ended. It needs no lease, because a
	// worker that has lost the run must also be able to record the result. It returns ErrNotFound
	// for an effect that was never begun, and does nothing for one that has ended.
	EndEffect(ctx context.Context, end EffectEnd) error

	// Expire sets the verdict VerdictExpire on pending interrupts whose deadline has passed, at
	// most limit, and returns them. If until is not zero, deadlines after until have not passed,
	// regardless of the store's clock, which may have jumped since the caller read it.
	//
	// writes, if not nil, returns the writes for each interrupt. It gets the interrupt and its
	// request, if there is one, and must not use the store. An interrupt whose writes are stale is
	// left for the next call. An interrupt whose request gets a new deadline is postponed: it stays
	// pending and is not returned.
	Expire(ctx context.Context, until time.Time, limit int, writes func(Interrupt, *Document) Writes) ([]Interrupt, error)

	// Cancel ends an active run as cancelled or superseded and withdraws its interrupts. The owner
	// is fenced. It returns ErrNotFound if that run is not active, even if another run has its
	// state key. If waits is not nil and does not list exactly the pending interrupts of the run,
	// Cancel returns ErrStale: the run changed after the caller read it, and other writes are
	// needed.
	Cancel(ctx context.Context, account, run string, as Status, waits []string, writes Writes) (Run, error)

	// Fenced returns the checkpoints of a run for its owner. A save returns ErrFenced if the run
	// has another owner.
	Fenced(lease Lease) Checkpoints

	// Now returns the time of the store's clock, which decides about leases and deadlines.
	Now(ctx context.Context) (time.Time, error)
}

// Status is the state of a run. The zero value is not a valid status.
type Status string

// The states of a run.
const (
	StatusReady      Status = "ready"      // waits for a worker
	StatusRunning    Status = "running"    // has an owner
	StatusWaiting    Status = "waiting"    // waits for decisions
	StatusParked     Status = "parked"     // waits for an operator, after too many attempts
	StatusCompleted  Status = "completed"  // ended
	StatusFailed     Status = "failed"     // ended
	StatusCancelled  Status = "cancelled"  // ended by a cancel request
	StatusSuperseded Status = "superseded" // ended because a new run took its state key
)

// Active reports whether the run has not ended.
func (s Status) Active() bool {
	switch s {
	case StatusReady, StatusRunning, StatusWaiting, StatusParked:
		return true
	}
	return false
}

// Run is the stored state of a run.
type Run struct {
	Account, ID string
	// StateKey is the public handle. Of all runs with the same state key, the one with the highest
	// generation is the newest.
	StateKey   string
	Generation int
	Provider   string
	Graph      string
	// ProviderRef is the provider's own reference of the run, Input the start input, Outcome the
	// outcome of the last execution. The caller seals all three.
	ProviderRef, Input, Outcome []byte
	// InputDigest identifies repetitions of the same start.
	InputDigest string
	Status      Status
	Fence       int64
	// Owner and LeaseUntil are set while the run is running.
	Owner      string
	LeaseUntil time.Time
	// Attempts counts releases and takeovers since the last EndExecution.
	Attempts         int
	Created, Updated time.Time
}

// NewRun is a run to create.
type NewRun struct {
	Account, ID, StateKey string
	// AfterGeneration is the generation of the newest run of this state key; 0 if there is none.
	AfterGeneration    int
	Provider, Graph    string
	ProviderRef, Input []byte
	InputDigest        string
	Owner              string
	Lease              time.Duration
	Writes             Writes
}

// Lease is the right to write for a run. It is valid until another owner gets a higher fence. An
// expired lease only allows others to claim the run.
type Lease struct {
	Account, Run string
	Fence        int64
}

// Claim asks for ownership of a run for a duration; the owner has to renew it.
type Claim struct {
	Owner string
	Lease time.Duration
	// Account and Run, if set, select one run.
	Account, Run string
}

// Release controls when a run may be claimed again.
type Release struct {
	// Delay is the time until the run may be claimed.
	Delay time.Duration
	// Park keeps the run parked until Retry is called.
	Park bool
}

// RunFilter selects runs.
type RunFilter struct {
	// Status, Provider and Graph restrict the result if they are not empty.
	Status          []Status
	Provider, Graph string
	// Before is the position of the last run of the previous page; zero starts at the newest. Limit
	// is the page size, at most 1000; 0 means 100.
	Before RunPosition
	Limit  int
}

// RunPosition is the position of a run in a list: its creation time, then its id.
type RunPosition struct {
	Created time.Time
	ID      string
}

// ClaimedRun is a run that was claimed.
type ClaimedRun struct {
	Lease Lease
	Run   Run
	// Decided lists the interrupts whose decision was not applied yet. The provider may have seen
	// the answers if the former owner crashed after it delivered them.
	Decided []Interrupt
	// TakenOver reports that the run had another owner whose lease expired.
	TakenOver bool
}

// ExecutionEnd is the result of an execution.
type ExecutionEnd struct {
	// Status is StatusWaiting, StatusCompleted or StatusFailed.
	Status Status
	// Open lists every interrupt that the run waits for, including known ones.
	Open []NewInterrupt
	// Applied lists the ids of interrupts whose answers the provider has taken.
	Applied []string
	// Outcome, sealed by the caller, is stored with the run and with the resumes that were applied.
	Outcome []byte
	// Checkpoint, if set, is the last save of the run's checkpoint.
	Checkpoint *CheckpointSave
	Writes     Writes
}

// CheckpointSave is a change of a checkpoint within another transaction; see [Checkpoints].
type CheckpointSave struct {
	BaseVersion int64
	Delta       Delta
	// Drop removes the checkpoint instead of changing it. Delta must be empty then.
	Drop bool
}
