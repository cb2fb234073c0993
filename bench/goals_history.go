package main

import (
	"fmt"
	"strings"
)

// maxHistoryMemory is the maximum memory of a process during a report of any size.
const maxHistoryMemory = 256 * mib

// judgeHistory judges reports over many decisions. Times of a quick run are not judged.
func judgeHistory(found []historyResult, quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, r := range found {
		verdicts = append(verdicts, verdict{
			Goal:   fmt.Sprintf("%s: a report over %s decisions takes at most 256 MiB of memory", r.Name, grouped(r.Decisions)),
			Judged: true, Met: r.Peak-r.Idle <= maxHistoryMemory, Measured: mebibytes(r.Peak - r.Idle),
		})
		v := verdict{Goal: fmt.Sprintf("%s: CPU of a report over %s decisions no worse than linear (×10 of a tenth)", r.Name, grouped(r.Decisions))}
		if r.CPUTenth > 0 {
			v.growth(float64(r.CPUTenth), float64(r.CPU), 10)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func (r *report) history(out *strings.Builder) {
	if len(r.History) == 0 {
		return
	}
	out.WriteString("\n| report over | database | duration | of a tenth | CPU | of a tenth | memory before → peak | disk |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, h := range r.History {
		fmt.Fprintf(out, "| `%s` %s decisions | %s | %.1f s | %.1f s | %.1f s | %.1f s | %s → %s | %s |\n", h.Name, grouped(h.Decisions), h.Database,
			h.Took.Seconds(), h.TookTenth.Seconds(), h.CPU.Seconds(), h.CPUTenth.Seconds(), mebibytes(h.Idle), mebibytes(h.Peak), mebibytes(h.Bytes))
	}
}
