// Package inbox has the list of requests with its search, tabs and saved views.
package inbox

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/search"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/requests"
)

// Pages are the pages of the inbox.
type Pages struct{ requests *requests.Pages }

// Routes lists the pages of the inbox.
func Routes(requests *requests.Pages) page.Routes {
	s := &Pages{requests}
	return page.Routes{
		"GET /inbox":                    s.inbox,
		"GET /inbox/rows/{id}":          s.inboxRow,
		"GET /inbox/count":              s.inboxCount,
		"GET /inbox/views":              s.savedViews,
		"POST /inbox/views":             s.saveView,
		"POST /inbox/views/{id}":        s.saveView,
		"POST /inbox/views/{id}/delete": s.deleteView,
	}
}

// inboxData is the data of the inbox.
type inboxData struct {
	requests.List
	Tabs  []inboxTab
	Views []inboxView
	// Saving is the search that can be saved as a view; "" if there is none.
	Saving  string
	Batches []requests.BatchLink
	Rows    []inboxRow
	// Selected is the request on the right; nil if there is none.
	Selected *requests.PageData
	// Chosen reports that the person selected it. On a phone the list is then hidden.
	Chosen bool
	// Bad says what is wrong with the search.
	Bad string
	// Next and Previous lead to the other pages. Partial reports that the search stopped early.
	Next, Previous string
	Partial        bool
}

type inboxTab struct {
	Name, Title, Href, Count string
	Current                  bool
}

type inboxRow struct {
	*requests.Model
	Href     string
	Selected bool
}

// The tabs of the inbox.
const (
	tabMine, tabGroups, tabAll, tabSnoozed, tabDone = "mine", "groups", "all", "snoozed", "done"
)

var inboxTabs = []string{tabMine, tabGroups, tabAll, tabSnoozed, tabDone}

// inboxPage is how many requests a page of the inbox has.
const inboxPage = 50

// inbox lists requests on the left and shows one on the right.
func (s *Pages) inbox(v *page.Visit) (page.Response, error) {
	query := v.URL.Query()
	d := inboxOf(query)
	d.Chosen = query.Get("id") != ""
	rows, err := s.inboxRows(v, d)
	if err != nil {
		return nil, err
	}
	counts, err := v.API.RequestCounts(v.Context())
	if err != nil {
		return nil, err
	}
	d.Tabs = d.tabs(v, counts)
	if err := d.readViews(v); err != nil {
		return nil, err
	}
	d.Batches = requests.BatchesOf(rows)
	id := query.Get("id")
	if after := query.Get("after"); id == "" && after != "" {
		id = s.next(v, d, rows, after)
	}
	if err := s.selectRequest(v, d, rows, id); err != nil {
		return nil, err
	}
	if query.Has("fragment") {
		return page.Fragment{Name: "inbox", Part: "detail", Data: d}, nil
	}
	scripts := []string{"request.js", "inbox.js", "live.js"}
	if d.Selected != nil {
		scripts = d.Selected.Scripts(scripts...)
	}
	return page.Page{Name: "inbox", Title: v.T("inbox.title"), Scripts: scripts, Data: d}, nil
}

func inboxOf(query url.Values) *inboxData {
	d := &inboxData{List: requests.ListOf(query)}
	if !slices.Contains(inboxTabs, d.Tab) {
		d.Tab = tabMine
	}
	return d
}

// inboxRows reads the requests of the page, and says what is wrong with the search if it is not
// valid.
func (s *Pages) inboxRows(v *page.Visit, d *inboxData) ([]*requests.Model, error) {
	if _, err := search.Parse(d.search()); err != nil {
		d.Bad = err.Error()
		return nil, nil
	}
	order := "oldest"
	if d.done() {
		order = "newest"
	}
	list, err := v.API.Requests(v.Context(), client.Query{Search: d.search(), Order: order, Limit: inboxPage, Cursor: d.Cursor})
	if err != nil {
		return nil, err
	}
	if list.Next != "" {
		d.Next = d.href("cursor", list.Next)
	}
	if list.Previous != "" {
		d.Previous = d.href("cursor", list.Previous)
	}
	d.Partial = list.Partial
	rows, err := s.requests.Models(v, list.Items)
	sortQueue(rows, d.done())
	return rows, err
}

// search returns the search of the tab with the person's own. A state in the person's search
// replaces that of the tab.
func (d *inboxData) search() string {
	tab := tabSearches[d.Tab]
	if own, err := search.Parse(d.Query); err == nil {
		if _, named := own.State(); named {
			tab = ""
		}
	}
	return strings.TrimSpace(tab + " " + d.Query)
}

// done reports whether the list has decided requests.
func (d *inboxData) done() bool {
	q, err := search.Parse(d.search())
	state, _ := q.State()
	return err == nil && state == search.Decided
}

// tabSearches are the searches of the tabs.
var tabSearches = map[string]string{tabMine: "is:mine", tabGroups: "is:groups", tabAll: "is:open", tabSnoozed: "is:snoozed", tabDone: "is:decided"}

// selectRequest fills the rows and reads the selected request, by default the first.
func (s *Pages) selectRequest(v *page.Visit, d *inboxData, rows []*requests.Model, id string) error {
	if id == "" && len(rows) > 0 {
		id = rows[0].ID
	}
	for _, m := range rows {
		d.Rows = append(d.Rows, inboxRow{m, d.href("id", m.ID), m.ID == id})
	}
	if id == "" {
		return nil
	}
	r, err := v.API.Request(v.Context(), id)
	if err != nil {
		return err
	}
	if d.Selected, err = s.requests.PageData(v, r); err != nil {
		return err
	}
	d.Selected.OpenedFrom(d.list())
	d.Selected.SetGraph(v, r)
	return nil
}

// Live reports whether new requests are added to the list while it is shown: not to a later page,
// and not to closed requests.
func (d *inboxData) Live() bool { return !d.done() && d.Cursor == "" && d.Bad == "" }

// next returns the row that follows a request after its decision: the first one behind it in the
// order of the list, or the last one.
func (s *Pages) next(v *page.Visit, d *inboxData, rows []*requests.Model, decided string) string {
	r, err := v.API.Request(v.Context(), decided)
	if err != nil || len(rows) == 0 {
		return ""
	}
	m, err := s.requests.Model(v, r)
	if err != nil {
		return ""
	}
	rest := slices.DeleteFunc(slices.Clone(rows), func(row *requests.Model) bool { return row.ID == m.ID })
	for _, row := range rest {
		if compareQueue(row, m, d.done()) > 0 {
			return row.ID
		}
	}
	if len(rest) == 0 {
		return ""
	}
	return rest[len(rest)-1].ID
}

// LiveQuery returns the query of a row's fragment.
func (d *inboxData) LiveQuery() string {
	_, query, _ := strings.Cut(d.href("", ""), "?")
	if query == "" {
		return ""
	}
	return "?" + query
}

// inboxRow returns one row of the list, for live updates. It is empty for a request that the list
// does not contain, unless it was closed: then its row says so.
func (s *Pages) inboxRow(v *page.Visit) (page.Response, error) {
	r, err := v.API.Request(v.Context(), v.PathValue("id"))
	if err != nil && page.ProblemOf(err).Status == http.StatusNotFound {
		return page.NoContent{}, nil // not for this person any more
	}
	if err != nil {
		return nil, err
	}
	m, err := s.requests.Model(v, r)
	if err != nil {
		return nil, err
	}
	d := inboxOf(v.URL.Query())
	if m.Open() {
		list, err := v.API.Requests(v.Context(), client.Query{Search: d.search() + ` id:"` + m.ID + `"`, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(list.Items) == 0 {
			return page.NoContent{}, nil
		}
	}
	return page.Fragment{Name: "inbox", Part: "row", Data: inboxRow{m, d.href("id", m.ID), false}}, nil
}

// list returns the list without a tab if it is the first one.
func (d *inboxData) list() requests.List {
	l := d.List
	if l.Tab == tabMine {
		l.Tab = ""
	}
	return l
}

// href returns the inbox with the same tab, search and page, and one more parameter.
func (d *inboxData) href(name, value string) string { return d.list().Href(name, value) }

func (d *inboxData) tabs(v *page.Visit, counts api.RequestCounts) (tabs []inboxTab) {
	of := map[string]api.BoundedCount{tabMine: counts.Mine, tabGroups: counts.Groups, tabAll: counts.Open, tabSnoozed: counts.Snoozed, tabDone: counts.Decided}
	for _, name := range inboxTabs {
		t := inboxTab{Name: name, Title: v.T("inbox.tab." + name), Current: name == d.Tab, Href: "/inbox?tab=" + name}
		t.Count = countText(of[name])
		tabs = append(tabs, t)
	}
	return tabs
}

// riskRank is the order of risks.
var riskRank = map[string]int{"high": 3, "medium": 2, "low": 1}

// sortQueue sorts by risk and time left; closed requests by time of the decision, newest first.
func sortQueue(rows []*requests.Model, done bool) {
	slices.SortStableFunc(rows, func(a, b *requests.Model) int { return compareQueue(a, b, done) })
}

func compareQueue(a, b *requests.Model, done bool) int {
	if done && a.Decision != nil && b.Decision != nil {
		return b.Decision.At.Compare(a.Decision.At)
	}
	if c := cmp.Compare(riskRank[b.Risk], riskRank[a.Risk]); c != 0 {
		return c
	}
	switch {
	case a.Deadline == nil && b.Deadline == nil:
		return a.CreatedAt.Compare(b.CreatedAt)
	case a.Deadline == nil:
		return 1
	case b.Deadline == nil:
		return -1
	}
	return a.Deadline.Compare(*b.Deadline)
}
