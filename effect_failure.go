package fermata

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/recovery"
)

// effectRetries is how often an effect with an unknown outcome is repeated before a person is
// asked, if the target permits repetition and its function does not say how often.
const effectRetries = 5

// call calls fn. A panic of fn is an error like any other: something may have happened before it.
func (e *effect[T, R]) call(ctx context.Context, args T, entry *effectEntry) (result R, err error) {
	defer recovery.Recover(&err)
	//mutate:effect-gets-approved-copy
	return e.fn(e.config.withFence(ctx, entry.Attempt), args, entry.Key)
}

// onError records an error of fn. If fn says that nothing happened, the node gets the error.
// Otherwise the outcome is unknown: the ledger keeps the effect as begun, and the effect is
// repeated where the target permits it, or a person is asked.
func (e *effect[T, R]) onError(ctx context.Context, entry *effectEntry, err error) (R, error) {
	var zero R
	entry.State, entry.Error, entry.NotDone = effectFailed, err.Error(), isNotDone(err)
	if entry.NotDone {
		err = e.limited(entry, err)
		if retry, ok := errors.AsType[*RetryError](err); ok {
			entry.Retry = &effectRetry{After: retry.After, AtMost: retry.AtMost}
		}
		if unsaved := e.recordEnd(ctx, entry, EffectFailed); unsaved != nil {
			return zero, errors.Join(err, unsaved)
		}
		return zero, err
	}
	if saveErr := e.saveEntry(ctx, *entry); saveErr != nil {
		return zero, errors.Join(err, saveErr)
	}
	if ctx.Err() != nil {
		return zero, err // this process may have lost the run: the next attempt resolves it
	}
	if e.repeatable(entry) {
		if again := e.retryUnknown(entry, err); again != nil {
			return zero, again
		}
	}
	return e.resolveInDoubt(ctx, entry, err)
}

// effectRetry is the request for a retry of a call that did nothing. It is in the journal, because
// the process may end before the run is released for the retry.
type effectRetry struct {
	After  time.Duration `json:"after,omitempty"`
	AtMost int           `json:"atMost,omitempty"`
}

// storedError returns the error of a call that did nothing, for a node that is entered again in the
// same attempt.
func (e *effectEntry) storedError(action string) error {
	var err error = &EffectError{Action: action, Message: e.Error}
	if e.Retry == nil {
		return err
	}
	return NotDone(&RetryError{Err: err, After: e.Retry.After, AtMost: e.Retry.AtMost})
}

func isNotDone(err error) bool {
	_, ok := errors.AsType[*notDoneError](err)
	return ok
}

// limited returns the error of a call that did nothing, without its request for a retry if there
// were enough of them.
func (e *effect[T, R]) limited(entry *effectEntry, err error) error {
	if retry, ok := errors.AsType[*RetryError](err); ok && retry.AtMost > 0 && entry.Attempt > retry.AtMost {
		return NotDone(retry.Err)
	}
	return err
}

// retryUnknown returns the error with which a node ends so that its effect is repeated; nil after
// too many attempts. err is the error of fn.
func (e *effect[T, R]) retryUnknown(entry *effectEntry, err error) error {
	retry := RetryError{Err: err}
	if asked, ok := errors.AsType[*RetryError](err); ok {
		retry = *asked
	}
	if entry.Attempt > cmp.Or(retry.AtMost, effectRetries) {
		return nil
	}
	retry.AtMost = 0 // the attempts of the effect were counted, not those of the node
	return &retry
}
