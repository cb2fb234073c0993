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

func (p *pagedStore) Papers(ctx context.Context, account string, kind store.PaperKind, filter store.PaperFilter) ([]store.Paper, error) {
	if p.pages++; p.pages > 100 {
		return nil, context.DeadlineExceeded
	}
	papers, err := p.Store.Papers(ctx, account, kind, filter)
	p.most = max(p.most, len(papers))
	return papers, err
}

// A report is over everything that there is, and never has all of it in memory.
func TestAnalytics_ReadsPageByPage(t *testing.T) {
	const decisions = 1001
	s := &pagedStore{Store: memory.NewRuns(nil)}
	at := time.Now().Add(-time.Hour).UnixMilli()
	var papers store.Beside
	for n := range decisions {
		id := fmt.Sprintf("int_%04d", n)
		for kind, facts := range map[store.PaperKind]any{
			store.RequestPaper: analytics.RequestFacts{Kind: "approval", Outcome: "approve", By: "ann", Created: at, Decided: at + 1},
			"vote":             analytics.VoteFacts{Request: id, Actor: "ann", Verb: "approve", Created: at, At: at + 1},
		} {
			data, err := json.Marshal(facts)
			if err != nil {
				t.Fatal(err)
			}
			papers.Papers = append(papers.Papers, store.PaperChange{Kind: kind, ID: id, Facts: data})
		}
	}
	if err := s.Amend(t.Context(), "acme", papers); err != nil {
		t.Fatal(err)
	}
	e := new(dropper).executor(t, s, func(*executor.Config) {})
	report, err := e.Analytics(t.Context(), "acme", analytics.Query{})
	if err != nil || report.All.Approved != decisions || len(report.People) != 1 || report.People[0].Words != decisions {
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
	e := executorOf(t, memory.NewRuns(nil), p, nil)
	for n, approved := range []bool{false, true, false, false} {
		key := fmt.Sprint("g-", n)
		id := waits(t, began(t, e, key, "inproc:gates", `{"table":"users"}`)).Interrupts[0].ID
		mustRun(t, e, word("ann", key, key, id, fmt.Sprintf(`{"approved":%v,"approvedAt":"2026-01-01T00:00:00Z"}`, approved)))
	}
	report, err := e.Analytics(t.Context(), "acme", analytics.Query{})
	if err != nil || report.All.Answered != 4 || len(report.People) != 1 || report.People[0].Words != 4 || report.People[0].Yes != 25 {
		t.Errorf("%+v, %+v, %v", report.All, report.People, err)
	}
}
