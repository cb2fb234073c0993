package executor

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/store"
)

// unitOfWork collects what is written in the same transaction as a change of a run: papers, audit lines and counters, and what is needed to make them.
type unitOfWork struct {
	store.Writes
	run      store.Run
	meta     runMeta
	now      time.Time // zero until setTime was called
	resumeID string    // the resume id of the decision, if it records one
}

// newTx begins a unit of work for a run. now may be zero if no document in it needs the time.
func newTx(run store.Run, meta runMeta, now time.Time) *unitOfWork {
	return &unitOfWork{run: run, meta: meta, now: now}
}

// newDecisionTx begins the unit of work of a decision.
func newDecisionTx(run store.Run, meta runMeta, now time.Time, resumeID string) *unitOfWork {
	return &unitOfWork{run: run, meta: meta, now: now, resumeID: resumeID}
}

// hashNamed stands for a text in the audit log. It is made with the run's salt, without which guesses cannot be tested; without a salt it is empty.
func (c *unitOfWork) digest(text string) audit.Digest {
	salt := audit.Salt{}
	if text == "" || copy(salt[:], c.meta.Salt) < len(salt) {
		return audit.Digest{}
	}
	return audit.Payload{ID: c.run.ID, Salt: salt, Data: []byte(text)}.Digest()
}

func (c *unitOfWork) auditPlace() audit.Location {
	return audit.Location{Run: c.run.ID, StateKey: c.run.StateKey, Graph: c.run.Provider + ":" + c.run.Graph}
}

// placeOf is the place of a question of the run, and of its request, which has the same id.
func (c *unitOfWork) requestPlace(question string) audit.Location {
	place := c.auditPlace()
	place.Interrupt, place.Request = question, question
	return place
}

var (
	systemActor = audit.Actor{Principal: "system:executor", Kind: audit.ActorSystem}
	clockActor  = audit.Actor{Principal: "system:clock", Kind: audit.ActorClock}
)

// actorOrSystem is whoever had something done, or the system if nobody is named.
func actorOrSystem(from desk.From) audit.Actor {
	if from.Actor.ID == "" {
		return systemActor
	}
	return auditActor(from)
}

// queue adds a line to the audit log.
func (c *unitOfWork) addAudit(actor audit.Actor, place audit.Location, body audit.Body) error {
	line, err := audit.NewLine(c.run.Account, actor, place, body)
	if err == nil {
		c.Audit = append(c.Audit, line)
	}
	return err
}

// eventActor is who caused an event, as the audit log has it.
func eventActor(e desk.Event) audit.Actor {
	actor := audit.Actor{Principal: e.By, Kind: audit.ActorPerson, Via: e.Via, Auth: string(e.Auth), MFA: e.Auth.AtLeast(desk.AuthMFA)}
	switch e.Kind {
	case desk.ActorAgent:
		actor.Kind = audit.ActorAgent
	case desk.ActorSystem:
		actor.Kind = audit.ActorSystem
		if e.By == clockActor.Principal {
			actor.Kind = audit.ActorClock
		}
	}
	return actor
}

// auditActor is who does something, as the audit log has it.
func auditActor(from desk.From) audit.Actor {
	return eventActor(desk.Event{By: from.Actor.ID, Kind: from.Actor.Kind, Auth: from.Actor.Auth, Via: from.Via})
}

// record adds the audit lines of a change.
func addAuditLines(c *unitOfWork, change desk.Change) error {
	place := c.requestPlace(change.Request.ID)
	place.Revision = change.Request.Rev
	begins := len(change.Events) > 0 && change.Events[0].Type == desk.EventAsked
	for n, event := range change.Events {
		body := lineOf(c, change, event)
		if body == nil || begins && n > 0 { // what the route does at once when it begins has no lines of its own
			continue
		}
		if err := c.addAudit(eventActor(event), place, body); err != nil {
			return err
		}
		if event.Type == desk.EventDelivered && event.Detail["deadline"] != "" { // which counts from there
			if err := c.addAudit(eventActor(event), place, changedLine(change, event)); err != nil {
				return err
			}
		}
	}
	return nil
}

func changedLine(change desk.Change, event desk.Event) audit.RequestChanged {
	what := string(event.Type)
	if as := event.Detail["as"]; event.Type == desk.EventRouteStep && as != string(desk.StepFired) {
		what += "_" + as // nobody was told anything
	}
	return audit.RequestChanged{What: what, Deadline: audit.TimestampOf(change.Request.Deadline)}
}

// body is the audit line of an event; nil if another line of the same change has it.
func lineOf(c *unitOfWork, change desk.Change, event desk.Event) audit.Body {
	doc := change.Request
	switch event.Type {
	case desk.EventAsked:
		return audit.RequestAsked{
			Kind: doc.Subject.Kind, Action: auditAction(c, doc), Question: c.digest(doc.Subject.ShownDigest), Need: auditNeeds(doc.Requirement), Ruling: auditRuling(doc),
			Route: doc.Route.Name, Deadline: audit.TimestampOf(doc.Deadline),
		}
	case desk.EventViewed:
		return audit.RequestViewed{Shown: audit.Shown{Surface: event.Via, Rendered: c.digest(doc.Digest()), At: audit.TimestampOf(event.At)}}
	case desk.EventDelivered:
		return audit.RequestDelivered{Surface: event.Detail["target"], State: audit.DeliveryPosted}
	case desk.EventClaimed:
		return audit.RequestClaimed{}
	case desk.EventReleased:
		return audit.RequestReleased{}
	case desk.EventDelegated:
		return audit.RequestDelegated{To: event.Detail["to"], Reason: c.digest(event.Detail["reason"])}
	case desk.EventSnoozed:
		return audit.RequestSnoozed{Until: audit.TimestampOf(doc.Snoozed)}
	case desk.EventCommented, desk.EventClarificationAnswered:
		return audit.RequestCommented{Text: c.digest(writtenText(doc, event))}
	case desk.EventEscalated, desk.EventWidened:
		return audit.RequestEscalated{To: strings.FieldsFunc(event.Detail["to"], isNewlineRune), Step: event.Text, Reason: c.digest(event.Detail["reason"])}
	case desk.EventClarificationAsked:
		word := voteLine(c, change, event, audit.VerbAskClarification)
		word.Reason = c.digest(writtenText(doc, event))
		return word
	case desk.EventEdited:
		word := voteLine(c, change, event, audit.VerbApproveWithEdits)
		word.Edited = c.digest(event.Detail["args"])
		return word
	case desk.EventVoted:
		return voteLine(c, change, event, auditVerb(event.Detail["verb"]))
	case desk.EventDecided:
		return finalLine(c, change, event)
	}
	return changedLine(change, event)
}

func isNewlineRune(r rune) bool { return r == '\n' }

// writtenText is what somebody wrote: the request has it, and not the event.
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
	switch desk.Verb(verb) {
	case desk.VerbApprove:
		return audit.VerbApprove
	case desk.VerbReject:
		return audit.VerbReject
	}
	return audit.VerbRespond
}

// submission is the audit line of somebody's vote, with what it was based on.
func voteLine(c *unitOfWork, change desk.Change, event desk.Event, verb audit.Verb) audit.RequestDecided {
	doc := change.Request
	decided := audit.RequestDecided{
		Verb: verb, Settles: change.Decision != nil && event.Type == desk.EventVoted, Action: auditAction(c, doc), ResumeID: c.resumeID,
		Shown:  audit.Shown{Surface: event.Via, Rendered: c.digest(event.Detail["shown"])},
		Groups: strings.FieldsFunc(event.Detail["groups"], isNewlineRune), Quorum: audit.Quorum{Need: auditNeeds(doc.Requirement)}, Ruling: auditRuling(doc), Reason: c.digest(event.Detail["reason"]),
		Timing: audit.Timing{Created: audit.TimestampOf(doc.Created), Decided: audit.TimestampOf(event.At), LatencyMS: event.At.Sub(doc.Created).Milliseconds(), Deadline: audit.TimestampOf(doc.Deadline)},
	}
	for _, vote := range doc.Votes {
		lapsed := slices.ContainsFunc(doc.VoteProgress.Uncounted, func(l desk.UncountedVote) bool { return l.By == vote.By })
		if vote.Verb == desk.VerbApprove && !lapsed {
			decided.Quorum.Have = append(decided.Quorum.Have, vote.By)
		}
		if verb == audit.VerbRespond && vote.By == event.By {
			answer, _ := strictjson.Canonical(vote.Value) // the desk took it, so it is JSON
			decided.Answer = c.digest(string(answer))
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

// finalState is the audit line of how a request ended; nil if a vote of the same change ended it, which has its own line. A request can also end by a vote that
// was cast earlier, when that counts again: then the line is made here.
func finalLine(c *unitOfWork, change desk.Change, event desk.Event) audit.Body {
	switch change.Decision.Outcome {
	case desk.OutcomeExpired:
		return audit.RequestExpired{Deadline: audit.TimestampOf(change.Request.Deadline), Why: change.Decision.Reason}
	case desk.OutcomeWithdrawn:
		return audit.RequestWithdrawn{Why: change.Decision.Reason}
	case desk.OutcomeAbandoned:
		return audit.RequestDecided{Verb: audit.VerbAbandon, Settles: true, ResumeID: c.resumeID, Reason: c.digest(change.Decision.Reason)}
	}
	//mutate:repeated-vote-audited
	if slices.ContainsFunc(change.Events, func(e desk.Event) bool { return e.Type == desk.EventVoted }) {
		return nil
	}
	word := voteLine(c, change, event, outcomeVerbs[change.Decision.Outcome])
	word.Settles = true
	return word
}

// outcomeVerbs are the verbs of the outcomes that people decide.
var outcomeVerbs = map[desk.Outcome]audit.Verb{desk.OutcomeApproved: audit.VerbApprove, desk.OutcomeRejected: audit.VerbReject, desk.OutcomeAnswered: audit.VerbRespond}

func auditAction(c *unitOfWork, doc desk.Request) audit.Action {
	if doc.Subject.Action == "" {
		return audit.Action{}
	}
	return audit.Action{Name: doc.Subject.Action, Args: c.digest(doc.ActionDigest())}
}

func auditNeeds(need desk.Requirement) (all []audit.GroupCount) {
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
