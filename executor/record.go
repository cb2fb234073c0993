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

// filing collects what is written in the same transaction as a change of a run: papers, audit lines and counters, and what is needed to make them.
type filing struct {
	store.Beside
	run     store.Run
	dossier dossier
	now     time.Time
	resume  string // the resume id of the decision that it is about, if it is about one
	// counters that were read, and perhaps charged.
	counters counters
	// requests are those of the run, if they were read; questions its interrupts. Neither must be changed.
	requests  []desk.Request
	questions []store.Interrupt
	// key, if given, names the action that is judged: its own earlier charge does not count against it. bills are what actions were charged, by key.
	key   string
	bills map[string]*bill
	// edit is what the rules said of the arguments that somebody wants instead, if somebody does.
	edit *judgement
	// stands is written in the place of the rest if the run fails because of what it asks.
	stands store.Beside
	// maybeAsked says that the store may have what the run asks already: a first try to come to rest was stale. Most questions are new, so
	// that is looked up only then.
	maybeAsked bool
	// approved are those who approve something else of the run in this filing.
	approved []string
}

// digest stands for a text in the audit log. It is made with the run's salt, without which guesses cannot be tested; without a salt it is empty.
func (c *filing) digest(text string) audit.Digest {
	salt := audit.Salt{}
	if text == "" || copy(salt[:], c.dossier.Salt) < len(salt) {
		return audit.Digest{}
	}
	return audit.Payload{ID: c.run.ID, Salt: salt, Data: []byte(text)}.Digest()
}

func (c *filing) place() audit.Place {
	return audit.Place{Run: c.run.ID, StateKey: c.run.StateKey, Graph: c.run.Provider + ":" + c.run.Graph}
}

// placeOf is the place of a question of the run, and of its request, which has the same id.
func (c *filing) placeOf(question string) audit.Place {
	place := c.place()
	place.Interrupt, place.Request = question, question
	return place
}

var (
	theSystem = audit.Actor{Principal: "system:executor", Kind: audit.System}
	clockLine = audit.Actor{Principal: "system:clock", Kind: audit.Clock}
)

// onBehalfOf is whoever had something done, or the system if nobody is named.
func onBehalfOf(from desk.From) audit.Actor {
	if from.Actor.ID == "" {
		return theSystem
	}
	return personOf(from)
}

// line adds a line to the audit log.
func (c *filing) line(actor audit.Actor, place audit.Place, body audit.Body) error {
	line, err := audit.Line(c.run.Account, actor, place, body)
	if err == nil {
		c.Audit = append(c.Audit, line)
	}
	return err
}

// actorOf is who caused an event, as the audit log has it.
func actorOf(e desk.Event) audit.Actor {
	actor := audit.Actor{Principal: e.By, Kind: audit.Person, Via: e.Via, Auth: string(e.Auth), MFA: e.Auth.AtLeast(desk.AuthMFA)}
	switch e.Kind {
	case desk.Agent:
		actor.Kind = audit.Agent
	case desk.System:
		actor.Kind = audit.System
		if e.By == clockLine.Principal {
			actor.Kind = audit.Clock
		}
	}
	return actor
}

// personOf is who does something, as the audit log has it.
func personOf(from desk.From) audit.Actor {
	return actorOf(desk.Event{By: from.Actor.ID, Kind: from.Actor.Kind, Auth: from.Actor.Auth, Via: from.Via})
}

// record adds the audit lines of a change.
func (c *filing) record(change desk.Change) error {
	place := c.placeOf(change.Request.ID)
	place.Revision = change.Request.Rev
	begins := len(change.Facts) > 0 && change.Facts[0].What == desk.WasAsked
	for n, event := range change.Facts {
		body := c.body(change, event)
		if body == nil || begins && n > 0 { // what the route does at once when it begins has no lines of its own
			continue
		}
		if err := c.line(actorOf(event), place, body); err != nil {
			return err
		}
		if event.What == desk.WasDelivered && event.Detail["deadline"] != "" { // which counts from there
			if err := c.line(actorOf(event), place, changed(change, event)); err != nil {
				return err
			}
		}
	}
	return nil
}

func changed(change desk.Change, event desk.Event) audit.Changed {
	what := string(event.What)
	if as := event.Detail["as"]; event.What == desk.WasStep && as != string(desk.Fired) {
		what += "_" + as // nobody was told anything
	}
	return audit.Changed{What: what, Deadline: audit.At(change.Request.Deadline)}
}

// body is the audit line of an event; nil if another line of the same change has it.
func (c *filing) body(change desk.Change, event desk.Event) audit.Body {
	doc := change.Request
	switch event.What {
	case desk.WasAsked:
		return audit.Asked{
			Kind: doc.Asked.Kind, Action: c.action(doc), Question: c.digest(doc.Asked.Shown), Need: needs(doc.Need), Ruling: rulingOf(doc),
			Route: doc.Route.Name, Deadline: audit.At(doc.Deadline),
		}
	case desk.WasViewed:
		return audit.Viewed{Shown: audit.Shown{Surface: event.Via, Rendered: c.digest(doc.Digest()), At: audit.At(event.At)}}
	case desk.WasDelivered:
		return audit.Delivered{Surface: event.Detail["target"], State: audit.Posted}
	case desk.WasClaimed:
		return audit.Claimed{}
	case desk.WasReleased:
		return audit.Released{}
	case desk.WasDelegated:
		return audit.Delegated{To: event.Detail["to"], Reason: c.digest(event.Detail["reason"])}
	case desk.WasSnoozed:
		return audit.Snoozed{Until: audit.At(doc.Snoozed)}
	case desk.WasComment, desk.WasReplied:
		return audit.Commented{Text: c.digest(written(doc, event))}
	case desk.WasEscalated, desk.WasWidened:
		return audit.Escalated{To: strings.FieldsFunc(event.Detail["to"], isNewline), Step: event.Text, Reason: c.digest(event.Detail["reason"])}
	case desk.WasQuestion:
		word := c.word(change, event, audit.AskBack)
		word.Reason = c.digest(written(doc, event))
		return word
	case desk.WasEdited:
		word := c.word(change, event, audit.ApproveWithEdits)
		word.Edited = c.digest(event.Detail["args"])
		return word
	case desk.WasVoted:
		return c.word(change, event, verbOf(event.Detail["verb"]))
	case desk.WasDecided:
		return c.ending(change, event)
	}
	return changed(change, event)
}

func isNewline(r rune) bool { return r == '\n' }

// written is what somebody wrote: the request has it, and not the event.
func written(doc desk.Request, event desk.Event) string {
	if event.What == desk.WasComment {
		return doc.Comments[len(doc.Comments)-1].Text
	}
	number, _ := strconv.Atoi(event.Detail["question"]) // from 1; the desk wrote it
	asked := doc.Questions[number-1]
	if event.What == desk.WasReplied {
		return asked.Answer.Text
	}
	return asked.Text
}

func verbOf(verb string) audit.Verb {
	switch desk.Verb(verb) {
	case desk.VerbApprove:
		return audit.Approve
	case desk.VerbReject:
		return audit.Reject
	}
	return audit.Respond
}

// word is the audit line of somebody's vote, with what it was based on.
func (c *filing) word(change desk.Change, event desk.Event, verb audit.Verb) audit.Decided {
	doc := change.Request
	decided := audit.Decided{
		Verb: verb, Settles: change.Final != nil && event.What == desk.WasVoted, Action: c.action(doc), ResumeID: c.resume,
		Shown:  audit.Shown{Surface: event.Via, Rendered: c.digest(event.Detail["shown"])},
		Groups: strings.FieldsFunc(event.Detail["groups"], isNewline), Quorum: audit.Quorum{Need: needs(doc.Need)}, Ruling: rulingOf(doc), Reason: c.digest(event.Detail["reason"]),
		Timing: audit.Timing{Created: audit.At(doc.Created), Decided: audit.At(event.At), LatencyMS: event.At.Sub(doc.Created).Milliseconds(), Deadline: audit.At(doc.Deadline)},
	}
	for _, vote := range doc.Votes {
		lapsed := slices.ContainsFunc(doc.Progress.Lapsed, func(l desk.Lapse) bool { return l.By == vote.By })
		if vote.Verb == desk.VerbApprove && !lapsed {
			decided.Quorum.Have = append(decided.Quorum.Have, vote.By)
		}
		if verb == audit.Respond && vote.By == event.By {
			answer, _ := strictjson.Canonical(vote.Value) // the desk took it, so it is JSON
			decided.Answer = c.digest(string(answer))
		}
	}
	if len(doc.Deliveries) > 0 {
		decided.Timing.Delivered = audit.At(doc.Deliveries[0].At)
	}
	for _, view := range doc.Views {
		if view.By == event.By {
			decided.Timing.FirstView, decided.Timing.ReadingMS = audit.At(view.At), event.At.Sub(view.At).Milliseconds()
		}
	}
	return decided
}

// ending is the audit line of how a request ended; nil if a vote of the same change ended it, which has its own line. A request can also end by a vote that
// was cast earlier, when that counts again: then the line is made here.
func (c *filing) ending(change desk.Change, event desk.Event) audit.Body {
	switch change.Final.Outcome {
	case desk.Lapsed:
		return audit.Expired{Deadline: audit.At(change.Request.Deadline), Why: change.Final.Reason}
	case desk.Dropped:
		return audit.Withdrawn{Why: change.Final.Reason}
	case desk.Escaped:
		return audit.Decided{Verb: audit.Escape, Settles: true, ResumeID: c.resume, Reason: c.digest(change.Final.Reason)}
	}
	//mutate:repeated-vote-audited
	if slices.ContainsFunc(change.Facts, func(e desk.Event) bool { return e.What == desk.WasVoted }) {
		return nil
	}
	word := c.word(change, event, endings[change.Final.Outcome])
	word.Settles = true
	return word
}

// endings are the verbs of the outcomes that people decide.
var endings = map[desk.Outcome]audit.Verb{desk.Approved: audit.Approve, desk.Rejected: audit.Reject, desk.Responded: audit.Respond}

func (c *filing) action(doc desk.Request) audit.Action {
	if doc.Asked.Action == "" {
		return audit.Action{}
	}
	return audit.Action{Name: doc.Asked.Action, Args: c.digest(doc.Subject())}
}

func needs(need desk.Requirement) (all []audit.Need) {
	for _, g := range need.Groups {
		all = append(all, audit.Need{Group: g.String(), Count: max(1, g.Count)})
	}
	return all
}

func rulingOf(doc desk.Request) audit.Ruling {
	if doc.Asked.Policy == "" && len(doc.Asked.Rules) == 0 {
		return audit.Ruling{}
	}
	return audit.Ruling{Digest: doc.Asked.Policy, Rules: doc.Asked.Rules}
}
