package main

import (
	"fmt"
	"strings"
	"time"
)

// maxParkedMemory is how much the resident memory may exceed that of a process with an empty store,
// for any number of runs.
const maxParkedMemory = 50 * mib

// The goals of a store with very many runs. maxSweepTime is per request: a minute for a hundred
// thousand.
const (
	maxPageTime      = 50 * time.Millisecond
	maxStartTime     = 2 * time.Second
	maxSweepTime     = 600 * time.Microsecond
	maxSweepSlowdown = 2
)

// judgeParked judges the cost of waiting runs. Times of a quick run are not judged; memory is.
func judgeParked(found []parkedResult, quick bool) (verdicts []verdict) {
	for _, r := range found {
		v := verdict{Goal: fmt.Sprintf("%s: %s parked runs take at most 50 MiB of memory", r.Name, grouped(r.Many)), Judged: true}
		more := max(r.ManyIdle, r.ManyBusy) - r.EmptyIdle
		v.Met, v.Measured = more <= maxParkedMemory, mebibytes(more)
		verdicts = append(verdicts, v)
		if quick {
			continue
		}
		v = verdict{Goal: fmt.Sprintf("%s: p99 of a decision with %s parked runs at most 2 × that with %s", r.Name, grouped(r.Many), grouped(r.Few))}
		if r.FewP99 > 0 {
			ratio := r.ManyP99 / r.FewP99
			v.Judged, v.Met, v.Measured = true, ratio <= 2, fraction(ratio, true)
		}
		verdicts = append(verdicts, v)
		verdicts = append(verdicts, r.judgeAtScale()...)
	}
	return verdicts
}

// judgeAtScale judges startup, inbox and expiry with very many runs.
func (r parkedResult) judgeAtScale() []verdict {
	page, each := max(r.Inbox.FirstP99, r.Inbox.DeepP99), r.Sweep.Swept/time.Duration(max(1, r.Sweep.Requests))
	ratio := r.Sweep.P99 / max(1, r.ManyP99)
	return []verdict{{
		Goal:   fmt.Sprintf("%s: p99 of an inbox page at most 50 ms with %s parked runs", r.Name, grouped(r.Many)),
		Judged: r.Inbox.Pages > 0, Met: page <= float64(maxPageTime), Measured: millis(page) + " ms",
	}, {
		Goal:   fmt.Sprintf("%s: a process starts within 2 s with %s parked runs", r.Name, grouped(r.Many)),
		Judged: r.Began > 0, Met: r.Began <= maxStartTime, Measured: millis(float64(r.Began)) + " ms",
	}, {
		Goal:   fmt.Sprintf("%s: %s requests expire at a rate of 100,000 in 60 s", r.Name, grouped(r.Sweep.Requests)),
		Judged: r.Sweep.Requests > 0, Met: each <= maxSweepTime, Measured: fmt.Sprintf("%.1f s", r.Sweep.Swept.Seconds()),
	}, {
		Goal:   r.Name + ": p99 of a decision during expiry at most 2 × that before",
		Judged: r.Sweep.Decisions > 0 && r.ManyP99 > 0, Met: ratio <= maxSweepSlowdown, Measured: fraction(ratio, true),
	}}
}

func (r *report) parked(out *strings.Builder) {
	if len(r.Parked) == 0 {
		return
	}
	out.WriteString("\n| parked runs | database | memory, empty store | with all of them, idle | while some are decided " +
		"| decision p50 / p99 with few | with all | disk |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range r.Parked {
		fmt.Fprintf(out, "| `%s` %s | %s | %s | %s | %s | %s / %s ms with %s | %s / %s ms (%d decisions) | %s |\n", p.Name, grouped(p.Many), p.Database,
			mebibytes(p.EmptyIdle), mebibytes(p.ManyIdle), mebibytes(p.ManyBusy), millis(p.FewP50), millis(p.FewP99), grouped(p.Few),
			millis(p.ManyP50), millis(p.ManyP99), p.Decisions, mebibytes(p.Bytes))
	}
	out.WriteString("\n| with all of them | started after | first page of the inbox, p50 / p99 | one from the middle | requests that expire at once | all expired after " +
		"| and their runs resumed | decision p50 / p99 during that |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range r.Parked {
		fmt.Fprintf(out, "| `%s` | %s ms | %s / %s ms | %s / %s ms | %s | %.1f s | %.1f s | %s / %s ms (%d decisions) |\n", p.Name, millis(float64(p.Began)),
			millis(p.Inbox.FirstP50), millis(p.Inbox.FirstP99), millis(p.Inbox.DeepP50), millis(p.Inbox.DeepP99), grouped(p.Sweep.Requests),
			p.Sweep.Swept.Seconds(), p.Sweep.Resumed.Seconds(), millis(p.Sweep.P50), millis(p.Sweep.P99), p.Sweep.Decisions)
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/mib) }
