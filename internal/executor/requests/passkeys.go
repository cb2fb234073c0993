package requests

import (
	"context"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// Passkeys returns the stored passkeys of a member, and their revision; 0 if there were never any.
func (p *Personal) Passkeys(ctx context.Context, account, member string) (data []byte, revision int64, err error) {
	doc, err := p.store.Document(ctx, account, docs.PasskeysKind, member)
	if docs.IsNotFound(err) {
		return nil, 0, nil
	}
	if err == nil {
		data, err = p.store.Body(doc)
	}
	return data, doc.Revision, err
}

// WritePasskeys replaces the passkeys of a member, together with audit lines. It returns
// store.ErrStale if they no longer have the revision.
func (p *Personal) WritePasskeys(ctx context.Context, account, member string, data []byte, revision int64, audit ...[]byte) error {
	change := store.DocumentChange{Kind: docs.PasskeysKind, ID: member, BaseRevision: revision, Body: data}
	return p.store.CommitWrites(ctx, account, store.Writes{Documents: []store.DocumentChange{change}, Audit: audit})
}
