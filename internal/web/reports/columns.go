package reports

import (
	"math"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/web/page"
)

// columnChart is a chart with a stacked column for each day or hour, and its table.
type columnChart struct {
	Title, NameTitle string
	// Summary describes the chart to users who do not see it.
	Summary   string
	Columns   []column
	Top, Half int // labels of the vertical axis
}

// column is a column of a chart. X and Middle are positions in percent of the width.
type column struct {
	analytics.DecisionCounts
	Long, Tip        string
	X, Middle, Width float64
	Label            string // below the column; most columns have none
	Last             bool
	Parts            []columnPart
}

// columnPart is a part of a column, in percent of the height.
type columnPart struct {
	Class     string
	Y, Height float64
}

// maxLabels is how many labels fit below a chart on a phone.
const maxLabels = 4

// dayChart returns the chart of the decisions per day, with the last day at the right.
func dayChart(v *page.Visit, days []analytics.DecisionCounts) (columnChart, bool) {
	step := (len(days) + maxLabels - 1) / maxLabels
	return newColumnChart(v, v.T("analytics.byday"), v.T("analytics.day"), days, func(i int) (name, long string, labelled bool) {
		date, err := time.Parse(time.DateOnly, days[i].Name)
		if err != nil {
			return days[i].Name, days[i].Name, false
		}
		month, weekday := strings.Fields(v.T("time.months"))[date.Month()-1], strings.Fields(v.T("time.weekdays"))[date.Weekday()]
		name = v.T("analytics.date", date.Day(), month)
		return name, v.T("analytics.weekday", weekday, name), (len(days)-1-i)%step == 0
	})
}

// hourChart returns the chart of the decisions by hour of the day.
func hourChart(v *page.Visit, hours []analytics.DecisionCounts) (columnChart, bool) {
	return newColumnChart(v, v.T("analytics.byhour"), v.T("analytics.hour"), hours, func(i int) (name, long string, labelled bool) {
		return hours[i].Name, hours[i].Name, i%6 == 0
	})
}

// newColumnChart returns a chart; false if there are no decisions.
func newColumnChart(v *page.Visit, title, nameTitle string, rows []analytics.DecisionCounts, name func(i int) (name, long string, labelled bool)) (columnChart, bool) {
	total, busiest := 0, 0
	for i, r := range rows {
		total += r.Total()
		if r.Total() > rows[busiest].Total() {
			busiest = i
		}
	}
	if total == 0 {
		return columnChart{}, false
	}
	most := rows[busiest].Total()
	_, when, _ := name(busiest)
	c := columnChart{Title: title, NameTitle: nameTitle, Summary: v.T("analytics.summary", title, total, most, when), Top: axisTop(most)}
	c.Half = c.Top / 2
	slot := 100 / float64(len(rows))
	for i, r := range rows {
		short, long, labelled := name(i)
		one := column{
			DecisionCounts: r, Long: long, Tip: v.T("analytics.tip", long, r.Approved, r.Answered, r.Rejected, r.Expired),
			X: percent(slot * (float64(i) + 0.15)), Middle: percent(slot * (float64(i) + 0.5)), Width: percent(slot * 0.7),
			Last: i == len(rows)-1,
		}
		if labelled {
			one.Label = short
		}
		below := 0
		for _, part := range []struct {
			class string
			n     int
		}{{"a", r.Approved}, {"n", r.Answered}, {"r", r.Rejected}, {"e", r.Expired}} {
			if part.n == 0 {
				continue
			}
			below += part.n
			height := func(n int) float64 { return percent(float64(n) * 100 / float64(c.Top)) }
			one.Parts = append(one.Parts, columnPart{Class: part.class, Y: percent(100 - height(below)), Height: height(part.n)})
		}
		c.Columns = append(c.Columns, one)
	}
	return c, true
}

// percent rounds a percentage to what a screen can show.
func percent(p float64) float64 { return math.Round(p*100) / 100 }

// axisTop returns a round number that is not less than n and whose half is a whole number.
func axisTop(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{2 * unit, 4 * unit} {
			if n <= 8*step {
				return (n + step - 1) / step * step
			}
		}
	}
}
