package channel

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/presentation"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Card is what every channel shows of a request. All texts are plain: characters that are invisible
// or change the direction of text are shown as codes. A channel escapes its own markup.
type Card struct {
	// Request is the id, Revision counts the changes. Digest is sent back with a decision, so that
	// a decision on an outdated copy is rejected.
	Request  string `json:"request"`
	Revision int64  `json:"revision"`
	Digest   string `json:"digest"`
	// Presentation is the request in words.
	api.Presentation
	// Kind is the kind of the question, Action the name of the action to approve or "".
	Kind   string `json:"kind"`
	Action string `json:"action,omitempty"`

	Environment string `json:"environment,omitempty"`
	// Rules are the ids of the rules that require the request, Reason their explanation.
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
	// Risk is 0 to 3.
	Risk int `json:"risk,omitempty"`

	// Deciders are the groups that decide: "2 × finops". Progress is "1 of 2, needs 1 × finops".
	Deciders []string `json:"deciders,omitempty"`
	Progress string   `json:"progress,omitempty"`
	// MinAuth is the minimum strength of authentication. If it is above [requirement.AuthLinked], a
	// channel shows Link in place of the actions that decide.
	MinAuth  requirement.Auth `json:"minAuth,omitempty"`
	Deadline time.Time        `json:"deadline"`
	// Typed reports that an approver types the name of the object: a channel shows Link in place of
	// the actions that approve.
	Typed bool `json:"typed,omitempty"`
	// Pending is a decision that waits for the end of its undo window.
	Pending *api.PendingDecision `json:"pending,omitempty"`
	// Notes are the clarifications, oldest first.
	Notes []Note `json:"notes,omitempty"`

	State desk.State `json:"state"`
	// Outcome is how the request ended: "approved by ann". It is "" while the request is open.
	Outcome   string    `json:"outcome,omitempty"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	// Link opens the request in the web inbox; "" if the server has no public address.
	Link string `json:"link,omitempty"`
	// Created is when the request was made, At when the card was.
	Created time.Time `json:"created"`
	At      time.Time `json:"at"`
}

// Note is a question to the agent, and its answer if there is one.
type Note struct {
	api.Quote
	Answer *api.Quote `json:"answer,omitempty"`
}

// Waiting returns how long the request had waited when the card was made.
func (c Card) Waiting() time.Duration { return max(0, c.At.Sub(c.Created)) }

// Open reports whether the request can be decided.
func (c Card) Open() bool { return c.State == desk.StateOpen }

// Find returns the first action with a name: approve, edit, reject, respond, return, escalate or
// ask.
func (c Card) Find(name string) (api.Action, bool) {
	i := slices.IndexFunc(c.Actions, func(a api.Action) bool { return a.Name == name })
	if i < 0 {
		return api.Action{}, false
	}
	return c.Actions[i], true
}

// Allows reports whether there is an action with the name.
func (c Card) Allows(name string) bool {
	_, ok := c.Find(name)
	return ok
}

// Source is what a card is made of.
type Source struct {
	Request desk.Request
	// Data is what the request shows, with sensitive values. NewCard masks them.
	Data json.RawMessage
	// Address is the place of the request in its run, and AnswerSchema the schema of the answer.
	Address      string
	AnswerSchema json.RawMessage
	// Agent is the name of the agent or graph that asks.
	Agent       string
	Environment string
	// BaseURL is the public address of the server, or "".
	BaseURL string
	// LinkOnly says that readers of the card may not see the request: it only links to it.
	LinkOnly bool
	Now      time.Time
}

// NewCard words a request for all channels.
func NewCard(s Source) Card {
	r := s.Request
	if s.LinkOnly {
		return newLinkCard(s)
	}
	masked, pointers := r.MaskData(s.Data)
	verbs, _ := desk.AllowedVerbs(openTo(r), "", nil)
	var edited json.RawMessage
	if r.Edit != nil {
		edited = r.MaskArgs(r.Edit.Args)
	}
	c := Card{
		Request: r.ID, Revision: r.Rev, Digest: r.Digest(), Kind: presentation.Plain(r.Subject.Kind), Action: presentation.Plain(r.Subject.Action),
		Presentation: presentation.Of(presentation.Source{
			Request: r, Data: masked, Masked: pointers, Edited: edited, Address: s.Address, AnswerSchema: s.AnswerSchema, Agent: s.Agent, Verbs: verbs,
		}),
		Environment: presentation.Plain(s.Environment), Rules: plainAll(r.Subject.Rules), Reason: presentation.Plain(r.Subject.Reason), Risk: r.Subject.Risk,
		Deciders: deciders(r.Requirement), MinAuth: r.Requirement.MinAuth, Typed: r.Subject.Action != "" && r.Requirement.IsTyped(), Deadline: r.Deadline,
		State: r.State, Link: RequestURL(s.BaseURL, r.ID), Created: r.Created, At: s.Now,
	}
	for _, one := range r.Clarifications {
		note := Note{Quote: api.Quote{By: presentation.Plain(one.By), Text: presentation.PlainBlock(one.Text)}}
		if one.Answer != nil {
			note.Answer = &api.Quote{By: presentation.Plain(one.Answer.By), Text: presentation.PlainBlock(one.Answer.Text)}
		}
		c.Notes = append(c.Notes, note)
	}
	if p := r.Pending; p != nil {
		done := desk.Decision{Outcome: p.Outcome}.String()
		c.Pending = &api.PendingDecision{Stamp: api.Stamp{By: presentation.Plain(p.By), At: p.At}, Outcome: done, EffectiveAt: p.EffectiveAt}
	}
	if r.State == desk.StateOpen {
		c.Progress = presentation.Plain(r.VoteProgress.String())
		return c
	}
	c.Outcome = string(r.State)
	if r.Decision != nil {
		c.Outcome, c.DecidedAt = presentation.Plain(r.Decision.String()), r.Decision.At
	}
	return c
}

// newLinkCard words a request without its content, people and rules. It offers no decision.
func newLinkCard(s Source) Card {
	r := s.Request
	c := Card{
		Request: r.ID, Revision: r.Rev,
		Presentation: api.Presentation{Title: "Restricted request", Sentence: "Only some people may see this request. Sign in and open it in the inbox."},
		Deadline:     r.Deadline, State: r.State, Link: RequestURL(s.BaseURL, r.ID), Created: r.Created, At: s.Now,
	}
	if r.State != desk.StateOpen {
		c.Outcome = "closed"
	}
	return c
}

// openTo returns a copy of the request that anyone may decide, to list the verbs of the request
// itself.
func openTo(r desk.Request) desk.Request {
	r.Requirement.Groups, r.Requirement.Exclude = requirement.OnePerson().Groups, nil
	return r
}

// RequestURL returns the address of a request in the web inbox, or "" without a base.
func RequestURL(base, id string) string {
	if base == "" {
		return ""
	}
	return strings.TrimSuffix(base, "/") + "/requests/" + url.PathEscape(id)
}

func deciders(q requirement.Requirement) (list []string) {
	for _, g := range q.Groups {
		list = append(list, fmt.Sprintf("%d × %s", g.People(), presentation.Plain(g.Names())))
	}
	return list
}

func plainAll(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, presentation.Plain(text))
	}
	return all
}
