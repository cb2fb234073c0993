package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// metric is one measured value of a scenario, with its goal if there is one.
type metric struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit,omitempty"`
	AtLeast  float64 `json:"atLeast,omitempty"`
	AtMost   float64 `json:"atMost,omitempty"`
}

// none is the goal of a count that must be zero.
const none = 0.5

// The units of metrics.
const (
	unitMillis = "ms"
	unitBytes  = "bytes"
	unitTimes  = "×"
	unitRate   = "/s"
)

func (m metric) hasGoal() bool { return m.AtLeast > 0 || m.AtMost > 0 }

// met reports whether the value reaches its goal.
func (m metric) met() bool {
	return m.Value >= m.AtLeast && (m.AtMost == 0 || m.Value <= m.AtMost)
}

func (m metric) String() string { return format(m.Value, m.Unit) }

func (m metric) goal() string {
	if m.AtLeast > 0 {
		return "at least " + format(m.AtLeast, m.Unit)
	}
	if m.AtMost == none {
		return "none"
	}
	return "at most " + format(m.AtMost, m.Unit)
}

// scenarioMetrics collects the metrics of one scenario.
type scenarioMetrics struct {
	name string
	list []metric
}

// add returns the metric, so that the caller can set its goal.
func (s *scenarioMetrics) add(name string, value float64, unit string) *metric {
	s.list = append(s.list, metric{Scenario: s.name, Name: name, Value: value, Unit: unit})
	return &s.list[len(s.list)-1]
}

// millis adds a duration.
func (s *scenarioMetrics) millis(name string, d time.Duration) *metric {
	return s.add(name, float64(d)/float64(time.Millisecond), unitMillis)
}

// percentiles adds p50 and p99 of latencies, and returns p99. It sorts them.
func (s *scenarioMetrics) percentiles(name string, latencies []time.Duration) *metric {
	slices.Sort(latencies)
	s.millis(name+" p50", percentile(latencies, 50))
	return s.millis(name+" p99", percentile(latencies, 99))
}

// report is the result of a run of this program.
type report struct {
	Machine machine  `json:"machine"`
	Rounds  int      `json:"rounds"`
	Metrics []metric `json:"metrics"`
}

// json writes the report as JSON.
func (r *report) json(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// markdown writes a table for each list of scenarios with the same metrics, and one of the goals.
func (r *report) markdown(w io.Writer) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s · %d rounds\n", r.Machine, r.Rounds)
	var columns []string
	for _, row := range groupBy(r.Metrics, func(m metric) string { return m.Scenario }) {
		var names, values []string
		for _, m := range row {
			names, values = append(names, m.Name), append(values, m.String())
		}
		if !slices.Equal(names, columns) {
			columns = names
			fmt.Fprintf(out, "\n| scenario | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("--:|", len(names)))
		}
		fmt.Fprintf(out, "| `%s` | %s |\n", row[0].Scenario, strings.Join(values, " | "))
	}
	out.WriteString("\n| scenario | goal | measured | met |\n|---|---|--:|---|\n")
	for _, m := range r.Metrics {
		if m.hasGoal() {
			fmt.Fprintf(out, "| `%s` | %s %s | %s | %s |\n", m.Scenario, m.Name, m.goal(), m, map[bool]string{true: "yes", false: "**no**"}[m.met()])
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// groupBy splits a list where a key changes from one element to the next.
func groupBy[E any](list []E, key func(E) string) (groups [][]E) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && key(list[n]) == key(list[0]) {
			n++
		}
		groups, list = append(groups, list[:n]), list[n:]
	}
	return groups
}

// format writes a value with three significant digits, or with thousands separators.
func format(value float64, unit string) string {
	var text string
	switch {
	case value >= 1000 || value == float64(int(value)):
		text = grouped(int(value + 0.5))
	case value >= 100:
		text = fmt.Sprintf("%.0f", value)
	case value >= 10:
		text = fmt.Sprintf("%.1f", value)
	default:
		text = fmt.Sprintf("%.3g", value)
	}
	if unit == "" || unit == unitBytes {
		return text
	}
	return text + " " + unit
}

// grouped formats a number with thousands separators.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// percentile returns the value that percent % do not exceed. The values are sorted.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
