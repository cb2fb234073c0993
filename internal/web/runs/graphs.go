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
	"github.com/fermata-go/fermata/internal/web/fields"
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
	Picture template.HTML
	startForm
	Problem *api.Problem
	// Abilities are the capabilities of the provider.
	Abilities []requests.Ability
	// CanStart reports whether the person may start runs.
	CanStart bool
}

// startForm is the form of a new run.
type startForm struct {
	StateKey string
	// Form asks for the fields of the input; nil if the schema has none. Mode is form or json.
	Form *fields.Field
	Mode string
	// Input is the input as JSON, for the mode json.
	Input string
	// Invalid reports that a field is not valid.
	Invalid bool

	root *schemaform.Field
}

// newStartForm returns the form for a schema, with what a browser sent. A browser that sends no
// mode sends JSON.
func newStartForm(v *page.Visit, schema json.RawMessage) startForm {
	f := startForm{StateKey: v.PostForm.Get("key"), Mode: "json", Input: v.PostForm.Get("input")}
	if root := schemaform.New(schema, nil); len(schema) > 0 && root.Kind == schemaform.Object && len(root.Fields) > 0 {
		f.root = root
		if v.Method != http.MethodPost || v.PostForm.Get("mode") == "form" {
			f.Mode = "form"
		}
		f.show(nil)
		f.Form.Fill(v.PostForm)
		f.show(nil)
	}
	if f.Input == "" {
		f.Input = skeleton(schema)
	}
	return f
}

// show sets the data of the generated fields.
func (f *startForm) show(errs schemaform.Errors) {
	form := fields.Of(f.root, errs)
	f.Form, f.Invalid = &form, len(errs) > 0
}

// change applies a button that starts nothing; false for another one.
func (f *startForm) change(op string) bool {
	if f.root == nil || op == "" || op == "send" {
		return false
	}
	switch op {
	case "json":
		if value, err := f.root.Value(); err == nil && value != nil {
			if text, err := json.MarshalIndent(value, "", "  "); err == nil {
				f.Input = string(text)
			}
		}
		f.Mode = "json"
	case "form":
		if json.Valid([]byte(f.Input)) {
			f.root.Set(json.RawMessage(f.Input))
		}
		f.Mode = "form"
	default:
		fields.Change(f.root, op)
	}
	f.show(nil)
	return true
}

// graph shows one graph and a form that starts a run.
func (s *Pages) graph(v *page.Visit) (page.Response, error) {
	g, err := v.API.Graph(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.graphPage(v, g, newStartForm(v, g.InputSchema), nil)
}

func (s *Pages) graphPage(v *page.Visit, g api.Graph, form startForm, problem *api.Problem) (page.Response, error) {
	data := graphData{Graph: g, Picture: inlineDrawing(g.Drawing), startForm: form, Problem: problem, Abilities: requests.Abilities(g.Capabilities), CanStart: v.MayStart()}
	answer := page.Page{Name: "graph", Title: g.ID, Nav: "/graphs", Data: data}
	switch {
	case problem != nil:
		answer.Status = problem.Status
	case form.Invalid:
		answer.Status = http.StatusUnprocessableEntity
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
	g, err := v.API.Graph(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	form := newStartForm(v, g.InputSchema)
	if form.change(v.PostForm.Get(fields.OpName)) {
		return s.graphPage(v, g, form, nil)
	}
	input := json.RawMessage(form.Input)
	if form.Mode == "form" {
		if input, err = form.root.Value(); err != nil {
			invalid, ok := errors.AsType[schemaform.Errors](err)
			if !ok {
				return nil, err
			}
			form.show(invalid)
			return s.graphPage(v, g, form, nil)
		}
	}
	if !json.Valid(input) {
		return s.graphPage(v, g, form, &api.Problem{Status: http.StatusUnprocessableEntity, Code: "bad_input", Detail: v.T("graph.badjson")})
	}
	outcome, err := v.API.Chat(v.Context(), api.Chat{GraphID: g.ID, StateKey: form.StateKey, Input: input, StartID: v.PostForm.Get(page.IdempotencyName)})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status < 500 && p.Status != http.StatusUnauthorized {
		return s.graphPage(v, g, form, p)
	}
	if err != nil && !errors.Is(err, client.ErrPending) {
		return nil, err
	}
	return page.Redirect{To: startedRun(v, g.ID, form.StateKey, outcome), Note: "note.started"}, nil
}

// startedRun returns the page of a new run, or that of all runs if it cannot be found.
func startedRun(v *page.Visit, graph, key string, outcome fermata.Outcome) string {
	run := ""
	switch o := outcome.(type) {
	case fermata.NeedsInput:
		key = o.StateKey
	case fermata.Completed:
		run = o.Run
	case fermata.Failed:
		run = o.Run
	}
	if key == "" && run != "" {
		newest, err := v.API.Runs(v.Context(), client.Query{GraphID: graph, Limit: 20})
		if i := slices.IndexFunc(newest.Items, func(r api.Run) bool { return r.RunID == run }); err == nil && i >= 0 {
			key = newest.Items[i].StateKey
		}
	}
	if key == "" {
		return "/runs"
	}
	return page.RunURL(key)
}
