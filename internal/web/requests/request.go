// Package requests has the pages of one request, its actions and batches, and the views by kind.
//
// [Model] is a request with everything that pages derive from it. Other areas show requests with
// it.
package requests

import (
	"encoding/json"
	"html/template"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/presentation"
	"github.com/fermata-go/fermata/internal/schemaform"
	"github.com/fermata-go/fermata/internal/web/fields"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// Pages are the pages of requests.
type Pages struct {
	shell *page.Shell
	views map[string]*kindView
}

// New parses the views in a folder, and those of the program.
func New(pages *page.Shell, builtIn fs.FS, own []View) (*Pages, error) {
	s := &Pages{shell: pages}
	var err error
	s.views, err = s.parseViews(builtIn, own)
	return s, err
}

// Routes lists the pages of requests.
func Routes(s *Pages) page.Routes {
	return page.Routes{
		"GET /batch":                 s.batch,
		"POST /batch":                s.decideBatch,
		"GET /requests/{id}":         s.request,
		"POST /requests/{id}/viewed": s.viewed,
		"GET /requests/{id}/{act}":   s.showAction,
		"POST /requests/{id}/{act}":  s.takeAction,
	}
}

// Funcs returns the template functions about requests.
func Funcs(texts texts.Translation) template.FuncMap {
	return template.FuncMap{
		"text":         textAt,
		"list":         listAt,
		"first":        firstText,
		"choices":      presentation.OptionsOf,
		"phrase":       func(d ViewData) template.HTML { return phraseHTML(phraseOf(texts, d)) },
		"answerfields": answerFields,
		"headline":     func(d ViewData) template.HTML { return headline(texts, d) },
	}
}

// answerFields returns the labels of the fields that an answer has.
func answerFields(schema json.RawMessage) (labels []string) {
	if len(schema) == 0 {
		return nil
	}
	for _, f := range schemaform.New(schema, nil).Fields {
		labels = append(labels, fields.Of(f, nil).Label())
	}
	return labels
}

// PageData is the data of the request page, and of the right side of the inbox.
type PageData struct {
	*Model
	Buttons []button
	More    []button
	// Then says what each decision causes.
	Then []string
	// Question is the body, inside the custom element of the view if it has one.
	Question template.HTML
	Drawing  template.HTML
	// Abilities are the capabilities of the provider of the run.
	Abilities []Ability
	Similar   []similarDecision
	// Run is the run of a closed request, as it is now; nil if it is not known.
	Run *client.RunView
	// Viewing names the other people who look at the request.
	Viewing string
	// Back leads to the list that the request was opened from; List is nil without one.
	Back string
	List *List
}

// button opens the form of an action.
type button struct {
	Act, Href, Label, Key string
	// Set is the value that the button sends to select an answer in the form; "" for a link.
	Set             string
	Primary, Danger bool
}

// request shows one request.
func (s *Pages) request(v *page.Visit) (page.Response, error) {
	r, err := v.API.Request(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d, err := s.PageData(v, r)
	if err != nil {
		return nil, err
	}
	d.SetGraph(v, r)
	d.Similar = s.similar(v, d.Model)
	d.Back = "/inbox"
	if v.URL.Query().Has("fragment") {
		return page.Fragment{Name: "request", Part: "request", Data: d}, nil
	}
	return page.Page{Name: "request", Title: plainText(string(d.Sentence)), Nav: "/inbox", Scripts: d.Scripts("request.js", "live.js"), Data: d}, nil
}

// OpenedFrom makes the page and its forms lead back to a list of the inbox.
func (d *PageData) OpenedFrom(list List) {
	d.List, d.Back = &list, list.Href("", "")
	for _, bar := range [][]button{d.Buttons, d.More} {
		for i := range bar {
			if bar[i].Act == actStepUp {
				continue
			}
			bar[i].Href += "?" + listName + "=" + url.QueryEscape(list.Encode())
		}
	}
}

// Script is the module of the view; "" if it has none.
func (d *PageData) Script() string { return d.view.script }

// Scripts returns the modules of the page and of the view.
func (d *PageData) Scripts(names ...string) []string {
	if d.view.script != "" {
		names = append(names, d.view.script)
	}
	return names
}

func (s *Pages) PageData(v *page.Visit, r api.Request) (*PageData, error) {
	m, err := s.Model(v, r)
	if err != nil {
		return nil, err
	}
	d := &PageData{Model: m}
	d.Viewing = v.OthersViewing(m.Activity)
	d.Buttons, d.More = s.buttons(v, m)
	d.Then = consequences(v, m)
	d.Question, err = m.view.wrap(r, m.Body)
	return d, err
}

// SetGraph sets the drawing of the graph with the waiting node marked, if it has one, and the
// capabilities of the provider. A program that is no longer deployed has neither. It sets the run
// of a closed request, unless its state key has another run by now.
func (d *PageData) SetGraph(v *page.Visit, r api.Request) {
	if r.StateKey == "" {
		return
	}
	if !d.Open() {
		if run, err := v.API.Run(v.Context(), r.StateKey); err == nil && !run.CreatedAt.After(r.CreatedAt) {
			d.Run = &run
		}
	}
	g, err := v.API.RunGraph(v.Context(), r.StateKey)
	if err != nil {
		return
	}
	d.Abilities = Abilities(g.Capabilities)
	if g.Drawing != nil {
		d.Drawing = inlineSVG(g.Drawing.SVG())
	}
}

// viewed records that the page of a request was on the screen, with what it showed. The script of
// the page calls it.
func (s *Pages) viewed(v *page.Visit) (page.Response, error) {
	r, err := v.API.Request(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	m, err := s.Model(v, r)
	if err != nil {
		return nil, err
	}
	shown, hash, err := seen(v, m)
	if err != nil {
		return nil, err
	}
	if rendering := m.Rendering(); m.Open() && shown == m.Shown && hash == rendering.Hash {
		err = recordView(v, m.ID, shown, rendering)
	}
	return page.NoContent{}, err
}

// recordView stores what a page showed of a request.
func recordView(v *page.Visit, id, shown string, rendering api.Rendering) error {
	_, err := v.API.Act(v.Context(), id, client.ActionView, api.RequestAction{Shown: shown, Rendering: &rendering})
	return err
}

// buttons returns the buttons of the decision bar, and those of its menu.
func (s *Pages) buttons(v *page.Visit, m *Model) (bar, more []button) {
	if !m.Open() {
		return nil, nil
	}
	link := func(act, label, key string) button {
		return button{Act: act, Href: m.href(act), Label: label, Key: key}
	}
	switch {
	case m.needsStepUp():
		bar = []button{{Act: actStepUp, Href: m.stepUpURL(), Label: v.T("act.stepup"), Primary: true}}
	case m.Eligible():
		bar = s.decisionButtons(v, m, link)
	}
	if m.Activity != nil && m.Activity.Voted { // nobody is asked twice, but can vote for something else
		more, bar = otherVotes(m, bar), nil
	}
	if m.Allows("ask") {
		bar = append(bar, link("ask", v.T("act.ask"), "q"))
	}
	for _, a := range menu {
		if a.offered(m, v) {
			more = append(more, link(a.name, v.T("act."+a.name), a.key))
		}
	}
	return bar, more
}

// actStepUp is the button that leads to a stronger sign-in.
const actStepUp = "stepup"

// otherVotes returns the buttons of the decisions other than the person's approval.
func otherVotes(m *Model, bar []button) []button {
	return slices.DeleteFunc(bar, func(b button) bool { return b.Act == "approve" || b.Set != "" })
}

func (s *Pages) decisionButtons(v *page.Visit, m *Model, link func(act, label, key string) button) (bar []button) {
	switch {
	case m.Verdicts():
		if m.Allows("approve") {
			bar = append(bar, link("approve", v.T("act.approve"), "a"))
		}
		if m.Editable && m.Allows("edit") || m.HeldAt != "" && m.Allows("respond") && len(m.Masked) == 0 {
			bar = append(bar, link("edit", v.T("act.edit"), "e"))
		}
		if m.Allows("reject") {
			b := link("reject", v.T("act.reject"), "r")
			b.Danger = true
			bar = append(bar, b)
		}
	case !m.Allows("respond"):
	default:
		bar = answerButtons(v, m, link)
	}
	if len(bar) > 0 {
		bar[0].Primary = true
	}
	return bar
}

// answerKeys are the keys of answers that approve or reject.
var answerKeys = map[string]string{"approve": "a", "reject": "r", "revise": "e", "true": "a", "false": "r"}

// maxAnswers is how many answers get a button of their own.
const maxAnswers = 4

// answerButtons returns one button for each option of the answer, or one for the form.
func answerButtons(v *page.Visit, m *Model, link func(act, label, key string) button) (bar []button) {
	if m.Presentation != nil {
		for _, a := range m.Presentation.Actions {
			if a.Name != "respond" || a.Answer == nil {
				continue
			}
			pointer, value := "", a.Answer
			var members map[string]json.RawMessage
			if json.Unmarshal(a.Answer, &members) == nil {
				for name, of := range members { // there is one
					pointer, value = "/"+escapePointer(name), of
				}
			}
			b := link("respond", a.Label, answerKeys[strings.Trim(string(value), `"`)])
			b.Set = setOp + pointer + "=" + string(value)
			b.Danger = a.Style == "danger" && m.Doubt == nil
			bar = append(bar, b)
		}
	}
	if len(bar) == 0 || len(bar) > maxAnswers {
		return []button{link("respond", v.T("act.respond"), "f")}
	}
	return bar
}

func (m *Model) href(act string) string {
	return "/requests/" + url.PathEscape(m.ID) + "/" + act
}
