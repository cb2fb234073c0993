package docs

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

// FindRun returns the newest run of a state key, or errs.ErrRunNotFound.
func (ds *Docs) FindRun(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := ds.Store.Get(ctx, account, stateKey)
	if errors.Is(err, store.ErrNotFound) {
		return run, fmt.Errorf("%w: %q", errs.ErrRunNotFound, stateKey)
	}
	return run, err
}

// IsNotFound reports whether an error is store.ErrNotFound.
func IsNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }
