package api

import (
	"encoding/json"
	"time"
)

// Activity is what people did with a request so far.
type Activity struct {
	Revision         int64           `json:"revision" doc:"Counts the changes."`
	State            string          `json:"state" enum:"open,answered,expired,withdrawn"`
	Summary          string          `json:"summary" doc:"Where it stands, in one line."`
	Progress         string          `json:"progress,omitempty" doc:"Who agreed and who is still needed."`
	IneligibleReason string          `json:"mayNot,omitempty" doc:"Why the word of whoever asks would not count; not there if it would."`
	Verbs            []string        `json:"verbs" doc:"What people may do; without approve for whoever asks, if of their words only a yes would not count."`
	Requirements     []Requirement   `json:"need"`
	MinAuth          string          `json:"minAuth,omitempty" doc:"How well whoever decides must be authenticated."`
	Action           string          `json:"action,omitempty"`
	Risk             int             `json:"risk,omitempty"`
	Requester        string          `json:"requester,omitempty"`
	Policy           string          `json:"policy,omitempty" doc:"The digest of the rules that have it asked."`
	Rules            []string        `json:"rules,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	Route            string          `json:"route"`
	Claim            *Stamp          `json:"claim,omitempty" doc:"Who looks after it."`
	SnoozedUntil     *time.Time      `json:"snoozed,omitempty"`
	Edit             *Edit           `json:"edit,omitempty" doc:"What would be done in the place of what was asked."`
	Votes            []Vote          `json:"votes,omitempty"`
	Comments         []Note          `json:"comments,omitempty"`
	Clarifications   []Clarification `json:"questions,omitempty" doc:"What the run was asked back."`
	History          []HistoryEntry  `json:"history,omitempty" doc:"What has happened, the oldest first."`
}

// Requirement is how many people of a group have to agree.
type Requirement struct {
	Groups []string `json:"from"`
	Count  int      `json:"count"`
}

// Stamp is who did something, and when.
type Stamp struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Edit is other arguments than the ones that were asked for.
type Edit struct {
	Stamp
	Args   json.RawMessage `json:"args"`
	Fields []string        `json:"fields,omitempty" doc:"The JSON pointers of what differs."`
}

// Vote is one person's word.
type Vote struct {
	Stamp
	Verb   string `json:"verb"`
	Reason string `json:"reason,omitempty"`
}

// Note is something that somebody wrote.
type Note struct {
	Stamp
	Text string `json:"text"`
}

// Clarification is what people want to know before they decide.
type Clarification struct {
	Note
	Reply *Note `json:"answer,omitempty"`
}

// HistoryEntry is something that happened to a request.
type HistoryEntry struct {
	Stamp
	Revision int64  `json:"revision"`
	Event    string `json:"what"`
	Text     string `json:"text"`
}

// RequestAction is something that is done with a request and decides nothing.
type RequestAction struct {
	Text          string     `json:"text,omitempty" maxLength:"4000" doc:"A comment, a question, an answer, or a reason."`
	To            string     `json:"to,omitempty" maxLength:"512" doc:"With delegate: to whom."`
	Until         *time.Time `json:"until,omitempty" doc:"With snooze and extend: until when."`
	Clarification int        `json:"question,omitempty" minimum:"1" doc:"With reply: which question, counted from 1. It has to be said."`
	Shown         string     `json:"shown,omitempty" maxLength:"512" doc:"With view: the digest of what you see. If something else is asked by now, you have not looked at that."`
}

// AnsweredRequest is a question that is settled: it was answered, or has expired, or was withdrawn.
type AnsweredRequest struct {
	RunID      string          `json:"runId"`
	StateKey   string          `json:"stateKey"`
	GraphID    string          `json:"graphId"`
	Interrupt  string          `json:"interrupt"`
	Kind       string          `json:"kind"`
	Expired    bool            `json:"expired,omitempty" doc:"Nobody answered in time: neither a yes nor a no."`
	Withdrawn  bool            `json:"withdrawn,omitempty" doc:"The run was ended while it asked: nobody will answer."`
	Unreadable bool            `json:"unreadable,omitempty" doc:"There is an answer, and it cannot be opened: its key is missing, or it was changed. It is kept as it is."`
	Answer     json.RawMessage `json:"answer,omitempty"`
	By         string          `json:"by,omitempty"`
	At         time.Time       `json:"at"`
}

// AnswersPage is what was settled behind a cursor.
type AnswersPage struct {
	Items []AnsweredRequest `json:"items"`
	Next  string            `json:"next" doc:"The cursor for the next call. A page may be empty although there is more: there is no more yet if the cursor stays as it is."`
}

// HypotheticalAction is an action to try the rules on.
type HypotheticalAction struct {
	Graph     string          `json:"graph,omitempty"`
	Node      string          `json:"node,omitempty"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args,omitempty"`
	Requester string          `json:"requester,omitempty"`
	Agent     string          `json:"agent,omitempty"`
}

// Policy is the rules in force.
type Policy struct {
	Digest  string          `json:"digest"`
	Version string          `json:"version,omitempty"`
	Rules   json.RawMessage `json:"rules"`
}

// PolicyText is a policy as it was written.
type PolicyText struct {
	Digest  string     `json:"digest"`
	Version string     `json:"version,omitempty"`
	Since   *time.Time `json:"since,omitempty" doc:"When an action of the account was judged by it for the first time; not there if none was."`
	Text    string     `json:"text" doc:"The file, byte for byte: its SHA-256 is the digest."`
}

// ReplayPolicy asks what other rules would have said.
type ReplayPolicy struct {
	Policy  string `json:"policy" minLength:"1" maxLength:"524288" doc:"The text of the rules."`
	Seconds int64  `json:"seconds" minimum:"1" maximum:"315360000" doc:"How far to look back."`
}

// CreateGrant asks for a yes to be remembered.
type CreateGrant struct {
	Seconds int64           `json:"seconds" minimum:"1" maximum:"31536000" doc:"For how long. The policy may allow less."`
	Uses    int             `json:"uses" minimum:"1" maximum:"1000000" doc:"How often it can be used."`
	Budget  *Budget         `json:"budget,omitempty"`
	Relax   json.RawMessage `json:"relax,omitempty" doc:"By JSON pointer, arguments that may differ: {\"/path\": {\"op\": \"prefix\", \"value\": \"s3://b/2026/\"}}. All others have to be the same."`
}

// Budget is how much all uses of a grant may come to.
type Budget struct {
	Field string `json:"of" doc:"The JSON pointer of a whole number in the arguments, or cost."`
	Max   int64  `json:"max" minimum:"0"`
}

// Grant is a yes that is remembered within bounds.
type Grant struct {
	ID          string          `json:"id"`
	By          string          `json:"by"`
	Request     string          `json:"request"`
	Tool        string          `json:"tool"`
	Graph       string          `json:"graph,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Requester   string          `json:"requester,omitempty"`
	Args        json.RawMessage `json:"args" doc:"What each argument has to be."`
	Since       time.Time       `json:"since"`
	Until       time.Time       `json:"until"`
	Uses        int             `json:"uses"`
	MaxUses     int             `json:"maxUses"`
	Spent       int64           `json:"spent,omitempty"`
	Budget      *Budget         `json:"budget,omitempty"`
	Revoked     *time.Time      `json:"revoked,omitempty"`
}
