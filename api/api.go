// Package api is the words of the HTTP API: what the server sends and takes, and the client takes and sends.
package api

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata/drawing"
)

// Prefix is where the API lives.
const Prefix = "/api/v1"

// Chat starts a run, or answers one if it has a resume id.
type Chat struct {
	GraphID   string          `json:"graphId,omitempty" maxLength:"512" doc:"What to run, as inproc:content-review. For a start."`
	StateKey  string          `json:"stateKey,omitempty" maxLength:"512" doc:"The handle of the run. A start without one makes one."`
	Input     json.RawMessage `json:"input,omitempty" doc:"What the run begins with."`
	StartID   string          `json:"startId,omitempty" maxLength:"512" doc:"Tells this start from another one of the same graph with the same input."`
	Supersede bool            `json:"supersede,omitempty" doc:"End the run that has the state key, if it began with something else."`

	ResumeID      string                     `json:"resumeId,omitempty" maxLength:"512" doc:"Chosen by the caller. The same request with the same id counts once."`
	ResumeValue   json.RawMessage            `json:"resumeValue,omitempty" doc:"The answer to the one question that is open."`
	ResumeTargets map[string]json.RawMessage `json:"resumeTargets,omitempty" doc:"Answers by the id of their question."`
	Shown         map[string]string          `json:"shown,omitempty" doc:"By the id of the question, the digest of what was shown to whoever answers."`
}

// Pending says that what was asked for is recorded and under way.
type Pending struct {
	RunID    string `json:"runId,omitempty"`
	StateKey string `json:"stateKey"`
}

// StatusPending is the status of an outcome that is not known yet.
const StatusPending = "pending"

// Run is a run in the list.
type Run struct {
	StateKey   string    `json:"stateKey"`
	RunID      string    `json:"runId"`
	Generation int       `json:"generation" doc:"Counts the runs that had this state key."`
	GraphID    string    `json:"graphId"`
	Status     string    `json:"status" enum:"ready,running,waiting,parked,completed,failed,cancelled,superseded"`
	Attempts   int       `json:"attempts" doc:"How often it was tried since it came to rest last."`
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
}

// Request is a question to people, and what became of it.
type Request struct {
	ID           string          `json:"id"`
	StateKey     string          `json:"stateKey"`
	GraphID      string          `json:"graphId"`
	Address      string          `json:"address" doc:"The place in the run that asks."`
	Kind         string          `json:"kind"`
	Data         json.RawMessage `json:"data,omitempty" doc:"What is shown."`
	Unreadable   bool            `json:"unreadable,omitempty" doc:"Something of it cannot be opened: a key is missing, or it was changed. It is kept as it is."`
	Shown        string          `json:"shown" doc:"The digest of what is shown; send it back with the decision."`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty"`
	State        string          `json:"state" enum:"pending,decided,withdrawn"`
	Next         [][]string      `json:"next,omitempty" doc:"Where the run can go from there: what may come, and of each the names of the nodes that are entered together; one without any is the end. Only while the question is open, and if something is known of the graph."`
	CreatedAt    time.Time       `json:"createdAt"`
	Deadline     *time.Time      `json:"deadline,omitempty"`
	Decision     *Decision       `json:"decision,omitempty"`
	Activity     *Activity       `json:"life,omitempty" doc:"What people did with it so far."`
}

// Decision is what was decided on a request.
type Decision struct {
	Verdict string          `json:"verdict" enum:"approve,reject,answer,expire"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	By      string          `json:"by"`
	Via     string          `json:"via,omitempty"`
	Source  string          `json:"source" enum:"person,clock,policy"`
	At      time.Time       `json:"at"`
}

// Decide is a decision to be made.
type Decide struct {
	ResumeID string          `json:"resumeId" minLength:"1" maxLength:"512" doc:"Chosen by the caller. The same decision with the same id counts once."`
	Answer   json.RawMessage `json:"answer" doc:"As the answerSchema of the request says."`
	Shown    string          `json:"shown,omitempty" maxLength:"128" doc:"The digest of what was shown. A decision on something else is refused."`
}

// CreateRequest is a question of an agent that the server does not execute.
type CreateRequest struct {
	StateKey     string          `json:"stateKey,omitempty" maxLength:"512"`
	Kind         string          `json:"kind" minLength:"1" maxLength:"256"`
	Data         json.RawMessage `json:"data" doc:"What is shown to people."`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty" doc:"The JSON Schema of the answer."`
	Callback     *Callback       `json:"callback,omitempty" doc:"Where the answer is sent, as a signed webhook. Without one the agent pulls."`
	Timeout      int64           `json:"timeout,omitempty" minimum:"0" doc:"How long it may be open, in seconds; the server decides if it is 0."`
}

// Callback is where an agent is called.
type Callback struct {
	URL string `json:"url" minLength:"1" maxLength:"2048" doc:"https, on port 443 of a public address, unless the settings of the server allow it."`
}

// Event is something that happened to a run.
type Event struct {
	ID        string    `json:"id" doc:"Names the event among those of all runs: what Last-Event-ID takes."`
	Type      string    `json:"type"`
	Request   string    `json:"request,omitempty" doc:"The request that it is about."`
	CreatedAt time.Time `json:"createdAt"`
}

// The names of the events of a stream that are none of the run's own, which have an id.
const (
	EventRun       = "run"       // a [Pending]: what was asked for is recorded; the first event of a chat
	EventStep      = "step"      // a [Step]
	EventToken     = "token"     // a [Token]
	EventInterrupt = "interrupt" // a question that the run waits for, before the outcome that has all of them
	EventOutcome   = "outcome"   // an outcome, or a [Pending] if nobody waited long enough
	EventProblem   = "problem"   // a [Problem], in the place of an outcome
)

// Step is a place in a run that was entered or left. It is told at that moment and not kept.
type Step struct {
	Address string `json:"address" doc:"The place in the run."`
	State   string `json:"state" enum:"started,finished,waits,failed"`
}

// Token is a piece of what a model says. It is told at that moment and not kept; a slow reader misses some.
type Token struct {
	Address string `json:"address,omitempty" doc:"The place in the run."`
	Agent   string `json:"agent,omitempty" doc:"The agent whose model speaks."`
	Text    string `json:"text"`
}

// Graph is something that can be run.
type Graph struct {
	ID          string          `json:"id"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// Drawing shows it, where a single graph is asked for.
	Drawing *drawing.Drawing `json:"drawing,omitempty" doc:"Boxes and arrows, laid out in pixels; of a run, with the nodes marked at which it waits. Not in lists, and not if there is nothing to see."`
}

// Kind is a kind of question.
type Kind struct {
	Name           string          `json:"name"`
	QuestionSchema json.RawMessage `json:"questionSchema"`
	AnswerSchema   json.RawMessage `json:"answerSchema"`
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page; not there if this is the last."`
}

// Me is who calls, as the server knows them.
type Me struct {
	Principal string     `json:"principal" doc:"Who you are in records."`
	Name      string     `json:"name,omitempty" doc:"What people call you."`
	Account   string     `json:"account"`
	Roles     []string   `json:"roles"`
	Method    string     `json:"method,omitempty" doc:"How you proved who you are." enum:"key,oidc,token,dev"`
	AMR       []string   `json:"amr,omitempty" doc:"How the identity provider made sure (RFC 8176)."`
	ACR       string     `json:"acr,omitempty" doc:"How sure the identity provider is."`
	Strength  string     `json:"strength,omitempty" doc:"What that is worth to policies."`
	At        *time.Time `json:"at,omitempty" doc:"When you were asked for a proof last."`
	Until     *time.Time `json:"until,omitempty" doc:"When this ends by itself. A session that is not used ends before."`
}

// Health says that the server is there.
type Health struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// Problem is what a client gets in the place of an answer: an RFC 9457 problem with a code that does not change.
type Problem struct {
	Status int    `json:"status" doc:"The HTTP status."`
	Code   string `json:"code" doc:"What is wrong, for programs; see the table of codes."`
	Title  string `json:"title" doc:"What is wrong, in a word."`
	Detail string `json:"detail,omitempty" doc:"What is wrong here, for people."`
	// Fields says what is wrong with which part of the request.
	Fields []Field `json:"errors,omitempty" doc:"What is wrong with which part of the request."`
	// PriorDecision is set with already_decided.
	Decided *PriorDecision `json:"decided,omitempty" doc:"Who decided, when and how, if somebody did before."`
}

// Field is a part of a request that is wrong.
type Field struct {
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// PriorDecision says who decided something before.
type PriorDecision struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Verdict string    `json:"verdict"`
}

// Error says what is wrong in one line.
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
