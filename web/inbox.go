package web

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// inboxData is the data of the inbox.
type inboxData struct {
	Tab, Query string
	Tabs       []inboxTab
	Batches    []batchLink
	Rows       []inboxRow
	// Selected is the request on the right; nil if there is none.
	Selected *requestData
	// Chosen reports that the person selected it. On a phone the list is then hidden.
	Chosen bool
	// Bad says what is wrong with the search.
	Bad  string
	Next string
	// first reports that this is the first page.
	first bool
}

type inboxTab struct {
	Name, Title, Href, Count string
	Current                  bool
}

type inboxRow struct {
	*requestModel
	Href     string
	Selected bool
}

// The tabs of the inbox.
const (
	tabMine, tabAll, tabSnoozed, tabDone = "mine", "all", "snoozed", "done"
)

var inboxTabs = []string{tabMine, tabAll, tabSnoozed, tabDone}

// inboxPage is how many requests a page of the inbox reads.
const inboxPage = 200

// inbox lists requests on the left and shows one on the right.
func (s *Site) inbox(v *visit) (response, error) {
	query := v.URL.Query()
	d := &inboxData{Tab: query.Get("tab"), Query: strings.TrimSpace(query.Get("q")), Chosen: query.Get("id") != "", first: query.Get("cursor") == ""}
	if !slices.Contains(inboxTabs, d.Tab) {
		d.Tab = tabMine
	}
	state := statePending
	if d.Tab == tabDone {
		state = "decided"
	}
	list, err := v.api.Requests(v.ctx(), client.Query{State: state, Limit: inboxPage, Cursor: query.Get("cursor")})
	if err != nil {
		return nil, err
	}
	models, err := s.models(list.Items)
	if err != nil {
		return nil, err
	}
	d.Tabs = d.tabs(v, models, list.Next != "")
	find, err := parseSearch(d.Query)
	if err != nil {
		d.Bad = err.Error()
	}
	rows := slices.DeleteFunc(models, func(m *requestModel) bool { return !m.onTab(d.Tab, v.Now) || !find.matches(m, v.Now) })
	sortQueue(rows, d.Tab)
	d.Batches = batchesOf(rows)
	if err := s.selectRequest(v, d, rows, query.Get("id")); err != nil {
		return nil, err
	}
	if list.Next != "" {
		d.Next = d.href("cursor", list.Next)
	}
	scripts := []string{"request.js", "inbox.js", "live.js"}
	if d.Selected != nil {
		scripts = d.Selected.scripts(scripts...)
	}
	return page{Name: "inbox", Title: v.t("inbox.title"), Scripts: scripts, Data: d}, nil
}

func (s *Site) models(items []api.Request) ([]*requestModel, error) {
	models := make([]*requestModel, len(items))
	for i, r := range items {
		var err error
		if models[i], err = s.model(r); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// selectRequest fills the rows and reads the selected request, by default the first.
func (s *Site) selectRequest(v *visit, d *inboxData, rows []*requestModel, id string) error {
	if id == "" && len(rows) > 0 {
		id = rows[0].ID
	}
	for _, m := range rows {
		d.Rows = append(d.Rows, inboxRow{m, d.href("id", m.ID), m.ID == id})
	}
	if id == "" {
		return nil
	}
	r, err := v.api.Request(v.ctx(), id)
	if err != nil {
		return err
	}
	if d.Selected, err = s.requestData(v, r); err != nil {
		return err
	}
	d.Selected.openedFromInbox(d.href("", ""))
	d.Selected.Drawing = s.drawing(v, r)
	return nil
}

// Live reports whether new requests are added to the list while it is shown: not to a later page,
// and not to closed requests.
func (d *inboxData) Live() bool { return d.Tab != tabDone && d.first }

// LiveQuery returns the query of a row's fragment.
func (d *inboxData) LiveQuery() string {
	_, query, _ := strings.Cut(d.href("", ""), "?")
	if query == "" {
		return ""
	}
	return "?" + query
}

// inboxRow returns one row of the list, for live updates. A request that the list does not contain
// is not found, unless it was closed: then its row says so.
func (s *Site) inboxRow(v *visit) (response, error) {
	r, err := v.api.Request(v.ctx(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	m, err := s.model(r)
	if err != nil {
		return nil, err
	}
	d := &inboxData{Tab: cmp.Or(v.URL.Query().Get("tab"), tabMine), Query: v.URL.Query().Get("q")}
	find, err := parseSearch(d.Query)
	if err != nil || m.Open() && (!m.onTab(d.Tab, v.Now) || !find.matches(m, v.Now)) {
		return nil, errNotFound
	}
	return fragment{Name: "inbox", Part: "row", Data: inboxRow{m, d.href("id", m.ID), false}}, nil
}

// href returns the inbox with the same tab and search, and one more parameter.
func (d *inboxData) href(name, value string) string {
	q := make(url.Values)
	if d.Tab != tabMine {
		q.Set("tab", d.Tab)
	}
	if d.Query != "" {
		q.Set("q", d.Query)
	}
	if name != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return "/inbox"
	}
	return "/inbox?" + q.Encode()
}

func (d *inboxData) tabs(v *visit, models []*requestModel, more bool) (tabs []inboxTab) {
	for _, name := range inboxTabs {
		t := inboxTab{Name: name, Title: v.t("inbox.tab." + name), Current: name == d.Tab, Href: "/inbox?tab=" + name}
		if d.Tab != tabDone && name != tabDone {
			n := 0
			for _, m := range models {
				if m.onTab(name, v.Now) {
					n++
				}
			}
			switch {
			case more:
				t.Count = strconv.Itoa(n) + "+"
			case n > 0:
				t.Count = strconv.Itoa(n)
			}
		}
		tabs = append(tabs, t)
	}
	return tabs
}

// onTab reports whether a tab lists the request.
func (m *requestModel) onTab(tab string, now time.Time) bool {
	snoozed := m.Activity != nil && m.Activity.SnoozedUntil != nil && m.Activity.SnoozedUntil.After(now)
	switch tab {
	case tabMine:
		return m.Eligible() && !snoozed
	case tabSnoozed:
		return m.Open() && snoozed
	case tabAll:
		return m.Open()
	}
	return !m.Open()
}

// riskRank is the order of risks.
var riskRank = map[string]int{"high": 3, "medium": 2, "low": 1}

// sortQueue sorts by risk and time left; closed requests by time of the decision, newest first.
func sortQueue(rows []*requestModel, tab string) {
	slices.SortStableFunc(rows, func(a, b *requestModel) int {
		if tab == tabDone && a.Decision != nil && b.Decision != nil {
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
	})
}
