package web

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/analytics"
)

// analyticsPeriods are the periods to choose from, in days.
var analyticsPeriods = []int{7, 30, 90}

// analyticsData is the data of the page with the charts.
type analyticsData struct {
	analytics.Report
	Days    int
	Periods []filterLink
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
func (s *Site) analyticsPage(v *visit) (response, error) {
	data := analyticsData{Days: analyticsPeriods[1]}
	if n, err := strconv.Atoi(v.FormValue("days")); err == nil && slices.Contains(analyticsPeriods, n) {
		data.Days = n
	}
	var err error
	if data.Report, err = v.api.Analytics(v.ctx(), data.Days, v.ZoneName()); err != nil {
		return nil, err
	}
	if s.config.Chat {
		asked, err := v.api.ConversationReport(v.ctx(), data.Days)
		if err != nil {
			return nil, err
		}
		if len(asked.Rows) > 0 {
			data.Asked = &asked
		}
	}
	if v.FormValue("format") == "csv" {
		return csvFile{Name: "fermata-analytics.csv", Rows: reportRows(data.Report)}, nil
	}
	for _, days := range analyticsPeriods {
		data.Periods = append(data.Periods, filterLink{Title: v.tn("analytics.days", days), Href: pageURL("/analytics", "days", strconv.Itoa(days)), Current: days == data.Days})
	}
	if c, ok := v.dayChart(data.ByDay); ok {
		data.Columns = append(data.Columns, c)
	}
	if c, ok := v.hourChart(data.ByHour); ok {
		data.Columns = append(data.Columns, c)
	}
	for _, c := range []struct {
		key  string
		rows []analytics.Row
	}{{"analytics.byrule", data.ByRule}, {"analytics.bykind", data.ByKind}, {"analytics.byaction", data.ByAction}} {
		if len(c.rows) > 0 {
			data.Charts = append(data.Charts, newChart(v.t(c.key), c.rows))
		}
	}
	return page{Name: "analytics", Title: v.t("analytics.title"), Data: data}, nil
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

// Waited returns the average time from a question to its answer.
func (v *visit) Waited(r dialog.Row) string {
	return v.span(r.Waited / time.Duration(max(r.Answered, 1)))
}

// Span returns a number of seconds in words.
func (v *visit) Span(seconds float64) string {
	return v.span(time.Duration(seconds * float64(time.Second)))
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

// csvFile is a download of a table.
type csvFile struct {
	Name string
	Rows [][]string
}

func (f csvFile) write(_ *Site, v *visit) error {
	h := v.w.Header()
	setPageHeaders(h, "")
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+f.Name+`"`)
	v.w.WriteHeader(http.StatusOK)
	w := csv.NewWriter(v.w)
	for _, row := range f.Rows {
		for i, cell := range row {
			row[i] = plainCell(cell)
		}
		_ = w.Write(row) // a disconnected client does not read it
	}
	w.Flush()
	return nil
}

// plainCell returns a cell that a spreadsheet does not take for a formula.
func plainCell(cell string) string {
	if cell != "" && slices.Contains([]byte("=+-@\t\r"), cell[0]) {
		return "'" + cell
	}
	return cell
}
