package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// holdReport is the result of the scenarios hold/….
type holdReport struct {
	Databases []string    `json:"databases,omitempty"`
	LangGraph string      `json:"langgraph,omitempty"`
	Rounds    int         `json:"rounds,omitempty"`
	Scripts   []string    `json:"scripts,omitempty"` // of each workload
	Rows      []holdRow   `json:"rows,omitempty"`
	Sizes     []holdSizes `json:"sizes,omitempty"`
}

// holdRow is one operation of one scenario.
type holdRow struct {
	Name      string              `json:"name"`
	Database  string              `json:"database"`
	Callers   int                 `json:"callers"`
	Operation operation           `json:"act"`
	Sides     map[string]holdSide `json:"sides"`
}

// holdSide is the result of one side.
type holdSide struct {
	// PerSecond has one value per round; Median is their median.
	PerSecond []float64 `json:"perSecond"`
	Median    float64   `json:"median"`
	// Latencies cover all rounds, CPU is per operation, both in nanoseconds.
	P50       float64 `json:"p50Ns"`
	P99       float64 `json:"p99Ns"`
	CPU       float64 `json:"cpuNs"`
	ServerCPU float64 `json:"serverCpuNs"`
	Ops       int     `json:"ops"`
}

// holdSizes is the disk space of one run, tables and indexes, for each side.
type holdSizes struct {
	Database string              `json:"database"`
	Workload string              `json:"piece"`
	Runs     int                 `json:"runs"`
	Bytes    map[string]holdSize `json:"bytes"`
}

func (s holdSizes) name() string {
	if s.Workload == workloadChain {
		return fmt.Sprintf("hold/%s/%s", s.Database, s.Workload)
	}
	return "hold/" + s.Database
}

type holdSize struct {
	Waiting int64 `json:"waiting"`
	Over    int64 `json:"over"`
}

// note records the executor's transactions for a workload, once.
func (h *holdReport) note(f *comparison) {
	if text := fmt.Sprintf("%s: %s", f.workload.name, f.script); !slices.Contains(h.Scripts, text) {
		h.Scripts = append(h.Scripts, text)
	}
}

func newHoldRow(s holdScenario, a operation, found map[string][]measuredLoad) holdRow {
	row := holdRow{Name: s.name(), Database: s.database, Callers: s.callers, Operation: a, Sides: map[string]holdSide{}}
	for side, rounds := range found {
		row.Sides[side] = newHoldSide(rounds)
	}
	return row
}

func newHoldSide(rounds []measuredLoad) holdSide {
	var side holdSide
	var latencies []time.Duration
	var cpu, server time.Duration
	for _, w := range rounds {
		side.PerSecond = append(side.PerSecond, float64(len(w.latencies))/w.wall.Seconds())
		latencies = append(latencies, w.latencies...)
		cpu, server = cpu+w.cpu, server+w.server
	}
	slices.Sort(latencies)
	side.Ops, side.Median = len(latencies), median(side.PerSecond)
	side.P50, side.P99 = float64(percentile(latencies, 50)), float64(percentile(latencies, 99))
	side.CPU, side.ServerCPU = float64(cpu)/float64(side.Ops), float64(server)/float64(side.Ops)
	return side
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

// times returns how many times as fast as another side ours is.
func (r holdRow) times(other string) (ratio float64, known bool) { return r.ratio(sideOurs, other) }

// ratio returns how many times as fast one side is as another: the median over the rounds. In
// each round the two run one after the other.
func (r holdRow) ratio(side, other string) (ratio float64, known bool) {
	ours, theirs := r.Sides[side].PerSecond, r.Sides[other].PerSecond
	if len(ours) == 0 || len(ours) != len(theirs) {
		return 0, false
	}
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / theirs[i]
	}
	return median(ratios), true
}

func (h holdReport) markdown(out *strings.Builder) {
	if len(h.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\nRuns that wait, on %s; LangGraph %s; %d rounds. A cell is operations per second; p50 / p99; CPU per operation of the process (+ of the database server).\n",
		strings.Join(h.Databases, " and "), cmp.Or(h.LangGraph, noValue), h.Rounds)
	for _, script := range h.Scripts {
		fmt.Fprintf(out, "Transactions of the executor for %s.\n", script)
	}
	out.WriteString("\n")
	out.WriteString("| scenario | operation | ours | raw SQL | ours / raw SQL | LangGraph | ours × LangGraph | LangGraph, synchronous=FULL |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, row := range h.Rows {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", row.Name, row.Operation, row.cell(sideOurs), row.cell(sideRawSQL),
			percent(row.times(sideRawSQL)), row.cell(sideLangGraph), multiple(row.times(sideLangGraph)), row.cell(sideLangGraphFull))
	}
	out.WriteString("\n| bytes on disk per run | ours waiting | LangGraph waiting | ours ended | raw SQL ended | LangGraph ended | ratio |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range h.Sizes {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", s.name(), bytesStored(int(s.Bytes[sideOurs].Waiting)),
			bytesStored(int(s.Bytes[sideLangGraph].Waiting)), bytesStored(int(s.Bytes[sideOurs].Over)), bytesStored(int(s.Bytes[sideRawSQL].Over)),
			bytesStored(int(s.Bytes[sideLangGraph].Over)), fraction(s.ratio()))
	}
}

func (r holdRow) cell(side string) string {
	s, ok := r.Sides[side]
	if !ok {
		return noValue
	}
	cpu := millis(s.CPU)
	if r.Database == onPostgres {
		cpu += " + " + millis(s.ServerCPU)
	}
	return fmt.Sprintf("%.0f/s; %s / %s; %s ms", s.Median, millis(s.P50), millis(s.P99), cpu)
}

// ratio returns the bytes of a run on our side per byte on LangGraph's.
func (s holdSizes) ratio() (ratio float64, known bool) {
	theirs := s.Bytes[sideLangGraph].Over
	if theirs == 0 {
		return 0, false
	}
	return float64(s.Bytes[sideOurs].Over) / float64(theirs), true
}

func millis(ns float64) string { return fmt.Sprintf("%.2f", ns/1e6) }

func percent(ratio float64, known bool) string {
	if !known {
		return noValue
	}
	return fmt.Sprintf("%.0f %%", 100*ratio)
}

func multiple(ratio float64, known bool) string {
	if !known {
		return noValue
	}
	return fmt.Sprintf("×%.1f", ratio)
}
