package auditlog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
)

// decisionsData is the data of the report of decisions.
type decisionsData struct {
	Rows    []client.Decision
	Days    int
	Periods []page.FilterLink
	// By and Action are the filters, and Oldest the order.
	By, Action string
	Oldest     bool
	CSV        string // its address
	Ignored    []string
	// More reports that the period has more decisions than the report.
	More bool
}

// selects reports whether a decision matches the filters.
func (d decisionsData) selects(row client.Decision) bool {
	return (d.By == "" || slices.Contains(row.By, d.By)) && (d.Action == "" || row.Action == d.Action)
}

const (
	// maxDecisions is how many decisions the page shows, maxDecisionsCSV how many the file has.
	maxDecisions, maxDecisionsCSV = 200, 10000
	decisionsPerCall              = 200
)

// decisions reports who decided what in a period, newest first, as a page or as CSV.
func decisions(v *page.Visit) (page.Response, error) {
	if !v.IsAuditor() {
		return nil, page.ErrForbidden
	}
	data := decisionsData{Days: page.Periods[1]}
	if n, err := strconv.Atoi(v.FormValue("days")); err == nil && slices.Contains(page.Periods, n) {
		data.Days = n
	}
	data.By, data.Action, data.Oldest = strings.TrimSpace(v.FormValue("by")), strings.TrimSpace(v.FormValue("action")), v.FormValue("order") == "oldest"
	data.Ignored = unknownParameters(v, "days", "by", "action", "order", "format")
	limit, csv := maxDecisions, v.FormValue("format") == "csv"
	if csv {
		limit = maxDecisionsCSV
	}
	since := v.Now.AddDate(0, 0, -data.Days)
	read := 0
	query := client.Query{State: "decided", Order: "newest", Limit: decisionsPerCall}
pages:
	for {
		list, err := v.API.Requests(v.Context(), query)
		if err != nil {
			return nil, err
		}
		for _, r := range list.Items {
			if r.Decision == nil {
				continue
			}
			if r.Decision.At.Before(since) {
				break pages
			}
			if data.More = len(data.Rows) == limit || read == maxDecisionsCSV; data.More {
				break pages
			}
			read++
			if row := client.DecisionOf(r); data.selects(row) {
				data.Rows = append(data.Rows, row)
			}
		}
		if query.Cursor = list.Next; query.Cursor == "" {
			break
		}
	}
	if data.Oldest {
		slices.Reverse(data.Rows)
	}
	if csv {
		return page.CSV{Name: "fermata-decisions.csv", Rows: client.DecisionTable(data.Rows)}, nil
	}
	order := ""
	if data.Oldest {
		order = "oldest"
	}
	link := func(days int, format string) string {
		return page.WithQuery("/audit/decisions", "days", strconv.Itoa(days), "by", data.By, "action", data.Action, "order", order, "format", format)
	}
	data.CSV = link(data.Days, "csv")
	for _, days := range page.Periods {
		data.Periods = append(data.Periods, page.FilterLink{Title: v.TN("analytics.days", days), Href: link(days, ""), Current: days == data.Days})
	}
	return page.Page{Name: "audit_decisions", Title: v.T("audit.decisions"), Nav: "/audit", Data: data}, nil
}
