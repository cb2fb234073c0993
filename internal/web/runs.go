package web

import (
	"encoding/json"
	"html/template"
	"net/url"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/drawing"
)

// runStatuses are the filters of the list of runs.
var runStatuses = []string{"", "waiting", "running", "parked", "failed", "expired", "completed", "cancelled"}

// runsData is the data of the list of runs.
type runsData struct {
	Items    []api.Run
	Statuses []filterLink
	Graph    string
	Next     string // the address of the next page
}

// filterLink is a link to a part of a list.
type filterLink struct {
	Title, Href string
	Current     bool
}

// runs lists runs, newest first.
func (s *Site) runs(v *visit) (response, error) {
	q := client.Query{Status: v.FormValue("status"), GraphID: v.FormValue("graph"), Cursor: v.FormValue("cursor"), Limit: 50}
	if !slices.Contains(runStatuses, q.Status) {
		return nil, errNotFound
	}
	list, err := v.api.Runs(v.ctx(), q)
	if err != nil {
		return nil, err
	}
	data := runsData{Items: list.Items, Graph: q.GraphID}
	for _, status := range runStatuses {
		title := v.t("runs.all")
		if status != "" {
			title = v.t("status." + status)
		}
		data.Statuses = append(data.Statuses, filterLink{Title: title, Href: pageURL("/runs", "status", status, "graph", q.GraphID), Current: status == q.Status})
	}
	if list.Next != "" {
		data.Next = pageURL("/runs", "status", q.Status, "graph", q.GraphID, "cursor", list.Next)
	}
	return page{Name: "runs", Title: v.t("runs.title"), Data: data}, nil
}

// pageURL returns a path with a query of names and values; empty values are left out.
func pageURL(path string, pairs ...string) string {
	query := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// runData is the data of the page of a run.
type runData struct {
	client.RunView
	Open    []*requestModel
	Closed  []api.Request
	Drawing template.HTML
	// Abilities are the capabilities of the provider.
	Abilities []ability
	// Content and Output are the result of a completed run, Failure the reason of a failed one.
	Content string
	Output  json.RawMessage
	Failure *fermata.Failed
	// CanCancel and CanRetry report which actions the run and the role of the person allow.
	CanCancel, CanRetry bool
}

// run shows one run.
func (s *Site) run(v *visit) (response, error) {
	data, err := s.loadRun(v)
	if err != nil {
		return nil, err
	}
	if v.URL.Query().Has("fragment") {
		return fragment{Name: "run", Part: "run", Data: data}, nil
	}
	return page{Name: "run", Title: data.StateKey, Nav: "/runs", Scripts: []string{"run.js"}, Data: data}, nil
}

// runEvents are the events that the page of a run shows, with the states of steps.
var runEvents = []string{
	"created", "asked", "decided", "expired", "withdrawn", "effect_begun", "effect_ended", "waiting", "parked", "completed", "failed", "cancelled", "superseded",
	"step_started", "step_finished", "step_waits", "step_failed",
}

func (s *Site) loadRun(v *visit) (data runData, err error) {
	data.RunView, err = v.api.Run(v.ctx(), v.PathValue("key"))
	if err != nil {
		return data, err
	}
	for _, r := range data.Requests {
		if r.State == statePending {
			m, err := s.model(r)
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
	data.CanCancel = v.mayStart() && slices.Contains([]string{"ready", "running", "waiting", "parked"}, data.Status)
	data.CanRetry = data.Problem != nil && data.Problem.Retryable && slices.Contains(v.Me.Roles, "admin")
	// a program that is no longer deployed has no drawing and no capabilities
	if g, err := v.api.RunGraph(v.ctx(), data.StateKey); err == nil {
		data.Drawing, data.Abilities = inlineDrawing(g.Drawing), abilities(g.Capabilities)
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
func (s *Site) cancelRun(v *visit) (response, error) {
	key := v.PathValue("key")
	if err := v.api.Cancel(v.ctx(), key); err != nil {
		return nil, err
	}
	return redirect{To: runURL(key), Note: "note.cancelled"}, nil
}

// retryRun retries a parked or failed run.
func (s *Site) retryRun(v *visit) (response, error) {
	key := v.PathValue("key")
	if err := v.api.Retry(v.ctx(), key); err != nil {
		return nil, err
	}
	return redirect{To: runURL(key), Note: "note.retried"}, nil
}

func runURL(key string) string { return "/runs/" + url.PathEscape(key) }
