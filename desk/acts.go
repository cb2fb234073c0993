package desk

import (
	"encoding/json"
	"time"
)

// Act is something that is done with a request: one of the types below.
type Act interface {
	name() Name
	from() From
	do(d *draft) error
}

// Name names an act.
type Name string

// The names of the acts.
const (
	NameClaim      Name = "claim"
	NameRelease    Name = "release"
	NameView       Name = "view"
	NameApprove    Name = "approve"
	NameEdit       Name = "edit"
	NameReject     Name = "reject"
	NameRespond    Name = "respond"
	NameAskBack    Name = "ask_back"
	NameAnswerBack Name = "answer_back"
	NameComment    Name = "comment"
	NameDelegate   Name = "delegate"
	NameSnooze     Name = "snooze"
	NameExtend     Name = "extend"
	NameEscalate   Name = "escalate"
	NameWithdraw   Name = "withdraw"
	NameEscape     Name = "escape"
	NameTick       Name = "tick"
	NameDelivered  Name = "delivered"
	NameOutage     Name = "outage"
)

// From says who acts, on what they saw.
type From struct {
	Actor Actor
	// Seen is what they saw. Whoever does not say is taken to have seen the request as it was asked.
	Seen Seen
	// Via is the channel through which they act.
	Via string
	// Once, if it has a key, says that what is done again under it counts once; see [Repeated].
	Once Once
}

// Once names something that somebody does, so that they may repeat it if they got no answer.
type Once struct {
	// Key is of the actor's choice.
	Key string `json:"key"`
	// Digest is of what they do. Under the same key it cannot be something else.
	Digest string `json:"digest"`
}

// Actor is somebody, as far as we know them. Which groups they are in, the [Directory] says.
type Actor struct {
	// ID is the name of the principal.
	ID   string
	Kind ActorKind
	Auth Auth
}

// ActorKind is what an actor is. The zero value is nobody, who may do nothing.
type ActorKind string

// The kinds of actors. Only people decide.
const (
	Human  ActorKind = "human"
	Agent  ActorKind = "agent"
	System ActorKind = "system"
)

// Person is an actor who is a human being.
func Person(id string, auth Auth) Actor { return Actor{ID: id, Kind: Human, Auth: auth} }

// Service is an actor who is a part of the system, such as "executor".
func Service(name string) Actor { return Actor{ID: "system:" + name, Kind: System} }

// Seen names what somebody saw: the revision, and the [Request.Digest] of then.
type Seen struct {
	Rev    int64
	Digest string
}

// Claim says that somebody looks after the request. Others can still decide.
type Claim struct{ From }

// Release takes a claim back.
type Release struct{ From }

// View says that somebody has the request in front of them.
type View struct{ From }

// Approve is a yes to what would be done now.
type Approve struct{ From }

// ApproveEdited is a yes to the same action with other arguments. It takes the place of what was asked, and of all votes so far; the
// policy is asked again, and may want more people.
type ApproveEdited struct {
	From
	Args json.RawMessage
}

// Reject is a no.
type Reject struct {
	From
	// Codes are words for programs, Reason is for people and for the agent. One of them is needed.
	Codes  []string
	Reason string
	// Retry says that the agent may try something else; otherwise it must stop.
	Retry bool
}

// Respond answers a question that is not about an action.
type Respond struct {
	From
	Value json.RawMessage
	// Word is what votes are counted by if several people must agree; by default they must give the same value.
	Word string
}

// AskBack asks the run something. The request stays open.
type AskBack struct {
	From
	Question string
}

// AnswerBack is the run's answer.
type AnswerBack struct {
	From
	// Question is the number of the question, from 1.
	Question int
	Answer   string
}

// Comment is a remark that everybody sees.
type Comment struct {
	From
	Text string
}

// Delegate asks somebody else to decide. They must be allowed to: nobody passes on a right that is not theirs.
type Delegate struct {
	From
	To     string
	Reason string
}

// Snooze leaves everybody in peace for a while. Then the route begins anew; the deadline stays.
type Snooze struct {
	From
	Until time.Time
}

// Extend moves the deadline, not further than the cap of the route and the requirement permit. The route begins anew, except
// that nobody is told what they know.
type Extend struct {
	From
	Until time.Time
}

// Escalate takes the next step of the route now.
type Escalate struct {
	From
	Reason string
}

// Withdraw takes the request back: the run no longer asks.
type Withdraw struct {
	From
	Reason string
}

// Escape gives up the task that the question is part of.
type Escape struct {
	From
	Reason string
}

// Tick lets the clock do what is due.
type Tick struct{}

// Delivered says that a channel has reached somebody. Target is as in the notice, At is when.
type Delivered struct {
	Target string
	At     time.Time
}

// Outage says that the service was down. A deadline that fell into it is moved, so that people have the grace of the route. It
// has to come before the first [Tick] after the outage.
type Outage struct{ Start, End time.Time }

// Origin says what an act is called, and who does it. It is for those who write down what was refused.
func Origin(act Act) (Name, From) { return act.name(), act.from() }

func (f From) from() From    { return f }
func (Tick) from() From      { return From{Actor: Service("clock")} }
func (Delivered) from() From { return From{Actor: Service("channel")} }
func (Outage) from() From    { return From{Actor: Service("clock")} }

func (Claim) name() Name         { return NameClaim }
func (Release) name() Name       { return NameRelease }
func (View) name() Name          { return NameView }
func (Approve) name() Name       { return NameApprove }
func (ApproveEdited) name() Name { return NameEdit }
func (Reject) name() Name        { return NameReject }
func (Respond) name() Name       { return NameRespond }
func (AskBack) name() Name       { return NameAskBack }
func (AnswerBack) name() Name    { return NameAnswerBack }
func (Comment) name() Name       { return NameComment }
func (Delegate) name() Name      { return NameDelegate }
func (Snooze) name() Name        { return NameSnooze }
func (Extend) name() Name        { return NameExtend }
func (Escalate) name() Name      { return NameEscalate }
func (Withdraw) name() Name      { return NameWithdraw }
func (Escape) name() Name        { return NameEscape }
func (Tick) name() Name          { return NameTick }
func (Delivered) name() Name     { return NameDelivered }
func (Outage) name() Name        { return NameOutage }
