package main

import (
	"fmt"
	"strings"
	"time"
)

// The goals of the server.
const (
	minOfRawSQL   = 0.4
	maxP99        = 20 * time.Millisecond
	maxPerStream  = 40 * kib
	minGoodput    = 0.8
	maxSlowdown   = 1.2
	minNoise      = 0.5
	maxRejectTime = 50 * time.Millisecond
	maxEventDelay = 200 * time.Millisecond

	maxRecoveryTime = 5 * time.Second
)

// judge judges the scenarios http/…. A quick run is not judged.
func (w webReport) judge(quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, row := range w.Rows {
		if row.Operation == opDecide {
			verdicts = append(verdicts, row.fastEnough(sideHTTP, sideRawSQL, minOfRawSQL, "40 % of raw SQL", percent))
		}
	}
	for _, p := range w.Paced {
		verdicts = append(verdicts, p.judgeLatency())
	}
	for _, s := range w.Streams {
		verdicts = append(verdicts, verdict{
			Goal: fmt.Sprintf("http/%s: at most 40 KiB for each of %s idle event streams", s.Database, grouped(s.Streams)), Judged: true,
			Met: s.each() <= maxPerStream, Measured: fmt.Sprintf("%.1f KiB", s.each()/kib),
		}, verdict{
			Goal:   fmt.Sprintf("http/%s: with %s streams, 99 %% of followers of a run receive a decision within 200 ms", s.Database, grouped(s.Streams)),
			Judged: s.DelayP99 > 0, Met: s.DelayP99 <= float64(maxEventDelay), Measured: millis(s.DelayP99) + " ms",
		})
	}
	for _, o := range w.Overloads {
		sum := o.sum()
		verdicts = append(verdicts, verdict{
			Goal:   fmt.Sprintf("http/%s: at least 80 %% of its capacity in starts at %d times that load, and no failures other than rejections", o.Database, overloadFactor),
			Judged: sum.Capacity > 0, Met: o.goodput() >= minGoodput && sum.Failed == 0, Measured: fmt.Sprintf("%s, %d failed", percent(o.goodput(), true), sum.Failed),
		}, verdict{
			Goal:   fmt.Sprintf("http/%s: 99 %% of rejections within 50 ms", o.Database),
			Judged: sum.Refused > 0, Met: o.RefusedP99 <= float64(maxRejectTime), Measured: millis(o.RefusedP99) + " ms",
		}, verdict{
			Goal:   fmt.Sprintf("http/%s: a later request is served within 5 s", o.Database),
			Judged: o.recoveryTime() > 0, Met: o.recoveryTime() <= maxRecoveryTime, Measured: millis(float64(o.recoveryTime())) + " ms",
		})
	}
	for _, n := range w.Noisy {
		verdicts = append(verdicts, n.judgeIsolation())
	}
	return verdicts
}

// judgeIsolation: a noisy tenant does not slow down a quiet one, and is not locked out completely.
func (r noisyResult) judgeIsolation() verdict {
	ratio, known := r.ratio()
	sum := r.Noise.sum()
	return verdict{
		Goal:     fmt.Sprintf("%s: p99 of the quiet tenant at most 1.2 × that alone, none rejected, and the noisy tenant gets at least half of the capacity", noisyName(r.Database)),
		Judged:   known && sum.Capacity > 0,
		Met:      ratio <= maxSlowdown && r.Refused == 0 && r.Noise.goodput() >= minNoise && sum.Failed == 0,
		Measured: fmt.Sprintf("%s, %d rejected, %s, %d failed", times(ratio, known), r.Refused, percent(r.Noise.goodput(), sum.Capacity > 0), sum.Failed),
	}
}

// judgeLatency: 99 % of decisions over HTTP are fast at the required rate.
func (p pacedResult) judgeLatency() verdict {
	side, ok := p.Sides[sideHTTP]
	return verdict{
		Goal: fmt.Sprintf("%s: p99 of a decision at most 20 ms at 40 %% of raw SQL's rate, and none rejected", pacedName(p.Database)), Judged: ok,
		Met: side.P99 <= float64(maxP99) && p.Refused == 0, Measured: fmt.Sprintf("%s ms, %d rejected", millis(side.P99), p.Refused),
	}
}

func (w webReport) markdown(out *strings.Builder) {
	if len(w.Rows)+len(w.Noisy) == 0 {
		return
	}
	fmt.Fprintf(out, "\nThe server, on %s; %d rounds. A cell is operations per second; p50 / p99 in ms.\n", strings.Join(w.Databases, " and "), w.Rounds)
	if len(w.Rows) > 0 {
		w.rowsMarkdown(out)
	}
	w.noisyMarkdown(out)
}

// rowsMarkdown writes all rows except those of the noisy tenant.
func (w webReport) rowsMarkdown(out *strings.Builder) {
	out.WriteString("\n| connections | operation | over HTTP | executor alone | raw SQL | HTTP / executor | HTTP / raw SQL |\n|---|---|--:|--:|--:|--:|--:|\n")
	for _, row := range w.Rows {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", row.Name, row.Operation, row.pace(sideHTTP), row.pace(sideOurs), row.pace(sideRawSQL),
			percent(row.ratio(sideHTTP, sideOurs)), percent(row.ratio(sideHTTP, sideRawSQL)))
	}
	w.pacedMarkdown(out)
	out.WriteString("\n| idle event streams | count | resident before → with them | heap and stacks | each | decision received after, p50 / p99 |\n|---|--:|--:|--:|--:|--:|\n")
	for _, s := range w.Streams {
		fmt.Fprintf(out, "| %s | %s | %s → %s | %s → %s | %.1f KiB | %s / %s ms |\n", s.Database, grouped(s.Streams), mebibytes(s.Resident[0]), mebibytes(s.Resident[1]),
			mebibytes(s.Heap[0]), mebibytes(s.Heap[1]), s.each()/kib, millis(s.DelayP50), millis(s.DelayP99))
	}
	out.WriteString("\n| overload | capacity in starts | offered | done | rejected | failed | goodput | p50 of those done | p99 of a rejection | served again after | CPU per start, at capacity → overloaded |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, o := range w.Overloads {
		sum := o.sum()
		fmt.Fprintf(out, "| %s | %.0f/s | %.0f/s | %d | %d | %d %s | %s | %s ms | %s ms | %s ms | %s → %s ms |\n", o.Database, sum.Capacity, sum.Offered, sum.Good, sum.Refused, sum.Failed, sum.Worst,
			percent(o.goodput(), true), millis(o.GoodP50), millis(o.RefusedP99), millis(float64(o.recoveryTime())), millis(float64(sum.BaselineCPU)), millis(float64(sum.CPU)))
	}
}

// pace formats a cell without CPU times: those of the server's process are not measured here.
func (r holdRow) pace(side string) string {
	s, ok := r.Sides[side]
	if !ok {
		return noValue
	}
	return fmt.Sprintf("%.0f/s; %s / %s", s.Median, millis(s.P50), millis(s.P99))
}
