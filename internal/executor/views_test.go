package executor_test

import (
	"context"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// onePage counts the reads of single documents: a page of the inbox must not need one for each row.
type onePage struct {
	store.Store
	papers int
}

func (s *onePage) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	s.papers++
	return s.Store.Document(ctx, account, kind, id)
}

func TestListRequests_PageIsOneRead(t *testing.T) {
	kept := &onePage{Store: memory.NewStore(nil)}
	e := office(t, kept, new(dropper), nil)
	asked := startAs(t, e, "req").Interrupts[0].ID
	if _, err := says(t, e, "bob", "r1", yes); err != nil {
		t.Fatal(err)
	}
	kept.papers = 0
	list, err := e.ListRequests(t.Context(), "acme", store.InboxFilter{State: store.InterruptPending})
	if err != nil || len(list) != 1 || list[0].ID != asked {
		t.Fatalf("inbox %+v, %v", list, err)
	}
	if r := list[0].Request; r == nil || r.State != desk.StateOpen || len(r.Votes) != 1 || r.Votes[0].By != "bob" {
		t.Errorf("the request is %+v, want bob's approval", r)
	}
	if list[0].InboxItem.Request != nil {
		t.Error("the encrypted document is returned")
	}
	if kept.papers != 0 {
		t.Errorf("%d documents were read one by one", kept.papers)
	}
}
