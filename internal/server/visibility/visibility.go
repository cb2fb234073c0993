// Package visibility decides which requests a caller may see. It converts requests and outcomes to
// what the caller gets: without hidden requests, and with masked values.
//
// Every response that has a request, or a part of one, must depend on [Checker.MaySee].
package visibility

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// Checker decides what callers may see. It converts requests and outcomes for them.
type Checker struct{ Executor *executor.Executor }

// MaySee reports whether a caller may see a request. Every response that has a request, or a part
// of one, depends on it. A request without a document is visible.
func (c Checker) MaySee(me authn.Principal, doc *desk.Request) (bool, error) {
	if doc == nil {
		return true, nil
	}
	return c.Executor.MaySee(*doc, me.Viewer())
}

// MaySeeID is MaySee for the id of a request. A request that does not exist is visible: the caller
// learns nothing from it.
func (c Checker) MaySeeID(ctx context.Context, me authn.Principal, id string) (*desk.Request, bool, error) {
	doc, err := c.Executor.RequestDocument(ctx, me.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	visible, err := c.MaySee(me, &doc)
	return &doc, visible, err
}
