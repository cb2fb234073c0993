package main

import (
	"testing"
	"time"
)

func TestJudge_AgainGoals(t *testing.T) {
	const (
		died    = againName + ": what a dead process was at is finished within its lease and 1 s"
		crashed = againName + ": a decision is done within 5 s after the database is back"
		gone    = againName + ": a decision is done within 2 s after the network is back"
	)
	good := againResult{Name: againName, Lease: 15 * time.Second, TakenOver: 16 * time.Second, Restarted: 5 * time.Second, Healed: 2 * time.Second}
	wantVerdicts(t, judgeAgain([]againResult{good}, false), map[string]string{died: "met", crashed: "met", gone: "met"})
	bad := againResult{Name: againName, Lease: 15 * time.Second, TakenOver: 16*time.Second + 1, Restarted: 5*time.Second + 1, Healed: 2*time.Second + 1}
	wantVerdicts(t, judgeAgain([]againResult{bad}, false), map[string]string{died: "**NOT met**", crashed: "**NOT met**", gone: "**NOT met**"})
	if verdicts := judgeAgain([]againResult{bad}, true); len(verdicts) != 0 {
		t.Errorf("a quick run is judged: %v", verdicts)
	}
}
