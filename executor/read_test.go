package executor_test

import (
	"context"
	"testing"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// onePage counts the reads of single papers: a page of an inbox would need one for each of its rows.
type onePage struct {
	store.Store
	papers int
}

func (s *onePage) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	s.papers++
	return s.Store.Paper(ctx, account, kind, id)
}

func TestQuestions_APageIsOneRead(t *testing.T) {
	kept := &onePage{Store: memory.NewRuns(nil)}
	e := office(t, kept, new(dropper), nil)
	asked := startAs(t, e, "req").Interrupts[0].ID
	if _, err := says(t, e, "bob", "r1", yes); err != nil {
		t.Fatal(err)
	}
	kept.papers = 0
	list, err := e.Questions(t.Context(), "acme", store.AskedFilter{State: store.Pending})
	if err != nil || len(list) != 1 || list[0].ID != asked {
		t.Fatalf("the inbox has %+v, %v", list, err)
	}
	if r := list[0].Request; r == nil || r.State != desk.Open || len(r.Votes) != 1 || r.Votes[0].By != "bob" {
		t.Errorf("the request says %+v, and bob has approved it", r)
	}
	if list[0].Asked.Request != nil {
		t.Error("what is sealed is handed out")
	}
	if kept.papers != 0 {
		t.Errorf("%d papers were read one by one", kept.papers)
	}
}
