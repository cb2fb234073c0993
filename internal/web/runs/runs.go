// Package runs has the pages of runs and graphs.
package runs

import (
	"encoding/json"
	"html/template"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/drawing"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/requests"
)

// runStatuses are the filters of the list of runs.
var runStatuses = []string{"", "waiting", "running", "parked", "failed", "expired", "completed", "cancelled"}

// Pages are the pages of runs and graphs.
type Pages struct{ requests *requests.Pages }

// Routes lists the pages of runs and graphs.
func Routes(requests *requests.Pages) page.Routes {
	s := &Pages{requests}
	return page.Routes{
		"GET /runs":               s.runs,
		"GET /runs/{key}":         s.run,
		"POST /runs/{key}/cancel": s.cancelRun,
		"POST /runs/{key}/retry":  s.retryRun,
		"GET /graphs":             s.graphs,
		"GET /graphs/{id}":        s.graph,
		"POST /graphs/{id}/start": s.startRun,
	}
}

// Funcs returns the template functions about runs.
func Funcs() template.FuncMap {
	return template.FuncMap{"runevents": func() []string { return runEvents }}
}

// runsData is the data of the list of runs.
type runsData struct {
	Items    []api.Run
	Statuses []page.FilterLink
	Graph    string
	Next     string // the address of the next page
}

// runs lists runs, newest first.
func (s *Pages) runs(v *page.Visit) (page.Response, error) {
	q := client.Query{Status: v.FormValue("status"), GraphID: v.FormValue("graph"), Cursor: v.FormValue("cursor"), Limit: 50}
	if !slices.Contains(runStatuses, q.Status) {
		return nil, page.ErrNotFound
	}
	list, err := v.API.Runs(v.Context(), q)
	if err != nil {
		return nil, err
	}
	data := runsData{Items: list.Items, Graph: q.GraphID}
	for _, status := range runStatuses {
		title := v.T("runs.all")
		if status != "" {
			title = v.T("status." + status)
		}
		data.Statuses = append(data.Statuses, page.FilterLink{Title: title, Href: page.WithQuery("/runs", "status", status, "graph", q.GraphID), Current: status == q.Status})
	}
	if list.Next != "" {
		data.Next = page.WithQuery("/runs", "status", q.Status, "graph", q.GraphID, "cursor", list.Next)
	}
	return page.Page{Name: "runs", Title: v.T("runs.title"), Data: data}, nil
}

// runData is the data of the page of a run.
type runData struct {
	client.RunView
	Open    []*requests.Model
	Closed  []api.Request
	Drawing template.HTML
	// Abilities are the capabilities of the provider.
	Abilities []requests.Ability
	// Content and Output are the result of a completed run, Failure the reason of a failed one.
	Content string
	Output  json.RawMessage
	Failure *fermata.Failed
	// CanCancel and CanRetry report which actions the run and the role of the person allow.
	CanCancel, CanRetry bool
}

// run shows one run.
func (s *Pages) run(v *page.Visit) (page.Response, error) {
	data, err := s.loadRun(v)
	if err != nil {
		return nil, err
	}
	if v.URL.Query().Has("fragment") {
		return page.Fragment{Name: "run", Part: "run", Data: data}, nil
	}
	return page.Page{Name: "run", Title: data.StateKey, Nav: "/runs", Scripts: []string{"run.js"}, Data: data}, nil
}

// runEvents are the events that the page of a run shows, with the states of steps.
var runEvents = []string{
	"created", "asked", "decided", "expired", "withdrawn", "effect_begun", "effect_ended", "waiting", "parked", "completed", "failed", "cancelled", "superseded",
	"step_started", "step_finished", "step_waits", "step_failed",
}

func (s *Pages) loadRun(v *page.Visit) (data runData, err error) {
	data.RunView, err = v.API.Run(v.Context(), v.PathValue("key"))
	if err != nil {
		return data, err
	}
	for _, r := range data.Requests {
		if r.State == requests.StatePending {
			m, err := s.requests.Model(v, r)
			if err != nil {
				return data, err
			}
			data.Open = append(data.Open, m)
		} else {
			data.Closed = append(data.Closed, r)
		}
	}
	switch o := data.Outcome.(type) {
	case fermata.Completed:
		data.Content, data.Output = o.Content, o.Output
	case fermata.Failed:
		data.Failure = &o
	default:
	}
	data.CanCancel = v.MayStart() && slices.Contains([]string{"ready", "running", "waiting", "parked"}, data.Status)
	data.CanRetry = data.Problem != nil && data.Problem.Retryable && slices.Contains(v.Me.Roles, "admin")
	// a program that is no longer deployed has no drawing and no capabilities
	if g, err := v.API.RunGraph(v.Context(), data.StateKey); err == nil {
		data.Drawing, data.Abilities = inlineDrawing(g.Drawing), requests.Abilities(g.Capabilities)
	}
	return data, nil
}

// inlineDrawing returns a drawing as an element; empty if there is none.
func inlineDrawing(d *drawing.Drawing) template.HTML {
	if d == nil {
		return ""
	}
	return template.HTML(d.InlineSVG()) // package drawing escapes all texts
}

// cancelRun cancels a run.
func (s *Pages) cancelRun(v *page.Visit) (page.Response, error) {
	key := v.PathValue("key")
	if err := v.API.Cancel(v.Context(), key); err != nil {
		return nil, err
	}
	return page.Redirect{To: page.RunURL(key), Note: "note.cancelled"}, nil
}

// retryRun retries a parked or failed run.
func (s *Pages) retryRun(v *page.Visit) (page.Response, error) {
	key := v.PathValue("key")
	if err := v.API.Retry(v.Context(), key); err != nil {
		return nil, err
	}
	return page.Redirect{To: page.RunURL(key), Note: "note.retried"}, nil
}
