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
//	   │                   └─ End, Retry ─ parked ◀┘  └── Claim: the lease is over
//	   └──────────────┴──── Cancel ────┴───────────┴─────▶ cancelled, superseded
//
// An interrupt is pending until it is decided, once and for ever, by a person, the clock or a policy; or withdrawn, because the
// run no longer asks. An effect is started, and then succeeded, failed or (nobody knows) indeterminate.
type Runs interface {
	// Create begins a run, owned by whoever creates it, with fence 1. It returns ErrExists if a run of that state key is alive, or if one was created
	// since the caller looked: NewRun.After is not the newest any more.
	Create(ctx context.Context, run NewRun) (Lease, error)

	// Get returns the newest run of a state key, or ErrNotFound.
	Get(ctx context.Context, account, stateKey string) (Run, error)

	// List returns runs of an account, the newest first, without what is sealed in them.
	List(ctx context.Context, account string, filter Filter) ([]Run, error)

	// Claim takes a run that has something to do: one that is ready, and not delayed, or, if there is none, one whose owner's lease is over.
	// With a run id it looks at that run alone. It returns nil if there is nothing to do.
	Claim(ctx context.Context, claim Claim) (*Work, error)

	// Renew extends a lease. It returns ErrFenced if the run has another owner by now: stop, and write nothing more.
	Renew(ctx context.Context, lease Lease, duration time.Duration) error

	// SetRef notes how the provider calls the run. It returns ErrFenced like Renew.
	SetRef(ctx context.Context, lease Lease, ref []byte) error

	// Rest gives a run back. What it waits for becomes visible here, together with everything else in rest; what it no longer
	// asks is withdrawn. A run that would wait although something was decided and not applied, or be parked although nothing is in
	// doubt any more, becomes ready instead. It returns what the run is now, or ErrFenced: also if the run's state is not the one that
	// Rest.State was prepared on.
	Rest(ctx context.Context, lease Lease, rest Rest) (Status, error)

	// Release gives a run back undone, and counts the attempt. It becomes ready, but not before the delay is over; or parked, if
	// somebody has to look at it first. Nothing else changes. It returns ErrFenced.
	Release(ctx context.Context, lease Lease, release Release) error

	// Retry makes a parked run ready, with no attempts counted: somebody has looked at it. It returns ErrNotFound if no run of that
	// state key is parked.
	Retry(ctx context.Context, account, stateKey string) (Run, error)

	// Decide records a decision, all of its answers or none. A resume id is answered once: the same decision again gets
	// the same receipt; another one under the same id gets ErrReused. What cannot be decided is no error but a receipt that
	// says why. A run that waits and has something to do now becomes ready; with Decision.Claim it is taken at once, if it can be, as by
	// Claim. One on a run that is not there is not found, and not kept: nobody would ever forget it. A decision without answers is ErrKey. One that would be accepted, and does not bring the change of each request that it
	// decides, is ErrStale: nothing is recorded of it.
	Decide(ctx context.Context, decision Decision) (Receipt, error)

	// Resumed returns the receipt of a resume id, with the outcome of the execution that applied it once there is one, or
	// ErrNotFound.
	Resumed(ctx context.Context, account, actor, resumeID string) (Receipt, error)

	// Interrupts returns all interrupts of a run, in the order in which they became visible.
	Interrupts(ctx context.Context, account, run string) ([]Interrupt, error)

	// Begin writes down that an effect is about to happen. It returns ErrFenced; or ErrNotApproved if no decision approves
	// exactly this; or, with begun false, the line that is there already: then the effect must not be called as if it were
	// new. What a policy allows is written down with it, as a decision of the policy; if the question was asked already,
	// it is up to people, and this is ErrNotApproved.
	Begin(ctx context.Context, lease Lease, effect NewEffect) (line Effect, begun bool, err error)

	// End writes down how an effect ended. It needs no lease: whoever did it must be able to say so. A run that is parked for
	// it becomes ready. It returns ErrNotFound for an effect that was never begun, and does nothing for one that has ended.
	End(ctx context.Context, end EffectEnd) error

	// Expire decides what is over its deadline, at most limit interrupts, and returns them. Nothing is approved by it. What is not over by until,
	// if that is not zero, is left, whatever the clock of the store has jumped to since the caller looked at it. beside, if it is not
	// nil, says what is written with each: it gets the interrupt and its request, if it has one, and must not use the store. An
	// interrupt whose papers are stale is left for the next call. One whose request is changed with a deadline is put off: it stays
	// pending until then, and is not among those that are returned.
	Expire(ctx context.Context, until time.Time, limit int, beside func(Interrupt, *Paper) Beside) ([]Interrupt, error)

	// Cancel ends a run that is alive, as cancelled or superseded, and withdraws what it waits for. Its owner is fenced. It
	// returns ErrNotFound if that run is not alive: another one may have its state key by now.
	Cancel(ctx context.Context, account, run string, as Status, beside Beside) (Run, error)

	// Fenced returns the checkpoints of a run, for its owner: a save fails with ErrFenced when there is another one.
	Fenced(lease Lease) Checkpoints

	// Now is the time of the store's clock, by which leases and deadlines are judged.
	Now(ctx context.Context) (time.Time, error)
}

// PutsOff reports whether what is written beside an expiry puts it off: it changes the request, and says when that is over.
func (b Beside) PutsOff(interrupt string) bool {
	for _, p := range b.Papers {
		if p.Kind == RequestPaper && p.ID == interrupt {
			return !p.Deadline.IsZero()
		}
	}
	return false
}

// Status is where a run stands. The zero value is none.
type Status string

// The states of a run.
const (
	Ready      Status = "ready"      // has something to do, and nobody does it
	Running    Status = "running"    // has an owner
	Waiting    Status = "waiting"    // for people
	Parked     Status = "parked"     // for somebody who knows whether an effect happened
	Completed  Status = "completed"  // over
	Failed     Status = "failed"     // over
	Cancelled  Status = "cancelled"  // over, because somebody said so
	Superseded Status = "superseded" // over, because a new run took its state key
)

// Alive reports whether the run is not over.
func (s Status) Alive() bool {
	switch s {
	case Ready, Running, Waiting, Parked:
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
	// Ref is how the provider calls the run, Input what it began with, Outcome how it came to rest last. All three are sealed by the caller.
	Ref, Input, Outcome []byte
	// InputDigest tells apart starts with the same input from others.
	InputDigest string
	Status      Status
	Fence       int64
	// Owner and Until are set while it is running.
	Owner string
	Until time.Time
	// Attempts counts how often it was released or taken over since it came to rest.
	Attempts         int
	Created, Updated time.Time
}

// NewRun is a run to be created.
type NewRun struct {
	Account, ID, StateKey string
	// After is the generation of the newest run of this state key; 0 if there is none.
	After           int
	Provider, Graph string
	Ref, Input      []byte
	InputDigest     string
	Owner           string
	Lease           time.Duration
	Beside          Beside
}

// Lease is the right to write for a run. Only its fence counts: it is good until somebody else gets a higher one.
type Lease struct {
	Account, Run string
	Fence        int64
}

// Claim says who wants to work.
type Claim struct {
	Owner string
	Lease time.Duration
	// Account and Run, if given, name the only run that is wanted.
	Account, Run string
}

// Release says how a run is given back undone.
type Release struct {
	// Delay is how long nobody should try.
	Delay time.Duration
	// Park leaves it until somebody calls Retry.
	Park bool
}

// Filter says which runs are wanted.
type Filter struct {
	// Status, if given, lists the states that are wanted; Provider and Graph, if given, the only ones.
	Status          []Status
	Provider, Graph string
	// Before, if it is not zero, is the place of the last run of the page before. Limit is the size of the page, 1000 at most; 0 is 100.
	Before RunPlace
	Limit  int
}

// RunPlace is where a run stands in a list: by the time it was created, and of those of one time by its id.
type RunPlace struct {
	Created time.Time
	ID      string
}

// Work is a run that was claimed.
type Work struct {
	Lease Lease
	Run   Run
	// Decided are the interrupts whose answers the provider may not have seen.
	Decided []Interrupt
	// TakenOver says that another owner was at work on it.
	TakenOver bool
}

// Rest is how an execution ended.
type Rest struct {
	// Status is Waiting, Parked, Completed or Failed.
	Status Status
	// Open is everything that the run waits for, known already or not.
	Open []NewInterrupt
	// Applied are the ids of interrupts whose answers the provider has taken.
	Applied []string
	// Outcome, sealed by the caller, is kept for the run and for the resumes that were applied.
	Outcome []byte
	// State, if given, is the last save of the run's checkpoint.
	State  *Save
	Beside Beside
}

// Save is a change of a checkpoint that is made with something else, or not at all; see [Checkpoints].
type Save struct {
	Base  int64
	Delta Delta
	// Drop removes the checkpoint instead of changing it. Then Delta is empty.
	Drop bool
}

// NewInterrupt is a question that becomes visible. Its id is unique in the account.
type NewInterrupt struct {
	ID, Address, Kind string
	// Data is the question, sealed by the caller; Schema that of the answer.
	Data, Schema []byte
	// Shown is the digest of what is shown, Action that of the action which an approve approves; "" if it approves none.
	Shown, Action string
	// Timeout is how long it may be open, counted from now; 0 is for ever.
	Timeout time.Duration
}

// InterruptState is where an interrupt stands.
type InterruptState string

// The states of an interrupt.
const (
	Pending   InterruptState = "pending"
	Decided   InterruptState = "decided"
	Withdrawn InterruptState = "withdrawn"
)

// Verdict is what a decision says.
type Verdict string

// The verdicts. Only an approve lets an effect begin.
const (
	Approve  Verdict = "approve"
	Reject   Verdict = "reject"
	Answered Verdict = "answer"
	Expired  Verdict = "expire"
)

// Source is who can decide.
type Source string

// Who can decide. The clock can only let a question expire.
const (
	Person Source = "person"
	Clock  Source = "clock"
	Policy Source = "policy"
)

// Interrupt is a question and what became of it.
type Interrupt struct {
	Account, Run string
	NewInterrupt
	Created  time.Time
	Deadline time.Time // zero: none
	State    InterruptState
	// What follows is set once it is decided. Final is the digest of the action that was approved.
	Verdict Verdict
	Final   string
	Answer  []byte // sealed by the caller
	By, Via string
	Source  Source
	At      time.Time
	// ResumeID is the resume that decided it, Applied whether the provider has taken the answer.
	ResumeID string
	Applied  bool
}

// Decision is a person's word on one or several interrupts of a run.
type Decision struct {
	Account, Run string
	// ResumeID is chosen by the caller, Actor is who it is, Body the digest of everything that they said.
	ResumeID, Actor, Body string
	Via                   string
	Answers               []Answer
	// Claim, if given, is by whom the run is taken if the decision is accepted now. Account and Run in it are not looked at.
	Claim *Claim
	// Beside is written if the decision is accepted now.
	Beside Beside
}

// Answer is the word on one interrupt.
type Answer struct {
	Interrupt string
	Verdict   Verdict
	// Shown is the digest of what the person saw; "" if they did not say.
	Shown string
	// Final is the digest of the action that is approved, with approve.
	Final string
	Data  []byte // sealed by the caller
}

// Result is what became of a decision.
type Result string

// What can become of a decision. Only an accepted one changed anything.
const (
	Accepted       Result = "accepted"
	AlreadyDecided Result = "already_decided"
	TooLate        Result = "expired"
	Gone           Result = "superseded"
	Mismatch       Result = "digest_mismatch"
	Unknown        Result = "not_found"
)

// Receipt is what a resume id is answered with, for ever.
type Receipt struct {
	// Run is the run that the decision was about.
	Run    string
	Result Result
	// Interrupt is the one that a refusal is about; empty for an accepted decision.
	Interrupt string
	At        time.Time
	// Outcome, sealed, is that of the execution which applied the decision; nil as long as there is none.
	Outcome []byte
	// Replayed says that this decision was made before.
	Replayed bool
	// Work is the run, if it was taken with the decision.
	Work *Work
}

// NewEffect is an effect that is about to happen.
type NewEffect struct {
	// Interrupt is the approved one, Number counts its effects from 1, Digest is that of the action.
	Interrupt string
	Number    int
	Digest    string
	// Key is what the target knows the effect by.
	Key string
	// Allowed is set if nobody was asked because a policy allows it. Then Interrupt is an id that was never asked.
	Allowed *Allowed
	// Beside is written if the effect is begun now. In an [Effect] it is empty, and Allowed nil.
	Beside Beside
}

// Allowed is the word of a policy.
type Allowed struct {
	Address, Kind string
	Data          []byte // what would have been asked, sealed by the caller
	// By names the policy and its rule.
	By string
}

// EffectState is where an effect stands.
type EffectState string

// The states of an effect.
const (
	Started       EffectState = "started"
	Succeeded     EffectState = "succeeded"
	Faulted       EffectState = "failed"
	Indeterminate EffectState = "indeterminate"
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
	Number    int
	// State is Succeeded, Faulted or Indeterminate.
	State   EffectState
	Receipt []byte
	Error   string
	// Beside is written if this is the first word on how it ended.
	Beside Beside
}
