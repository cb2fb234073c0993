package store

import (
	"context"
	"time"
)

// Runs keeps what an executor has to know of its runs: who owns each, what it waits for, who decided what, and which effects
// were begun. Every method is one transaction, durable when it returns, and may be called at once from any goroutine of any
// process. An error that is not named here means that the outcome is unknown: repeating the call is always safe.
//
// The state machine of a run. Each arrow into running raises the fence; a lease only says when somebody else may try.
//
//	          Create                 Claim                     Rest
//	            │        ┌───────────────────────┐  ┌─────▶ completed, failed
//	            ▼        │                       ▼  │
//	waiting ──Decide──▶ ready ◀──Rest: decided──running ──Rest──▶ waiting
//	   │         Expire    ▲        meanwhile      │  ▲
//	   │                   └─── Retry ─── parked ◀─┘  └── Claim: the lease is over
//	   └──────────────┴──── Cancel ────┴───────────┴─────▶ cancelled, superseded
//
// An interrupt is pending until it is decided, once and for ever, by a person, the clock or a policy; or withdrawn, because the
// run no longer asks. An effect is started, and then succeeded or failed. As long as nobody knows, it stays started, and whoever executes the run has a
// person asked: to the store that is a question like any other.
type Runs interface {
	// Create begins a run that is owned by NewRun.Owner, with fence 1. It returns ErrExists if a run of that state key is alive, or if one was created
	// since the caller looked: NewRun.AfterGeneration is not the newest generation any more.
	Create(ctx context.Context, run NewRun) (Lease, error)

	// Get returns the newest run of a state key, or ErrNotFound.
	Get(ctx context.Context, account, stateKey string) (Run, error)

	// List returns runs of an account, the newest first, without what is sealed in them.
	List(ctx context.Context, account string, filter RunFilter) ([]Run, error)

	// Claim takes a run that has something to do: one that is ready, and not delayed, or, if there is none, one whose owner's lease is over.
	// With a run id it looks at that run alone. It returns nil if there is nothing to do.
	Claim(ctx context.Context, claim Claim) (*ClaimedRun, error)

	// Renew extends a lease. It returns ErrFenced if the run has another owner by now: stop, and write nothing more.
	Renew(ctx context.Context, lease Lease, duration time.Duration) error

	// SetRef keeps the provider's own name of the run. It returns ErrFenced like Renew.
	SetProviderRef(ctx context.Context, lease Lease, ref []byte) error

	// ExecutionEnd ends an execution. What the run waits for becomes visible here, together with everything else in rest; questions that it
	// no longer asks are withdrawn. A run that would wait although there is a decision that was not applied becomes ready instead. It returns the
	// status that the run has now, or ErrFenced: also if the version of the run's checkpoint is not the one that ExecutionEnd.Checkpoint was prepared on.
	EndExecution(ctx context.Context, lease Lease, rest ExecutionEnd) (Status, error)

	// Release ends an execution without a result, and counts the attempt. The run becomes ready, but is not claimed before the delay is
	// over; or it becomes parked, until Retry. Nothing else changes. It returns ErrFenced.
	Release(ctx context.Context, lease Lease, release Release) error

	// Retry makes a parked run ready, and sets its attempts to 0. It returns ErrNotFound if the run is not parked; then nothing is written.
	Retry(ctx context.Context, account, run string, beside Writes) (Run, error)

	// Decide records a decision, all of its answers or none, and returns a receipt.
	//
	// A resume id is answered once: the same decision again gets the same receipt, another one under the same id ErrResumeIDReused. A decision
	// that cannot be accepted is no error: the receipt says why. For a run that does not exist the result is Unknown, and no receipt is kept,
	// because it would never be deleted.
	//
	// A waiting run that has something to do now becomes ready; with Decision.Claim it is claimed in the same transaction.
	//
	// It returns ErrInvalid for a decision without answers, and for one that would be accepted and approves an action without saying which; and ErrStale, without
	// recording anything, for one that would be accepted but whose Beside does not change the request of each interrupt that it decides, and for one that has
	// something beside it and cannot be accepted: that was written for questions that were open.
	Decide(ctx context.Context, decision Decision) (DecisionReceipt, error)

	// Resumed returns the receipt of a resume id, with the outcome of the execution that applied it once there is one, or
	// ErrNotFound.
	Receipt(ctx context.Context, account, actor, resumeID string) (DecisionReceipt, error)

	// Interrupts returns all interrupts of a run, in the order in which they became visible.
	Interrupts(ctx context.Context, account, run string) ([]Interrupt, error)

	// Begin enters an effect that is about to happen in the ledger. It returns ErrFenced; or ErrNotApproved if no decision approves
	// exactly this effect; or, with begun false, the line that is there already: then the effect must not be called as if it were
	// new. For an effect that a policy allows, the policy's decision is recorded with it; if people were asked about it, they
	// decide, and this is ErrNotApproved.
	BeginEffect(ctx context.Context, lease Lease, effect NewEffect) (line Effect, begun bool, err error)

	// End enters in the ledger how an effect ended. It needs no lease: also an owner that has lost the run must be able to say so. It
	// returns ErrNotFound for an effect that was never begun, and does nothing for one that has ended.
	EndEffect(ctx context.Context, end EffectEnd) error

	// Expire gives pending interrupts whose deadline has passed the verdict Expired, at most limit of them, and returns them. If until is not
	// zero, deadlines after it have not passed, whatever the store's clock says: it may have jumped since the caller looked at it. beside, if it is not nil,
	// returns what is written with each interrupt; it gets the interrupt and its request, if there is one, and must not use the store. An
	// interrupt whose papers are stale is left for the next call. One whose request is changed with a new deadline is put off: it stays
	// pending until then, and is not returned.
	Expire(ctx context.Context, until time.Time, limit int, beside func(Interrupt, *Document) Writes) ([]Interrupt, error)

	// Cancel ends a run that is alive, as cancelled or superseded, and withdraws what it waits for. Its owner is fenced. It
	// returns ErrNotFound if that run is not alive: another one may have its state key by now. If waits is not nil, it returns ErrStale if these
	// are not the interrupts that the run waits for: since the caller looked it has asked, or somebody has decided, and other things have to be written with its end.
	Cancel(ctx context.Context, account, run string, as Status, waits []string, beside Writes) (Run, error)

	// Fenced returns the checkpoints of a run, for its owner: a save fails with ErrFenced when there is another one.
	Fenced(lease Lease) Checkpoints

	// Now is the time of the store's clock, by which leases and deadlines are judged.
	Now(ctx context.Context) (time.Time, error)
}

// PutsOff reports whether this, written with the expiry of an interrupt, puts the expiry off: it gives the request another deadline.
func (b Writes) Postpones(interrupt string) bool {
	for _, p := range b.Documents {
		if p.Kind == RequestDocument && p.ID == interrupt {
			return !p.InterruptDeadline.IsZero()
		}
	}
	return false
}

// Status is where a run stands. The zero value is none.
type Status string

// The states of a run.
const (
	StatusReady      Status = "ready"      // to be executed
	StatusRunning    Status = "running"    // has an owner
	StatusWaiting    Status = "waiting"    // for people's decisions
	StatusParked     Status = "parked"     // for an operator, after too many attempts
	StatusCompleted  Status = "completed"  // over
	StatusFailed     Status = "failed"     // over
	StatusCancelled  Status = "cancelled"  // over, because somebody said so
	StatusSuperseded Status = "superseded" // over, because a new run took its state key
)

// Alive reports whether the run is not over.
func (s Status) Active() bool {
	switch s {
	case StatusReady, StatusRunning, StatusWaiting, StatusParked:
		return true
	}
	return false
}

// Run is what is known of a run.
type Run struct {
	Account, ID string
	// StateKey is the public handle. Of all runs that had it, the one of the highest generation is the newest.
	StateKey   string
	Generation int
	Provider   string
	Graph      string
	// Ref is the provider's own name of the run, Input what it began with, Outcome how it came to rest last. All three are sealed by the caller.
	ProviderRef, Input, Outcome []byte
	// InputDigest is the same for repetitions of a start, and for nothing else.
	InputDigest string
	Status      Status
	Fence       int64
	// Owner and Until are set while it is running.
	Owner      string
	LeaseUntil time.Time
	// Attempts counts how often it was released or taken over since it came to rest last.
	Attempts         int
	Created, Updated time.Time
}

// NewRun is a run to be created.
type NewRun struct {
	Account, ID, StateKey string
	// After is the generation of the newest run of this state key; 0 if there is none.
	AfterGeneration    int
	Provider, Graph    string
	ProviderRef, Input []byte
	InputDigest        string
	Owner              string
	Lease              time.Duration
	Writes             Writes
}

// Lease is the right to write for a run. It holds until another owner gets a higher fence; that its time is over only lets others claim the run.
type Lease struct {
	Account, Run string
	Fence        int64
}

// Claim says who wants to own a run, and for how long without renewing.
type Claim struct {
	Owner string
	Lease time.Duration
	// Account and Run, if given, name the only run that is wanted.
	Account, Run string
}

// Release says when a run may be tried again.
type Release struct {
	// Delay is how long it is not claimed.
	Delay time.Duration
	// Park leaves it until Retry is called.
	Park bool
}

// RunFilter says which runs are wanted.
type RunFilter struct {
	// Status, if given, lists the states that are wanted; Provider and Graph, if given, the only ones.
	Status          []Status
	Provider, Graph string
	// Before, if it is not zero, is the place of the last run of the page before. Limit is the size of the page, 1000 at most; 0 is 100.
	Before RunPosition
	Limit  int
}

// RunPosition is where a run stands in a list: by the time it was created, and of those of one time by its id.
type RunPosition struct {
	Created time.Time
	ID      string
}

// ClaimedRun is a run that was claimed.
type ClaimedRun struct {
	Lease Lease
	Run   Run
	// InterruptDecided are the interrupts with a decision that was not applied yet. The provider may have seen it all the same, if its owner died after that.
	Decided []Interrupt
	// TakenOver says that the run had another owner, whose lease was over.
	TakenOver bool
}

// ExecutionEnd is how an execution ended.
type ExecutionEnd struct {
	// Status is Waiting, Completed or Failed.
	Status Status
	// Open is everything that the run waits for, known already or not.
	Open []NewInterrupt
	// Applied are the ids of interrupts whose answers the provider has taken.
	Applied []string
	// Outcome, sealed by the caller, is kept for the run and for the resumes that were applied.
	Outcome []byte
	// State, if given, is the last save of the run's checkpoint.
	Checkpoint *CheckpointSave
	Writes     Writes
}

// CheckpointSave is a change of a checkpoint that is made in the transaction of something else; see [Checkpoints].
type CheckpointSave struct {
	BaseVersion int64
	Delta       Delta
	// Drop removes the checkpoint instead of changing it. Then Delta is empty.
	Drop bool
}

// NewInterrupt is a question that becomes visible. Its id is unique in the account.
type NewInterrupt struct {
	ID, Address, Kind string
	// Data is the question, sealed by the caller; Schema that of the answer.
	Data, AnswerSchema []byte
	// Shown is the digest of what is shown, Action that of the action which an approve approves; "" if it approves none.
	ShownDigest, ActionDigest string
	// Timeout is how long it may be open, counted from now; 0 is for ever.
	Timeout time.Duration
}

// InterruptState is where an interrupt stands.
type InterruptState string

// The states of an interrupt.
const (
	InterruptPending   InterruptState = "pending"
	InterruptDecided   InterruptState = "decided"
	InterruptWithdrawn InterruptState = "withdrawn"
)

// Verdict is what a decision says.
type Verdict string

// The verdicts. Only an approve lets an effect begin.
const (
	VerdictApprove Verdict = "approve"
	VerdictReject  Verdict = "reject"
	VerdictAnswer  Verdict = "answer"
	VerdictExpire  Verdict = "expire"
)

// Source is who can decide.
type Source string

// Who can decide. The clock can only let a question expire.
const (
	SourcePerson Source = "person"
	SourceClock  Source = "clock"
	SourcePolicy Source = "policy"
)

// Interrupt is a question and what became of it.
type Interrupt struct {
	Account, Run string
	NewInterrupt
	Created  time.Time
	Deadline time.Time // zero: none
	State    InterruptState
	// What follows is set once it is decided. Final is the digest of the action that was approved.
	Verdict               Verdict
	ApprovedDigest        string
	Answer                []byte // sealed by the caller
	DecidedBy, DecidedVia string
	Source                Source
	DecidedAt             time.Time
	// ResumeID is the resume that decided it, Applied whether the provider has taken the answer.
	ResumeID string
	Applied  bool
}

// Decision is what a person decides on one or several interrupts of a run.
type Decision struct {
	Account, Run string
	// ResumeID is chosen by the caller, Actor is who decides, Body the digest of everything that the request said.
	ResumeID, Actor, BodyDigest string
	Via                         string
	Answers                     []Answer
	// Claim, if given, claims the run if the decision is accepted now and the run has no owner. Account and Run in it are ignored.
	Claim *Claim
	// Writes is written with the decision. If there is something in it the decision is accepted or not recorded at all.
	Writes Writes
}

// Answer is the decision on one interrupt.
type Answer struct {
	Interrupt string
	Verdict   Verdict
	// Shown is the digest of what the person saw; "" if they did not say.
	ShownDigest string
	// Final is the digest of the action that is approved. An approve of an interrupt that has an action needs one.
	ApprovedDigest string
	Data           []byte // sealed by the caller
}

// DecisionResult is what became of a decision.
type DecisionResult string

// What can become of a decision. Only an accepted one changed anything.
const (
	ResultAccepted       DecisionResult = "accepted"
	ResultAlreadyDecided DecisionResult = "already_decided"
	ResultExpired        DecisionResult = "expired"
	ResultWithdrawn      DecisionResult = "superseded"
	ResultDigestMismatch DecisionResult = "digest_mismatch"
	ResultNotFound       DecisionResult = "not_found"
)

// DecisionReceipt is what a resume id is answered with, for ever.
type DecisionReceipt struct {
	// Run is the run that the decision was about.
	Run    string
	Result DecisionResult
	// Interrupt is the one that a refusal is about; empty for an accepted decision.
	Interrupt string
	At        time.Time
	// Outcome, sealed, is that of the execution which applied the decision; nil as long as there is none.
	Outcome []byte
	// Replayed says that this decision was made before.
	Replayed bool
	// ClaimedRun is the run, if it was claimed with the decision.
	Claimed *ClaimedRun
}

// NewEffect is an effect that is about to happen.
type NewEffect struct {
	// Interrupt is the approved one, Number counts its effects from 1, Digest is that of the action.
	Interrupt    string
	Attempt      int
	ActionDigest string
	// Key is the idempotency key for the target of the effect.
	IdempotencyKey string
	// PolicyRuling is set if nobody was asked because a policy allows it. Then Interrupt is an id that was never asked.
	Ruling *PolicyRuling
	// Writes is written if the effect is begun now. In an [Effect] it is empty, and Allowed nil.
	Writes Writes
}

// PolicyRuling is the decision of a policy that an effect needs nobody's approval.
type PolicyRuling struct {
	Address, Kind string
	Data          []byte // what would have been asked, sealed by the caller
	// By names the policy and its rule.
	By string
}

// EffectState is where an effect stands.
type EffectState string

// The states of an effect.
const (
	EffectStarted   EffectState = "started" // and perhaps done
	EffectSucceeded EffectState = "succeeded"
	EffectFailed    EffectState = "failed"
)

// Effect is the ledger's line on an effect.
type Effect struct {
	Account, Run string
	NewEffect
	Fence   int64
	State   EffectState
	Receipt []byte // sealed by the caller
	Error   string
	Started time.Time
	Ended   time.Time
}

// EffectEnd is how an effect ended.
type EffectEnd struct {
	Account   string
	Interrupt string
	Attempt   int
	// State is Succeeded or Faulted.
	State   EffectState
	Receipt []byte
	Error   string
	// Writes is written if the effect had not ended before.
	Writes Writes
}
