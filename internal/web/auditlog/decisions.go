package auditlog

import (
	"slices"
	"strconv"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
)

// decisionsData is the data of the report of decisions.
type decisionsData struct {
	Rows    []client.Decision
	Days    int
	Periods []page.FilterLink
	// More reports that the period has more decisions than the report.
	More bool
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
	limit, csv := maxDecisions, v.FormValue("format") == "csv"
	if csv {
		limit = maxDecisionsCSV
	}
	since := v.Now.AddDate(0, 0, -data.Days)
	query := client.Query{State: "decided", Order: "newest", Limit: decisionsPerCall}
read:
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
				break read
			}
			if data.More = len(data.Rows) == limit; data.More {
				break read
			}
			data.Rows = append(data.Rows, client.DecisionOf(r))
		}
		if query.Cursor = list.Next; query.Cursor == "" {
			break
		}
	}
	if csv {
		return page.CSV{Name: "fermata-decisions.csv", Rows: client.DecisionTable(data.Rows)}, nil
	}
	for _, days := range page.Periods {
		data.Periods = append(data.Periods, page.FilterLink{Title: v.TN("analytics.days", days), Href: page.WithQuery("/audit/decisions", "days", strconv.Itoa(days)), Current: days == data.Days})
	}
	return page.Page{Name: "audit_decisions", Title: v.T("audit.decisions"), Nav: "/audit", Data: data}, nil
}
