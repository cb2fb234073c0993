package runs

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/schemaform"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/requests"
)

// graphs lists what can be run.
func (s *Pages) graphs(v *page.Visit) (page.Response, error) {
	list, err := v.API.Graphs(v.Context())
	if err != nil {
		return nil, err
	}
	return page.Page{Name: "graphs", Title: v.T("graphs.title"), Data: list.Items}, nil
}

// graphData is the data of the page of a graph.
type graphData struct {
	api.Graph
	Picture  template.HTML
	Input    string // the input of a new run, as JSON
	StateKey string
	Problem  *api.Problem
	// Abilities are the capabilities of the provider.
	Abilities []requests.Ability
	// CanStart reports whether the person may start runs.
	CanStart bool
}

// graph shows one graph and a form that starts a run.
func (s *Pages) graph(v *page.Visit) (page.Response, error) { return s.graphPage(v, nil) }

func (s *Pages) graphPage(v *page.Visit, problem *api.Problem) (page.Response, error) {
	g, err := v.API.Graph(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data := graphData{Graph: g, Picture: inlineDrawing(g.Drawing), Input: v.FormValue("input"), StateKey: v.FormValue("key"), Problem: problem, Abilities: requests.Abilities(g.Capabilities), CanStart: v.MayStart()}
	if data.Input == "" {
		data.Input = skeleton(g.InputSchema)
	}
	answer := page.Page{Name: "graph", Title: g.ID, Nav: "/graphs", Data: data}
	if problem != nil {
		answer.Status = problem.Status
	}
	return answer, nil
}

// skeleton returns an empty value of a schema, indented.
func skeleton(schema json.RawMessage) string {
	if len(schema) == 0 {
		return "{}"
	}
	form := schemaform.New(schema, nil)
	members := schemaform.Members{}
	// a schema in which nothing is required still shows how to write the first field
	some := slices.ContainsFunc(form.Fields, func(f *schemaform.Field) bool { return f.Required })
	for i, f := range form.Fields {
		if f.Required || !some && i == 0 {
			members = members.With(schemaform.Member{Name: f.Name, Value: emptyValue(f)})
		}
	}
	var text []byte
	if indented, err := json.MarshalIndent(members.JSON(), "", "  "); err == nil {
		text = indented
	}
	return string(text)
}

// emptyValue returns a value of the type of a field.
func emptyValue(f *schemaform.Field) json.RawMessage {
	switch f.Kind {
	case schemaform.Integer, schemaform.Number:
		return json.RawMessage("0")
	case schemaform.Boolean:
		return json.RawMessage("false")
	case schemaform.List:
		return json.RawMessage("[]")
	case schemaform.Object:
		return json.RawMessage("{}")
	default:
		return json.RawMessage(`""`)
	}
}

// startRun starts a run of a graph.
func (s *Pages) startRun(v *page.Visit) (page.Response, error) {
	input := json.RawMessage(v.FormValue("input"))
	if !json.Valid(input) {
		return s.graphPage(v, &api.Problem{Status: http.StatusUnprocessableEntity, Code: "bad_input", Detail: v.T("graph.badjson")})
	}
	outcome, err := v.API.Chat(v.Context(), api.Chat{GraphID: v.PathValue("id"), StateKey: v.FormValue("key"), Input: input, StartID: v.FormValue(page.IdempotencyName)})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status < 500 && p.Status != http.StatusUnauthorized {
		return s.graphPage(v, p)
	}
	if err != nil && !errors.Is(err, client.ErrPending) {
		return nil, err
	}
	to := "/runs"
	if waits, ok := outcome.(fermata.NeedsInput); ok {
		to = page.RunURL(waits.StateKey)
	} else if key := v.FormValue("key"); key != "" {
		to = page.RunURL(key)
	}
	return page.Redirect{To: to, Note: "note.started"}, nil
}
