package main

import (
	"bytes"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// Each required person votes, each vote is an audit record, and the payment is made once.
func TestDesk_EachSideAsksTheRightPeople(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		for side, words := range map[string]int{sideNoRules: 1, sideRules: 1, sideQuorum: 2} {
			d, err := newDeskRunner(t.Context(), db, side)
			if err != nil {
				t.Fatalf("%s: %v", side, err)
			}
			defer d.close()
			if err := d.start(t.Context(), "key-1"); err != nil {
				t.Fatalf("%s: %v", side, err)
			}
			if err := d.decide(t.Context(), "key-1"); err != nil {
				t.Fatalf("%s: %v", side, err)
			}
			votes, err := d.store.Documents(t.Context(), benchAccount, "vote", store.DocumentFilter{})
			if err != nil || len(votes) != words {
				t.Errorf("%s: %d words, %v; want %d", side, len(votes), err, words)
			}
			said := 0
			log, err := d.store.AuditLines(t.Context(), benchAccount, 0, 0)
			for _, line := range log {
				said += bytes.Count(line.Raw, []byte(`"request.decided"`))
			}
			if err != nil || said != words {
				t.Errorf("%s: the log has %d votes, %v; want %d", side, said, err, words)
			}
		}
	})
}

func TestJudge_DeskGoals(t *testing.T) {
	row := func(name string, a operation, rules, quorum float64) holdRow {
		side := func(perSecond float64) holdSide { return holdSide{PerSecond: []float64{perSecond}} }
		return holdRow{Name: name, Operation: a, Sides: map[string]holdSide{sideNoRules: side(300), sideRules: side(rules), sideQuorum: side(quorum)}}
	}
	report := deskReport{holdReport{Rows: []holdRow{
		row("desk/sqlite/1", opStart, 1, 1), // only decisions are judged
		row("desk/sqlite/1", opDecide, 200, 100),
		row("desk/sqlite/4", opDecide, 199, 99),
	}}}
	const rules, quorum = ", decide: at least 2/3 of the executor without rules, with rules and a route", ", decide: at least 1/3 of it with two approvers"
	wantVerdicts(t, report.judge(false), map[string]string{
		"desk/sqlite/1" + rules: "met", "desk/sqlite/1" + quorum: "met",
		"desk/sqlite/4" + rules: "**NOT met**", "desk/sqlite/4" + quorum: "**NOT met**",
	})
	if verdicts := report.judge(false); len(verdicts) != 4 {
		t.Errorf("%d verdicts, want 4", len(verdicts))
	}
	if verdicts := report.judge(true); len(verdicts) != 0 {
		t.Errorf("a quick run was judged: %v", verdicts)
	}
}
