package web

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// graphs lists what can be run.
func (s *Site) graphs(v *visit) (response, error) {
	list, err := v.api.Graphs(v.ctx())
	if err != nil {
		return nil, err
	}
	return page{Name: "graphs", Title: v.t("graphs.title"), Data: list.Items}, nil
}

func graphURL(id string) string { return "/graphs/" + url.PathEscape(id) }

// graphData is the data of the page of a graph.
type graphData struct {
	api.Graph
	Picture  template.HTML
	Input    string // the input of a new run, as JSON
	StateKey string
	Problem  *api.Problem
	// Abilities are the capabilities of the provider.
	Abilities []ability
	// CanStart reports whether the person may start runs.
	CanStart bool
}

// graph shows one graph and a form that starts a run.
func (s *Site) graph(v *visit) (response, error) { return s.graphPage(v, nil) }

func (s *Site) graphPage(v *visit, problem *api.Problem) (response, error) {
	g, err := v.api.Graph(v.ctx(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data := graphData{Graph: g, Picture: inlineDrawing(g.Drawing), Input: v.FormValue("input"), StateKey: v.FormValue("key"), Problem: problem, Abilities: abilities(g.Capabilities), CanStart: v.mayStart()}
	if data.Input == "" {
		data.Input = skeleton(g.InputSchema)
	}
	answer := page{Name: "graph", Title: g.ID, Nav: "/graphs", Data: data}
	if problem != nil {
		answer.Status = problem.Status
	}
	return answer, nil
}

// ability is a row of the table of capabilities: two names of texts.
type ability struct{ Name, Value string }

func abilities(can api.Capabilities) []ability {
	value := func(can bool) string {
		if can {
			return "graph.yes"
		}
		return "graph.no"
	}
	partial := value(can.PartialResume)
	if can.Parallel && !can.PartialResume {
		partial = "graph.partial.no"
	}
	return []ability{
		{"graph.parallel", value(can.Parallel)}, {"graph.partial", partial}, {"graph.edit", value(can.Edit)}, {"graph.cancel", value(can.Cancel)},
		{"graph.streaming", value(can.Streaming)}, {"graph.receipts", value(can.Receipts)}, {"graph.once", "graph.once." + can.Once},
	}
}

// mayStart reports whether the role of the person includes starting and cancelling runs.
func (v *visit) mayStart() bool {
	for _, role := range v.Me.Roles {
		if role == "agent" || role == "admin" {
			return true
		}
	}
	return false
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
func (s *Site) startRun(v *visit) (response, error) {
	input := json.RawMessage(v.FormValue("input"))
	if !json.Valid(input) {
		return s.graphPage(v, &api.Problem{Status: http.StatusUnprocessableEntity, Code: "bad_input", Detail: v.t("graph.badjson")})
	}
	outcome, err := v.api.Chat(v.ctx(), api.Chat{GraphID: v.PathValue("id"), StateKey: v.FormValue("key"), Input: input, StartID: v.FormValue(idempotencyName)})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status < 500 && p.Status != http.StatusUnauthorized {
		return s.graphPage(v, p)
	}
	if err != nil && !errors.Is(err, client.ErrPending) {
		return nil, err
	}
	to := "/runs"
	if waits, ok := outcome.(fermata.NeedsInput); ok {
		to = runURL(waits.StateKey)
	} else if key := v.FormValue("key"); key != "" {
		to = runURL(key)
	}
	return redirect{To: to, Note: "note.started"}, nil
}
