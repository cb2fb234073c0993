package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/cli"
)

// statsServer is a server with a report, which records the query.
func statsServer(t *testing.T, report analytics.Report) (url string, query *string) {
	t.Helper()
	query = new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*query = r.URL.Path + "?" + r.URL.RawQuery
		if err := json.NewEncoder(w).Encode(report); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, query
}

var someReport = analytics.Report{
	Since: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC),
	All:    analytics.Row{Requests: 31, Open: 1, Approved: 28, Rejected: 2, ToDecide: analytics.Percentiles{N: 30, P50: 75, P90: 7260}, OldestOpen: 45000},
	ByKind: []analytics.Row{{Name: "approval", Requests: 30}}, ByRule: []analytics.Row{{Name: "refunds\nRULE\tx", Requests: 30}},
	Channels: []analytics.VoteStats{{Name: "api", Votes: 30, Share: 100}},
	People: []analytics.VoteStats{
		{Name: "bob", Votes: 25, Approvals: 100, TooFast: 60, MaxPerMinute: 9, Unviewed: 3, Suspect: true}, {Name: "eve", Votes: 5, Approvals: 80, Reading: analytics.Percentiles{N: 5, P50: 42}},
	},
	Proposals: []analytics.Proposal{{Text: "refund was approved 60 times"}}, Hidden: 3, RetainedSince: new(time.Date(2026, 11, 8, 0, 0, 0, 0, time.UTC)),
}

func TestStats_PrintsTables(t *testing.T) {
	url, query := statsServer(t, someReport)
	code, out, errOut := call(t, "stats", "--days", "14", "--zone", "Europe/Zurich", "--url", url, "--token", "x")
	if code != cli.ExitOK || *query != "/api/v1/analytics?days=14&zone=Europe%2FZurich" {
		t.Fatal(code, errOut, *query)
	}
	for _, want := range []string{
		"31 requests from 2026-11-01 to 2026-11-15", "requests closed before 2026-11-08 00:00:00", "KIND … REQUESTS … OPEN", "approval … 30", "all … 31 … 1 … 28 … 1m15s … 2h1m … 13h", "RULE",
		"PERSON … VOTES", "bob … 25 … 100% … 3 … 60% … 9 … SUSPECT", "eve … 5 … 80% … 42s", "CHANNEL", "not listed: 3", "PROPOSALS", "refund was approved 60 times",
	} {
		if !shows(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Count(out, "SUSPECT") != 1 || strings.Count(out, "\nRULE") != 1 || strings.Contains(out, "ACTION") || strings.Contains(out, "EXPIRED") {
		t.Errorf("marked, forged or empty:\n%s", out)
	}
}

func TestStats_EmptyReport(t *testing.T) {
	url, _ := statsServer(t, analytics.Report{})
	if code, out, _ := call(t, "stats", "--url", url, "--token", "x"); code != cli.ExitOK || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "0 requests") {
		t.Errorf("%d %s", code, out)
	}
	for _, wrong := range [][]string{{"--days", "0"}, {"--days", "many"}, {"--zone", "Nowhere"}} {
		if code, out, _ := call(t, append([]string{"stats", "--url", url, "--token", "x"}, wrong...)...); code != cli.ExitUsage {
			t.Errorf("%q: %d %s", wrong, code, out)
		}
	}
}

// Approvers see their own name, and the number of others.
func TestStats_NamesAreForAdminsOnly(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	o.as("bob", "approve", id)
	o.as("eve", "approve", id)
	if code, out, errOut := o.as("aud", "stats"); code != cli.ExitOK || !shows(out, "bob … 1") || !shows(out, "eve … 1") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, _ := o.as("bob", "stats"); code != cli.ExitOK || !shows(out, "bob … 1") || shows(out, "eve … 1") || !strings.Contains(out, "not listed: 1") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, _ := o.as("bot", "stats"); code != cli.ExitRejected {
		t.Errorf("an agent: %d", code)
	}
}
