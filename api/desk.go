package api

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
)

// Activity is what people did with a request.
type Activity struct {
	Revision          int64               `json:"revision" doc:"Number of changes."`
	State             string              `json:"state" enum:"open,answered,expired,withdrawn"`
	Summary           string              `json:"summary" doc:"The current state in one line."`
	Progress          string              `json:"progress,omitempty" doc:"Votes so far and votes that are still needed."`
	IneligibleReason  string              `json:"ineligibleReason,omitempty" doc:"Why the caller may not decide this request. Omitted if they may."`
	Verbs             []string            `json:"verbs" doc:"The verbs that are allowed. It omits approve if the caller may do everything except approve."`
	Editable          []string            `json:"editable,omitempty" doc:"JSON pointers of the arguments, or of the state of a held run, that the rules let an approver change; an empty pointer is everything."`
	EditReasons       []string            `json:"editReasons,omitempty" doc:"Reason codes: an edit must name one of them in codes. Omitted if an edit needs none."`
	RejectReasons     []string            `json:"rejectReasons,omitempty" doc:"Reason codes: a rejection must name one of them in codes. Omitted if a rejection needs none."`
	Confirm           string              `json:"confirm,omitempty" doc:"What an approver must type, to be sent in confirm with an approval. Omitted if nothing must be typed."`
	ConfirmFields     []string            `json:"confirmFields,omitempty" doc:"With confirm: JSON pointers of the arguments whose values are typed, separated by spaces. With edited arguments, the edited values are typed."`
	Returns           bool                `json:"returns,omitempty" doc:"The verdict return, which sends the request back for redesign, is possible. Escalating does the same."`
	Requirements      []Requirement       `json:"requirements"`
	MemberOf          []string            `json:"memberOf,omitempty" doc:"The required groups that the caller belongs to, while the request is open."`
	MinAuth           string              `json:"minAuth,omitempty" doc:"The minimum authentication strength of an approver."`
	Action            string              `json:"action,omitempty"`
	Risk              int                 `json:"risk,omitempty"`
	Requester         string              `json:"requester,omitempty"`
	StatedRequester   string              `json:"statedRequester,omitempty" doc:"The person for whom the requester, an agent, states that it works. The server did not check it."`
	StatedEnvironment string              `json:"statedEnvironment,omitempty" doc:"The environment that the agent states. The server did not check it."`
	Policy            string              `json:"policy,omitempty" doc:"The digest of the policy that requires the approval."`
	Rules             []string            `json:"rules,omitempty"`
	Reason            string              `json:"reason,omitempty"`
	Route             string              `json:"route"`
	Voted             bool                `json:"voted,omitempty" doc:"A vote of the caller counts, while the request is open."`
	Consequences      []Consequence       `json:"consequences,omitempty" doc:"What each decision of the caller would cause now. Only when one request is read, and while it is open."`
	Delegates         []string            `json:"delegates,omitempty" doc:"The people to whom the caller can delegate. Only when one request is read, and if delegate is allowed."`
	OtherDelegates    bool                `json:"otherDelegates,omitempty" doc:"With delegates: others may be eligible too, whom the server cannot list."`
	ExtendUntil       *time.Time          `json:"extendUntil,omitempty" doc:"Until when the deadline can be extended. Omitted if it cannot be."`
	Escalation        []string            `json:"escalation,omitempty" doc:"What an escalation does next: notify, page or widen, and a target, such as page oncall:dba. Omitted if there is no further step, or if it returns the request."`
	Claim             *Stamp              `json:"claim,omitempty" doc:"The person who claimed the request, and when."`
	SnoozedUntil      *time.Time          `json:"snoozedUntil,omitempty"`
	Edit              *Edit               `json:"edit,omitempty" doc:"Edited arguments that replace the requested ones."`
	Votes             []Vote              `json:"votes,omitempty"`
	Pending           *PendingDecision    `json:"pending,omitempty" doc:"A decision that takes effect at the end of its undo window."`
	Viewers           []Stamp             `json:"viewers,omitempty" doc:"The people who are looking at the request now, as their clients report to this replica, and when they last did."`
	Comments          []Note              `json:"comments,omitempty"`
	Clarifications    []Clarification     `json:"clarifications,omitempty" doc:"Clarification requests to the requester and their replies."`
	Renderings        []RecordedRendering `json:"renderings,omitempty" doc:"What was put on people's screens, as their clients reported it: the latest of each person."`
	History           []HistoryEntry      `json:"history,omitempty" doc:"The history, oldest first."`
}

// Requirement is how many people of some groups must approve.
type Requirement struct {
	Groups []string `json:"groups"`
	Count  int      `json:"count"`
}

// Consequence is what a decision of the caller would cause.
type Consequence struct {
	Verb        string         `json:"verb" enum:"approve,reject,respond"`
	Result      string         `json:"result" enum:"decides,pending,vote,refused" doc:"decides: the request is decided at once. pending: it is decided at the end of an undo window. vote: others are needed as well."`
	Code        string         `json:"code,omitempty" doc:"Why the decision would be refused."`
	EffectiveAt *time.Time     `json:"effectiveAt,omitempty" doc:"The end of the undo window."`
	Votes       int            `json:"votes,omitempty" doc:"The votes with this one."`
	Needed      int            `json:"needed,omitempty"`
	Missing     []MissingVotes `json:"missing,omitempty" doc:"Who would still be needed."`
}

// MissingVotes is how many more people of a group are needed.
type MissingVotes struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// Stamp says who did something, and when.
type Stamp struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Edit is a set of edited arguments.
type Edit struct {
	Stamp
	Args   json.RawMessage `json:"args"`
	Fields []string        `json:"fields,omitempty" doc:"JSON pointers of the changed values."`
}

// Vote is the vote of one person.
type Vote struct {
	Stamp
	Verb       string              `json:"verb"`
	Reason     string              `json:"reason,omitempty"`
	Conditions *fermata.Conditions `json:"conditions,omitempty" doc:"The conditions of an approval. The condition onlyIf is masked if the request has sensitive values."`
}

// PendingDecision is a decision that is not in effect yet. Its voter can withdraw it.
type PendingDecision struct {
	Stamp
	Outcome     string    `json:"outcome" enum:"approve,reject,answer"`
	EffectiveAt time.Time `json:"effectiveAt"`
}

// Note is a text that a person wrote.
type Note struct {
	Stamp
	Text string `json:"text"`
}

// Clarification is a clarification request and its reply.
type Clarification struct {
	Note
	Reply *Note `json:"reply,omitempty"`
}

// HistoryEntry is one event in the history of a request.
type HistoryEntry struct {
	Stamp
	Revision int64  `json:"revision"`
	Event    string `json:"event"`
	Text     string `json:"text"`
}

// RequestAction is the body of an action other than a decision.
type RequestAction struct {
	Text          string     `json:"text,omitempty" maxLength:"4000" doc:"A comment, clarification request, reply, or reason."`
	To            string     `json:"to,omitempty" maxLength:"512" doc:"With delegate: the delegate."`
	Until         *time.Time `json:"until,omitempty" doc:"With snooze and extend: the end time."`
	Clarification int        `json:"question,omitempty" minimum:"1" doc:"With reply: the number of the clarification request, from 1. Required."`
	Shown         string     `json:"shown,omitempty" maxLength:"512" doc:"With view: the digest of what was shown. If the request has changed since, it does not count as viewed."`
	Rendering     *Rendering `json:"rendering,omitempty" doc:"With view: what was put on the screen. It needs shown."`
}

// Rendering is what a channel put on a person's screen.
type Rendering struct {
	Hash     string `json:"hash" maxLength:"128" doc:"sha256: and the SHA-256, in hex, of exactly the text on the screen: UTF-8, with a newline between lines, without styles and control sequences."`
	Channel  string `json:"channel" maxLength:"50" doc:"Where it was shown, for example terminal."`
	Template string `json:"template" maxLength:"100" doc:"What rendered it: a name, @ and a version."`
	Visible  string `json:"visible,omitempty" enum:"all,part" doc:"all: the client observed that every line was on the screen and that nothing was folded. part: a line was folded, or was not on the screen. Omitted: unknown."`
	Text     string `json:"text,omitempty" maxLength:"65536" doc:"The text itself, which must have the hash. It is kept as evidence until the run is deleted. Omit a text that is longer, or that has revealed values."`
}

// maxRenderingText is the longest text, in bytes, that is kept of a rendering.
const maxRenderingText = 64 << 10

// NewRendering returns the rendering of a text with its hash, and with the text unless it is too
// long to be kept.
func NewRendering(text, channel, template string) Rendering {
	r := Rendering{Hash: ident.TextHash(text), Channel: channel, Template: template}
	if len(text) <= maxRenderingText {
		r.Text = text
	}
	return r
}

// RecordedRendering is a rendering that the server has recorded.
type RecordedRendering struct {
	Stamp
	Rendering
	Shown string `json:"shown" doc:"The digest of the request that was rendered."`
}

// AnsweredRequest is a closed request: answered, expired or withdrawn.
type AnsweredRequest struct {
	RunID      string          `json:"runId"`
	StateKey   string          `json:"stateKey"`
	GraphID    string          `json:"graphId"`
	Interrupt  string          `json:"interrupt"`
	Kind       string          `json:"kind"`
	Expired    bool            `json:"expired,omitempty" doc:"The request expired without an answer, which is neither approval nor rejection."`
	Withdrawn  bool            `json:"withdrawn,omitempty" doc:"The run ended while the request was open."`
	Unreadable bool            `json:"unreadable,omitempty" doc:"The answer cannot be decrypted: its key is missing, or it was changed. It is kept unchanged."`
	Answer     json.RawMessage `json:"answer,omitempty"`
	Refusal    *Refusal        `json:"refusal,omitempty" doc:"Instead of an answer: a question other than an approval was returned or rejected."`

	ApprovedDigest string    `json:"approvedDigest,omitempty" doc:"The digest of the approved action with its arguments, for the receipt."`
	By             string    `json:"by,omitempty"`
	At             time.Time `json:"at"`
}

// Refusal ends a question without an answer of its kind.
type Refusal struct {
	Verb   string    `json:"verb" enum:"return,reject"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// AnswersPage is a page of closed requests after a cursor.
type AnswersPage struct {
	Items []AnsweredRequest `json:"items"`
	Next  string            `json:"next" doc:"The cursor for the next call. A page may be empty although there are more; there are no more yet if the cursor has not changed."`
}

// HypotheticalAction is an action for which to explain the policy.
type HypotheticalAction struct {
	Graph     string          `json:"graph,omitempty"`
	Node      string          `json:"node,omitempty"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args,omitempty"`
	Requester string          `json:"requester,omitempty"`
	Agent     string          `json:"agent,omitempty"`
}

// Policy is the policy in force.
type Policy struct {
	Digest  string          `json:"digest"`
	Version string          `json:"version,omitempty"`
	Rules   json.RawMessage `json:"rules"`
}

// PolicyText is the source text of a policy.
type PolicyText struct {
	Digest  string     `json:"digest"`
	Version string     `json:"version,omitempty"`
	Since   *time.Time `json:"since,omitempty" doc:"When it first decided an action of the account; omitted if it never did."`
	Text    string     `json:"text" doc:"The file, byte for byte: its SHA-256 is the digest."`
}

// ReplayPolicy replays past rulings with other rules.
type ReplayPolicy struct {
	Policy  string `json:"policy" minLength:"1" maxLength:"524288" doc:"The policy text."`
	Seconds int64  `json:"seconds" minimum:"1" maximum:"315360000" doc:"The period to replay, in seconds before now."`
}

// CreateGrant creates a grant from an approval.
type CreateGrant struct {
	Seconds int64           `json:"seconds" minimum:"1" maximum:"31536000" doc:"The duration in seconds. The policy may allow less."`
	Uses    int             `json:"uses" minimum:"1" maximum:"1000000" doc:"Maximum number of uses."`
	Budget  *Budget         `json:"budget,omitempty"`
	Relax   json.RawMessage `json:"relax,omitempty" doc:"Constraints by JSON pointer for arguments that may differ: {\"/path\": {\"op\": \"prefix\", \"value\": \"s3://b/2026/\"}}. All others must be equal."`
}

// Budget limits the sum over all uses of a grant.
type Budget struct {
	Field string `json:"of" doc:"The JSON pointer of an integer argument, or cost."`
	Max   int64  `json:"max" minimum:"0"`
}

// Grant is a remembered, bounded approval.
type Grant struct {
	ID          string          `json:"id"`
	By          string          `json:"by"`
	Request     string          `json:"request"`
	Tool        string          `json:"tool"`
	Graph       string          `json:"graph,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Requester   string          `json:"requester,omitempty"`
	Args        json.RawMessage `json:"args" doc:"The constraint of each argument."`
	Since       time.Time       `json:"since"`
	Until       time.Time       `json:"until"`
	Uses        int             `json:"uses"`
	MaxUses     int             `json:"maxUses"`
	Spent       int64           `json:"spent,omitempty"`
	Budget      *Budget         `json:"budget,omitempty"`
	Revoked     *time.Time      `json:"revoked,omitempty"`
}
