package desk

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/timespan"
)

// MaxUndo is the longest undo window of a requirement.
const MaxUndo = timespan.Duration(10 * time.Minute)

// PendingDecision is a decision that is not in effect yet. The voter whose vote completed it can
// withdraw that vote until EffectiveAt. The votes are counted again then.
type PendingDecision struct {
	// By is the voter. At is the time of the vote.
	By string    `json:"by"`
	At time.Time `json:"at"`
	// EffectiveAt is the end of the undo window, or the deadline of the request if that is earlier.
	EffectiveAt time.Time `json:"effective_at"`
	Outcome     Outcome   `json:"outcome"`
	// Reason is the reason of an approval. The run gets it with the decision.
	Reason string `json:"reason,omitempty"`
}

// String returns the decision for people: "approved by ann, effective at 12:00:30 UTC".
func (p PendingDecision) String() string { return p.withTime("15:04:05 UTC") }

// withTime is String with the end of the undo window in a layout.
func (p PendingDecision) withTime(layout string) string {
	return Decision{Outcome: p.Outcome, By: []string{p.By}}.String() + ", effective at " + p.EffectiveAt.UTC().Format(layout)
}

// Undo withdraws the vote that completed a pending decision. Only the voter can do that, and the
// system if the decision cannot take effect. The request is open again without the vote. An edit of
// the arguments stays.
type Undo struct {
	From
	Reason string
}

// hold makes a decision pending until the end of the undo window.
func (d *update) hold(v Vote, f Decision) {
	p := PendingDecision{By: v.By, At: d.now, EffectiveAt: earliest(d.now.Add(time.Duration(d.r.Requirement.Undo)), d.r.Deadline), Outcome: f.Outcome, Reason: d.note}
	d.r.Pending = &p
	d.logEvent(EventDecisionPending, "decided it: "+string(f.Outcome)+", effective at "+p.EffectiveAt.Format(time.RFC3339), map[string]string{"effective_at": p.EffectiveAt.Format(time.RFC3339Nano)})
}

// applyPending makes the pending decision effective. The votes are counted again: if they no longer
// suffice, for example because the voter has left the group, the request stays open.
func (d *update) applyPending() error {
	p := *d.r.Pending
	i := d.voteOf(p.By)
	var f *Decision
	if i >= 0 {
		var err error
		if f, err = d.decisionFor(d.r.Votes[i]); err != nil {
			return err
		}
	}
	d.r.Pending = nil
	if f == nil {
		d.logEvent(EventVoteWithdrawn, "voided the decision of "+p.By+": the votes no longer suffice", nil)
		return d.updateProgress()
	}
	v := d.r.Votes[i]
	d.from = From{Actor: PersonActor(v.By, v.Auth), Via: v.Via}
	d.concludeWith(*f, d.voteDetail(v))
	return nil
}

// voteDetail returns the details of a vote that the record of the decision repeats: what the voter
// saw, and their groups.
func (d *update) voteDetail(v Vote) map[string]string {
	i := slices.IndexFunc(d.r.Log, func(e Event) bool { return e.Type == EventVoted && e.Rev == v.Rev && e.By == v.By })
	if i < 0 {
		return nil
	}
	detail := maps.Clone(d.r.Log[i].Detail)
	maps.DeleteFunc(detail, func(key, _ string) bool {
		return !slices.Contains([]string{"shown", "rendering", "groups", "codes"}, key)
	})
	return detail
}

func (d *update) voteOf(person string) int {
	return slices.IndexFunc(d.r.Votes, func(v Vote) bool { return v.By == person })
}

func (a Undo) apply(d *update) error {
	p := d.r.Pending
	switch {
	case p == nil:
		return d.refuse(ErrNothingToUndo, "")
	case a.Actor.Kind != ActorSystem && a.Actor.ID != p.By:
		return d.refuse(ErrNotPermitted, "only "+p.By+" can withdraw the vote")
	case a.Actor.Kind != ActorSystem && !d.now.Before(p.EffectiveAt):
		return &ClosedError{State: StateDecided, Outcome: p.Outcome, By: []string{p.By}, At: p.EffectiveAt}
	}
	if err := d.checkText(a.Reason, false); err != nil {
		return err
	}
	edited := false
	if i := d.voteOf(p.By); i >= 0 {
		edited = d.r.Edit != nil && d.r.Edit.By == p.By && d.r.Edit.At.Equal(d.r.Votes[i].At)
		d.r.Votes = slices.Delete(d.r.Votes, i, i+1)
	}
	d.r.Pending = nil
	text := "withdrew the vote"
	if a.Actor.ID != p.By {
		text += " of " + p.By
	}
	if a.Reason != "" {
		text += ": " + strings.TrimSpace(a.Reason)
	}
	d.logEvent(EventVoteWithdrawn, text, map[string]string{"of": p.By})
	if err := d.updateProgress(); err != nil {
		return err
	}
	if edited { // others have to approve the edit
		d.restartRoute(d.now)
	}
	if d.now.Before(d.r.Deadline) {
		d.runDueSteps()
	}
	return nil
}
