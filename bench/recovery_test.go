package main

import (
	"testing"
	"time"
)

func TestJudge_RecoveryGoals(t *testing.T) {
	const (
		died    = recoveryName + ": the work of a dead process is finished within its lease and 1 s"
		crashed = recoveryName + ": a decision is done within 5 s after the database is back"
		gone    = recoveryName + ": a decision is done within 2 s after the network is back"
	)
	good := recoveryResult{Name: recoveryName, Lease: 15 * time.Second, TakenOver: 16 * time.Second, Restarted: 5 * time.Second, Reconnected: 2 * time.Second}
	wantVerdicts(t, judgeRecovery([]recoveryResult{good}, false), map[string]string{died: "met", crashed: "met", gone: "met"})
	bad := recoveryResult{Name: recoveryName, Lease: 15 * time.Second, TakenOver: 16*time.Second + 1, Restarted: 5*time.Second + 1, Reconnected: 2*time.Second + 1}
	wantVerdicts(t, judgeRecovery([]recoveryResult{bad}, false), map[string]string{died: "**NOT met**", crashed: "**NOT met**", gone: "**NOT met**"})
	if verdicts := judgeRecovery([]recoveryResult{bad}, true); len(verdicts) != 0 {
		t.Errorf("a quick run was judged: %v", verdicts)
	}
}
