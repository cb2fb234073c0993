package main

import (
	"fmt"
	"strings"
	"time"
)

// maxParkedMemory is by how much the resident memory may exceed that of a process with an empty store, whatever the number of runs.
const maxParkedMemory = 50 * mib

// The goals of a store with very many runs. A sweep may take so long for each question, which is a minute for a hundred thousand.
const (
	maxPageTime      = 50 * time.Millisecond
	maxStartTime     = 2 * time.Second
	maxSweepTime     = 600 * time.Microsecond
	maxSweepSlowdown = 2
)

// judgeParked says whether runs that only wait cost nothing. Times of a quick run mean nothing; memory does.
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

// lookedAt says whether very many runs are no trouble to those who begin, look at them, or clear away what nobody decided.
func (r parkedResult) judgeAtScale() []verdict {
	page, each := max(r.Inbox.FirstP99, r.Inbox.DeepP99), r.Sweep.Swept/time.Duration(max(1, r.Sweep.Requests))
	ratio := r.Sweep.P99 / max(1, r.ManyP99)
	return []verdict{{
		Goal:   fmt.Sprintf("%s: p99 of a page of the inbox at most 50 ms with %s parked runs", r.Name, grouped(r.Many)),
		Judged: r.Inbox.Pages > 0, Met: page <= float64(maxPageTime), Measured: millis(page) + " ms",
	}, {
		Goal:   fmt.Sprintf("%s: a process that begins with %s parked runs is there within 2 s", r.Name, grouped(r.Many)),
		Judged: r.Began > 0, Met: r.Began <= maxStartTime, Measured: millis(float64(r.Began)) + " ms",
	}, {
		Goal:   fmt.Sprintf("%s: %s questions expire at a rate of 100,000 in 60 s", r.Name, grouped(r.Sweep.Requests)),
		Judged: r.Sweep.Requests > 0, Met: each <= maxSweepTime, Measured: fmt.Sprintf("%.1f s", r.Sweep.Swept.Seconds()),
	}, {
		Goal:   r.Name + ": p99 of a decision while they expire at most 2 × that before",
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
	out.WriteString("\n| with all of them | there after | first page of the inbox, p50 / p99 | one from the middle | questions that expire at once | all have expired after " +
		"| and their runs gone on | decision p50 / p99 meanwhile |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range r.Parked {
		fmt.Fprintf(out, "| `%s` | %s ms | %s / %s ms | %s / %s ms | %s | %.1f s | %.1f s | %s / %s ms (%d decisions) |\n", p.Name, millis(float64(p.Began)),
			millis(p.Inbox.FirstP50), millis(p.Inbox.FirstP99), millis(p.Inbox.DeepP50), millis(p.Inbox.DeepP99), grouped(p.Sweep.Requests),
			p.Sweep.Swept.Seconds(), p.Sweep.Resumed.Seconds(), millis(p.Sweep.P50), millis(p.Sweep.P99), p.Sweep.Decisions)
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/mib) }
