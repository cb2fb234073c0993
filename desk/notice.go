package desk

import (
	"fmt"
	"net/url"
	"slices"
)

// Notice is something that people are to be told. It never carries what was asked or said: whoever tells it reads the request.
type Notice struct {
	// Key is the same for the same notice, and for no other of the account: a second one with it is not sent. Whoever can be told twice goes by it.
	Key     string     `json:"key"`
	Request string     `json:"request"`
	Rev     int64      `json:"rev"`
	Kind    NoticeKind `json:"kind"`
	// Targets are group:, user:, role: or oncall: and a name, a channel, or the inbox. A re-render has none: it is for every copy.
	Targets []string `json:"targets,omitempty"`
	// Step is the number of the step, from 1, that this comes from; 0 if it comes from none.
	Step int `json:"step,omitempty"`
	// Epoch is how often the route was begun.
	Epoch int `json:"epoch"`
	// Incident names what is paged for, and what is resolved: all pages of a request and their all-clear have the same. A question that is
	// asked again has another, so that an all-clear which comes late does not silence the new page. Severity goes with a page.
	Incident string `json:"incident,omitempty"`
	Severity string `json:"severity,omitempty"`
	// About is what has happened.
	Cause EventType `json:"about"`
}

// NoticeKind is what a notice is for.
type NoticeKind string

// The kinds of notices.
const (
	NoticeNotify    NoticeKind = "notify"
	NoticeRemind    NoticeKind = "remind"
	NoticePage      NoticeKind = "page"
	NoticeResolve   NoticeKind = "resolve"        // the all-clear after a page
	NoticeRerender  NoticeKind = "rerender"       // every copy that was posted is out of date
	NoticeRequester NoticeKind = "tell-requester" // the run, or on whose behalf it asks
)

// Void reports whether a notice is from before the route was begun anew: what it says, the route says again when it is time. What the new beginning
// leaves out, as everybody knows it, is not void: perhaps they do not know it yet.
func (r Request) IsObsolete(n Notice) bool {
	if n.Step == 0 || n.Epoch >= r.RouteProgress.Epoch {
		return false
	}
	return !slices.ContainsFunc(r.RouteProgress.DoneSteps, func(d StepResult) bool { //mutate:notice-after-extension
		return d.Step == n.Step-1 && d.Outcome == StepSkipped && r.Route.Steps[d.Step].At == 0
	})
}

// Incident is what pages of a request are for. A question that is asked again under its id has another.
func (r Request) IncidentKey() string {
	return fmt.Sprintf("%s/%d", url.PathEscape(r.ID), r.Created.UnixNano())
}

// stepKey keeps a step of an epoch from being told twice.
func stepKey(id string, epoch, step int) string {
	return fmt.Sprintf("%s/e%d/s%d", url.PathEscape(id), epoch, step)
}

// changeKey is for what comes from a change and not from a step.
func changeKey(id string, rev int64, kind NoticeKind, about EventType) string {
	return fmt.Sprintf("%s/r%d/%s/%s", url.PathEscape(id), rev, kind, about)
}
