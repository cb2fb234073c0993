package main

import (
	"fmt"
	"strings"
	"time"
)

// The goals of the server.
const (
	leastOfBare   = 0.4
	mostP99       = 20 * time.Millisecond
	mostPerStream = 40 * kib
	leastGoodput  = 0.8
)

// judge says whether the scenarios http/… came out as they should. A quick run is no measure of anything.
func (w webReport) judge(quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, row := range w.Rows {
		if row.Act == deciding {
			verdicts = append(verdicts, row.fastEnough(sideHTTP, sideBare, leastOfBare, "40 % of bare SQL", percent), row.soonEnough())
		}
	}
	for _, s := range w.Streams {
		verdicts = append(verdicts, verdict{
			Goal: fmt.Sprintf("http/%s: at most 40 KiB for each of %s idle event streams", s.Ground, grouped(s.Streams)), Judged: true,
			Met: s.each() <= mostPerStream, Measured: fmt.Sprintf("%.1f KiB", s.each()/kib),
		})
	}
	for _, o := range w.Overloads {
		verdicts = append(verdicts, verdict{
			Goal:   fmt.Sprintf("http/%s: at least 80 %% of the starts it can do when asked for %d times as many, and nothing but refusals beside", o.Ground, overloadBy),
			Judged: o.Capacity > 0, Met: o.goodput() >= leastGoodput && o.Failed == 0, Measured: fmt.Sprintf("%s, %d failed", percent(o.goodput(), true), o.Failed),
		})
	}
	return verdicts
}

// soonEnough: 99 of 100 decisions over HTTP are done soon.
func (r holdRow) soonEnough() verdict {
	side, ok := r.Sides[sideHTTP]
	return verdict{
		Goal: fmt.Sprintf("%s, %s: p99 at most 20 ms", r.Name, r.Act), Judged: ok, Met: side.P99 <= float64(mostP99), Measured: millis(side.P99) + " ms",
	}
}

func (w webReport) markdown(out *strings.Builder) {
	if len(w.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\nThe server, on %s; %d rounds. A cell is operations per second; p50 / p99 in ms.\n\n", strings.Join(w.Databases, " and "), w.Rounds)
	out.WriteString("| connections | act | over HTTP | the executor alone | bare SQL | HTTP of executor | HTTP of bare |\n|---|---|--:|--:|--:|--:|--:|\n")
	for _, row := range w.Rows {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", row.Name, row.Act, row.pace(sideHTTP), row.pace(sideOurs), row.pace(sideBare),
			percent(row.ratio(sideHTTP, sideOurs)), percent(row.ratio(sideHTTP, sideBare)))
	}
	out.WriteString("\n| idle event streams | how many | resident before → with them | heap and stacks | each |\n|---|--:|--:|--:|--:|\n")
	for _, s := range w.Streams {
		fmt.Fprintf(out, "| %s | %s | %s → %s | %s → %s | %.1f KiB |\n", s.Ground, grouped(s.Streams), mebibytes(s.Resident[0]), mebibytes(s.Resident[1]),
			mebibytes(s.Heap[0]), mebibytes(s.Heap[1]), s.each()/kib)
	}
	out.WriteString("\n| too much | starts it can do | asked for | done | refused | failed | after | goodput |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, o := range w.Overloads {
		fmt.Fprintf(out, "| %s | %.0f/s | %.0f/s | %d | %d | %d %s | %.1f s | %s |\n", o.Ground, o.Capacity, o.Asked, o.Good, o.Refused, o.Failed, o.Worst, o.Lasted.Seconds(),
			percent(o.goodput(), true))
	}
}

// pace is a cell without CPU times: those of the server's process are not seen from here.
func (r holdRow) pace(side string) string {
	s, ok := r.Sides[side]
	if !ok {
		return none
	}
	return fmt.Sprintf("%.0f/s; %s / %s", s.Median, millis(s.P50), millis(s.P99))
}
