package main

import (
	"fmt"
	"strings"
)

// roomForParked is by how much the resident memory may exceed that of a process with an empty store, whatever the number of runs.
const roomForParked = 50 * mib

// judgeParked says whether runs that only wait cost nothing. Times of a quick run mean nothing; memory does.
func judgeParked(found []parkedResult, quick bool) (verdicts []verdict) {
	for _, r := range found {
		v := verdict{Goal: fmt.Sprintf("%s: %s parked runs take at most 50 MiB of memory", r.Name, grouped(r.Many)), Judged: true}
		more := max(r.ManyIdle, r.ManyBusy) - r.EmptyIdle
		v.Met, v.Measured = more <= roomForParked, mebibytes(more)
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
	}
	return verdicts
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
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/mib) }
