package channel

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/safehtml"
)

// Card is what every channel shows of a request. All texts are plain: characters that are invisible
// or change the direction of text are shown as codes. A channel escapes its own markup.
type Card struct {
	// Request is the id, Revision counts the changes. Digest is sent back with a decision, so that
	// a decision on an outdated copy is rejected.
	Request  string `json:"request"`
	Revision int64  `json:"revision"`
	Digest   string `json:"digest"`
	// Kind is the kind of the question, Action the name of the action to approve or "".
	Kind   string `json:"kind"`
	Action string `json:"action,omitempty"`

	// Title is short: "refund: amount 120.00, order 17". Sentence says who wants what.
	Title    string `json:"title"`
	Sentence string `json:"sentence"`
	// Facts are what an approval approves: the arguments as they would be executed, with masked
	// sensitive values.
	Facts []Fact `json:"facts,omitempty"`
	// Said are texts of the agent or the model. A channel shows them apart from the facts and says
	// who wrote them.
	Said        []Quote `json:"said,omitempty"`
	Environment string  `json:"environment,omitempty"`
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
	// Actions are the allowed actions. It is empty if the request is not open.
	Actions []requirement.Verb `json:"actions,omitempty"`
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

// Fact is one argument.
type Fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
	// Was is the requested value if it was edited.
	Was string `json:"was,omitempty"`
	// Flagged says that characters are shown as codes: the value may imitate another one.
	Flagged bool `json:"flagged,omitempty"`
	Masked  bool `json:"masked,omitempty"`
}

// Quote is a text and who wrote it.
type Quote struct {
	By   string `json:"by"`
	Text string `json:"text"`
}

// Note is a question to the agent, and its answer if there is one.
type Note struct {
	Quote
	Answer *Quote `json:"answer,omitempty"`
}

// Waiting returns how long the request had waited when the card was made.
func (c Card) Waiting() time.Duration { return max(0, c.At.Sub(c.Created)) }

// Open reports whether the request can be decided.
func (c Card) Open() bool { return c.State == desk.StateOpen }

// Allows reports whether an action is allowed.
func (c Card) Allows(verb requirement.Verb) bool { return slices.Contains(c.Actions, verb) }

// Source is what a card is made of.
type Source struct {
	Request desk.Request
	// Data is what the request shows, with sensitive values. NewCard masks them.
	Data json.RawMessage
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
	q := wordQuestion(r, masked, pointers, s.Agent)
	c := Card{
		Request: r.ID, Revision: r.Rev, Digest: r.Digest(), Kind: plain(r.Subject.Kind), Action: plain(r.Subject.Action),
		Title: q.title, Sentence: q.sentence, Facts: q.facts, Said: q.said, Environment: plain(s.Environment),
		Rules: plainAll(r.Subject.Rules), Reason: plain(r.Subject.Reason), Risk: r.Subject.Risk,
		Deciders: deciders(r.Requirement), MinAuth: r.Requirement.MinAuth, Typed: r.Subject.Action != "" && r.Requirement.IsTyped(), Deadline: r.Deadline,
		State: r.State, Link: RequestURL(s.BaseURL, r.ID), Created: r.Created, At: s.Now,
	}
	for _, one := range r.Clarifications {
		note := Note{Quote: Quote{By: plain(one.By), Text: plainBlock(one.Text)}}
		if one.Answer != nil {
			note.Answer = &Quote{By: plain(one.Answer.By), Text: plainBlock(one.Answer.Text)}
		}
		c.Notes = append(c.Notes, note)
	}
	if r.State == desk.StateOpen {
		c.Progress = plain(r.VoteProgress.String())
		c.Actions, _ = desk.AllowedVerbs(openTo(r), "", nil)
		return c
	}
	c.Outcome = string(r.State)
	if r.Decision != nil {
		c.Outcome, c.DecidedAt = plain(r.Decision.String()), r.Decision.At
	}
	return c
}

// newLinkCard words a request without its content, people and rules. It offers no decision.
func newLinkCard(s Source) Card {
	r := s.Request
	c := Card{
		Request: r.ID, Revision: r.Rev, Title: "Restricted request", Sentence: "Only some people may see this request. Sign in and open it in the inbox.",
		Deadline: r.Deadline, State: r.State, Link: RequestURL(s.BaseURL, r.ID), Created: r.Created, At: s.Now,
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
		list = append(list, fmt.Sprintf("%d × %s", g.People(), plain(g.Names())))
	}
	return list
}

// plain returns an untrusted text as one line.
func plain(text string) string { return safehtml.Plain(text) }

func plainAll(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, plain(text))
	}
	return all
}

// plainBlock returns an untrusted text of several lines.
func plainBlock(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return strings.Join(lines, "\n")
}
