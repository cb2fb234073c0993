package gate

import (
	"cmp"
	"strings"
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

// Signal is the answer. In JSON only "approved" is required.
type Signal struct {
	Approved bool `json:"approved"`
	// ApprovedAt is the time of the decision, also for a rejection. A server writes it. Without a
	// server the default is the time at which the run continues.
	ApprovedAt time.Time `json:"approvedAt,omitzero" attest:"at"`
	// Feedback is a comment, in particular what to improve.
	Feedback string `json:"feedback,omitempty"`
	// ApprovedBy is the person who decided. A server writes it, and how the person was
	// authenticated, and the rule if a rule decided.
	ApprovedBy string `json:"approvedBy,omitempty" attest:"by"`
	Auth       string `json:"auth,omitempty" attest:"auth"`
	Rule       string `json:"rule,omitempty" attest:"rule"`
}

// Record is one decision in the history of a run.
type Record struct {
	Gate     string `json:"gate"`
	Approved bool   `json:"approved"`
	// At is the time of the decision, in UTC.
	At       time.Time `json:"approvedAt"`
	Feedback string    `json:"feedback,omitempty"`
	By       string    `json:"approvedBy,omitempty"`
	// Auth is how the person was authenticated, Rule the rule that decided; see
	// [fermata.Attestation].
	Auth string `json:"auth,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Returned reports that the gate was returned for redesign: it was neither approved nor
	// rejected. Feedback has the reason.
	Returned bool `json:"returned,omitempty"`
}

// refused returns the record of a gate that ended without a signal: returned for redesign, or
// rejected. It has no gate id.
func refused(err error) (Record, bool) {
	switch e := err.(type) {
	case *fermata.ReturnedError:
		return Record{At: e.At.UTC(), Feedback: e.Reason, By: e.By, Auth: e.Auth, Returned: true}, true
	case *fermata.RejectedError:
		return Record{At: e.At.UTC(), Feedback: cmp.Or(e.Reason, strings.Join(e.Codes, ", ")), By: e.By, Auth: e.Auth}, true
	}
	return Record{}, false
}
