package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// verb is what a person can do about a request. Each has a key and a word of its own.
type verb uint8

const (
	verbApprove verb = iota
	verbApproveEdited
	verbReject
	verbEscalate
	verbAnswer // with a form of everything that an answer can have
)

// verbs is the table of them. None of the keys is the one that confirms.
var verbs = [...]struct{ key, label, title, done string }{
	verbApprove:       {"a", "approve", "Approve", "Approved"},
	verbApproveEdited: {"e", "approve with edits", "Approve with edits", "Approved with edits"},
	verbReject:        {"r", "reject", "Reject", "Rejected"},
	verbEscalate:      {"x", "escalate", "Escalate", "Escalated"},
	verbAnswer:        {"f", "answer", "Answer", "Answered"},
}

// An offer is a verb that the answer of a request has room for.
type action struct {
	verb verb
	// base is what the verb alone says, reason the name of the member for a reason; "" if there is no room for one.
	base   []rawMember
	reason string
	// act is the name of what is done instead of deciding; "" for a decision.
	act string
}

// IsHold reports whether a request is a graph that was stopped before or after a node. It shows the state of the graph, and its answer has no schema: null
// lets the run go on, and anything else is all of the state, edited.
func IsHold(r api.Request) bool {
	_, held := heldAt(r)
	return held
}

// heldAt is before or after which node a graph was stopped.
func heldAt(r api.Request) (fermata.Segment, bool) {
	at, err := fermata.ParseAddress(r.Address)
	if err != nil || len(at) == 0 || r.AnswerSchema != nil {
		return fermata.Segment{}, false
	}
	last := at[len(at)-1]
	return last, last.Type == fermata.SegmentHold
}

// continueAnswer is the answer that lets a held run go on as it is.
var continueAnswer = json.RawMessage("null")

// says is the answer of the verb alone.
func (o action) answer() json.RawMessage {
	if o.base == nil {
		return continueAnswer
	}
	return writeObject(o.base)
}

// isSaidBy returns an error if an answer says another word than the verb: in a form the word can be changed, and the screen would ask about one thing and send another.
func (o action) checkVerb(answer json.RawMessage) error {
	if len(o.base) == 0 {
		return nil
	}
	word := o.base[0] // what comes behind it, as the time, may differ
	members, _ := rawMembers(answer)
	if said := get(members, word.name); string(said) != string(word.value) {
		return fmt.Errorf("%s is %s here, and not %s: go back and choose what you mean", word.name, firstNonEmpty(string(said), "missing"), word.value)
	}
	return nil
}

// actionsOf finds the verbs in the schema of the answer: that is what the server will check. What it has no room for is not offered.
func actionsOf(r api.Request, now time.Time) []action {
	if r.State != statePending {
		return nil
	}
	if r.Activity != nil && r.Activity.IneligibleReason != "" { // nor does the server let them escalate
		return nil
	}
	offers := decisionActions(r, now)
	if r.Activity != nil && slices.Contains(r.Activity.Verbs, client.ActionEscalate) {
		offers = slices.DeleteFunc(offers, func(o action) bool { return o.verb == verbEscalate })
		offers = append(offers, action{verb: verbEscalate, act: client.ActionEscalate, reason: "reason"})
	}
	return offers
}

func decisionActions(r api.Request, now time.Time) []action {
	s := parseSchema(r.AnswerSchema)
	asked, isApproval := approvalOf(r)
	var offers []action
	if IsHold(r) {
		offers = append(offers, action{verb: verbApprove})
	}
	for _, v := range []verb{verbApprove, verbReject, verbEscalate} {
		if base := s.answerFor(v, now); base != nil {
			offers = append(offers, action{verb: v, base: base, reason: s.reasonField(v)})
		}
		if v == verbApprove && isApproval && len(offers) == 1 && !asked.Fixed && argsOf(r) != nil && s.property("args") != nil {
			offers = append(offers, action{verb: verbApproveEdited, base: offers[0].base})
		}
	}
	if !isApproval || len(offers) == 0 { // the rest of an approval is for the server to fill in
		offers = append(offers, action{verb: verbAnswer})
	}
	return slices.DeleteFunc(offers, func(o action) bool { return !isAllowed(r, o.verb, isApproval) })
}

// serverVerbs are the words with which the server allows a verb on an action. Every answer to anything else is a response.
var serverVerbs = map[verb]string{verbApprove: "approve", verbApproveEdited: "edit", verbReject: "reject", verbAnswer: "respond", verbEscalate: "escalate"}

// isAllowed reports whether the rules for this request let people do that. A server that says nothing checks it later.
func isAllowed(r api.Request, v verb, isApproval bool) bool {
	if r.Activity == nil || len(r.Activity.Verbs) == 0 {
		return true
	}
	if !isApproval {
		v = verbAnswer
	}
	return slices.Contains(r.Activity.Verbs, serverVerbs[v])
}

// answerWords are how a verb is written in an answer.
var answerWords = map[verb]string{verbApprove: string(fermata.VerbApprove), verbReject: string(fermata.VerbReject), verbEscalate: "escalate"}

// say is the answer that says a verb and nothing else; nil if no answer does.
func (s formSchema) answerFor(v verb, now time.Time) []rawMember {
	for _, name := range []string{"verb", "action"} {
		word := jsonString(answerWords[v])
		if slices.ContainsFunc(s.propertySchema(s.property(name)).Enum, func(choice json.RawMessage) bool { return string(choice) == string(word) }) {
			return []rawMember{{name, word}}
		}
	}
	if types, _ := s.propertySchema(s.property("approved")).types(); v == verbEscalate || len(types) != 1 || types[0] != "boolean" {
		return nil
	}
	said := []rawMember{{"approved", json.RawMessage("false")}}
	if v == verbApprove {
		said[0].value = json.RawMessage("true")
	}
	if s.property("approvedAt") != nil { // a gate wants to know when
		said = append(said, rawMember{"approvedAt", jsonString(now.UTC().Format(time.RFC3339))})
	}
	return said
}

// reason is the name of the member for a reason. Why somebody said yes is not asked.
func (s formSchema) reasonField(v verb) string {
	if v == verbApprove {
		return ""
	}
	for _, name := range []string{"reason", "feedback"} {
		if s.property(name) != nil {
			return name
		}
	}
	return ""
}
