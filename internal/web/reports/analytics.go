// Package reports has the pages of analytics, deliveries and the documentation of the API.
package reports

import (
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/web/page"
)

// Routes lists the pages of reports, deliveries and the documentation of the API.
func Routes() page.Routes {
	return page.Routes{
		"GET /analytics":         analyticsPage,
		"GET /deliveries":        deliveries,
		"POST /deliveries/again": sendAgain,
		"GET /docs":              docs,
	}
}

// Funcs returns the template functions of reports and of the documentation of the API.
func Funcs() template.FuncMap {
	return template.FuncMap{"schemaName": schemaName, "waited": waited}
}

// analyticsData is the data of the page with the charts.
type analyticsData struct {
	analytics.Report
	Days    int
	Periods []page.FilterLink
	Columns []columnChart
	// Asked is what agents asked their users; nil if there are no conversations.
	Asked  *dialog.Report
	Charts []chart
}

// chart is a horizontal bar chart with its table.
type chart struct {
	Title string
	Rows  []chartRow
}

// chartRow is a row of numbers with its bar.
type chartRow struct {
	analytics.Row
	// Approved to Expired are the widths of the parts of the bar in percent of the widest one.
	ApprovedWidth, RejectedWidth, AnsweredWidth, ExpiredWidth, OpenWidth float64
}

// maxChartRows is how many rows a chart shows.
const maxChartRows = 12

// analyticsPage shows how decisions are made.
func analyticsPage(v *page.Visit) (page.Response, error) {
	data := analyticsData{Days: page.Periods[1]}
	if n, err := strconv.Atoi(v.FormValue("days")); err == nil && slices.Contains(page.Periods, n) {
		data.Days = n
	}
	var err error
	if data.Report, err = v.API.Analytics(v.Context(), data.Days, v.ZoneName()); err != nil {
		return nil, err
	}
	if v.Shell.Config.Chat {
		asked, err := v.API.ConversationReport(v.Context(), data.Days)
		if err != nil {
			return nil, err
		}
		if len(asked.Rows) > 0 {
			data.Asked = &asked
		}
	}
	if v.FormValue("format") == "csv" {
		return page.CSV{Name: "fermata-analytics.csv", Rows: reportRows(data.Report)}, nil
	}
	for _, days := range page.Periods {
		data.Periods = append(data.Periods, page.FilterLink{Title: v.TN("analytics.days", days), Href: page.WithQuery("/analytics", "days", strconv.Itoa(days)), Current: days == data.Days})
	}
	if c, ok := dayChart(v, data.ByDay); ok {
		data.Columns = append(data.Columns, c)
	}
	if c, ok := hourChart(v, data.ByHour); ok {
		data.Columns = append(data.Columns, c)
	}
	for _, c := range []struct {
		key  string
		rows []analytics.Row
	}{{"analytics.byrule", data.ByRule}, {"analytics.bykind", data.ByKind}, {"analytics.byaction", data.ByAction}} {
		if len(c.rows) > 0 {
			data.Charts = append(data.Charts, newChart(v.T(c.key), c.rows))
		}
	}
	return page.Page{Name: "analytics", Title: v.T("analytics.title"), Data: data}, nil
}

func newChart(title string, rows []analytics.Row) chart {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b analytics.Row) int { return b.Requests - a.Requests })
	rows = rows[:min(len(rows), maxChartRows)]
	c := chart{Title: title}
	widest := max(rows[0].Requests, 1)
	width := func(n int) float64 { return percent(float64(n) * 100 / float64(widest)) }
	for _, r := range rows {
		c.Rows = append(c.Rows, chartRow{
			Row: r, ApprovedWidth: width(r.Approved), RejectedWidth: width(r.Rejected), AnsweredWidth: width(r.Answered),
			ExpiredWidth: width(r.Expired), OpenWidth: width(r.Open),
		})
	}
	return c
}

// waited returns the average time from a question to its answer in seconds.
func waited(r dialog.Row) float64 {
	return (r.Waited / time.Duration(max(r.Answered, 1))).Seconds()
}

// reportRows returns the rows of a report for a spreadsheet.
func reportRows(report analytics.Report) [][]string {
	list := [][]string{{"group", "name", "requests", "open", "approved", "edited", "rejected", "answered", "expired", "withdrawn", "decide_p50_s", "decide_p90_s", "waited_h"}}
	add := func(group string, rows ...analytics.Row) {
		for _, r := range rows {
			line := []string{group, r.Name}
			for _, n := range []int{r.Requests, r.Open, r.Approved, r.Edited, r.Rejected, r.Answered, r.Expired, r.Withdrawn} {
				line = append(line, strconv.Itoa(n))
			}
			for _, f := range []float64{r.ToDecide.P50, r.ToDecide.P90, r.WaitedHours} {
				line = append(line, strconv.FormatFloat(f, 'f', 1, 64))
			}
			list = append(list, line)
		}
	}
	add("all", report.All)
	add("rule", report.ByRule...)
	add("kind", report.ByKind...)
	add("action", report.ByAction...)
	for _, times := range []struct {
		group string
		rows  []analytics.DecisionCounts
	}{{"day", report.ByDay}, {"hour", report.ByHour}} {
		for _, r := range times.rows {
			add(times.group, analytics.Row{Name: r.Name, Requests: r.Total(), Approved: r.Approved, Rejected: r.Rejected, Answered: r.Answered, Expired: r.Expired})
		}
	}
	return list
}
