package docs

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/store"
)

func (ds *Docs) FindRun(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := ds.Store.Get(ctx, account, stateKey)
	if errors.Is(err, store.ErrNotFound) {
		return run, fmt.Errorf("%w: %q", errs.ErrRunNotFound, stateKey)
	}
	return run, err
}

func IsNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }
