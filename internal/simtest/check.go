package simtest

import (
	"context"
	"fmt"
	"io"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/store"
)

// Invariant is the name of an invariant of docs/architecture.md.
type Invariant string

// The invariants that are checked here.
const (
	OneVerdict   Invariant = "I1: one verdict per interrupt, and an acknowledged one is the recorded one"
	OnceOnly     Invariant = "I4: no effect twice"
	ApprovedOnly Invariant = "I4: no effect without an approval of exactly this action"
	Durable      Invariant = "I9: what is announced is durable"
	Fenced       Invariant = "I16: a write with an old fence is refused"
)

// Violation is a violated invariant.
type Violation struct {
	Invariant Invariant
	Run       string // its state key
	Text      string
}

func (v Violation) String() string { return fmt.Sprintf("%s\n    %s: %s", v.Invariant, v.Run, v.Text) }

// CheckHistory checks what is true for every run, whatever people decided: the order of its events,
// and its ledger. executed reports whether a target has executed a call with an idempotency key.
func CheckHistory(h store.History, executed func(key string) bool) (found []Violation) {
	return append(checkEvents(h), checkEffects(h, executed)...)
}

// checkEvents checks that the events are numbered without gaps, that each interrupt is decided once
// and before its effect begins, and that a run ends once and begins no effect afterwards.
func checkEvents(h store.History) (found []Violation) {
	complain := func(invariant Invariant, format string, args ...any) {
		found = append(found, Violation{invariant, h.Run.StateKey, fmt.Sprintf(format, args...)})
	}
	decided := make(map[string]int64)
	var ended int64
	for n, e := range h.Events {
		if e.Seq != int64(n)+1 {
			complain(Durable, "event %d has the number %d", n+1, e.Seq)
		}
		switch {
		case e.Kind == store.EventDecided || e.Kind == store.EventExpired:
			if decided[e.Interrupt] != 0 {
				complain(OneVerdict, "%s was decided by event %d and by event %d", e.Interrupt, decided[e.Interrupt], e.Seq)
			}
			decided[e.Interrupt] = e.Seq
		case e.Kind == store.EventEffectBegun:
			if decided[e.Interrupt] == 0 {
				complain(ApprovedOnly, "event %d begins an effect of %s, which is not decided", e.Seq, e.Interrupt)
			}
			if ended != 0 {
				complain(Fenced, "event %d begins an effect of %s, but the run ended with event %d", e.Seq, e.Interrupt, ended)
			}
		case e.Kind.Final():
			if ended != 0 {
				complain(Fenced, "the run ended with event %d and with event %d", ended, e.Seq)
			}
			ended = e.Seq
		}
	}
	return found
}

// checkEffects checks that every successful effect in the ledger was executed, that an interrupt
// has one idempotency key, and that no fence is above that of the run.
func checkEffects(h store.History, executed func(key string) bool) (found []Violation) {
	complain := func(invariant Invariant, format string, args ...any) {
		found = append(found, Violation{invariant, h.Run.StateKey, fmt.Sprintf(format, args...)})
	}
	keys := make(map[string]string)
	for _, e := range h.Effects {
		if e.State == store.EffectSucceeded && !executed(e.IdempotencyKey) {
			complain(ApprovedOnly, "the ledger has a success, but it was not executed: %+v", e)
		}
		if before, known := keys[e.Interrupt]; known && before != e.IdempotencyKey {
			complain(OnceOnly, "%s has the keys %s and %s", e.Interrupt, before, e.IdempotencyKey)
		}
		keys[e.Interrupt] = e.IdempotencyKey
		if e.Fence > h.Run.Fence {
			complain(Fenced, "fence %d of %+v is above that of the run, %d", e.Fence, e, h.Run.Fence)
		}
	}
	return found
}

// CheckLog verifies the audit log of an account.
func CheckLog(ctx context.Context, s store.Store, account string) error {
	if _, err := audit.Verify(ctx, audit.NewStoreLog(s), account, audit.VerifyOptions{}, io.Discard); err != nil {
		return fmt.Errorf("I12: the audit log of %s: %w", account, err)
	}
	return nil
}

// Histories reads the histories of all runs of an account.
func Histories(ctx context.Context, s store.Store, account string) (all []store.History, err error) {
	var before store.RunPosition
	for {
		page, err := s.List(ctx, account, store.RunFilter{Before: before, Limit: 500})
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, run := range page {
			h, err := s.History(ctx, account, run.ID)
			if err != nil {
				return nil, err
			}
			all = append(all, h)
			before = store.RunPosition{Created: run.Created, ID: run.ID}
		}
	}
}
