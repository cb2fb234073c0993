package main

import (
	"io"
	"testing"
	"time"
)

// A report covers every written decision, on both databases: measureHistory fails otherwise.
func TestHistory_ReportCoversAllDecisions(t *testing.T) {
	for _, on := range []string{onSQLite, onPostgres} {
		t.Run(on, func(t *testing.T) {
			found, err := measureHistory(t.Context(), on, 2*minDecided, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if found.Took == 0 || found.TookTenth == 0 || found.Idle == 0 || found.Peak < found.Idle || found.Bytes == 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestJudge_HistoryGoals(t *testing.T) {
	good := historyResult{Name: "history/sqlite", Decisions: 1_000_000, CPU: 13 * time.Second, CPUTenth: time.Second, Idle: 30 * mib, Peak: 286 * mib}
	const memory = "history/sqlite: a report over 1,000,000 decisions takes at most 256 MiB of memory"
	const cpu = "history/sqlite: CPU of a report over 1,000,000 decisions no worse than linear (×10 of a tenth)"
	wantVerdicts(t, judgeHistory([]historyResult{good}, false), map[string]string{memory: "met", cpu: "met"})
	large, slow := good, good
	large.Peak++
	slow.CPU++
	wantVerdicts(t, judgeHistory([]historyResult{large}, false), map[string]string{memory: "**NOT met**", cpu: "met"})
	wantVerdicts(t, judgeHistory([]historyResult{slow}, false), map[string]string{memory: "met", cpu: "**NOT met**"})
	if verdicts := judgeHistory([]historyResult{good}, true); len(verdicts) != 0 {
		t.Errorf("a quick run was judged: %v", verdicts)
	}
}
