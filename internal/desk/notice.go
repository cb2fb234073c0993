package desk

import (
	"fmt"
	"net/url"
	"slices"
)

// Notice is a message to send. It never contains what was asked or answered: the channel reads the
// request.
type Notice struct {
	// Key is unique within the account. A second notice with the same key is not sent. Receivers
	// that may get a notice twice deduplicate by it.
	Key     string     `json:"key"`
	Request string     `json:"request"`
	Rev     int64      `json:"rev"`
	Kind    NoticeKind `json:"kind"`
	// Targets are a kind and a name (group:, user:, role:, oncall: or a channel), or the inbox. A
	// re-render has no targets: it is for every copy.
	Targets []string `json:"targets,omitempty"`
	// Step is the number of the route step, from 1, or 0 if there is none.
	Step int `json:"step,omitempty"`
	// Epoch is the epoch of the route.
	Epoch int `json:"epoch"`
	// Incident identifies what is paged and resolved. All pages of a request and their resolve
	// notice share it. A request that is asked again has another one, so that a late resolve does
	// not silence the new page. Severity is set for pages.
	Incident string `json:"incident,omitempty"`
	Severity string `json:"severity,omitempty"`
	// Cause is the event that caused the notice.
	Cause EventType `json:"about"`
}

// NoticeKind is the kind of a notice.
type NoticeKind string

// The notice kinds.
const (
	NoticeNotify    NoticeKind = "notify"
	NoticeRemind    NoticeKind = "remind"
	NoticePage      NoticeKind = "page"
	NoticeResolve   NoticeKind = "resolve"        // the end of a page
	NoticeRerender  NoticeKind = "rerender"       // posted copies are out of date
	NoticeRequester NoticeKind = "tell-requester" // for the run or its requester
)

// IsObsolete reports whether a notice is from before the route restarted. The new epoch sends it
// again when due. Initial steps that the restart skipped are not obsolete, because their notice may
// not have been delivered yet.
func (r Request) IsObsolete(n Notice) bool {
	if n.Step == 0 || n.Epoch >= r.RouteProgress.Epoch {
		return false
	}
	return !slices.ContainsFunc(r.RouteProgress.DoneSteps, func(d StepResult) bool { //mutate:notice-after-extension
		return d.Step == n.Step-1 && d.Outcome == StepSkipped && r.Route.Steps[d.Step].At == 0
	})
}

// IncidentKey returns the incident of the request's pages. A request that is asked again under the
// same id has another one.
func (r Request) IncidentKey() string {
	return fmt.Sprintf("%s/%d", url.PathEscape(r.ID), r.Created.UnixNano())
}

// stepKey returns the key of a step's notice, so that it is sent once per epoch.
func stepKey(id string, epoch, step int) string {
	return fmt.Sprintf("%s/e%d/s%d", url.PathEscape(id), epoch, step)
}

// changeKey returns the key of a notice that comes from a change and not from a step.
func changeKey(id string, rev int64, kind NoticeKind, about EventType) string {
	return fmt.Sprintf("%s/r%d/%s/%s", url.PathEscape(id), rev, kind, about)
}

// DisplayRev returns the revision of the last event that changed how posted copies of the request
// look.
func (r Request) DisplayRev() int64 {
	for _, e := range slices.Backward(r.Log) {
		if e.Type.changesDisplay() {
			return e.Rev
		}
	}
	if len(r.Log) > 0 {
		return r.Log[0].Rev - 1
	}
	return r.Rev
}
