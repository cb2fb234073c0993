//go:build unix

package chaos

import (
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// effectsAreInLedger checks that every executed call is in the ledger, for an interrupt that
// approves exactly it.
func (b *storeCheck) effectsAreInLedger() (found []violation) {
	type line struct {
		effect    store.Effect
		interrupt *store.Interrupt
	}
	byKey := make(map[string]line)
	for _, h := range b.runs {
		for _, e := range h.Effects {
			byKey[e.IdempotencyKey] = line{e, b.interrupts[e.Interrupt]}
		}
	}
	for _, d := range b.deeds {
		l, known := byKey[d.Key]
		digest := digestOf(d.Action.Gate, d.Action)
		if !known || l.interrupt == nil || l.interrupt.Verdict != store.VerdictApprove || l.interrupt.ApprovedDigest != digest || l.effect.ActionDigest != digest {
			found = append(found, violation{approvedOnly, d.Action.Order, fmt.Sprintf("%s was executed for %d with key %s; the ledger has %+v, the store has %s",
				d.Action.Gate, d.Action.Amount, d.Key, l.effect, describe(l.interrupt))})
		}
	}
	return found
}

// effects checks that every successful effect in the ledger was executed, once for each interrupt.
func (b *storeCheck) effects(h store.History) (found []violation) {
	keys := make(map[string]string)
	for _, e := range h.Effects {
		if _, done := b.keys[e.IdempotencyKey]; e.State == store.EffectSucceeded && !done {
			found = append(found, violation{approvedOnly, h.Run.StateKey, fmt.Sprintf("the ledger says that it was executed, but it was not: %+v", e)})
		}
		if before, known := keys[e.Interrupt]; known && before != e.IdempotencyKey {
			found = append(found, violation{onceOnly, h.Run.StateKey, fmt.Sprintf("%s has the keys %s and %s", e.Interrupt, before, e.IdempotencyKey)})
		}
		keys[e.Interrupt] = e.IdempotencyKey
		if e.Fence > h.Run.Fence {
			found = append(found, violation{fenced, h.Run.StateKey, fmt.Sprintf("fence %d of %+v is above that of the run, %d", e.Fence, e, h.Run.Fence)})
		}
	}
	return found
}

// events checks that the events of a run are in a valid order.
func (b *storeCheck) events(h store.History) (found []violation) {
	complain := func(broken invariant, format string, args ...any) {
		found = append(found, violation{broken, h.Run.StateKey, fmt.Sprintf(format, args...)})
	}
	asked, decided := make(map[string]int64), make(map[string]int64)
	var ended int64
	for n, e := range h.Events {
		if e.Seq != int64(n)+1 {
			complain(durable, "event %d has the number %d", n+1, e.Seq)
		}
		switch e.Kind {
		case store.EventAsked:
			if asked[e.Interrupt] == 0 {
				asked[e.Interrupt] = e.Seq
			}
		case store.EventDecided, store.EventExpired:
			if decided[e.Interrupt] != 0 {
				complain(oneVerdict, "%s was decided by event %d and by event %d", e.Interrupt, decided[e.Interrupt], e.Seq)
			}
			decided[e.Interrupt] = e.Seq
		case store.EventEffectBegun:
			if decided[e.Interrupt] == 0 {
				complain(approvedOnly, "event %d begins an effect of %s, which is not decided", e.Seq, e.Interrupt)
			}
			if ended != 0 {
				complain(fenced, "event %d begins an effect of %s, but the run ended with event %d", e.Seq, e.Interrupt, ended)
			}
		case store.EventCompleted, store.EventFailed, store.EventCancelled, store.EventSuperseded:
			if ended != 0 {
				complain(fenced, "the run ended with event %d and with event %d", ended, e.Seq)
			}
			ended = e.Seq
		case store.EventCreated, store.EventWithdrawn, store.EventEffectEnded, store.EventWaiting, store.EventParked:
		}
	}
	for _, later := range h.Interrupts {
		for _, earlier := range h.Interrupts {
			if outOfOrder(earlier, later) && asked[later.ID] != 0 && (decided[earlier.ID] == 0 || decided[earlier.ID] > asked[later.ID]) {
				complain(noBypass, "event %d requests %s, but %s was decided by event %d", asked[later.ID], describe(&later), describe(&earlier), decided[earlier.ID])
			}
		}
	}
	return found
}

// outOfOrder reports whether one interrupt must be decided before the other is requested. This does
// not apply to an effect in doubt that was resolved automatically.
func outOfOrder(earlier, later store.Interrupt) bool {
	return stages[gateOf(earlier)] < stages[gateOf(later)] && (earlier.Kind != fermata.EffectInDoubt.Name() || earlier.State == store.InterruptDecided)
}
