package main

import (
	"fmt"
	"strings"
)

// maxTalkHeap is how much the heap may grow from a tenth of the conversations to all.
const maxTalkHeap = 8 * mib

// judgeTalk judges conversations. A quick run is not judged.
func judgeTalk(found []talkResult, quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, r := range found {
		growth := r.Heap - r.HeapTenth
		verdicts = append(verdicts, verdict{
			Goal:   fmt.Sprintf("%s: %s open conversations take at most 8 MiB more than a tenth of them", r.Name, grouped(r.Conversations)),
			Judged: true, Met: growth <= maxTalkHeap, Measured: mebibytes(growth),
		})
	}
	return verdicts
}

func (r *report) talk(out *strings.Builder) {
	if len(r.Talk) == 0 {
		return
	}
	fmt.Fprintf(out, "\n| conversations | open | heap of a tenth → all | reply → next question, p50 / p99 | bare resume, p50 / p99 | ratio of p50 | replies per second, %d callers | bare | ratio | CPU per reply | bare |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", talkCallers)
	for _, t := range r.Talk {
		perReply := func(s talkSide) string { return millis(float64(s.CPU) / float64(max(1, s.Replies))) }
		fmt.Fprintf(out, "| `%s` %s | %s | %s → %s | %s / %s ms | %s / %s ms | %s | %.0f | %.0f | %s | %s ms | %s ms |\n", t.Name, t.Database, grouped(t.Conversations),
			mebibytes(t.HeapTenth), mebibytes(t.Heap), millis(float64(t.Dialog.P50)), millis(float64(t.Dialog.P99)), millis(float64(t.Bare.P50)), millis(float64(t.Bare.P99)),
			times(float64(t.Dialog.P50)/float64(t.Bare.P50), t.Bare.P50 > 0), t.Dialog.rate(), t.Bare.rate(), percent(t.Dialog.rate()/t.Bare.rate(), t.Bare.Replies > 0), perReply(t.Dialog), perReply(t.Bare))
	}
}
