package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// pagedStore counts the papers that are asked for at once, and ends a report that does not get on.
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

// A report is over everything that there is, and never has all of it in memory.
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
		t.Errorf("%+v, %v", report.All, err)
	}
	if s.most > 250 {
		t.Errorf("%d papers at once", s.most)
	}
}

// At a gate people say yes or no, though it is an answer to the run: whoever refuses says no in the figures. It was a yes.
func TestAnalytics_ANoAtAGateIsANo(t *testing.T) {
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
	if err != nil || report.All.Answered != 4 || len(report.People) != 1 || report.People[0].Votes != 4 || report.People[0].Approvals != 25 {
		t.Errorf("%+v, %+v, %v", report.All, report.People, err)
	}
}

// What was forgotten cannot be counted, and a report that looks further back says so: it looked as if nothing had been asked in that time but what is still open.
func TestAnalytics_SaysSinceWhenEverythingIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		retention, since time.Duration
		says             bool
	}{
		"nothing is forgotten":                {0, 720 * time.Hour, false},
		"it looks back to before":             {24 * time.Hour, 720 * time.Hour, true},
		"it looks at what is certainly there": {24 * time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := new(dropper).executor(t, memory.NewStore(nil), func(config *executor.Config) { config.Retention = c.retention })
			report, err := e.Analytics(t.Context(), "acme", analytics.Query{Since: time.Now().Add(-c.since)})
			if err != nil || (report.RetainedSince != nil) != c.says {
				t.Fatalf("%v, %v", report.RetainedSince, err)
			}
			if c.says && report.Until.Sub(*report.RetainedSince) != c.retention {
				t.Errorf("since %s, until %s", report.RetainedSince, report.Until)
			}
		})
	}
}
