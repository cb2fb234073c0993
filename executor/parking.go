package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// unrecorded is when a run is tried again that cannot be parked, because nobody could say so in the log.
const unrecorded = time.Minute

// park is how a run is given back that fails again and again: it is left alone until somebody looks at it. The log says so first. Who dies in between
// says it once more; that is better than a run which stands still, and nobody can tell since when.
func (e *Executor) park(ctx context.Context, run store.Run) store.Release {
	c := &filing{run: run}
	err := c.line(theSystem, c.place(), audit.RunParked{Attempts: run.Attempts})
	if err == nil {
		err = e.store.Amend(ctx, run.Account, c.Beside)
	}
	if err != nil {
		e.config.Log.Error("a run cannot be parked, as the log cannot be written", "run", run.ID, "err", err)
		return store.Release{Delay: unrecorded}
	}
	e.config.Log.Error("a run is parked until somebody looks at it", "run", run.ID, "attempts", run.Attempts)
	return store.Release{Park: true}
}

// Retry lets a parked run go on, on somebody's behalf: they have looked at what stopped it. It returns ErrNotParked if nothing did.
func (e *Executor) Retry(ctx context.Context, account, stateKey, actor string) error {
	run, err := e.find(ctx, account, stateKey)
	if err != nil {
		return err
	}
	if run.Status != store.Parked {
		return fmt.Errorf("%w: %q is %s", ErrNotParked, stateKey, run.Status)
	}
	c := &filing{run: run}
	who := theSystem
	if actor != "" {
		who = audit.Actor{Principal: actor, Kind: audit.Person}
	}
	if err := c.line(who, c.place(), audit.RunRetried{Attempts: run.Attempts}); err != nil {
		return err
	}
	if err := e.store.Amend(ctx, account, c.Beside); err != nil {
		return err
	}
	if _, err = e.store.Retry(ctx, account, stateKey); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q was, and somebody was faster", ErrNotParked, stateKey)
	}
	e.nudge()
	return err
}
