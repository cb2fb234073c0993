package admin

import (
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/internal/audit/reconcile"
)

// Findings that no longer exist are not kept in memory. A finding that still exists is not logged
// again.
func TestI15_FindingsAreRememberedWhileTheyAreFound(t *testing.T) {
	var told findingLog
	stays := reconcile.Finding{Code: reconcile.FindingRunNotApproved, Run: "stays", Text: "for 1 h"}
	for n := range 1000 {
		goes := reconcile.Finding{Code: reconcile.FindingRunNotApproved, Run: fmt.Sprint("run-", n)}
		stays.Text = fmt.Sprintf("for %d h", n)
		want := 1
		if n == 0 {
			want = 2
		}
		if news := told.newFindings("acme", []reconcile.Finding{stays, goes}); len(news) != want {
			t.Fatalf("pass %d logs %+v", n, news)
		}
	}
	if got := len(told.logged["acme"]); got != 2 {
		t.Errorf("%d findings are remembered", got)
	}
	if news := told.newFindings("other", []reconcile.Finding{stays}); len(news) != 1 {
		t.Errorf("findings of another account: %+v", news)
	}
	if told.newFindings("acme", nil); len(told.logged) != 1 {
		t.Errorf("accounts without findings are remembered: %v", told.logged)
	}
	if news := told.newFindings("acme", []reconcile.Finding{stays}); len(news) != 1 {
		t.Errorf("a finding that occurs again: %+v", news)
	}
}
