package desk

import (
	"encoding/json"
	"time"
)

// Command is something that is done with a request: one of the types below.
type Command interface {
	name() CommandName
	from() From
	apply(d *update) error
}

// CommandName names an act.
type CommandName string

// The names of the acts.
const (
	CommandClaim               CommandName = "claim"
	CommandRelease             CommandName = "release"
	CommandView                CommandName = "view"
	CommandApprove             CommandName = "approve"
	CommandEdit                CommandName = "edit"
	CommandReject              CommandName = "reject"
	CommandRespond             CommandName = "respond"
	CommandAskClarification    CommandName = "ask_back"
	CommandAnswerClarification CommandName = "answer_back"
	CommandComment             CommandName = "comment"
	CommandDelegate            CommandName = "delegate"
	CommandSnooze              CommandName = "snooze"
	CommandExtend              CommandName = "extend"
	CommandEscalate            CommandName = "escalate"
	CommandWithdraw            CommandName = "withdraw"
	CommandAbandon             CommandName = "escape"
	CommandTick                CommandName = "tick"
	CommandRecordDelivery      CommandName = "delivered"
	CommandRecordOutage        CommandName = "outage"
)

// From says who acts, on what they saw.
type From struct {
	Actor Actor
	// Seen is what they saw. Whoever does not say is taken to have seen the request as it was asked.
	Seen Seen
	// Via is the channel through which they act.
	Via string
	// IdempotencyKey, if it has a key, says that what is done again under it counts once; see [IsRepeat].
	IdempotencyKey IdempotencyKey
}

// IdempotencyKey names something that somebody does, so that they may repeat it if they got no answer.
type IdempotencyKey struct {
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
	ActorHuman  ActorKind = "human"
	ActorAgent  ActorKind = "agent"
	ActorSystem ActorKind = "system"
)

// PersonActor is an actor who is a human being.
func PersonActor(id string, auth Auth) Actor { return Actor{ID: id, Kind: ActorHuman, Auth: auth} }

// SystemActor is an actor who is a part of the system, such as "executor".
func SystemActor(name string) Actor { return Actor{ID: "system:" + name, Kind: ActorSystem} }

// Seen names what somebody saw: the revision, and the [Request.Digest] of then.
type Seen struct {
	Rev    int64
	Digest string
}

// Claim says that somebody looks after the request. Others can still decide.
type Claim struct{ From }

// Release takes a claim back.
type Release struct{ From }

// View says that somebody has the request in front of them. If they say what they see, and it is no longer what is asked, it does not count.
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
	Choice string
}

// AskClarification asks the run something. The request stays open.
type AskClarification struct {
	From
	Question string
}

// AnswerClarification is the run's answer.
type AnswerClarification struct {
	From
	// Clarification is the number of the question, from 1.
	Number int
	Answer string
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

// Abandon gives up the task that the question is part of.
type Abandon struct {
	From
	Reason string
}

// Tick lets the clock do what is due.
type Tick struct{}

// RecordDelivery says that a channel has reached somebody. Target is as in the notice, At is when.
type RecordDelivery struct {
	Target string
	At     time.Time
}

// RecordOutage says that the service was down. A deadline that fell into it is moved, so that people have the grace of the route. It
// has to come before the first [Tick] after the outage.
type RecordOutage struct{ Start, End time.Time }

// CommandOrigin says what an act is called, and who does it. It is for those who write down what was refused.
func CommandOrigin(act Command) (CommandName, From) { return act.name(), act.from() }

func (f From) from() From         { return f }
func (Tick) from() From           { return From{Actor: SystemActor("clock")} }
func (RecordDelivery) from() From { return From{Actor: SystemActor("channel")} }
func (RecordOutage) from() From   { return From{Actor: SystemActor("clock")} }

func (Claim) name() CommandName               { return CommandClaim }
func (Release) name() CommandName             { return CommandRelease }
func (View) name() CommandName                { return CommandView }
func (Approve) name() CommandName             { return CommandApprove }
func (ApproveEdited) name() CommandName       { return CommandEdit }
func (Reject) name() CommandName              { return CommandReject }
func (Respond) name() CommandName             { return CommandRespond }
func (AskClarification) name() CommandName    { return CommandAskClarification }
func (AnswerClarification) name() CommandName { return CommandAnswerClarification }
func (Comment) name() CommandName             { return CommandComment }
func (Delegate) name() CommandName            { return CommandDelegate }
func (Snooze) name() CommandName              { return CommandSnooze }
func (Extend) name() CommandName              { return CommandExtend }
func (Escalate) name() CommandName            { return CommandEscalate }
func (Withdraw) name() CommandName            { return CommandWithdraw }
func (Abandon) name() CommandName             { return CommandAbandon }
func (Tick) name() CommandName                { return CommandTick }
func (RecordDelivery) name() CommandName      { return CommandRecordDelivery }
func (RecordOutage) name() CommandName        { return CommandRecordOutage }
