package docs

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// UnspecifiedReason is the code of a rejection without a reason: package desk requires a reason or
// a code.
const UnspecifiedReason = "unspecified"

// The kinds of papers that an executor keeps, beside requests.
const (
	RunMetaKind store.DocumentKind = "run"    // what is known of a run beyond its row
	VoteKind    store.DocumentKind = "vote"   // one person's vote, for analytics
	NoticeKind  store.DocumentKind = "notice" // a notice that has to be sent, or was
	// ApproversKind is changed with every approval in a run where one who approved something must
	// not approve anything else: of two approvals at the same moment, one is weighed again.
	ApproversKind store.DocumentKind = "approvers"
	// what a resume id was answered with; see decide/resume_ids.go
	ResumeKind store.DocumentKind = "resume"
)

// Request returns the request of an interrupt, or nil if it has none.
type Request struct {
	desk.Request
	Revision int64 // of the paper
}

// Request returns the request of an interrupt, or nil if it has none.
func (ds *Docs) Request(ctx context.Context, account, id string) (*Request, error) {
	paper, err := ds.Store.Document(ctx, account, store.RequestDocument, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ds.DecodeRequest(paper)
}

// DecodeRequest decodes the document of a request.
func (ds *Docs) DecodeRequest(paper store.Document) (*Request, error) {
	data, err := ds.Store.Body(paper)
	if err != nil {
		return nil, err
	}
	doc, err := desk.Decode(data)
	return &Request{doc, paper.Revision}, err
}
