package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
)

// pagedStore records the largest page of documents, and fails a report that makes no progress.
type pagedStore struct {
	store.Store
	most, pages int
}

func (p *pagedStore) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error) {
	if p.pages++; p.pages > 100 {
		return nil, context.DeadlineExceeded
	}
	papers, err := p.Store.Documents(ctx, account, kind, filter)
	p.most = max(p.most, len(papers))
	return papers, err
}

// A report covers all documents, but never holds all of them in memory.
func TestAnalytics_ReadsPageByPage(t *testing.T) {
	const decisions = 1001
	s := &pagedStore{Store: memory.NewStore(nil)}
	at := time.Now().Add(-time.Hour).UnixMilli()
	var papers store.Writes
	for n := range decisions {
		id := fmt.Sprintf("int_%04d", n)
		for kind, facts := range map[store.DocumentKind]any{
			store.RequestDocument: analytics.RequestIndex{Kind: "approval", Outcome: "approve", By: "ann", Created: at, Decided: at + 1},
			"vote":                analytics.VoteIndex{Request: id, Actor: "ann", Verb: "approve", Created: at, At: at + 1},
		} {
			data, err := json.Marshal(facts)
			if err != nil {
				t.Fatal(err)
			}
			papers.Documents = append(papers.Documents, store.DocumentChange{Kind: kind, ID: id, Index: data})
		}
	}
	if err := s.CommitWrites(t.Context(), "acme", papers); err != nil {
		t.Fatal(err)
	}
	e := new(dropper).executor(t, s, func(*executor.Config) {})
	report, err := e.Analytics(t.Context(), "acme", analytics.Query{})
	if err != nil || report.All.Approved != decisions || len(report.People) != 1 || report.People[0].Votes != decisions {
		t.Errorf("report %+v, %v", report.All, err)
	}
	if s.most > 250 {
		t.Errorf("%d documents in one page", s.most)
	}
}

// The answer to a gate is a yes or a no. Regression: a rejection was counted as an approval.
func TestAnalytics_RejectionAtAGateIsCountedAsRejection(t *testing.T) {
	p := single(t, "gates", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		_, err := gate.Kind.Ask(ctx, gate.Question{Gate: "draft"})
		return o, err
	})
	e := executorOf(t, memory.NewStore(nil), p, nil)
	for n, approved := range []bool{false, true, false, false} {
		key := fmt.Sprint("g-", n)
		id := waits(t, began(t, e, key, "inproc:gates", `{"table":"users"}`)).Interrupts[0].ID
		mustRun(t, e, word("ann", key, key, id, fmt.Sprintf(`{"approved":%v,"approvedAt":"2026-01-01T00:00:00Z"}`, approved)))
	}
	report, err := e.Analytics(t.Context(), "acme", analytics.Query{})
	if err != nil || report.All.Approved != 1 || report.All.Rejected != 3 || len(report.People) != 1 || report.People[0].Votes != 4 || report.People[0].Approvals != 25 {
		t.Errorf("all %+v, people %+v, %v", report.All, report.People, err)
	}
}

// Deleted runs cannot be counted. A report that covers an earlier time says since when everything
// is retained.
func TestAnalytics_ReportsRetainedSince(t *testing.T) {
	for name, c := range map[string]struct {
		retention, since time.Duration
		says             bool
	}{
		"no retention":                       {0, 720 * time.Hour, false},
		"window starts before the retention": {24 * time.Hour, 720 * time.Hour, true},
		"window within the retention":        {24 * time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := new(dropper).executor(t, memory.NewStore(nil), func(config *executor.Config) { config.Retention = c.retention })
			report, err := e.Analytics(t.Context(), "acme", analytics.Query{Since: time.Now().Add(-c.since)})
			if err != nil || (report.RetainedSince != nil) != c.says {
				t.Fatalf("retained since %v, %v", report.RetainedSince, err)
			}
			if c.says && report.Until.Sub(*report.RetainedSince) != c.retention {
				t.Errorf("retained since %s, until %s", report.RetainedSince, report.Until)
			}
		})
	}
}
