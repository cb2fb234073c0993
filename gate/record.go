package gate

import (
	"errors"
	"time"

	"github.com/fermata-go/fermata"
)

// Kind is the kind of the interrupts of all gates.
var Kind = fermata.NewKind[Question, Signal]("approval-gate")

// Question is the question that the approver sees.
type Question struct {
	// Gate is [Approval.ID], Message is [Approval.Message], and CurrentStatus the result of
	// [Approval.Status].
	Gate          string `json:"gate"`
	Message       string `json:"message"`
	CurrentStatus string `json:"currentStatus"`
}

// Signal is the answer. In JSON "approved" and "approvedAt" are required.
type Signal struct {
	Approved bool `json:"approved"`
	// ApprovedAt is the time of the decision, also for a rejection.
	ApprovedAt time.Time `json:"approvedAt"`
	// Feedback is a comment, in particular what to improve.
	Feedback string `json:"feedback,omitempty"`
	// ApprovedBy is the person who decided.
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// Validate rejects a decision without a time.
func (s Signal) Validate() error {
	if s.ApprovedAt.IsZero() {
		return errors.New("approvedAt is missing: set the time of the decision")
	}
	return nil
}

// Record is one decision in the history of a run.
type Record struct {
	Gate     string `json:"gate"`
	Approved bool   `json:"approved"`
	// At is the time of the decision, in UTC.
	At       time.Time `json:"approvedAt"`
	Feedback string    `json:"feedback,omitempty"`
	By       string    `json:"approvedBy,omitempty"`
}
