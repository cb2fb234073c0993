package web

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// requestData is the data of the request page, and of the right side of the inbox.
type requestData struct {
	*requestModel
	Buttons []button
	More    []button
	// Then says what each decision causes.
	Then []string
	// Question is the body, inside the custom element of the view if it has one.
	Question template.HTML
	Drawing  template.HTML
	// Abilities are the capabilities of the provider of the run.
	Abilities []ability
	Similar   []similarDecision
	// Viewing names the other people who look at the request.
	Viewing string
	// Back leads to the list that the request was opened from.
	Back string
}

// button is a link to an action.
type button struct {
	Act, Href, Label, Key string
	Primary, Danger       bool
}

// request shows one request.
func (s *Site) request(v *visit) (response, error) {
	r, err := v.api.Request(v.ctx(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d, err := s.requestData(v, r)
	if err != nil {
		return nil, err
	}
	d.setGraph(v, r)
	d.Similar = s.similar(v, d.requestModel)
	d.Back = "/inbox"
	if v.URL.Query().Has("fragment") {
		return fragment{Name: "request", Part: "request", Data: d}, nil
	}
	return page{Name: "request", Title: plainText(string(d.Sentence)), Nav: "/inbox", Scripts: d.scripts("request.js", "live.js"), Data: d}, nil
}

// openedFromInbox makes the forms lead back to the inbox.
func (d *requestData) openedFromInbox(back string) {
	d.Back = back
	for _, list := range [][]button{d.Buttons, d.More} {
		for i := range list {
			separator := "?"
			if strings.Contains(list[i].Href, "?") {
				separator = "&"
			}
			list[i].Href += separator + "from=inbox"
		}
	}
}

// scripts returns the modules of the page and of the view.
func (d *requestData) scripts(names ...string) []string {
	if d.view.script != "" {
		names = append(names, d.view.script)
	}
	return names
}

func (s *Site) requestData(v *visit, r api.Request) (*requestData, error) {
	m, err := s.model(r)
	if err != nil {
		return nil, err
	}
	d := &requestData{requestModel: m}
	d.Viewing = v.OthersViewing(m.Activity)
	d.Buttons, d.More = s.buttons(v, m)
	d.Then = consequences(v, m)
	d.Question, err = m.view.wrap(r, m.Body)
	return d, err
}

// OthersViewing names the other people who look at a request.
func (v *visit) OthersViewing(a *api.Activity) string {
	if a == nil {
		return ""
	}
	var others []string
	for _, viewer := range a.Viewers {
		if viewer.By != v.Me.Principal {
			others = append(others, viewer.By)
		}
	}
	return strings.Join(others, ", ")
}

// setGraph sets the drawing of the graph with the waiting node marked, if it has one, and the
// capabilities of the provider. A program that is no longer deployed has neither.
func (d *requestData) setGraph(v *visit, r api.Request) {
	if r.StateKey == "" {
		return
	}
	g, err := v.api.RunGraph(v.ctx(), r.StateKey)
	if err != nil {
		return
	}
	d.Abilities = abilities(g.Capabilities)
	if g.Drawing != nil {
		d.Drawing = inlineSVG(g.Drawing.SVG())
	}
}

// viewed records that the page of a request was on the screen, with what it showed. The script of
// the page calls it.
func (s *Site) viewed(v *visit) (response, error) {
	r, err := v.api.Request(v.ctx(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	m, err := s.model(r)
	if err != nil {
		return nil, err
	}
	if m.Open() && v.FormValue("shown") == r.Shown {
		if err := s.recordView(v, m); err != nil {
			return nil, err
		}
	}
	return noContent{}, nil
}

// recordView stores the hash of what the page shows.
func (s *Site) recordView(v *visit, m *requestModel) error {
	rendering := m.rendering()
	_, err := v.api.Act(v.ctx(), m.ID, client.ActionView, api.RequestAction{Shown: m.Shown, Rendering: &rendering})
	return err
}

type noContent struct{}

func (noContent) write(_ *Site, v *visit) error {
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// buttons returns the links of the decision bar, and those of its menu.
func (s *Site) buttons(v *visit, m *requestModel) (bar, more []button) {
	if !m.Open() {
		return nil, nil
	}
	link := func(act, label, key string) button {
		return button{Act: act, Href: m.href(act), Label: label, Key: key}
	}
	if m.Eligible() {
		bar = s.decisionButtons(v, m, link)
	}
	if m.Allows("ask") {
		bar = append(bar, link("ask", v.t("act.ask"), "q"))
	}
	for _, a := range menu {
		if a.offered(m, v) {
			more = append(more, link(a.name, v.t("act."+a.name), a.key))
		}
	}
	return bar, more
}

func (s *Site) decisionButtons(v *visit, m *requestModel, link func(act, label, key string) button) (bar []button) {
	switch {
	case m.Approval != nil:
		if m.Allows("approve") {
			bar = append(bar, link("approve", v.t("act.approve"), "a"))
		}
		if m.Editable && m.Allows("edit") {
			bar = append(bar, link("edit", v.t("act.edit"), "e"))
		}
		if m.Allows("reject") {
			b := link("reject", v.t("act.reject"), "r")
			b.Danger = true
			bar = append(bar, b)
		}
	case !m.Allows("respond"):
	case m.HeldAt != "":
		bar = append(bar, link("continue", v.t("act.continue"), "a"))
		if m.stateIsEditable() {
			bar = append(bar, link("edit", v.t("act.editstate"), "e"))
		}
	case m.Doubt != nil:
		yes, no := link("respond", v.t("act.happened"), "a"), link("respond", v.t("act.nothappened"), "r")
		yes.Href += "?set=" + url.QueryEscape("/happened=true")
		no.Href += "?set=" + url.QueryEscape("/happened=false")
		bar = append(bar, yes, no)
	default:
		bar = presetButtons(v, m, link)
	}
	if len(bar) > 0 {
		bar[0].Primary = true
	}
	return bar
}

// presetKeys are the keys of answers that approve or reject.
var presetKeys = map[string]string{"approve": "a", "reject": "r", "revise": "e", "true": "a", "false": "r"}

// maxPresets is how many answers get a button of their own.
const maxPresets = 4

// presetButtons returns one button for each value of the choice in the answer, or one for the form.
func presetButtons(v *visit, m *requestModel, link func(act, label, key string) button) (bar []button) {
	pointer, values := choiceIn(m.AnswerSchema)
	if len(values) == 0 || len(values) > maxPresets {
		return []button{link("respond", v.t("act.respond"), "f")}
	}
	for _, value := range values {
		label := strings.Trim(string(value), `"`)
		b := link("respond", titleCase(label), presetKeys[label])
		b.Href += "?set=" + url.QueryEscape(pointer+"="+string(value))
		b.Danger = label == "reject"
		bar = append(bar, b)
	}
	return bar
}

func titleCase(text string) string {
	text = strings.ReplaceAll(text, "_", " ")
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func (m *requestModel) href(act string) string {
	return "/requests/" + url.PathEscape(m.ID) + "/" + act
}

// consequences says what the decisions cause.
func consequences(v *visit, m *requestModel) (texts []string) {
	if !m.Open() {
		return nil
	}
	switch {
	case m.Approval != nil && m.Needed-m.Votes > 1:
		texts = append(texts, v.t("then.vote", m.Votes+1, m.Needed))
	case m.Approval != nil:
		texts = append(texts, v.t("then.approve"))
	case m.HeldAt != "":
		texts = append(texts, v.t("then.continue"))
	case m.Doubt != nil:
		texts = append(texts, v.t("then.doubt"))
	default:
		texts = append(texts, v.t("then.answer"))
	}
	var next []string
	for _, nodes := range m.Next {
		if len(nodes) == 0 {
			next = append(next, v.t("then.end"))
		} else {
			next = append(next, strings.Join(nodes, " + "))
		}
	}
	if len(next) > 0 {
		texts = append(texts, v.t("then.next", strings.Join(slices.Compact(next), ", ")))
	}
	return texts
}
