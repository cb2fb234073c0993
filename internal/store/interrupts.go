package store

import "time"

// NewInterrupt is an interrupt that becomes visible. Its id is unique in the account.
type NewInterrupt struct {
	ID, Address, Kind string
	// Data is the question, sealed by the caller. AnswerSchema is the JSON Schema of the answer.
	Data, AnswerSchema []byte
	// ShownDigest is the digest of what people see. ActionDigest is the digest of the action that
	// an approve approves; "" if there is none.
	ShownDigest, ActionDigest string
	// Timeout is the time until the deadline, counted from now; 0 means no deadline.
	Timeout time.Duration
}

// InterruptState is the state of an interrupt.
type InterruptState string

// The states of an interrupt.
const (
	InterruptPending   InterruptState = "pending"
	InterruptDecided   InterruptState = "decided"
	InterruptWithdrawn InterruptState = "withdrawn"
)

// Verdict is the content of a decision.
type Verdict string

// The verdicts. Only VerdictApprove permits an effect.
const (
	VerdictApprove Verdict = "approve"
	VerdictReject  Verdict = "reject"
	VerdictAnswer  Verdict = "answer"
	VerdictExpire  Verdict = "expire"
)

// Source is the type of actor that made a decision.
type Source string

// The sources of decisions. The clock can only expire an interrupt.
const (
	SourcePerson Source = "person"
	SourceClock  Source = "clock"
	SourcePolicy Source = "policy"
)

// Interrupt is a stored interrupt with its decision.
type Interrupt struct {
	Account, Run string
	NewInterrupt
	Created  time.Time
	Deadline time.Time // zero: none
	State    InterruptState
	// The following fields are set once the interrupt is decided. ApprovedDigest is the digest of
	// the approved action.
	Verdict               Verdict
	ApprovedDigest        string
	Answer                []byte // sealed by the caller
	DecidedBy, DecidedVia string
	Source                Source
	DecidedAt             time.Time
	// ResumeID is the resume that decided the interrupt. Applied reports whether the provider has
	// taken the answer.
	ResumeID string
	Applied  bool
}

// Decision is a person's decision on one or several interrupts of a run.
type Decision struct {
	Account, Run string
	// ResumeID is chosen by the caller. Actor is the person who decides. BodyDigest is the digest
	// of the whole request body.
	ResumeID, Actor, BodyDigest string
	Via                         string
	Answers                     []Answer
	// Claim, if set, claims the run if the decision is accepted and the run has no owner. Its
	// Account and Run are ignored.
	Claim *Claim
	// Writes are applied with the decision. With non-empty Writes the decision is either accepted
	// or not recorded at all.
	Writes Writes
}

// Answer is the decision on one interrupt.
type Answer struct {
	Interrupt string
	Verdict   Verdict
	// ShownDigest is the digest of what the person saw; "" if the client did not send it.
	ShownDigest string
	// ApprovedDigest is the digest of the approved action. It is required to approve an interrupt
	// that has an action.
	ApprovedDigest string
	Data           []byte // sealed by the caller
}

// DecisionResult is the result of a decision.
type DecisionResult string

// The results of a decision. Only an accepted decision changes anything.
const (
	ResultAccepted       DecisionResult = "accepted"
	ResultAlreadyDecided DecisionResult = "already_decided"
	ResultExpired        DecisionResult = "expired"
	ResultWithdrawn      DecisionResult = "superseded"
	ResultDigestMismatch DecisionResult = "digest_mismatch"
	ResultNotFound       DecisionResult = "not_found"
)

// DecisionReceipt is the permanent response to a resume id.
type DecisionReceipt struct {
	// Run is the run that the decision is about.
	Run    string
	Result DecisionResult
	// Interrupt is the interrupt that caused a rejection; empty for an accepted decision.
	Interrupt string
	At        time.Time
	// Outcome, sealed, is the outcome of the execution that applied the decision; nil until there
	// is one.
	Outcome []byte
	// Replayed reports that the decision was recorded by an earlier call.
	Replayed bool
	// Claimed is the run, if it was claimed with the decision.
	Claimed *ClaimedRun
}
