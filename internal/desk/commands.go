package desk

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Command is a command on a request: one of the types below.
type Command interface {
	name() CommandName
	from() From
	apply(d *update) error
}

// CommandName is the name of a command.
type CommandName string

// The names of the commands.
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
	CommandAbandon             CommandName = "abandon"
	CommandUndo                CommandName = "undo"
	CommandTick                CommandName = "tick"
	CommandRecordDelivery      CommandName = "delivered"
	CommandRecordNoticeFailure CommandName = "notice_failed"
	CommandRecordOutage        CommandName = "outage"
)

// From describes who sends a command, and what they saw.
type From struct {
	Actor Actor
	// Seen is what the actor saw. The zero value means the original request.
	Seen Seen
	// Confirm is the text that the actor typed to confirm an approval; see [Request.ConfirmText].
	Confirm string
	// Via is the channel of the command.
	Via string
	// IdempotencyKey, if it has a key, makes the command idempotent; see [IsRepeat].
	IdempotencyKey IdempotencyKey
}

// IdempotencyKey identifies a command, so that a client can retry it.
type IdempotencyKey struct {
	// Key is chosen by the client.
	Key string `json:"key"`
	// Digest is the digest of the command. A key cannot be used for a different command.
	Digest string `json:"digest"`
}

// Actor is the sender of a command. The [Directory] knows the actor's groups.
type Actor struct {
	// ID is the name of the principal.
	ID   string
	Kind ActorKind
	Auth requirement.Auth
}

// ActorKind is the kind of an actor. The zero value may do nothing.
type ActorKind string

// The actor kinds. Only humans decide.
const (
	ActorHuman  ActorKind = "human"
	ActorAgent  ActorKind = "agent"
	ActorSystem ActorKind = "system"
)

// PersonActor returns a human actor.
func PersonActor(id string, auth requirement.Auth) Actor {
	return Actor{ID: id, Kind: ActorHuman, Auth: auth}
}

// SystemActor returns an actor for a part of the system, such as "executor".
func SystemActor(name string) Actor { return Actor{ID: "system:" + name, Kind: ActorSystem} }

// Seen identifies what an actor saw: the revision, and the [Request.Digest] at that time. Rendering
// is the hash of a recorded [Rendering] of that digest, if the actor names one.
type Seen struct {
	Rev       int64
	Digest    string
	Rendering string
}

// Claim assigns the request to the actor. Others can still decide.
type Claim struct{ From }

// Release gives a claim back.
type Release struct{ From }

// View records that the actor sees the request. A view with an outdated digest is ignored.
type View struct {
	From
	// Rendering, if not nil, is what was put on the screen. It needs the digest in Seen. [Apply]
	// sets who, when and the rest.
	Rendering *Rendering
}

// Approve approves the current action.
type Approve struct {
	From
	// Conditions limit the approval. With several votes, all of them must hold.
	Conditions fermata.Conditions
	// Reason is kept for the run while the decision is pending.
	Reason string
}

// ApproveEdited approves the action with other arguments. The edit replaces the requested arguments
// and voids all votes. The policy is evaluated again and may require more people.
type ApproveEdited struct {
	From
	Args json.RawMessage
	// Codes are the reasons for the edit, for programs. A requirement can ask for them.
	Codes []string
	// Conditions and Reason are as in [Approve].
	Conditions fermata.Conditions
	Reason     string
}

// Reject rejects the action.
type Reject struct {
	From
	// Codes are for programs, Reason is for people and for the agent. At least one of them is
	// required.
	Codes  []string
	Reason string
	// Retry allows the agent to try something else. Otherwise the agent must stop.
	Retry bool
}

// Respond answers a request that is not about an action.
type Respond struct {
	From
	Value json.RawMessage
	// Choice groups equal votes if several people must agree. By default they must give the same
	// value.
	Choice string
	// Reason and Codes are those of an edit of a held run.
	Reason string
	Codes  []string
}

// AskClarification asks the requester or the run a question. The request stays open.
type AskClarification struct {
	From
	Question string
}

// AnswerClarification replies to a clarification.
type AnswerClarification struct {
	From
	// Number is the number of the clarification, from 1.
	Number int
	Answer string
}

// Comment adds a comment that everyone can see.
type Comment struct {
	From
	Text string
}

// Delegate asks another person to decide. That person must be eligible.
type Delegate struct {
	From
	To     string
	Reason string
}

// Snooze pauses notices until a time. Then the route restarts. The deadline does not change.
type Snooze struct {
	From
	Until time.Time
}

// Extend moves the deadline, up to the cap of the route and the limit of the requirement. The route
// restarts, but first notices that were already sent are not repeated.
type Extend struct {
	From
	Until time.Time
}

// Escalate fires the next step of the route now. If the requirement says so, it returns the request
// for redesign instead: that is a decision, and needs a reason.
type Escalate struct {
	From
	Reason string
}

// Withdraw withdraws the request: the run no longer asks.
type Withdraw struct {
	From
	Reason string
}

// Abandon gives up the task that the request belongs to.
type Abandon struct {
	From
	Reason string
}

// Tick runs the timers that are due.
type Tick struct{}

// RecordDelivery records that a channel delivered to a target. Target is as in the notice.
type RecordDelivery struct {
	Target string
	At     time.Time
}

// RecordNoticeFailure records that a notice could not be delivered to a target.
type RecordNoticeFailure struct {
	Kind   NoticeKind
	Target string
	// Code is the reason, for programs: see [NoticeError].
	Code    string
	Attempt int
	// Next is when the next attempt is due. It is zero if there is none.
	Next time.Time
}

// RecordOutage records that the service was down. A deadline that passed during the outage is moved
// by the grace period of the route. The command must come before the first [Tick] after the outage.
type RecordOutage struct{ Start, End time.Time }

// CommandOrigin returns the name and the sender of a command, for records of refused commands.
func CommandOrigin(cmd Command) (CommandName, From) { return cmd.name(), cmd.from() }

func (f From) from() From              { return f }
func (Tick) from() From                { return From{Actor: SystemActor("clock")} }
func (RecordDelivery) from() From      { return From{Actor: SystemActor("channel")} }
func (RecordNoticeFailure) from() From { return From{Actor: SystemActor("channel")} }
func (RecordOutage) from() From        { return From{Actor: SystemActor("clock")} }

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
func (Undo) name() CommandName                { return CommandUndo }
func (Tick) name() CommandName                { return CommandTick }
func (RecordDelivery) name() CommandName      { return CommandRecordDelivery }
func (RecordNoticeFailure) name() CommandName { return CommandRecordNoticeFailure }
func (RecordOutage) name() CommandName        { return CommandRecordOutage }
