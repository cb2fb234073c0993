//go:build unix

package chaos

import (
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/simtest"
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

// history checks the events and the ledger of a run, and that no gate is requested before all gates
// of earlier stages are decided.
func (b *storeCheck) history(h store.History) (found []violation) {
	for _, v := range simtest.CheckHistory(h, func(key string) bool { _, done := b.keys[key]; return done }) {
		found = append(found, violation{v.Invariant, v.Run, v.Text})
	}
	asked, decided := make(map[string]int64), make(map[string]int64)
	for _, e := range h.Events {
		switch {
		case e.Kind == store.EventAsked && asked[e.Interrupt] == 0:
			asked[e.Interrupt] = e.Seq
		case e.Kind == store.EventDecided || e.Kind == store.EventExpired:
			decided[e.Interrupt] = e.Seq
		}
	}
	for _, later := range h.Interrupts {
		for _, earlier := range h.Interrupts {
			if outOfOrder(earlier, later) && asked[later.ID] != 0 && (decided[earlier.ID] == 0 || decided[earlier.ID] > asked[later.ID]) {
				found = append(found, violation{noBypass, h.Run.StateKey,
					fmt.Sprintf("event %d requests %s, but %s was decided by event %d", asked[later.ID], describe(&later), describe(&earlier), decided[earlier.ID])})
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
