package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// verb is what a person can do with a request. Each has its own key and label.
type verb uint8

const (
	verbApprove verb = iota
	verbApproveEdited
	verbReject
	verbEscalate
	verbAnswer // with a form for the whole answer
	verbHappened
	verbNotHappened
	verbClarify
	verbComment
	verbClaim
	verbRelease
	verbUndo
	verbDelegate
	verbSnooze
)

// verbs is the table of verbs. None of the keys is the confirmation key.
var verbs = [...]struct{ key, label, title, done string }{
	verbApprove:       {"a", "approve", "Approve", "Approved"},
	verbApproveEdited: {"e", "approve with edits", "Approve with edits", "Approved with edits"},
	verbReject:        {"r", "reject", "Reject", "Rejected"},
	verbEscalate:      {"x", "escalate", "Escalate", "Escalated"},
	verbAnswer:        {"f", "answer", "Answer", "Answered"},
	verbHappened:      {"p", "it happened", "It happened", "Answered: it happened"},
	verbNotHappened:   {"n", "it did not happen", "It did not happen", "Answered: it did not happen"},
	verbClarify:       {"t", "ask the agent", "Ask the agent", "Asked"},
	verbComment:       {"c", "comment", "Comment", "Commented"},
	verbClaim:         {"m", "claim", "Claim", "Claimed"},
	verbRelease:       {"m", "release", "Release", "Released"},
	verbUndo:          {"w", "undo", "Undo", "Withdrew your vote"},
	verbDelegate:      {"d", "delegate", "Delegate", "Delegated"},
	verbSnooze:        {"s", "snooze", "Snooze", "Snoozed"},
}

// An action is a verb that the answer schema of a request allows.
type action struct {
	verb verb
	// base is the answer of the verb alone; reason is the member for a reason, or "" if there is
	// none.
	base   schemaform.Members
	reason string
	// act is the name of an action other than a decision; "" for a decision. form is the schema of
	// its form; "" if it has none.
	act  string
	form json.RawMessage
}

// IsHold reports whether a request is a graph held before or after a node. It shows the state of
// the graph, and its answer has no schema: null continues the run, and any other value is the
// edited state.
func IsHold(r api.Request) bool {
	_, held := heldAt(r)
	return held
}

// heldAt returns the node before or after which a graph is held.
func heldAt(r api.Request) (fermata.Segment, bool) {
	at, err := fermata.ParseAddress(r.Address)
	if err != nil || len(at) == 0 || r.AnswerSchema != nil {
		return fermata.Segment{}, false
	}
	last := at[len(at)-1]
	return last, last.Type == fermata.SegmentHold
}

// answer returns the answer of the verb alone.
func (o action) answer() json.RawMessage {
	switch {
	case o.act != "":
		return json.RawMessage("{}")
	case o.base == nil:
		return json.RawMessage("null")
	}
	return o.base.JSON()
}

// checkVerb returns an error if an answer has another verb: a form allows to change it, and the
// confirmation would differ from what is sent.
func (o action) checkVerb(answer json.RawMessage) error {
	if len(o.base) == 0 {
		return nil
	}
	word := o.base[0] // the other members, such as the time, may differ
	members, _ := schemaform.ParseObject(answer)
	if reply := members.Get(word.Name); string(reply) != string(word.Value) {
		return fmt.Errorf("%s is %s, not %s: go back and choose another action", word.Name, firstNonEmpty(string(reply), "missing"), word.Value)
	}
	return nil
}

// actionsOf returns the verbs that the answer schema allows, which is what the server will check.
func actionsOf(r api.Request, me string, now time.Time) []action {
	if r.State != statePending {
		return nil
	}
	if r.Activity == nil {
		return decisionActions(r, now)
	}
	var available []action
	if r.Activity.IneligibleReason == "" {
		available = decisionActions(r, now)
	}
	if vote := ownVote(r.Activity, me); vote != nil && vote.Verb == "approve" {
		available = slices.DeleteFunc(available, func(o action) bool { return o.verb == verbApprove })
	}
	others := actActions(r, me)
	if slices.ContainsFunc(others, func(o action) bool { return o.verb == verbEscalate }) {
		available = slices.DeleteFunc(available, func(o action) bool { return o.verb == verbEscalate })
	}
	return append(available, others...)
}

func decisionActions(r api.Request, now time.Time) []action {
	if takesVerbs(r) {
		return verdictActions(r.Presentation.Actions)
	}
	s := schemaform.New(r.AnswerSchema, nil)
	approval, isApproval := approvalOf(r)
	var available []action
	if _, ok := InDoubtOf(r); ok {
		available = inDoubtActions()
	}
	for _, v := range []verb{verbApprove, verbReject, verbEscalate} {
		if base := answerFor(s, v, now); base != nil {
			available = append(available, action{verb: v, base: base, reason: reasonName(s, v)})
		}
		if v == verbApprove && isApproval && len(available) == 1 && !approval.Fixed && len(r.Masked) == 0 && argsOf(r) != nil && s.Field("args") != nil {
			available = append(available, action{verb: verbApproveEdited, base: available[0].base})
		}
	}
	if !isApproval || len(available) == 0 { // the server fills in the rest of an approval
		available = append(available, action{verb: verbAnswer})
	}
	return slices.DeleteFunc(available, func(o action) bool { return !isAllowed(r, o.verb, isApproval) })
}

// takesVerbs reports whether the request is a gate or a hold: its answer is a verb, which its
// schema does not know.
func takesVerbs(r api.Request) bool {
	return r.Presentation != nil && (r.Presentation.Shape == "gate" || r.Presentation.Shape == "hold")
}

// verdictActions returns the decisions about a gate or a hold.
func verdictActions(all []api.Action) (available []action) {
	verbs := map[string]verb{"approve": verbApprove, "edit": verbApproveEdited, "reject": verbReject}
	for _, a := range all {
		v, known := verbs[a.Name]
		base, ok := schemaform.ParseObject(a.Answer)
		if !known || !ok {
			continue
		}
		o := action{verb: v, base: base}
		if v == verbReject {
			o.reason = "reason"
		}
		available = append(available, o)
	}
	return available
}

// serverVerbs are the names under which the server allows a verb for an action. Every answer to
// another question is a response.
var serverVerbs = map[verb]string{verbApprove: "approve", verbApproveEdited: "edit", verbReject: "reject", verbAnswer: "respond", verbEscalate: "escalate", verbHappened: "respond", verbNotHappened: "respond"}

// isAllowed reports whether the request allows a verb. If the server does not list verbs, it checks
// them later.
func isAllowed(r api.Request, v verb, isApproval bool) bool {
	if r.Activity == nil || len(r.Activity.Verbs) == 0 {
		return true
	}
	if !isApproval {
		v = verbAnswer
	}
	return slices.Contains(r.Activity.Verbs, serverVerbs[v])
}

// answerWords are the values of a verb in an answer.
var answerWords = map[verb]string{verbApprove: string(fermata.VerbApprove), verbReject: string(fermata.VerbReject), verbEscalate: "escalate"}

// answerFor returns the minimal answer for a verb; nil if there is none.
func answerFor(s *schemaform.Field, v verb, now time.Time) schemaform.Members {
	for _, name := range []string{"verb", "action"} {
		word := schemaform.String(answerWords[v])
		if f := s.Field(name); f != nil && slices.ContainsFunc(f.Options, func(o schemaform.Option) bool { return string(o.Value) == string(word) }) {
			return schemaform.Members{{Name: name, Value: word}}
		}
	}
	if f := s.Field("approved"); v == verbEscalate || f == nil || f.Kind != schemaform.Boolean {
		return nil
	}
	members := schemaform.Members{{Name: "approved", Value: json.RawMessage("false")}}
	if v == verbApprove {
		members[0].Value = json.RawMessage("true")
	}
	if s.Field("approvedAt") != nil { // a gate requires the time
		members = members.With(schemaform.Member{Name: "approvedAt", Value: schemaform.String(now.UTC().Format(time.RFC3339))})
	}
	return members
}

// reasonName returns the member for a reason. No reason is asked for an approval.
func reasonName(s *schemaform.Field, v verb) string {
	if v == verbApprove {
		return ""
	}
	for _, name := range []string{"reason", "feedback"} {
		if s.Field(name) != nil {
			return name
		}
	}
	return ""
}
