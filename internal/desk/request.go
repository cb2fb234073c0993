package desk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Version is the document version that this package writes.
const Version = 1

// Request is a request to people, as one document. Only [Apply] changes it.
type Request struct {
	V int `json:"v"`
	// ID is the id of the interrupt. Rev counts the changes. A store accepts a document only if it
	// follows the stored revision.
	ID  string `json:"id"`
	Rev int64  `json:"rev"`

	State   State     `json:"state"`
	Created time.Time `json:"created"`
	// Deadline is when the request expires. From then on it cannot be decided.
	Deadline time.Time `json:"deadline"`

	Subject     Subject                 `json:"asked"`
	Requirement requirement.Requirement `json:"need"`
	// Route is a copy of the route at creation. Later versions of the route do not affect this
	// request.
	Route         Route         `json:"route"`
	RouteProgress RouteProgress `json:"place"`

	// Claim is the person who works on the request. A claim does not prevent others from deciding.
	Claim *ClaimRecord `json:"claim,omitempty"`
	Views []ViewRecord `json:"views,omitempty"`
	// Renderings has what was put on screens, oldest first, the latest of each person.
	Renderings     []Rendering     `json:"renderings,omitempty"`
	Votes          []Vote          `json:"votes,omitempty"`
	Comments       []Note          `json:"comments,omitempty"`
	Clarifications []Clarification `json:"questions,omitempty"`
	Delegations    []Delegation    `json:"delegations,omitempty"`
	Deliveries     []Delivery      `json:"deliveries,omitempty"`
	// Edit replaces the arguments that were requested.
	Edit *Edit `json:"edit,omitempty"`
	// Snoozed is the time until which no notices are sent.
	Snoozed time.Time `json:"snoozed,omitzero"`

	// DefaultAnswer is the answer at the deadline, if the question declares one and the requirement
	// uses it.
	DefaultAnswer json.RawMessage `json:"default_answer,omitempty"`

	VoteProgress VoteProgress `json:"progress"`
	// Pending is set while a decision waits for the end of its undo window.
	Pending *PendingDecision `json:"pending,omitempty"`
	// Log has the latest events, oldest first.
	Log      []Event   `json:"log,omitempty"`
	Decision *Decision `json:"final,omitempty"`
}

// State is the state of a request. While a request is open, [Request.Flags] has more detail.
type State string

// The states of a request. An expired request is not a rejected one.
const (
	StateOpen      State = "open"
	StateDecided   State = "answered"
	StateExpired   State = "expired"
	StateWithdrawn State = "withdrawn"
)

// Subject describes what the request is about, without the data itself.
type Subject struct {
	Kind string `json:"kind"`
	// ShownDigest is the digest of what people see.
	ShownDigest string `json:"shown"`
	// Action is the name of the action to approve. ActionDigest is the digest of the action with
	// its arguments, ArgsDigest the digest of the arguments alone. All three are empty if the
	// request is not about an action.
	Action       string `json:"action,omitempty"`
	ActionDigest string `json:"digest,omitempty"`
	ArgsDigest   string `json:"args,omitempty"`
	// Requester, Authors and PriorApprovers are people who can be excluded from deciding. Authors
	// are the people whose input shaped the request: the person who started the run, people who
	// answered or edited something, and people whose rejection reason was used for a revision.
	// Approving alone does not make a person an author.
	Requester      string   `json:"requester,omitempty"`
	Authors        []string `json:"authors,omitempty"`
	PriorApprovers []string `json:"prior_approvers,omitempty"`
	// StatedRequester and StatedEnvironment are what the requester, an agent, states: the person
	// for whom it works, and where. The server cannot check them. They include no person; the
	// stated requester is excluded like the requester.
	StatedRequester   string `json:"stated_requester,omitempty"`
	StatedEnvironment string `json:"stated_environment,omitempty"`
	// EndUser is the end user of the run, if the request is a question for them. Then it is not in
	// the inbox and the reports of approvers.
	EndUser string `json:"end_user,omitempty"`
	// Editor changed the arguments before the run asked again because the target had changed.
	Editor string `json:"editor,omitempty"`
	// Supersedes is the id of the request that this one replaces because what it showed has
	// changed, and Changed the JSON pointers of the differences. Refused is the reason why the
	// program did not use the last answer.
	Supersedes string   `json:"supersedes,omitempty"`
	Changed    []string `json:"changed,omitempty"`
	Refused    string   `json:"refused,omitempty"`
	// WordCount is the number of words to read.
	WordCount int `json:"words,omitempty"`
	// Risk is 0 to 3, as the rules rate the tool.
	Risk int `json:"risk,omitempty"`
	// Policy is the version of the rules that required this request. Rules are the rule ids, Reason
	// is their explanation.
	Policy string   `json:"policy,omitempty"`
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// RouteProgress is the position of a request in its route.
type RouteProgress struct {
	// Epoch counts how often the route was started. It is part of the notice keys, so that a notice
	// is not sent twice.
	Epoch int `json:"epoch"`
	// Base is when the route was started. The times of the steps are relative to it.
	Base time.Time `json:"base"`
	// DoneSteps are the steps that were processed in this epoch.
	DoneSteps []StepResult `json:"done,omitempty"`
	// Paged lists the targets that were paged in any epoch. They get a resolve notice.
	Paged []string `json:"paged,omitempty"`
	// Escalated counts the manual and automatic escalations.
	Escalated int `json:"escalated,omitempty"`
	// Overdue reports that the requirement's deadline has passed and the rest of the route was
	// fired at once.
	Overdue bool `json:"overdue,omitempty"`
}

// StepResult is a processed step.
type StepResult struct {
	Step    int         `json:"step"`
	At      time.Time   `json:"at"`
	Outcome StepOutcome `json:"as"`
}

// StepOutcome is the result of a step.
type StepOutcome string

// The step outcomes.
const (
	StepFired   StepOutcome = "fired"
	StepSkipped StepOutcome = "skipped" // its skip condition held
	StepMissed  StepOutcome = "missed"  // a later step with the same message was due too
)

// ClaimRecord is a claim on a request.
type ClaimRecord struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// ViewRecord is a person's first view of a request.
type ViewRecord struct {
	By  string    `json:"by"`
	At  time.Time `json:"at"`
	Rev int64     `json:"rev"`
	// LastAt is the first view after the last restart of the route, if there was an earlier view.
	LastAt time.Time `json:"again,omitzero"`
	// Eligible reports whether the person could have decided.
	Eligible bool `json:"may,omitempty"`
}

func (v ViewRecord) latest() time.Time {
	if v.LastAt.After(v.At) {
		return v.LastAt
	}
	return v.At
}

// Vote is one person's vote. A person has one vote; a later vote replaces it.
type Vote struct {
	By   string           `json:"by"`
	Verb requirement.Verb `json:"verb"`
	At   time.Time        `json:"at"`
	Rev  int64            `json:"rev"`
	Auth requirement.Auth `json:"auth,omitempty"`
	Via  string           `json:"via,omitempty"`
	// Choice identifies what was voted for. Votes with the same choice count together. It is the
	// digest of the action or of the answer.
	Choice string          `json:"word"`
	Value  json.RawMessage `json:"value,omitempty"`
	// Stage is the stage that was open. The vote counts for groups of this and of earlier stages.
	Stage int `json:"stage,omitempty"`
	// Codes, Reason and Retry are set for a rejection.
	Codes  []string `json:"codes,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Retry  bool     `json:"retry,omitempty"`
	// Conditions limit an approval.
	Conditions fermata.Conditions `json:"conditions,omitzero"`
}

// Note is a text with its author and time.
type Note struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Clarification is a question to the requester or the run, and the reply.
type Clarification struct {
	Note
	// Answer is nil until there is a reply.
	Answer *Note `json:"answer,omitempty"`
}

// Delegation records that a person asked another person to decide.
type Delegation struct {
	By string    `json:"by"`
	To string    `json:"to"`
	At time.Time `json:"at"`
}

// Delivery is the first delivery to a target.
type Delivery struct {
	Target string    `json:"target"`
	At     time.Time `json:"at"`
}

// Edit holds edited arguments.
type Edit struct {
	By   string          `json:"by"`
	At   time.Time       `json:"at"`
	Args json.RawMessage `json:"args"`
	// Digest is the digest of the action with these arguments, ArgsDigest that of the arguments
	// alone.
	Digest     string `json:"digest"`
	ArgsDigest string `json:"args_digest"`
	// Fields are the JSON pointers that differ from the requested arguments.
	Fields []string `json:"fields,omitempty"`
	// Codes are the reasons for the edit.
	Codes []string `json:"codes,omitempty"`
}

// Decision is the final result of a request. There is at most one.
type Decision struct {
	Outcome Outcome   `json:"outcome"`
	At      time.Time `json:"at"`
	// By lists the people whose votes decided, or [ClockName]. It is empty if the request expired.
	By []string `json:"by,omitempty"`
	// For an approval, Digest is the digest of the approved action. Args are its arguments if they
	// were edited.
	Digest string          `json:"digest,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	// Value is the answer, if the outcome is [OutcomeAnswered].
	Value json.RawMessage `json:"value,omitempty"`
	// Codes and Reason explain a rejection; Codes also an edit. Retry allows the agent to try
	// something else.
	Codes  []string `json:"codes,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Retry  bool     `json:"retry,omitempty"`
	// Conditions are those of all votes that approved.
	Conditions fermata.Conditions `json:"conditions,omitzero"`
}

// Outcome is the final outcome of a request.
type Outcome string

// The outcomes. Only OutcomeApproved lets an action run.
const (
	OutcomeApproved  Outcome = "approve"
	OutcomeRejected  Outcome = "reject"
	OutcomeReturned  Outcome = "return" // for redesign: neither approved nor rejected
	OutcomeAnswered  Outcome = "answer"
	OutcomeExpired   Outcome = "expire"
	OutcomeAbandoned Outcome = "abandon"
	OutcomeWithdrawn Outcome = "withdraw"
)

// State returns the state that the outcome leads to.
func (o Outcome) State() State {
	switch o {
	case OutcomeExpired:
		return StateExpired
	case OutcomeWithdrawn:
		return StateWithdrawn
	}
	return StateDecided
}

// Decode reads a document. It returns a [*VersionError] for another version. It rejects unknown
// members, because the next change would lose them.
func Decode(data []byte) (Request, error) {
	if err := strictjson.Check(data); err != nil {
		return Request{}, err
	}
	var r Request
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&r)
	if r.V != Version { // V is the first member, so it is decoded even if a later member is invalid
		return Request{}, &VersionError{Version: r.V}
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// Encode returns the document as JSON.
func (r Request) Encode() ([]byte, error) { return json.Marshal(r) }

// Digest identifies what there is to decide: what is shown, with the edit if there is one. A
// decision names the digest that the approver saw.
func (r Request) Digest() string {
	if r.Edit == nil {
		return r.Subject.ShownDigest
	}
	return digest([]byte(r.Subject.ShownDigest + "\n" + r.Edit.Digest))
}

// ActionDigest returns the digest of the action that an approval would approve now. It is "" if the
// request is not about an action.
func (r Request) ActionDigest() string {
	if r.Edit != nil {
		return r.Edit.Digest
	}
	return r.Subject.ActionDigest
}

// LastEditor returns who wrote the current arguments. It is "" if the arguments are those of the
// run.
func (r Request) LastEditor() string {
	if r.Edit != nil {
		return r.Edit.By
	}
	return r.Subject.Editor
}

// Flag is a property of an open request.
type Flag string

// The flags of an open request. A request can have several.
const (
	FlagViewed            Flag = "viewed"
	FlagClaimed           Flag = "claimed"
	FlagClarificationOpen Flag = "asked" // a clarification has no reply yet
	FlagEdited            Flag = "edited"
	FlagEscalated         Flag = "escalated"
	FlagSnoozed           Flag = "snoozed"
)

// Flags returns the flags of the request.
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

// EventsSince returns the events after a revision, as far as the log reaches back.
func (r Request) EventsSince(rev int64) []Event {
	i := slices.IndexFunc(r.Log, func(e Event) bool { return e.Rev > rev })
	if i < 0 {
		return nil
	}
	return slices.Clone(r.Log[i:])
}

// openClarification returns the index of the first clarification without a reply, or -1.
func (r Request) openClarification() int {
	return slices.IndexFunc(r.Clarifications, func(q Clarification) bool { return q.Answer == nil })
}

// clone returns a copy that can be changed without changing r. Values behind pointers and nested
// lists are replaced, never changed in place.
func (r Request) clone() Request {
	r.Views = slices.Clone(r.Views)
	r.Renderings = slices.Clone(r.Renderings)
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

// canonicalDigest returns the same digest for all encodings of the same JSON.
func canonicalDigest(data json.RawMessage) (string, error) {
	canonical, err := strictjson.Canonical(data)
	if err != nil {
		return "", err
	}
	return digest(canonical), nil
}

// strictDigest is canonicalDigest for JSON from a person. It rejects ambiguous JSON.
func strictDigest(data json.RawMessage) (string, error) {
	if err := strictjson.Check(data); err != nil {
		return "", err
	}
	return canonicalDigest(data)
}
