package requests

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/web/fields"
	"github.com/fermata-go/fermata/internal/web/page"
)

// minBatch is how many similar requests make a batch.
const minBatch = 3

// batchPage is how many requests are read to find similar ones.
const batchPage = 200

// BatchLink leads to the batch page of similar requests.
type BatchLink struct {
	Action, Href string
	Count        int
}

// batchKey identifies requests of a batch: those of the same shape that the same rules ask about.
// It is "" for a request that the person cannot approve as it is.
func (m *Model) batchKey() string {
	if shape := m.batchShape(); shape != "" {
		return shape + "|" + strings.Join(m.Activity.Rules, ",")
	}
	return ""
}

// batchShape identifies similar requests: the same graph, action and names of arguments. Those with
// other rules are outliers of the batch.
func (m *Model) batchShape() string {
	if m.Approval == nil || m.Activity == nil || m.Activity.Voted || !m.Eligible() || !m.Allows("approve") || len(m.Masked) > 0 || m.Broken {
		return ""
	}
	names := make([]string, len(m.Args))
	for i, a := range m.Args {
		names[i] = a.Name
	}
	slices.Sort(names)
	return strings.Join([]string{m.GraphID, m.Approval.Action, strings.Join(names, ",")}, "|")
}

// BatchesOf returns the batches among requests.
func BatchesOf(rows []*Model) (links []BatchLink) {
	counts := make(map[string]int)
	for _, m := range rows {
		if key := m.batchKey(); key != "" {
			counts[key]++
		}
	}
	for _, m := range rows {
		if key := m.batchKey(); counts[key] >= minBatch && key != "" {
			links = append(links, BatchLink{m.Approval.Action, "/batch?like=" + url.QueryEscape(m.ID), counts[key]})
			delete(counts, key)
		}
	}
	return links
}

// batchData is the data of the batch page.
type batchData struct {
	Like, Action, Key string
	// From is the only requester; "" if there are several.
	From string
	// Columns are the arguments that differ; Same are those that all requests share.
	Columns  []column
	Same     []Arg
	Items    []batchItem
	Outliers []batchItem
	Text     string
	Error    string
	// Confirm is the decision that the person confirms: approve or reject; "" before that.
	Confirm string
	// Sent are the selected items as the form sent them: a request that is over by now gets a
	// result as well.
	Sent []string
	// RejectReasons lists the codes of which a rejection must name one; Code is the selected one.
	RejectReasons []string
	Code          string
	// Results are what became of each request after the form was sent.
	Results []batchResult
}

type batchItem struct {
	*Model
	Cells   []batchCell
	Checked bool
	// Why says why the request is an outlier.
	Why string
}

// batchCell is a value in a column.
type batchCell struct {
	Arg
	Number bool
	// Pad aligns a number with the others of its column.
	Pad string
}

type batchResult struct {
	*Model
	Problem string
}

// batch shows similar requests as a table.
func (s *Pages) batch(v *page.Visit) (page.Response, error) {
	d, err := s.batchData(v)
	if err != nil {
		return nil, err
	}
	return d.page(v, http.StatusOK), nil
}

func (d *batchData) page(v *page.Visit, status int) page.Page {
	return page.Page{Name: "batch", Title: v.T("batch.title"), Nav: "/inbox", Status: status, Data: d}
}

func (s *Pages) batchData(v *page.Visit) (*batchData, error) {
	values := v.PostForm
	if v.Method != http.MethodPost {
		values = v.URL.Query()
	}
	like, err := v.API.Request(v.Context(), values.Get("like"))
	if err != nil {
		return nil, err
	}
	first, err := s.Model(v, like)
	if err != nil {
		return nil, err
	}
	list, err := v.API.Requests(v.Context(), client.Query{State: StatePending, Limit: batchPage})
	if err != nil {
		return nil, err
	}
	models, err := s.Models(v, list.Items)
	if err != nil {
		return nil, err
	}
	shape := first.likeShape()
	models = slices.DeleteFunc(models, func(m *Model) bool { return shape == "" || m.batchShape() != shape })
	d := &batchData{Like: first.ID, Action: first.tool(), From: first.From, Key: client.NewID(), Text: strings.TrimSpace(v.PostForm.Get("text")), Code: v.PostForm.Get("code"), RejectReasons: first.RejectReasons()}
	d.fill(v, first, models)
	return d, nil
}

// likeShape is batchShape, also for a request that is already decided or voted on.
func (m *Model) likeShape() string {
	open := *m
	open.State = StatePending
	if m.Activity != nil {
		activity := *m.Activity
		activity.Voted, open.Activity = false, &activity
	}
	return open.batchShape()
}

// fill sorts requests into columns, items and outliers.
func (d *batchData) fill(v *page.Visit, first *Model, models []*Model) {
	if len(models) == 0 {
		return
	}
	values := make(map[string][]string)
	var requesters []string
	for _, m := range models {
		for _, a := range m.Args {
			values[a.Name] = append(values[a.Name], string(a.Value))
		}
		requesters = append(requesters, m.From)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(requesters)))) > 1 {
		d.From = ""
	}
	for _, a := range models[0].Args {
		if all := values[a.Name]; len(slices.Compact(slices.Sorted(slices.Values(all)))) > 1 {
			d.Columns = append(d.Columns, newColumn(a.Name, all))
		} else {
			d.Same = append(d.Same, a)
		}
	}
	for _, m := range models {
		item := batchItem{Model: m, Checked: m.Risk != "high"}
		for _, c := range d.Columns {
			i := slices.IndexFunc(m.Args, func(a Arg) bool { return a.Name == c.Name })
			item.Cells = append(item.Cells, batchCell{Arg: m.Args[i], Number: c.Number, Pad: c.pad(string(m.Args[i].Value))})
			if c.isUnusual(string(m.Args[i].Value)) {
				item.Why = v.T("batch.unusual", c.Name)
			}
		}
		switch {
		case m.Flags > 0:
			item.Why = v.TN("request.flags", m.Flags)
		case !slices.Equal(m.Activity.Rules, first.Activity.Rules):
			item.Why = v.T("batch.otherrules", strings.Join(m.Activity.Rules, ", "))
		case m.ConfirmText() != "":
			item.Why = v.T("batch.typed")
		}
		if item.Why != "" {
			d.Outliers = append(d.Outliers, item)
		} else {
			d.Items = append(d.Items, item)
		}
	}
}

// decideBatch decides the selected requests one by one. Each gets its own decision, digest and
// audit record; a failure does not stop the others.
func (s *Pages) decideBatch(v *page.Visit) (page.Response, error) {
	d, err := s.batchData(v)
	if err != nil {
		return nil, err
	}
	chosen, key := v.PostForm["item"], v.PostForm.Get(page.IdempotencyName)
	for i := range d.Items {
		d.Items[i].Checked = slices.ContainsFunc(chosen, func(item string) bool { return strings.HasPrefix(item, d.Items[i].ID+" ") })
	}
	op, sends := strings.CutPrefix(v.PostForm.Get(fields.OpName), sendPrefix)
	if op == "all" || op == "none" {
		for i := range d.Items {
			d.Items[i].Checked = op == "all"
		}
		return d.page(v, http.StatusOK), nil
	}
	answer, err := d.answer(op)
	switch missing, _ := err.(*missingError); {
	case missing != nil:
		d.Error = v.T(missing.key)
	case err != nil:
		return nil, err
	case len(chosen) == 0:
		d.Error = v.T("batch.nothing")
	case key == "":
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.T("error.form")}
	}
	switch {
	case d.Error != "":
		return d.page(v, http.StatusUnprocessableEntity), nil
	case !sends && len(d.Chosen()) > 0:
		// the confirmation lists no outliers, so they are not sent
		d.Confirm, d.Sent = op, slices.DeleteFunc(slices.Clone(chosen), func(item string) bool {
			id, _, _ := strings.Cut(item, " ")
			return slices.ContainsFunc(d.Outliers, func(i batchItem) bool { return i.ID == id })
		})
		return d.page(v, http.StatusOK), nil
	}
	for _, item := range chosen {
		result, err := s.decideItem(v, d, op, item, key, answer)
		if err != nil {
			return nil, err
		}
		d.Results = append(d.Results, result)
	}
	return d.page(v, http.StatusOK), nil
}

// sendPrefix begins the value of the button that sends the decisions, after the confirmation.
const sendPrefix = "send-"

// answer returns the answer of a button. Without one nothing is decided.
func (d *batchData) answer(op string) (json.RawMessage, error) {
	switch {
	case op == "approve":
		return approveAnswer(nil)
	case op == "reject" && len(d.RejectReasons) > 0 && d.Code == "":
		return nil, &missingError{"action.needrejectcode"}
	case op == "reject":
		return rejectAnswer(&actionForm{Text: d.Text, Code: d.Code})
	}
	return nil, &missingError{"error.incomplete"}
}

// Value is the item in the form: the request, its digest, and the hash of what the row shows.
func (i batchItem) Value() string {
	return strings.Join([]string{i.ID, i.Shown, i.rowRendering().Hash}, " ")
}

// rowRendering returns what a batch shows of a request as text. The page has all its arguments, in
// columns or above the table.
func (m *Model) rowRendering() api.Rendering {
	text := m.From + "\n" + m.tool()
	for _, a := range m.Args {
		text += "\n" + safehtml.Plain(a.Name) + "\n" + string(a.Value)
	}
	return api.NewRendering(text, "web", m.template("batch@1"))
}

// decideItem decides one request that the page listed. A problem of the API is part of the result.
func (s *Pages) decideItem(v *page.Visit, d *batchData, op, item, key string, answer json.RawMessage) (batchResult, error) {
	id, seen, _ := strings.Cut(item, " ")
	shown, rendering, _ := strings.Cut(seen, " ")
	r, err := v.API.Request(v.Context(), id)
	if err != nil {
		return batchResult{}, err
	}
	m, err := s.Model(v, r)
	if err != nil {
		return batchResult{}, err
	}
	result := batchResult{Model: m}
	is := func(i batchItem) bool { return i.ID == id }
	switch {
	case slices.ContainsFunc(d.Outliers, is):
		result.Problem = v.T("batch.outlieralone")
		return result, nil
	case !slices.ContainsFunc(d.Items, is) && m.Open():
		result.Problem = v.T("batch.notlisted")
		return result, nil
	case m.Shown != shown || m.rowRendering().Hash != rendering:
		result.Problem = v.T("request.changed")
		return result, nil
	case op != "reject" && len(unusual(m.Args)) > 0:
		result.Problem = v.T("batch.unusualalone")
		return result, nil
	}
	if _, err := s.decide(v, m.ID, m.rowRendering(), api.Decide{ResumeID: key + "-" + id, Answer: answer, Shown: m.Shown}); err != nil {
		p := page.ProblemOf(err)
		if p == page.ErrInternal || p.Status == http.StatusUnauthorized {
			return result, err
		}
		result.Problem = v.LocalTimes(p.Detail)
	}
	return result, nil
}
