// Package api defines the JSON types of the HTTP API, which the server and the client share.
package api

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/drawing"
)

// Prefix is the path prefix of the API.
const Prefix = "/api/v1"

// Chat starts a run, or answers one if it has a resume id.
type Chat struct {
	GraphID   string          `json:"graphId,omitempty" maxLength:"512" doc:"The graph to run, for example inproc:content-review. For a start."`
	StateKey  string          `json:"stateKey,omitempty" maxLength:"512" doc:"The handle of the run. Generated if a start has none."`
	Input     json.RawMessage `json:"input,omitempty" doc:"The input of the run."`
	StartID   string          `json:"startId,omitempty" maxLength:"512" doc:"Distinguishes this start from another start of the same graph with the same input."`
	Supersede bool            `json:"supersede,omitempty" doc:"Supersede the run that has the state key, if it was started with other input."`

	ResumeID      string                     `json:"resumeId,omitempty" maxLength:"512" doc:"Chosen by the caller. The same body with the same id is applied once."`
	ResumeValue   json.RawMessage            `json:"resumeValue,omitempty" doc:"The answer to the only open interrupt. An approval, a gate or an effect in doubt also needs interruptId, or shown with its digest."`
	InterruptID   string                     `json:"interruptId,omitempty" maxLength:"512" doc:"The id of the interrupt that resumeValue answers."`
	ResumeTargets map[string]json.RawMessage `json:"resumeTargets,omitempty" doc:"Answers by interrupt id."`
	Shown         map[string]string          `json:"shown,omitempty" doc:"Digests of what was shown to the approver, by interrupt id."`
	Confirm       map[string]string          `json:"confirm,omitempty" doc:"What the approver typed, by interrupt id: see activity.confirm of the request."`
}

// Pending says that a start or resume is recorded and in progress.
type Pending struct {
	RunID    string `json:"runId,omitempty"`
	StateKey string `json:"stateKey"`
	// EffectiveAt is set if a decision waits for the end of its undo window.
	EffectiveAt *time.Time `json:"effectiveAt,omitempty"`
}

// StatusPending is the status of an outcome that is not known yet.
const StatusPending = "pending"

// StatusExpired is the status of a run that failed because its request expired, and the code of its
// outcome.
const StatusExpired = "expired"

// Run is a run in a list.
type Run struct {
	StateKey   string    `json:"stateKey"`
	RunID      string    `json:"runId"`
	Generation int       `json:"generation" doc:"Number of runs that had this state key, including this one."`
	GraphID    string    `json:"graphId"`
	Status     string    `json:"status" enum:"ready,running,waiting,parked,completed,failed,expired,cancelled,superseded" doc:"expired: the run failed because its request expired."`
	Attempts   int       `json:"attempts" doc:"Execution attempts since the run last waited."`
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
}

// RunProblem is why a run failed, is parked or is tried again.
type RunProblem struct {
	Code      string `json:"code"`
	Message   string `json:"message" doc:"The reason, without data of the run."`
	Detail    string `json:"detail,omitempty" doc:"The complete error. Only for admins."`
	Retryable bool   `json:"retryable" doc:"retry-run may continue the run. False for a failure that is final, for example a rejection."`
}

// Request is an interrupt as people see it, with its state and decision.
type Request struct {
	ID           string          `json:"id"`
	StateKey     string          `json:"stateKey"`
	GraphID      string          `json:"graphId"`
	Address      string          `json:"address" doc:"The address of the interrupt in the run."`
	Kind         string          `json:"kind"`
	Data         json.RawMessage `json:"data,omitempty" doc:"The data to show."`
	Masked       []string        `json:"masked,omitempty" doc:"JSON pointers of sensitive values that are masked: into the arguments of an action, otherwise into the data. reveal-request shows them."`
	Unreadable   bool            `json:"unreadable,omitempty" doc:"Some data cannot be decrypted: a key is missing, or the data was changed. It is kept unchanged."`
	Shown        string          `json:"shown" doc:"The digest of what is shown; send it back with the decision."`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty"`
	Supersedes   string          `json:"supersedes,omitempty" doc:"The id of the request that this one replaces, because what it showed has changed."`
	Changed      []string        `json:"changed,omitempty" doc:"With supersedes: JSON pointers of the differences in data."`
	Refused      string          `json:"refused,omitempty" doc:"The reason why the program did not use the last answer."`
	State        string          `json:"state" enum:"pending,decided,withdrawn"`
	Next         [][]string      `json:"next,omitempty" doc:"Where the run can continue: a list of alternatives, each with the names of the nodes that are entered together; an empty alternative is the end. Only while the request is open, and if the graph is known."`
	CreatedAt    time.Time       `json:"createdAt"`
	Deadline     *time.Time      `json:"deadline,omitempty"`
	Decision     *Decision       `json:"decision,omitempty"`
	Activity     *Activity       `json:"activity,omitempty" doc:"What people did with the request."`
	Presentation *Presentation   `json:"presentation,omitempty" doc:"The request in words, in the language of Accept-Language (en or de). In lists it has only shape, title and sentence."`
}

// Decision is the decision of a request.
type Decision struct {
	Verdict string          `json:"verdict" enum:"approve,reject,return,answer,expire"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	By      string          `json:"by"`
	Via     string          `json:"via,omitempty"`
	Source  string          `json:"source" enum:"person,clock,policy"`
	At      time.Time       `json:"at"`

	ApprovedDigest string              `json:"approvedDigest,omitempty" doc:"The digest of the approved action with its arguments, for the receipt."`
	Conditions     *fermata.Conditions `json:"conditions,omitempty" doc:"The conditions of the approval, of all votes together. They must hold when the action begins. The server checks them for runs that it executes; an external agent checks them itself."`
}

// SendReceipt is what an external agent did after the decision on its approval.
type SendReceipt struct {
	Digest  string          `json:"digest" minLength:"64" maxLength:"64" doc:"The digest of the action and the arguments that were executed; approvedDigest of the decision if nothing differs."`
	Outcome string          `json:"outcome" enum:"done,failed,not_done" doc:"not_done: the action was not begun."`
	Result  json.RawMessage `json:"result,omitempty" doc:"The result, at most 64 KiB of JSON. It is stored encrypted with the run."`
}

// Receipt is a stored receipt.
type Receipt struct {
	SendReceipt
	By string    `json:"by" doc:"Who sent it."`
	At time.Time `json:"at" doc:"When the server received it."`
}

// Decide is the body of a decision.
type Decide struct {
	ResumeID  string          `json:"resumeId" minLength:"1" maxLength:"512" doc:"Chosen by the caller. The same decision with the same id is applied once."`
	Answer    json.RawMessage `json:"answer" doc:"The answer, as defined by answerSchema of the request."`
	Shown     string          `json:"shown,omitempty" maxLength:"128" doc:"The digest of what was shown. If the request has changed, the decision is rejected."`
	Confirm   string          `json:"confirm,omitempty" maxLength:"1024" doc:"What the approver typed. An approval needs the text of activity.confirm of the request, if it has one; with edited arguments, the values of theirs."`
	Rendering string          `json:"rendering,omitempty" maxLength:"128" doc:"The hash of the recorded rendering (POST …/view) that the decision is based on. If the request has no such rendering, or has changed since, the decision is rejected."`
}

// CreateRequest creates a request of an external agent.
type CreateRequest struct {
	StateKey     string          `json:"stateKey,omitempty" maxLength:"512"`
	Kind         string          `json:"kind" minLength:"1" maxLength:"256"`
	Data         json.RawMessage `json:"data" doc:"The data to show to people."`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty" doc:"The JSON Schema of the answer."`
	Callback     *Callback       `json:"callback,omitempty" doc:"Where the answer is sent, as a signed webhook. Without one the agent polls."`
	Timeout      int64           `json:"timeout,omitempty" minimum:"0" doc:"Time until the request expires, in seconds; 0 means the server's default."`
	Receipt      bool            `json:"receipt,omitempty" doc:"The agent will send a receipt. An approval without one is reported."`
	Requester    string          `json:"requester,omitempty" doc:"The person for whom the agent works, at most 256 bytes. Separation of duties excludes them like the agent. Rules see them as req.stated.requester; req.requester is the name of the key."`
	Environment  string          `json:"environment,omitempty" doc:"The environment of the request, at most 256 bytes. Rules see it as req.stated.environment; req.environment is that of the server."`
	Facts        json.RawMessage `json:"facts,omitempty" doc:"A JSON object of at most 16 KiB for the rules alone, who see it as facts. It is recorded with the ruling, and people do not see it."`
	// DefaultAnswer is used only if a rule says so.
	DefaultAnswer json.RawMessage `json:"defaultAnswer,omitempty" doc:"The answer at the deadline, for rules with on_timeout: default. An approval has none."`
	// AllowDuplicate is not part of the request.
	AllowDuplicate bool `json:"allowDuplicate,omitempty" doc:"Create the request even if an identical one is open. Without it, and without a stateKey and an Idempotency-Key, the open request of the same agent with the same kind, data, requester, environment and facts is returned."`
}

// Callback is the webhook of an agent.
type Callback struct {
	URL string `json:"url" minLength:"1" maxLength:"2048" doc:"An https URL on port 443 of a public address, unless the server's configuration allows others."`
}

// Event is a stored event of a run.
type Event struct {
	ID        string    `json:"id" doc:"Unique among all runs; use it as Last-Event-ID."`
	Type      string    `json:"type"`
	Request   string    `json:"request,omitempty" doc:"The id of the request that the event is about."`
	CreatedAt time.Time `json:"createdAt"`
}

// QueueEvent is an event of the stream of requests: a change of a request, or one of QueueReady,
// QueueReset and QueueViewing.
type QueueEvent struct {
	ID        string    `json:"id,omitempty" doc:"Use it as Last-Event-ID. The event viewing has none."`
	Type      string    `json:"type" enum:"ready,reset,opened,changed,voted,decided,claimed,released,expired,withdrawn,viewing"`
	Request   string    `json:"request,omitempty" doc:"The id of the request."`
	Revision  int64     `json:"revision,omitempty" doc:"The revision of the request after the change, if it is recorded."`
	Viewers   []Stamp   `json:"viewers,omitempty" doc:"In the event viewing, the people who are looking at the request."`
	CreatedAt time.Time `json:"createdAt"`
}

// Names of queue events that are not changes of a request.
const (
	QueueReady   = "ready"   // the stream has begun; requests that are listed now and later changes are complete
	QueueReset   = "reset"   // the last event is too old or unknown: list the requests again
	QueueViewing = "viewing" // the viewers of a request have changed
)

// The names of stream events that are not stored events of the run. They have no id.
const (
	EventRun   = "run"   // a [Pending]: the request is recorded; the first event of a chat
	EventStep  = "step"  // a [Step]
	EventToken = "token" // a [Token]
	// an open interrupt; sent before the outcome that contains all of them
	EventInterrupt = "interrupt"
	EventOutcome   = "outcome" // an outcome, or a [Pending] after the wait time
	EventProblem   = "problem" // a [Problem] instead of an outcome
)

// Step says that a node was entered or left. It is sent live and not stored.
type Step struct {
	Address string `json:"address" doc:"The address in the run."`
	State   string `json:"state" enum:"started,finished,waits,failed"`
}

// Token is a chunk of the output of a model or a node. It is sent live and not stored; a slow
// client misses some.
type Token struct {
	Address string `json:"address,omitempty" doc:"The address in the run."`
	Agent   string `json:"agent,omitempty" doc:"The name of the agent whose model produced it; absent for a node."`
	Run     string `json:"run,omitempty" doc:"The state key of the run; only in the stream of a conversation."`
	Text    string `json:"text"`
}

// Graph is a graph or agent that can be run.
type Graph struct {
	ID           string          `json:"id"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	Capabilities Capabilities    `json:"capabilities"`
	// Drawing is set if a single graph is requested.
	Drawing *drawing.Drawing `json:"drawing,omitempty" doc:"Boxes and arrows with pixel coordinates; for a run, with its waiting nodes marked. Not in lists, and omitted if there is nothing to draw."`
}

// Capabilities says what the provider of a graph supports.
type Capabilities struct {
	Parallel      bool   `json:"parallel" doc:"Several requests of a run can be open at once."`
	PartialResume bool   `json:"partialResume" doc:"The run continues after each answer. Otherwise it continues when all its open requests are decided."`
	Edit          bool   `json:"edit" doc:"Approvers can change the arguments of an action where the policy allows it."`
	Cancel        bool   `json:"cancel" doc:"The agent is stopped or notified when a waiting run is cancelled."`
	Streaming     bool   `json:"streaming" doc:"Event streams have steps or tokens."`
	Receipts      bool   `json:"receipts" doc:"There is a record of what was executed after an approval."`
	Once          string `json:"once" enum:"effects,answers,none" doc:"What happens exactly once, also after crashes: approved effects, the use of an answer, or neither."`
}

// Supported lists the supported capabilities in plain words, and those that are not supported.
func (c Capabilities) Supported() (yes, no []string) {
	for _, one := range []struct {
		name string
		can  bool
	}{
		{"parallel requests", c.Parallel}, {"partial resume", c.PartialResume}, {"edited arguments", c.Edit}, {"cancel", c.Cancel},
		{"streaming", c.Streaming}, {"receipts", c.Receipts}, {"effects exactly once", c.Once == "effects"},
		{"answers exactly once", c.Once == "effects" || c.Once == "answers"},
	} {
		if one.can {
			yes = append(yes, one.name)
		} else {
			no = append(no, one.name)
		}
	}
	return yes, no
}

// Kind is an interrupt kind.
type Kind struct {
	Name           string          `json:"name"`
	QuestionSchema json.RawMessage `json:"questionSchema"`
	AnswerSchema   json.RawMessage `json:"answerSchema"`
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page; omitted on the last page."`
	// Only lists of requests have the following.
	Previous string `json:"previous,omitempty" doc:"The cursor of the previous page; omitted on the first page."`
	Partial  bool   `json:"partial,omitempty" doc:"The search stopped after many requests that do not match. There may be more: next continues."`
}

// RequestCounts are the numbers of requests in the lists of the inbox.
type RequestCounts struct {
	Mine    BoundedCount `json:"mine" doc:"Requests that wait for the caller: is:mine."`
	Groups  BoundedCount `json:"groups" doc:"Open requests that ask a group of the caller: is:groups."`
	Open    BoundedCount `json:"open" doc:"Open requests: is:open."`
	Snoozed BoundedCount `json:"snoozed" doc:"Open requests that are snoozed: is:snoozed."`
	Decided BoundedCount `json:"decided" doc:"Decided requests: is:decided."`
}

// SavedView is a search that a person has saved.
type SavedView struct {
	ID string `json:"id"`
	SaveView
}

// SaveView is the name and the search of a saved view.
type SaveView struct {
	Name  string `json:"name" minLength:"1" maxLength:"60" doc:"The name, unique among the caller's views."`
	Query string `json:"query" minLength:"1" maxLength:"400" doc:"The search, as for list-requests."`
}

// BoundedCount is a number of requests. The server counts the oldest open and the newest decided
// ones.
type BoundedCount struct {
	Count int  `json:"count"`
	More  bool `json:"more,omitempty" doc:"There may be more: not all requests were counted."`
}

// Me is the authenticated principal.
type Me struct {
	Principal string     `json:"principal" doc:"Your id in records."`
	Name      string     `json:"name,omitempty" doc:"Your display name."`
	Account   string     `json:"account"`
	Roles     []string   `json:"roles"`
	Method    string     `json:"method,omitempty" doc:"How you were authenticated." enum:"key,oidc,token,password,passkey,linked,dev"`
	AMR       []string   `json:"amr,omitempty" doc:"Authentication methods of the identity provider (RFC 8176)."`
	ACR       string     `json:"acr,omitempty" doc:"Authentication class of the identity provider."`
	Strength  string     `json:"strength,omitempty" doc:"The authentication strength for policies."`
	At        *time.Time `json:"at,omitempty" doc:"When you last authenticated."`
	Until     *time.Time `json:"until,omitempty" doc:"When the credential expires. An unused session ends earlier."`
}

// Health is the response of the health endpoints.
type Health struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// Problem is an error response: an RFC 9457 problem with a stable code.
type Problem struct {
	Status int    `json:"status" doc:"The HTTP status."`
	Code   string `json:"code" doc:"The problem code for programs; see the table of codes."`
	Title  string `json:"title" doc:"A short title."`
	Detail string `json:"detail,omitempty" doc:"An explanation for people."`
	// Fields lists the invalid parts of the request.
	Fields []Field `json:"errors,omitempty" doc:"The invalid parts of the request."`
	// InterruptID is set with interrupt_id_required.
	InterruptID string `json:"interruptId,omitempty" doc:"The id of the open interrupt that the answer must name."`
	// MinAuth is set with stronger_auth_required.
	MinAuth string `json:"minAuth,omitempty" doc:"The minimum strength of authentication."`
	// Decided is set with already_decided.
	Decided *PriorDecision `json:"decided,omitempty" doc:"The decision that was recorded first, if there is one."`
}

// Field is an invalid part of a request.
type Field struct {
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// PriorDecision says who decided a request, when and with which verdict.
type PriorDecision struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Verdict string    `json:"verdict"`
}

// Error returns the problem in one line.
func (p *Problem) Error() string {
	text := p.Code
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, f := range p.Fields {
		text += "; " + f.Message
		if f.Location != "" {
			text += " (" + f.Location + ")"
		}
	}
	if p.Decided != nil {
		text += "; " + p.Decided.Verdict + " by " + p.Decided.By + " at " + p.Decided.At.UTC().Format(time.RFC3339)
	}
	return text
}

// Invite invites a person to sign in with a password.
type Invite struct {
	Name  string   `json:"name" minLength:"1" maxLength:"255" doc:"The name with which the person signs in. It identifies them in records and groups."`
	Roles []string `json:"roles,omitempty" enum:"agent,approver,auditor,user,admin" doc:"Defaults to approver."`
}

// Invitation is a link that can be used once.
type Invitation struct {
	Path  string    `json:"path" doc:"The path of the link on this server. It contains a secret."`
	Until time.Time `json:"until"`
}

// Member is a person who signs in with a password.
type Member struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Roles     []string  `json:"roles"`
	CreatedAt time.Time `json:"createdAt"`
}
