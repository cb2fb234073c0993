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

func (s *onePage) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	s.papers++
	return s.Store.Document(ctx, account, kind, id)
}

func TestQuestions_APageIsOneRead(t *testing.T) {
	kept := &onePage{Store: memory.NewStore(nil)}
	e := office(t, kept, new(dropper), nil)
	asked := startAs(t, e, "req").Interrupts[0].ID
	if _, err := says(t, e, "bob", "r1", yes); err != nil {
		t.Fatal(err)
	}
	kept.papers = 0
	list, err := e.ListRequests(t.Context(), "acme", store.InboxFilter{State: store.InterruptPending})
	if err != nil || len(list) != 1 || list[0].ID != asked {
		t.Fatalf("the inbox has %+v, %v", list, err)
	}
	if r := list[0].Request; r == nil || r.State != desk.StateOpen || len(r.Votes) != 1 || r.Votes[0].By != "bob" {
		t.Errorf("the request says %+v, and bob has approved it", r)
	}
	if list[0].InboxItem.Request != nil {
		t.Error("what is sealed is handed out")
	}
	if kept.papers != 0 {
		t.Errorf("%d papers were read one by one", kept.papers)
	}
}
