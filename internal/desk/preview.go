package desk

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
)

// Consequence is what a decision of a person would cause now.
type Consequence struct {
	Verb requirement.Verb
	// Err is why the decision would be refused. Nothing else is set then.
	Err error
	// Outcome is how the request would be decided; "" if the decision would count as a vote, and
	// others were still needed.
	Outcome Outcome
	// EffectiveAt is the end of the undo window; zero if the decision would take effect at once.
	EffectiveAt time.Time
	// Progress is the progress of the votes afterwards.
	Progress VoteProgress
}

// Preview returns the consequence of each decision that the request offers, as [Apply] would find
// it: approving what is shown, rejecting it, or giving an answer that no vote has given yet.
func Preview(r Request, person Actor, env Env) (all []Consequence) {
	if r.V != Version || r.State != StateOpen {
		return nil
	}
	from := From{Actor: person, Seen: Seen{Digest: r.Digest()}, Confirm: r.ConfirmText(env.Args)}
	for _, cmd := range []Command{Approve{From: from}, Reject{From: from, Reason: "preview", Codes: r.Requirement.RejectReasons[:min(1, len(r.Requirement.RejectReasons))]}, Respond{From: from, Value: json.RawMessage("null")}} {
		verb := permissions[cmd.name()].verb
		if !slices.Contains(r.Requirement.Verbs, verb) {
			continue
		}
		change, err := Apply(r, cmd, env)
		if err != nil {
			all = append(all, Consequence{Verb: verb, Err: err})
			continue
		}
		c := Consequence{Verb: verb, Progress: change.Request.VoteProgress}
		switch p := change.Request.Pending; {
		case change.Decision != nil:
			c.Outcome = change.Decision.Outcome
		case p != nil:
			c.Outcome, c.EffectiveAt = p.Outcome, p.EffectiveAt
		}
		all = append(all, c)
	}
	return all
}

// HasVoted reports whether a person has a vote in the open stage that still counts.
func (r Request) HasVoted(person string) bool {
	stage := r.openStage()
	counts := func(v Vote) bool {
		return v.By == person && v.Stage == stage && !slices.ContainsFunc(r.VoteProgress.Uncounted, func(u UncountedVote) bool { return u.By == person })
	}
	return slices.ContainsFunc(r.Votes, counts)
}
