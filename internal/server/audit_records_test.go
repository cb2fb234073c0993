package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

const recordsPath = "/api/v1/audit/records"

// A log is paged from its end to its beginning, and no record is left out or repeated.
func TestAudit_RecordsAreNewestFirst(t *testing.T) {
	s, kept := openSigning(t, nil)
	for n := range 3 {
		s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":"demo-%d","input":{"topic":"tea"}}`, n))
	}
	head, err := kept.AuditHead(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	next, want := int64(0), head.Seq
	for {
		page := decode[api.AuditRecords](t, s.call("auditor@acme", "GET", fmt.Sprintf("%s?limit=4&before=%d", recordsPath, next), ""))
		for _, r := range page.Items {
			if r.Seq != want || r.Kind == "" || r.Time.IsZero() || r.Actor == "" || len(r.Body) == 0 {
				t.Errorf("%+v, want record %d", r, want)
			}
			want--
		}
		if next = page.Next; next == 0 {
			break
		}
	}
	if want != 0 {
		t.Errorf("%d records are missing", want)
	}
	if others := decode[api.AuditRecords](t, s.call("auditor@other", "GET", recordsPath, "")); len(others.Items) != 0 || others.Next != 0 {
		t.Errorf("I8: %+v", others)
	}
	if got := s.call("approver@acme", "GET", recordsPath, ""); got.status != 403 {
		t.Errorf("an approver: %d", got.status)
	}
}

func TestAudit_RecordsAreFiltered(t *testing.T) {
	s, _ := openSigning(t, nil)
	s.chat("agent@acme", startDemo)
	all := decode[api.AuditRecords](t, s.call("auditor@acme", "GET", recordsPath, "")).Items
	var asked api.AuditRecord
	for _, r := range all {
		if r.Kind == "request.asked" {
			asked = r
		}
	}
	at := func(r api.AuditRecord) string {
		return url.QueryEscape(r.Time.Format("2006-01-02T15:04:05.999999999Z07:00"))
	}
	for filter, want := range map[string]func(api.AuditRecord) bool{
		"kind=request.asked":                    func(r api.AuditRecord) bool { return r.Kind == "request.asked" },
		"actor=" + url.QueryEscape(asked.Actor): func(r api.AuditRecord) bool { return r.Actor == asked.Actor },
		"request=" + asked.Request:              func(r api.AuditRecord) bool { return r.Request == asked.Request },
		"q=REQUEST.ASK":                         func(r api.AuditRecord) bool { return r.Kind == "request.asked" },
		"q=nothing-like-this":                   func(api.AuditRecord) bool { return false },
		"since=" + at(asked):                    func(r api.AuditRecord) bool { return !r.Time.Before(asked.Time) },
		"until=" + at(asked):                    func(r api.AuditRecord) bool { return r.Time.Before(asked.Time) },
	} {
		got := decode[api.AuditRecords](t, s.call("auditor@acme", "GET", recordsPath+"?"+filter, ""))
		var seqs, wanted []int64
		for _, r := range got.Items {
			seqs = append(seqs, r.Seq)
		}
		for _, r := range all {
			if want(r) {
				wanted = append(wanted, r.Seq)
			}
		}
		if fmt.Sprint(seqs) != fmt.Sprint(wanted) || got.Next != 0 {
			t.Errorf("%s: records %v, want %v; next is %d", filter, seqs, wanted, got.Next)
		}
	}
}

// A search that finds nothing stops after a number of records, says so, and can be continued.
func TestAudit_SearchIsBoundedAndContinues(t *testing.T) {
	s, kept := openSigning(t, nil)
	s.chat("agent@acme", startDemo)
	before, err := kept.AuditHead(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	line, err := audit.NewLine("acme", audit.Actor{Principal: "bot", Kind: audit.ActorAgent}, audit.Location{Run: "r"}, audit.RunParked{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range executor.MaxAuditScan / 500 {
		batch := make([][]byte, 500)
		for i := range batch {
			batch[i] = line
		}
		if err := kept.CommitWrites(t.Context(), "acme", store.Writes{Audit: batch}); err != nil {
			t.Fatal(err)
		}
	}
	first := decode[api.AuditRecords](t, s.call("auditor@acme", "GET", recordsPath+"?kind=request.asked", ""))
	if len(first.Items) != 0 || first.Scanned != executor.MaxAuditScan || first.Next != before.Seq+1 {
		t.Fatalf("%d records, scanned %d, next %d, want %d", len(first.Items), first.Scanned, first.Next, before.Seq+1)
	}
	rest := decode[api.AuditRecords](t, s.call("auditor@acme", "GET", fmt.Sprintf("%s?kind=request.asked&before=%d", recordsPath, first.Next), ""))
	if len(rest.Items) != 1 || rest.Next != 0 || rest.Scanned != int(before.Seq) {
		t.Errorf("%+v", rest)
	}
}

// The records about a request are those of the log, byte for byte.
func TestAudit_RecordsAboutARequestAreAsStored(t *testing.T) {
	s, _ := openSigning(t, nil)
	s.chat("agent@acme", startDemo)
	asked := decode[api.AuditRecords](t, s.call("auditor@acme", "GET", recordsPath+"?kind=request.asked", "")).Items[0]
	got := s.call("auditor@acme", "GET", "/api/v1/audit/requests/"+asked.Request, "")
	var want strings.Builder
	for line := range strings.Lines(s.call("auditor@acme", "GET", "/api/v1/audit", "").body) {
		if strings.Contains(line, `"interrupt":"`+asked.Request+`"`) {
			want.WriteString(line)
		}
	}
	if got.status != 200 || got.body != want.String() || want.Len() == 0 {
		t.Errorf("%d %s\nwant %s", got.status, got.body, want.String())
	}
	for token, id := range map[string]string{"auditor@other": asked.Request, "auditor@acme": "unknown"} {
		if got := s.call(token, "GET", "/api/v1/audit/requests/"+id, ""); got.status != 404 || strings.Contains(got.body, id) {
			t.Errorf("%s %s: %d %s", token, id, got.status, got.body)
		}
	}
}

// A proof is checked offline with the public key alone.
func TestAudit_RecordIsVerifiedAndProven(t *testing.T) {
	key := audit.NewKey()
	s, kept := openSigning(t, key)
	s.chat("agent@acme", startDemo)
	if got := s.call("auditor@acme", "GET", recordsPath+"/1/proof", ""); got.status != 404 {
		t.Errorf("before a checkpoint: %d %s", got.status, got.body)
	}
	signed, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(kept), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	report := decode[api.AuditVerification](t, s.call("auditor@acme", "GET", "/api/v1/audit/verification", ""))
	if report.Problem != nil || report.Signed != signed.Size || report.Records != signed.Size || report.Checkpoints != 1 {
		t.Errorf("%+v", report)
	}
	trust, err := key.Trust(signed.Origin)
	if err != nil {
		t.Fatal(err)
	}
	got := s.call("auditor@acme", "GET", recordsPath+"/2/proof", "")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	proven, err := audit.CheckProof([]byte(got.body), trust, io.Discard)
	if err != nil || proven.Seq != 2 || proven.Account != "acme" {
		t.Errorf("%+v: %v", proven, err)
	}
	for token, seq := range map[string]int{"auditor@other": 2, "auditor@acme": 999} {
		if got := s.call(token, "GET", fmt.Sprintf("%s/%d/proof", recordsPath, seq), ""); got.status != 404 {
			t.Errorf("%s %d: %d", token, seq, got.status)
		}
	}
	if empty := decode[api.AuditVerification](t, s.call("auditor@other", "GET", "/api/v1/audit/verification", "")); empty.Records != 0 || empty.Problem != nil {
		t.Errorf("an account without records: %+v", empty)
	}
}

// editingStore returns a changed record.
type editingStore struct {
	store.Store
	seq int64
}

func (s *editingStore) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	lines, err := s.Store.AuditLines(ctx, account, after, limit)
	for i, line := range lines {
		if line.Seq == s.seq {
			lines[i].Raw = bytes.Replace(line.Raw, []byte(`"kind":"`), []byte(`"kind":"x`), 1)
		}
	}
	return lines, err
}

func TestAudit_VerificationNamesTheProblem(t *testing.T) {
	kept := &editingStore{Store: memory.NewStore(nil)}
	s := openWith(t, nil, func(c *executor.Config) { c.Store = kept })
	s.chat("agent@acme", startDemo)
	if report := decode[api.AuditVerification](t, s.call("auditor@acme", "GET", "/api/v1/audit/verification", "")); report.Problem != nil {
		t.Fatalf("%+v", report.Problem)
	}
	kept.seq = 2
	report := decode[api.AuditVerification](t, s.call("auditor@acme", "GET", "/api/v1/audit/verification", ""))
	if p := report.Problem; p == nil || p.Fault != string(audit.FaultEdited) || p.Seq != 2 {
		t.Errorf("%+v", report)
	}
}
