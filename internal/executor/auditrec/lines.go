// Package auditrec maps changes of requests and refusals to audit lines.
package auditrec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/strictjson"
)

var (
	SystemActor = audit.Actor{Principal: "system:executor", Kind: audit.ActorSystem}
	ClockActor  = audit.Actor{Principal: "system:clock", Kind: audit.ActorClock}
)

// ActorOrSystem converts the origin of a command to the actor of an audit line. It is the system if
// the origin names no actor.
func ActorOrSystem(from desk.From) audit.Actor {
	if from.Actor.ID == "" {
		return SystemActor
	}
	return AuditActor(from)
}

// eventActor is who caused an event, as the audit log has it.
func eventActor(e desk.Event) audit.Actor {
	actor := audit.Actor{Principal: e.By, Kind: audit.ActorPerson, Via: e.Via, Auth: string(e.Auth), MFA: e.Auth.AtLeast(requirement.AuthMFA)}
	switch e.Kind {
	case desk.ActorAgent:
		actor.Kind = audit.ActorAgent
	case desk.ActorSystem:
		actor.Kind = audit.ActorSystem
		if e.By == ClockActor.Principal {
			actor.Kind = audit.ActorClock
		}
	}
	return actor
}

// AuditActor is who does something, as the audit log has it.
func AuditActor(from desk.From) audit.Actor {
	return eventActor(desk.Event{By: from.Actor.ID, Kind: from.Actor.Kind, Auth: from.Actor.Auth, Via: from.Via})
}

// AddAuditLines adds the audit lines of a change.
func AddAuditLines(c *txn.Tx, change desk.Change) error {
	place := c.RequestPlace(change.Request.ID)
	place.Revision = change.Request.Rev
	begins := len(change.Events) > 0 && change.Events[0].Type == desk.EventAsked
	for n, event := range change.Events {
		body := lineOf(c, change, event)
		// what the route does at once when it begins has no lines of its own
		if body == nil || begins && n > 0 {
			continue
		}
		if err := c.AddAudit(eventActor(event), place, body); err != nil {
			return err
		}
		// which counts from there
		if event.Type == desk.EventDelivered && event.Detail["deadline"] != "" {
			if err := c.AddAudit(eventActor(event), place, changedLine(change, event)); err != nil {
				return err
			}
		}
	}
	return nil
}

func changedLine(change desk.Change, event desk.Event) audit.RequestChanged {
	what := string(event.Type)
	if as := event.Detail["as"]; event.Type == desk.EventRouteStep && as != string(desk.StepFired) {
		what += "_" + as // no notice was sent
	}
	return audit.RequestChanged{What: what, Deadline: audit.TimestampOf(change.Request.Deadline)}
}

// lineOf is the audit line of an event; nil if another line of the same change has it.
func lineOf(c *txn.Tx, change desk.Change, event desk.Event) audit.Body {
	doc := change.Request
	switch event.Type {
	case desk.EventAsked:
		return audit.RequestAsked{
			Kind: doc.Subject.Kind, Action: auditAction(c, doc), Question: c.Digest(doc.Subject.ShownDigest), Need: auditNeeds(doc.Requirement), Ruling: auditRuling(doc),
			Route: doc.Route.Name, Deadline: audit.TimestampOf(doc.Deadline),
		}
	case desk.EventViewed:
		return audit.RequestViewed{Shown: audit.Shown{Surface: event.Via, Rendered: c.Digest(doc.Digest()), At: audit.TimestampOf(event.At)}}
	case desk.EventRendered:
		return audit.RequestRendered{Shown: shownLine(c, doc, event, doc.Digest())}
	case desk.EventNoticeFailed:
		attempt, _ := strconv.Atoi(event.Detail["attempt"]) // the desk wrote it
		return audit.RequestDelivered{Surface: event.Detail["target"], State: audit.DeliveryFailed, Attempt: attempt, Error: event.Detail["code"]}
	case desk.EventDelivered:
		return audit.RequestDelivered{Surface: event.Detail["target"], State: audit.DeliveryPosted}
	case desk.EventClaimed:
		return audit.RequestClaimed{}
	case desk.EventReleased:
		return audit.RequestReleased{}
	case desk.EventDelegated:
		return audit.RequestDelegated{To: event.Detail["to"], Reason: c.Digest(event.Detail["reason"])}
	case desk.EventSnoozed:
		return audit.RequestSnoozed{Until: audit.TimestampOf(doc.Snoozed)}
	case desk.EventCommented, desk.EventClarificationAnswered:
		return audit.RequestCommented{Text: c.Digest(writtenText(doc, event))}
	case desk.EventEscalated, desk.EventWidened:
		return audit.RequestEscalated{To: strings.FieldsFunc(event.Detail["to"], isNewlineRune), Step: event.Text, Reason: c.Digest(event.Detail["reason"])}
	case desk.EventClarificationAsked:
		word := voteLine(c, change, event, audit.VerbAskClarification)
		word.Reason = c.Digest(writtenText(doc, event))
		return word
	case desk.EventEdited:
		return voteLine(c, change, event, audit.VerbApproveWithEdits)
	case desk.EventVoted:
		return voteLine(c, change, event, auditVerb(event.Detail["verb"]))
	case desk.EventDecided:
		return finalLine(c, change, event)
	}
	return changedLine(change, event)
}

func isNewlineRune(r rune) bool { return r == '\n' }

// writtenText returns the text of a comment or a clarification. The request contains it, the event
// does not.
func writtenText(doc desk.Request, event desk.Event) string {
	if event.Type == desk.EventCommented {
		return doc.Comments[len(doc.Comments)-1].Text
	}
	number, _ := strconv.Atoi(event.Detail["question"]) // from 1; the desk wrote it
	asked := doc.Clarifications[number-1]
	if event.Type == desk.EventClarificationAnswered {
		return asked.Answer.Text
	}
	return asked.Text
}

func auditVerb(verb string) audit.Verb {
	switch requirement.Verb(verb) {
	case requirement.VerbApprove:
		return audit.VerbApprove
	case requirement.VerbReject:
		return audit.VerbReject
	}
	return audit.VerbRespond
}

// voteLine returns the audit line of a vote, with what the vote was based on.
func voteLine(c *txn.Tx, change desk.Change, event desk.Event, verb audit.Verb) audit.RequestDecided {
	doc := change.Request
	decided := audit.RequestDecided{
		Verb: verb, Settles: change.Decision != nil && event.Type == desk.EventVoted, Action: auditAction(c, doc), ResumeID: c.ResumeID,
		Shown:  shownLine(c, doc, event, event.Detail["shown"]),
		Groups: strings.FieldsFunc(event.Detail["groups"], isNewlineRune), Quorum: audit.Quorum{Need: auditNeeds(doc.Requirement)}, Ruling: auditRuling(doc), Reason: c.Digest(event.Detail["reason"]),
		Timing: audit.Timing{Created: audit.TimestampOf(doc.Created), Decided: audit.TimestampOf(event.At), LatencyMS: event.At.Sub(doc.Created).Milliseconds(), Deadline: audit.TimestampOf(doc.Deadline)},
	}
	if doc.Edit != nil {
		decided.Edited = c.Digest(doc.Edit.Digest)
	}
	if decided.Settles {
		decided.Approved = c.Digest(change.Decision.Digest)
		decided.ApprovedConditions = auditConditions(c, change.Decision.Conditions)
	}
	if codes := event.Detail["codes"]; codes != "" && codes != docs.UnspecifiedReason {
		decided.Codes = strings.Split(codes, ",")
	}
	for _, vote := range doc.Votes {
		lapsed := slices.ContainsFunc(doc.VoteProgress.Uncounted, func(l desk.UncountedVote) bool { return l.By == vote.By })
		if vote.Verb == requirement.VerbApprove && !lapsed {
			decided.Quorum.Have = append(decided.Quorum.Have, vote.By)
		}
		if verb.Approves() && vote.By == event.By {
			decided.Conditions = auditConditions(c, vote.Conditions)
		}
		if verb == audit.VerbRespond && vote.By == event.By {
			answer, _ := strictjson.Canonical(vote.Value) // the desk took it, so it is JSON
			decided.Answer = c.Digest(string(answer))
		}
	}
	if len(doc.Deliveries) > 0 {
		decided.Timing.Delivered = audit.TimestampOf(doc.Deliveries[0].At)
	}
	for _, view := range doc.Views {
		if view.By == event.By {
			decided.Timing.FirstView, decided.Timing.ReadingMS = audit.TimestampOf(view.At), event.At.Sub(view.At).Milliseconds()
		}
	}
	return decided
}

func auditConditions(c *txn.Tx, limits fermata.Conditions) audit.Conditions {
	return audit.Conditions{Until: audit.TimestampOf(limits.Until), OnlyIf: c.Digest(limits.OnlyIf)}
}

// shownLine returns what a person saw: the digest of the question, and the rendering if the event
// names one.
func shownLine(c *txn.Tx, doc desk.Request, event desk.Event, question string) audit.Shown {
	shown := audit.Shown{Surface: event.Via, Rendered: c.Digest(question)}
	if r, known := doc.Rendering(event.Detail["rendering"], event.By); known {
		shown.Surface, shown.Screen, shown.Template, shown.Visible, shown.At = r.Channel, c.ScreenDigest(doc.ID, r.Hash), r.Template, audit.Visibility(r.Visible), audit.TimestampOf(r.At)
	}
	return shown
}

// finalLine returns the audit line of the end of a request, or nil if a vote of the same change
// ended it: that vote has its own line. A request can also end by an earlier vote that counts
// again; then the line is made here.
func finalLine(c *txn.Tx, change desk.Change, event desk.Event) audit.Body {
	if event.By == ClockActor.Principal && change.Decision.Outcome != desk.OutcomeExpired {
		return clockLine(c, change)
	}
	switch change.Decision.Outcome {
	case desk.OutcomeExpired:
		return audit.RequestExpired{Deadline: audit.TimestampOf(change.Request.Deadline), Why: change.Decision.Reason}
	case desk.OutcomeWithdrawn:
		return audit.RequestWithdrawn{Why: change.Decision.Reason}
	case desk.OutcomeAbandoned:
		return audit.RequestDecided{Verb: audit.VerbAbandon, Settles: true, ResumeID: c.ResumeID, Reason: c.Digest(change.Decision.Reason)}
	}
	//mutate:repeated-vote-audited
	if slices.ContainsFunc(change.Events, func(e desk.Event) bool { return e.Type == desk.EventVoted }) {
		return nil
	}
	word := voteLine(c, change, event, outcomeVerbs[change.Decision.Outcome])
	word.Settles, word.Approved = true, c.Digest(change.Decision.Digest)
	return word
}

// clockLine returns the audit line of a request that a rule ends at its deadline.
func clockLine(c *txn.Tx, change desk.Change) audit.RequestExpired {
	line := audit.RequestExpired{Deadline: audit.TimestampOf(change.Request.Deadline), Then: string(requirement.RejectOnTimeout)}
	if change.Decision.Outcome == desk.OutcomeAnswered {
		answer, _ := strictjson.Canonical(change.Decision.Value) // the desk took it, so it is JSON
		line.Then, line.Answer = string(requirement.DefaultOnTimeout), c.Digest(string(answer))
	}
	return line
}

// outcomeVerbs are the verbs of the outcomes that people decide.
var outcomeVerbs = map[desk.Outcome]audit.Verb{desk.OutcomeApproved: audit.VerbApprove, desk.OutcomeRejected: audit.VerbReject, desk.OutcomeReturned: audit.VerbReturn, desk.OutcomeAnswered: audit.VerbRespond}

// auditAction is the action as it was proposed.
func auditAction(c *txn.Tx, doc desk.Request) audit.Action {
	if doc.Subject.Action == "" {
		return audit.Action{}
	}
	return audit.Action{Name: doc.Subject.Action, Args: c.Digest(doc.Subject.ActionDigest)}
}

func auditNeeds(need requirement.Requirement) (all []audit.GroupCount) {
	for _, g := range need.Groups {
		all = append(all, audit.GroupCount{Group: g.String(), Count: max(1, g.Count)})
	}
	return all
}

func auditRuling(doc desk.Request) audit.Ruling {
	if doc.Subject.Policy == "" && len(doc.Subject.Rules) == 0 {
		return audit.Ruling{}
	}
	return audit.Ruling{Digest: doc.Subject.Policy, Rules: doc.Subject.Rules}
}
