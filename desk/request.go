package desk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Version is the version of the documents that this package writes.
const Version = 1

// Request is the life of a question among people, as one document. It is changed by [Apply] alone.
type Request struct {
	V int `json:"v"`
	// ID is that of the interrupt. Rev counts the changes; a store writes a document only over the one of the revision before.
	ID  string `json:"id"`
	Rev int64  `json:"rev"`

	State   State     `json:"state"`
	Created time.Time `json:"created"`
	// Deadline is when it expires: at that time nobody can decide any more.
	Deadline time.Time `json:"deadline"`

	Subject     Subject     `json:"asked"`
	Requirement Requirement `json:"need"`
	// Route is as it was when the request was made; later versions of it do not touch this request.
	Route         Route         `json:"route"`
	RouteProgress RouteProgress `json:"place"`

	// Claim is who looks after it. It keeps nobody else from deciding.
	Claim          *ClaimRecord    `json:"claim,omitempty"`
	Views          []ViewRecord    `json:"views,omitempty"`
	Votes          []Vote          `json:"votes,omitempty"`
	Comments       []Note          `json:"comments,omitempty"`
	Clarifications []Clarification `json:"questions,omitempty"`
	Delegations    []Delegation    `json:"delegations,omitempty"`
	Deliveries     []Delivery      `json:"deliveries,omitempty"`
	// Edit is what would be done in the place of what was asked.
	Edit *Edit `json:"edit,omitempty"`
	// Snoozed is until when nobody is told anything.
	Snoozed time.Time `json:"snoozed,omitzero"`

	VoteProgress VoteProgress `json:"progress"`
	// Log has the latest events, the oldest first.
	Log      []Event   `json:"log,omitempty"`
	Decision *Decision `json:"final,omitempty"`
}

// State is where a request stands. While it is open, [Request.Flags] says more.
type State string

// The states of a request. Expired is not answered: nobody said no.
const (
	StateOpen      State = "open"
	StateDecided   State = "answered"
	StateExpired   State = "expired"
	StateWithdrawn State = "withdrawn"
)

// Subject is what was asked, without any of the data.
type Subject struct {
	Kind string `json:"kind"`
	// Shown is the digest of what people see.
	ShownDigest string `json:"shown"`
	// Action is the name of the action that is to be approved, Digest that of the action with its arguments, Args that of the
	// arguments alone. All three are empty if no action is asked for.
	Action       string `json:"action,omitempty"`
	ActionDigest string `json:"digest,omitempty"`
	ArgsDigest   string `json:"args,omitempty"`
	// DutyRequester, Authors and PriorApprovers are people with a part in it, so that they can be kept from deciding. Authors is everybody
	// whose words the run had when it asked: who began it, who answered it something, who changed the arguments of an action, and who said why not,
	// for that is what it wrote anew by. Whoever said nothing but yes is no author.
	Requester      string   `json:"requester,omitempty"`
	Authors        []string `json:"authors,omitempty"`
	PriorApprovers []string `json:"prior_approvers,omitempty"`
	// Editor is who changed the arguments before they were asked about again, because what they act on has changed.
	Editor string `json:"editor,omitempty"`
	// Words is how many there are to read.
	WordCount int `json:"words,omitempty"`
	// Risk is 0 to 3, as the rules rate the tool.
	Risk int `json:"risk,omitempty"`
	// EditPolicy names the version of the rules that required this, Rules the rules, Reason says why in words.
	Policy string   `json:"policy,omitempty"`
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// RouteProgress is where a request stands in its route.
type RouteProgress struct {
	// Epoch counts how often the route was begun. It is part of what keeps a notice from being sent twice.
	Epoch int `json:"epoch"`
	// Base is when it was begun: the times of its steps count from there.
	Base time.Time `json:"base"`
	// StepResult are the steps that have had their turn in this epoch.
	DoneSteps []StepResult `json:"done,omitempty"`
	// Paged is who was paged in any epoch, and is owed an all-clear.
	Paged []string `json:"paged,omitempty"`
	// Escalated counts how often somebody did not want to wait for the next step.
	Escalated int `json:"escalated,omitempty"`
	// Overdue says that the requirement's own time has passed, and the rest of the route was taken at once.
	Overdue bool `json:"overdue,omitempty"`
}

// StepResult is a step that has had its turn.
type StepResult struct {
	Step    int         `json:"step"`
	At      time.Time   `json:"at"`
	Outcome StepOutcome `json:"as"`
}

// StepOutcome is what became of a step.
type StepOutcome string

// EventType becomes of a step.
const (
	StepFired   StepOutcome = "fired"
	StepSkipped StepOutcome = "skipped" // its condition said so
	StepMissed  StepOutcome = "missed"  // a later step was due too, which says the same
)

// ClaimRecord is who looks after a request.
type ClaimRecord struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// ViewRecord is the first time that somebody saw a request.
type ViewRecord struct {
	By  string    `json:"by"`
	At  time.Time `json:"at"`
	Rev int64     `json:"rev"`
	// Again is when they first saw it after the route last began anew, if they had seen it before.
	LastAt time.Time `json:"again,omitzero"`
	// May says that they could have decided.
	Eligible bool `json:"may,omitempty"`
}

func (v ViewRecord) latest() time.Time {
	if v.LastAt.After(v.At) {
		return v.LastAt
	}
	return v.At
}

// Vote is one person's word. A person has one; a later one takes its place.
type Vote struct {
	By   string    `json:"by"`
	Verb Verb      `json:"verb"`
	At   time.Time `json:"at"`
	Rev  int64     `json:"rev"`
	Auth Auth      `json:"auth,omitempty"`
	Via  string    `json:"via,omitempty"`
	// Word is what was said: votes of the same word count together. It is the digest of what would be done, or of the answer.
	Choice string          `json:"word"`
	Value  json.RawMessage `json:"value,omitempty"`
	// Codes, Reason and Retry come with a rejection.
	Codes  []string `json:"codes,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Retry  bool     `json:"retry,omitempty"`
}

// Note is something that somebody wrote.
type Note struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Clarification is what people want to know before they decide, and what the run said to it.
type Clarification struct {
	Note
	// Answer is empty while the run owes one.
	Answer *Note `json:"answer,omitempty"`
}

// Delegation is somebody's wish that somebody else decides.
type Delegation struct {
	By string    `json:"by"`
	To string    `json:"to"`
	At time.Time `json:"at"`
}

// Delivery is the first time that a channel reached somebody.
type Delivery struct {
	Target string    `json:"target"`
	At     time.Time `json:"at"`
}

// Edit is other arguments than the ones that were asked for.
type Edit struct {
	By   string          `json:"by"`
	At   time.Time       `json:"at"`
	Args json.RawMessage `json:"args"`
	// Digest is that of the action with these arguments, ArgsDigest that of the arguments alone.
	Digest     string `json:"digest"`
	ArgsDigest string `json:"args_digest"`
	// Fields are the JSON pointers of what differs from what was asked.
	Fields []string `json:"fields,omitempty"`
}

// Decision is how a request ended. There is one at most.
type Decision struct {
	Outcome Outcome   `json:"outcome"`
	At      time.Time `json:"at"`
	// By are the people whose words made it so; nobody if it was the clock.
	By []string `json:"by,omitempty"`
	// Digest, of an approve, is that of the action that is approved; Args are its arguments if they were edited.
	Digest string          `json:"digest,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	// Value is the answer, of an answer.
	Value json.RawMessage `json:"value,omitempty"`
	// Codes and Reason say why not. Retry says that the agent may try something else.
	Codes  []string `json:"codes,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Retry  bool     `json:"retry,omitempty"`
}

// Outcome is what a request came to.
type Outcome string

// The outcomes. Only the first lets an action happen.
const (
	OutcomeApproved  Outcome = "approve"
	OutcomeRejected  Outcome = "reject"
	OutcomeAnswered  Outcome = "answer"
	OutcomeExpired   Outcome = "expire"
	OutcomeAbandoned Outcome = "escape"
	OutcomeWithdrawn Outcome = "withdraw"
)

// State is the state that the outcome leads to.
func (o Outcome) State() State {
	switch o {
	case OutcomeExpired:
		return StateExpired
	case OutcomeWithdrawn:
		return StateWithdrawn
	}
	return StateDecided
}

// Decode reads a document. One of another version is a [*VersionError]; one with members that nobody knows is refused, because what
// they mean would be lost with the next change.
func Decode(data []byte) (Request, error) {
	if err := strictjson.Check(data); err != nil {
		return Request{}, err
	}
	var r Request
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&r)
	if r.V != Version { // it is the first member, so that it is known even if what follows is not
		return Request{}, &VersionError{Version: r.V}
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// Encode writes the document.
func (r Request) Encode() ([]byte, error) { return json.Marshal(r) }

// Digest names what there is to decide on: what is shown, with the edit if there is one. Whoever decides says which they saw.
func (r Request) Digest() string {
	if r.Edit == nil {
		return r.Subject.ShownDigest
	}
	return digest([]byte(r.Subject.ShownDigest + "\n" + r.Edit.Digest))
}

// Subject is the digest of the action that an approve would approve now; "" if no action is asked for.
func (r Request) ActionDigest() string {
	if r.Edit != nil {
		return r.Edit.Digest
	}
	return r.Subject.ActionDigest
}

// DutyLastEditor is who wrote the arguments as they are now; "" if they are as the run wrote them.
func (r Request) LastEditor() string {
	if r.Edit != nil {
		return r.Edit.By
	}
	return r.Subject.Editor
}

// Flag is something that can be said of an open request.
type Flag string

// The marks of an open request. It can have several.
const (
	FlagViewed            Flag = "viewed"
	FlagClaimed           Flag = "claimed"
	FlagClarificationOpen Flag = "asked" // the run owes an answer
	FlagEdited            Flag = "edited"
	FlagEscalated         Flag = "escalated"
	FlagSnoozed           Flag = "snoozed"
)

// Marks lists what can be said of the request.
func (r Request) Flags() []Flag {
	var marks []Flag
	add := func(m Flag, is bool) {
		if is {
			marks = append(marks, m)
		}
	}
	add(FlagViewed, len(r.Views) > 0)
	add(FlagClaimed, r.Claim != nil)
	add(FlagClarificationOpen, r.openClarification() >= 0)
	add(FlagEdited, r.Edit != nil)
	add(FlagEscalated, r.RouteProgress.Escalated > 0)
	add(FlagSnoozed, !r.Snoozed.IsZero())
	return marks
}

// Since lists what has happened after a revision, as far as the log reaches back.
func (r Request) EventsSince(rev int64) []Event {
	i := slices.IndexFunc(r.Log, func(e Event) bool { return e.Rev > rev })
	if i < 0 {
		return nil
	}
	return slices.Clone(r.Log[i:])
}

// openQuestion is the first that has no answer, or -1.
func (r Request) openClarification() int {
	return slices.IndexFunc(r.Clarifications, func(q Clarification) bool { return q.Answer == nil })
}

// clone makes a copy that can be changed without changing r. What stands behind pointers, and in lists inside of elements, is
// replaced and never changed in place.
func (r Request) clone() Request {
	r.Views = slices.Clone(r.Views)
	r.Votes = slices.Clone(r.Votes)
	r.Comments = slices.Clone(r.Comments)
	r.Clarifications = slices.Clone(r.Clarifications)
	r.Delegations = slices.Clone(r.Delegations)
	r.Deliveries = slices.Clone(r.Deliveries)
	r.Log = slices.Clone(r.Log)
	r.Requirement.Groups = slices.Clone(r.Requirement.Groups)
	r.RouteProgress.DoneSteps = slices.Clone(r.RouteProgress.DoneSteps)
	r.RouteProgress.Paged = slices.Clone(r.RouteProgress.Paged)
	return r
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// canonicalDigest is the same for all spellings of the same JSON.
func canonicalDigest(data json.RawMessage) (string, error) {
	canonical, err := strictjson.Canonical(data)
	if err != nil {
		return "", err
	}
	return digest(canonical), nil
}

// strictDigest is for JSON that a person wrote: it must have one meaning only.
func strictDigest(data json.RawMessage) (string, error) {
	if err := strictjson.Check(data); err != nil {
		return "", err
	}
	return canonicalDigest(data)
}
