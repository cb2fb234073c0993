package main

import (
	"testing"
	"time"
)

func TestJudgeInbox(t *testing.T) {
	r := inboxReads{Name: "inbox/sqlite", Rows: []inboxRow{
		{Operation: "list", Ours: 3 * time.Millisecond, Bare: time.Millisecond}, {Operation: "search", Ours: 4 * time.Millisecond, Bare: time.Millisecond},
		{Operation: "first load of the page", Ours: time.Second, Bare: 1, Bytes: 101 * kib},
	}, Shown: inboxShown{Decisions: 10, P99: 950 * time.Millisecond}}
	wantVerdicts(t, judgeInbox([]inboxReads{r}, false), map[string]string{
		"inbox/sqlite: list takes at most 3 × its bare query":                                "met",
		"inbox/sqlite: search takes at most 3 × its bare query":                              "**NOT met**",
		"inbox/sqlite: the first load has at most 100 KiB over the wire":                     "**NOT met**",
		"inbox/sqlite: 99 % of decisions show in the list of another person within a second": "**NOT met**",
	})
	if verdicts := judgeInbox([]inboxReads{r}, true); len(verdicts) != 0 {
		t.Errorf("a quick run is judged: %v", verdicts)
	}
}
