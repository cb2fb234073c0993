package fermata

import (
	"context"
	"encoding/json"
)

// Lookup declares that the target can be asked what became of a call: look gets the key that the effect was called with, and
// is asked in the place of a person when the effect is in doubt. What it finds is the receipt of the effect. If it cannot tell,
// it returns an error, and a person is asked.
//
// That a target has not seen a key does not mean that it will not: the first call may still be on its way. So if look finds
// nothing, the effect is done again only if the target is [Fenced], too; if it is not, a person is asked.
func Lookup[R any](look func(ctx context.Context, key string) (receipt R, found bool, err error)) EffectOption {
	return func(c *effectConfig) {
		c.lookup = func(ctx context.Context, key string) (json.RawMessage, bool, error) {
			receipt, found, err := look(ctx, key)
			if err != nil || !found {
				return nil, false, err
			}
			data, err := json.Marshal(&receipt)
			return data, true, err
		}
	}
}

// Fenced declares that the target remembers the highest [Fence] that it has seen with a key, in a call or in a look, and
// refuses a call with a lower one. Together with [Lookup] it lets an effect in doubt be repeated where the target does not know
// a second call from the first; alone it changes nothing.
func Fenced() EffectOption { return func(c *effectConfig) { c.fenced = true } }

type fenceKey struct{}

// Fence returns, in the function of a [Fenced] effect and in its look, what the target has to be told with the key. It rises with each
// try of the effect. Anywhere else it is 0.
func Fence(ctx context.Context) int {
	fence, _ := ctx.Value(fenceKey{}).(int)
	return fence
}

// withFence is for what is told to the target on a try.
func (c *effectConfig) withFence(ctx context.Context, try int) context.Context {
	if !c.fenced {
		return ctx
	}
	return context.WithValue(ctx, fenceKey{}, try)
}

// lookupResult is what a look at the target came to.
type lookupResult string

const (
	lookupDone    lookupResult = "done"
	lookupNotDone lookupResult = "not done" // and what is still on its way will be refused
	lookupUnknown lookupResult = "nothing"  // that would tell
)

// lookThere asks the target what became of an effect, under the fence of the next try: from then on no earlier call counts.
func (e *effect[T, R]) lookUp(ctx context.Context, entry *effectEntry) (lookupResult, json.RawMessage) {
	//mutate:target-check-raises-fence
	receipt, done, err := e.config.lookup(e.config.withFence(ctx, entry.Attempt+1), entry.Key)
	switch {
	case err != nil:
		return lookupUnknown, nil
	case done:
		return lookupDone, receipt
	//mutate:fenced-since-begin
	case e.config.fenced && entry.Fenced: // a call without a fence cannot be refused
		return lookupNotDone, nil
	}
	return lookupUnknown, nil
}

// clear settles a doubt without a person, as far as the target can be asked and nobody was faster. It reports whether it did.
func (e *effect[T, R]) resolveByLookup(ctx context.Context, entry *effectEntry) (result R, cleared bool, err error) {
	what, receipt := e.lookUp(ctx, entry)
	if err := ctx.Err(); err != nil {
		return result, true, err // nobody is asked by somebody who has lost the run
	}
	switch what {
	case lookupDone:
		if result, err = e.decodeReceipt(receipt); err != nil {
			return result, true, err
		}
		entry.State, entry.Receipt = effectDone, receipt
		return result, true, e.recordEnd(ctx, entry, EffectSucceeded)
	case lookupNotDone:
		if ledger := e.ledger(); ledger != nil {
			if err := ledger.End(ctx, e.intent(entry), LedgerEntry{State: EffectFailed, Error: "the target has not done it"}); err != nil {
				return result, true, err
			}
		}
		result, err = e.begin(ctx, entry.Attempt+1)
		return result, true, err
	case lookupUnknown:
	}
	return result, false, nil
}
