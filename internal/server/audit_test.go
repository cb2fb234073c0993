package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// openSigning is a site whose audit logs are signed with a key.
func openSigning(t *testing.T, key *audit.Key) (*site, store.Store) {
	t.Helper()
	kept := memory.NewStore(nil)
	return openWith(t, nil, func(c *executor.Config) { c.Store, c.Audit.Key = kept, key }), kept
}

func decode[T any](t *testing.T, a answer) (body T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &body); a.status != 200 || err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return body
}

func TestAudit_AuditorReadsCheckpoints(t *testing.T) {
	key := audit.NewKey()
	s, kept := openSigning(t, key)
	for n := range 3 {
		s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":"demo-%d","input":{"topic":"tea"}}`, n))
		if _, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(kept), "acme", key); err != nil {
			t.Fatal(err)
		}
	}
	first := decode[api.Checkpoints](t, s.call("auditor@acme", "GET", "/api/v1/audit/checkpoints?limit=2", ""))
	rest := decode[api.Checkpoints](t, s.call("auditor@acme", "GET", fmt.Sprint("/api/v1/audit/checkpoints?limit=2&after=", first.Next), ""))
	if len(first.Items) != 2 || len(rest.Items) != 1 || rest.Next != 0 || rest.Items[0].Size <= first.Items[1].Size {
		t.Fatalf("%+v and %+v", first, rest)
	}
	trust, err := audit.NewTrust(first.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(first.Items, rest.Items...) {
		if opened, err := trust.Open([]byte(c.Note)); err != nil || opened.Size != c.Size {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if others := decode[api.Checkpoints](t, s.call("auditor@other", "GET", "/api/v1/audit/checkpoints", "")); len(others.Items) != 0 || others.PublicKey != "" {
		t.Errorf("I8: %+v", others)
	}
}

func TestAudit_FindingsAreComputedOnRequest(t *testing.T) {
	s, kept := openSigning(t, nil)
	s.chat("agent@acme", startDemo)
	agreed := decode[api.Findings](t, s.call("auditor@acme", "GET", "/api/v1/audit/findings", ""))
	if len(agreed.Items) != 0 || len(agreed.Count) != len(reconcile.FindingCodes) {
		t.Fatalf("%+v", agreed)
	}
	lease, err := kept.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Provider: "inproc", Graph: "content-review", Owner: "mallory", Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := kept.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "x", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{By: "mallory"}}); err != nil {
		t.Fatal(err)
	}
	found := decode[api.Findings](t, s.call("auditor@acme", "GET", "/api/v1/audit/findings", ""))
	if found.Count["run_not_approved"] != 1 || len(found.Items) != 2 || found.Items[0].Severity != "page" || found.Items[0].RunID != "r" {
		t.Errorf("%+v", found)
	}
	if others := decode[api.Findings](t, s.call("auditor@other", "GET", "/api/v1/audit/findings", "")); len(others.Items) != 0 {
		t.Errorf("I8: %+v", others)
	}
}

// Open requests are counted by the kinds of this program; other kinds are names that clients chose.
func TestMetrics_CountOpenRequests(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	s.call("agent@other", "POST", "/api/v1/requests", `{"stateKey":"x","kind":"own-kind","data":{}}`)
	text := s.metrics()
	for _, want := range []string{
		`fermata_requests_open{kind="content-review"} 1`, `fermata_requests_open{kind="other"} 1`, `fermata_requests_open{kind="effect-in-doubt"} 0`,
		`fermata_request_oldest_seconds{kind="effect-in-doubt"} 0`, `fermata_notice_overdue_seconds 0`,
		`fermata_audit_findings{kind="run_not_approved",severity="page"} 0`, `fermata_audit_findings{kind="approved_not_run",severity="warn"} 0`,
		`fermata_audit_findings{kind="digest_gone",severity="info"} 0`,
		`fermata_audit_invalid{by="sign"} 0`, `fermata_audit_check_timestamp_seconds{by="check"} 0`,
		`fermata_requests_expired_total{reason="stale"} 0`, `fermata_notices_failed_total 0`, `fermata_errors_total{where="store_metrics"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}

// Findings are counted by severity: an approval without effect because its run was cancelled is
// reported, but pages no operator.
func TestMetrics_FindingsHaveSeverity(t *testing.T) {
	t.Parallel() // it waits for the check
	kept := memory.NewStore(nil)
	s := openWith(t, nil, func(c *executor.Config) { c.Store, c.Audit.CheckEvery = kept, time.Hour })
	lease, err := kept.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Provider: "inproc", Graph: "content-review", Owner: "mallory", Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := kept.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "x", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{By: "mallory"}}); err != nil {
		t.Fatal(err)
	}
	s.chat("agent@acme", startDemo) // the check covers accounts that have a log
	s.e.StartWorkers()
	s.until("it is counted", func() bool {
		return strings.Contains(s.metrics(), `fermata_audit_findings{kind="run_not_approved",severity="page"} 1`+"\n")
	})
	if text := s.metrics(); !strings.Contains(text, `fermata_audit_findings{kind="run_not_approved",severity="info"} 0`+"\n") {
		t.Errorf("it is also counted elsewhere: %s", text)
	}
}

// A request that is not decided in time is stale, and counted as such.
func TestMetrics_CountExpiredRequests(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.RequestTimeout = time.Millisecond })
	s.e.StartWorkers()
	s.chat("agent@acme", startDemo)
	s.until("it expires", func() bool {
		return strings.Contains(s.metrics(), `fermata_requests_expired_total{reason="stale"} 1`+"\n")
	})
}
