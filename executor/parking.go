package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// unrecorded is when a run is tried again that cannot be parked, because nobody could say so in the log.
const unrecorded = time.Minute

// park is how a run is given back that fails again and again: it is left alone until somebody looks at it. The log says so first. Who dies in between
// says it once more; that is better than a run which stands still, and nobody can tell since when.
func (e *Executor) park(ctx context.Context, run store.Run, why error) store.Release {
	c := &filing{run: run}
	err := c.line(theSystem, c.place(), audit.RunParked{Attempts: run.Attempts})
	if err == nil {
		err = e.store.Amend(ctx, run.Account, c.Beside)
	}
	if err != nil {
		e.config.Log.Error("a run cannot be parked, as the log cannot be written", "run", run.ID, "err", err)
		return store.Release{Delay: unrecorded}
	}
	e.config.Log.Error("a run is parked until somebody looks at it", "run", run.ID, "attempts", run.Attempts, "why", className(why))
	return store.Release{Park: true}
}

// className says what kind of error it is that went wrong, for the log: the types of all that it is made of, but for those that only hold a text. The
// texts may hold what the run works on.
func className(err error) string {
	var names []string
	var walk func(error)
	walk = func(err error) {
		if name := fmt.Sprintf("%T", err); err != nil && !strings.HasPrefix(name, "*fmt.") && !strings.HasPrefix(name, "*errors.") {
			names = append(names, strings.TrimPrefix(name, "*"))
		}
		switch inner := err.(type) {
		case interface{ Unwrap() error }:
			walk(inner.Unwrap())
		case interface{ Unwrap() []error }:
			for _, one := range inner.Unwrap() {
				walk(one)
			}
		}
	}
	walk(err)
	return cmp.Or(strings.Join(names, ": "), "an error without a type")
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
	if err := c.line(onBehalfOf(actor), c.place(), audit.RunRetried{Attempts: run.Attempts}); err != nil {
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
