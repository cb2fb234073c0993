package gate

import (
	"errors"
	"time"

	"github.com/fermata-go/fermata"
)

// Kind is the kind of question that every gate asks.
var Kind = fermata.NewKind[Question, Signal]("approval-gate")

// Question is what a person sees who stands at a gate.
type Question struct {
	// Gate is the [Approval.ID], Message what to look at, CurrentStatus what [Approval.Status] says.
	Gate          string `json:"gate"`
	Message       string `json:"message"`
	CurrentStatus string `json:"currentStatus"`
}

// Signal is the answer. In JSON "approved" and "approvedAt" must be there: silence is not a decision.
type Signal struct {
	Approved bool `json:"approved"`
	// ApprovedAt is when the person decided, also if the decision is a no.
	ApprovedAt time.Time `json:"approvedAt"`
	// Feedback is what the person wants to be known, above all what to do better.
	Feedback string `json:"feedback,omitempty"`
	// ApprovedBy is who decided.
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// Validate refuses a decision without a time.
func (s Signal) Validate() error {
	if s.ApprovedAt.IsZero() {
		return errors.New("approvedAt is missing: say when this was decided")
	}
	return nil
}

// Record is one decision in the trail of a run.
type Record struct {
	Gate     string `json:"gate"`
	Approved bool   `json:"approved"`
	// At is when the person decided, in UTC.
	At       time.Time `json:"approvedAt"`
	Feedback string    `json:"feedback,omitempty"`
	By       string    `json:"approvedBy,omitempty"`
}
