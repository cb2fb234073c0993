package fermata

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata/internal/roundtrip"
)

// Lookup declares that the target can report the outcome of a call. lookup receives the idempotency
// key of the effect and is called instead of asking a person when the effect is in doubt. The
// receipt that it finds becomes the receipt of the effect. If it returns an error, a person is
// asked.
//
// A target that has not seen a key may still see it later: the first call may be in transit. If
// lookup finds nothing, the effect is therefore repeated only if the target is also [Fenced];
// otherwise a person is asked.
func Lookup[R any](lookup func(ctx context.Context, key string) (receipt R, found bool, err error)) EffectOption {
	return func(c *effectConfig) {
		c.lookup = func(ctx context.Context, key string) (json.RawMessage, bool, error) {
			receipt, found, err := lookup(ctx, key)
			if err != nil || !found {
				return nil, false, err
			}
			data, err := roundtrip.Marshal(receipt)
			return data, true, err
		}
	}
}

// Fenced declares that the target remembers the highest [Fence] it has seen with a key, in a call
// or a lookup, and rejects calls with a lower one. Together with [Lookup] it allows repeating an
// effect in doubt at a target that is not idempotent. Alone it has no effect.
func Fenced() EffectOption { return func(c *effectConfig) { c.fenced = true } }

type fenceKey struct{}

// Fence returns the fencing token to send with the key, in the function of a [Fenced] effect and in
// its lookup. It increases with each attempt of the effect. In all other contexts it is 0.
func Fence(ctx context.Context) int {
	fence, _ := ctx.Value(fenceKey{}).(int)
	return fence
}

// withFence adds the fencing token of an attempt to the context.
func (c *effectConfig) withFence(ctx context.Context, try int) context.Context {
	if !c.fenced {
		return ctx
	}
	return context.WithValue(ctx, fenceKey{}, try)
}

// lookupResult is the result of a lookup at the target.
type lookupResult string

const (
	lookupDone    lookupResult = "done"
	lookupNotDone lookupResult = "not done" // and calls still in transit will be rejected
	lookupUnknown lookupResult = "nothing"  // the outcome is still unknown
)

// lookUp queries the target with the fence of the next attempt: from then on the target rejects
// earlier calls.
func (e *effect[T, R]) lookUp(ctx context.Context, entry *effectEntry) (lookupResult, json.RawMessage) {
	//mutate:target-check-raises-fence
	receipt, done, err := e.config.lookup(e.config.withFence(ctx, entry.Attempt+1), entry.Key)
	switch {
	case err != nil:
		return lookupUnknown, nil
	case done:
		return lookupDone, receipt
	//mutate:fenced-since-begin
	case e.config.fenced && entry.Fenced: // a call without a fence cannot be rejected
		return lookupNotDone, nil
	}
	return lookupUnknown, nil
}

// resolveByLookup resolves an effect in doubt without a person, if the target knows the outcome. It
// reports whether it did. After a failure of the call, an effect that the target did not perform is
// not repeated at once, but by a later attempt.
func (e *effect[T, R]) resolveByLookup(ctx context.Context, entry *effectEntry, failure error) (result R, cleared bool, err error) {
	outcome, receipt := e.lookUp(ctx, entry)
	if err := ctx.Err(); err != nil {
		return result, true, err // this process may have lost the run: do not ask a person
	}
	switch outcome {
	case lookupDone:
		if result, err = e.decodeReceipt(receipt); err != nil {
			return result, true, err
		}
		entry.State, entry.Receipt = effectDone, receipt
		return result, true, e.recordEnd(ctx, entry, EffectSucceeded)
	case lookupNotDone:
		var again error
		if failure != nil {
			if again = e.retryUnknown(entry, failure); again == nil {
				return result, false, nil
			}
		}
		// not effectFailed: the node has not seen an error, so a process that takes over must not
		// return one either
		entry.State, entry.NotDone, entry.Error = effectNotCalled, true, "the target did not perform it"
		if err := e.recordEnd(ctx, entry, EffectFailed); err != nil {
			return result, true, err
		}
		if again != nil {
			return result, true, again
		}
		result, err = e.begin(ctx, entry.Attempt+1, false)
		return result, true, err
	case lookupUnknown:
	}
	return result, false, nil
}
