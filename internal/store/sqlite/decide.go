package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	receiptSQL = `SELECT s.body, ` + receiptColumns + ` FROM resumes AS s WHERE s.account = ?1 AND s.actor = ?2 AND s.id = ?3`

	// checkAnswerSQL returns why an answer cannot be accepted, or 'accepted'. Without a row the run
	// has no such interrupt. The order of the reasons is defined by the port.
	//mutate:sqlite-decide-checks
	checkAnswerSQL = `
SELECT CASE
       WHEN i.state = 'decided' THEN 'already_decided'
       WHEN i.state = 'withdrawn' OR NOT r.` + activeCondition + ` THEN 'superseded'
       WHEN i.deadline <= ?4 THEN 'expired'
       WHEN length(?5) > 0 AND i.shown <> ?5 THEN 'digest_mismatch'
       ELSE 'accepted' END
FROM interrupts AS i JOIN runs AS r ON r.account = i.account AND r.run = i.run
WHERE i.account = ?1 AND i.id = ?2 AND i.run = ?3`

	recordReceiptSQL = `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

	// decideInterruptSQL and expireInterruptSQL are the compare-and-set on the interrupt, which is
	// a write-once register: the first writer that finds it pending decides it, a person or the
	// clock.
	decideInterruptSQL = `
UPDATE interrupts SET state = 'decided', verdict = ?3, final = ?4, answer = ?5, decided_by = ?6, via = ?7, source = 'person',
       resume = ?8, decided_at = ?9
WHERE account = ?1 AND id = ?2 AND state = 'pending' AND (deadline IS NULL OR deadline > ?9)`

	expireInterruptSQL = `
UPDATE interrupts SET state = 'decided', verdict = 'expire', final = x'', decided_by = ?3, via = x'', source = 'clock', decided_at = ?4
WHERE account = ?1 AND id = ?2 AND state = 'pending' AND deadline <= ?4`

	// CROSS JOIN fixes the join order: from due interrupts to their runs, never from runs to
	// interrupts.
	dueInterruptsSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i INDEXED BY interrupts_due
CROSS JOIN runs AS r ON r.account = i.account AND r.run = i.run
WHERE i.state = 'pending' AND i.deadline <= ?1 AND r.` + activeCondition + `
ORDER BY i.deadline LIMIT ?2`
)

// clockActor is the actor of expired interrupts.
const clockActor = "clock"

// Decide records a decision; see [store.Runs].
func (s *Store) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	if err := decision.Writes.Validate(); err != nil {
		return store.DecisionReceipt{}, err
	}
	return update(ctx, s, "decide in", func(ctx context.Context, t txn) (store.DecisionReceipt, error) { return t.decide(ctx, decision) })
}

func (t txn) decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	receipt, body, known, err := t.receipt(ctx, d.Account, d.Actor, d.ResumeID)
	switch {
	case err != nil:
		return store.DecisionReceipt{}, err
	case known && body != d.BodyDigest: //mutate:sqlite-resume-id-conflict
		return store.DecisionReceipt{}, store.ErrResumeIDReused
	case known:
		return receipt, nil
	case len(d.Answers) == 0:
		return store.DecisionReceipt{}, store.ErrInvalid
	}
	if receipt, err = t.checkDecision(ctx, d); err != nil {
		return store.DecisionReceipt{}, err
	}
	if receipt.Result == store.ResultNotFound {
		var status store.Status
		if there, err := t.queryRow(ctx, []any{&status}, statusSQL, d.Account, d.Run); err != nil || !there {
			return receipt, err
		}
	}
	if receipt.Result != store.ResultAccepted && !d.Writes.IsEmpty() { //mutate:sqlite-refusal-not-final
		return store.DecisionReceipt{}, store.ErrStale
	}
	if _, err := t.exec(ctx, recordReceiptSQL, d.Account, d.Actor, d.ResumeID, d.BodyDigest, receipt.Run, receipt.Result, receipt.Interrupt, t.now); err != nil {
		return store.DecisionReceipt{}, err
	}
	if receipt.Result != store.ResultAccepted {
		return receipt, nil
	}
	if err := t.requireRequestChanges(ctx, d); err != nil {
		return store.DecisionReceipt{}, err
	}
	if err := t.wake(ctx, d.Account, d.Run); err != nil { //mutate:sqlite-decision-wakes
		return store.DecisionReceipt{}, err
	}
	for _, a := range d.Answers {
		if err := t.answer(ctx, d, a.Interrupt); err != nil {
			return store.DecisionReceipt{}, err
		}
	}
	if d.Claim != nil {
		receipt.Claimed, err = t.claim(ctx, store.Claim{Owner: d.Claim.Owner, Lease: d.Claim.Lease, Account: d.Account, Run: d.Run})
	}
	return receipt, err
}

// answer decides an interrupt. Of two answers to one interrupt the last counts.
func (t txn) answer(ctx context.Context, d store.Decision, interrupt string) error {
	var last store.Answer
	for _, a := range d.Answers {
		if a.Interrupt == interrupt {
			last = a
		}
	}
	decided, err := t.exec(ctx, decideInterruptSQL, d.Account, interrupt, last.Verdict, last.ApprovedDigest, last.Data, d.Actor, d.Via, d.ResumeID, t.now)
	switch {
	// the driver reports the name of the constraint only in the message
	case err != nil && strings.Contains(err.Error(), "approve_says_what"):
		return store.ErrInvalid
	case err != nil || decided == 0:
		return err
	}
	return t.addEvent(ctx, d.Account, d.Run, store.EventDecided, interrupt)
}

// checkDecision returns the result of a decision and changes nothing. One unacceptable answer
// rejects the whole decision.
func (t txn) checkDecision(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	receipt := store.DecisionReceipt{Run: d.Run, Result: store.ResultAccepted, At: timeOf(t.now)}
	for _, a := range d.Answers {
		result := store.ResultNotFound
		if _, err := t.queryRow(ctx, []any{&result}, checkAnswerSQL, d.Account, a.Interrupt, d.Run, t.now, a.ShownDigest); err != nil {
			return store.DecisionReceipt{}, err
		}
		if result != store.ResultAccepted {
			receipt.Result, receipt.Interrupt = result, a.Interrupt
			break
		}
	}
	return receipt, nil
}

// receipt returns the receipt of a resume id and the digest of its body.
func (t txn) receipt(ctx context.Context, account, actor, id string) (receipt store.DecisionReceipt, body string, known bool, err error) {
	receipt.Replayed = true
	dest := append([]any{&body}, receiptDest(&receipt)...)
	known, err = t.queryRow(ctx, dest, receiptSQL, account, actor, id)
	return receipt, body, known, err
}

// Receipt returns the receipt of a resume id; see [store.Runs].
func (s *Store) Receipt(ctx context.Context, account, actor, resumeID string) (store.DecisionReceipt, error) {
	receipt, _, known, err := s.view().receipt(ctx, account, actor, resumeID)
	if err == nil && !known {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.DecisionReceipt{}, s.fail(ctx, "read a receipt in", err)
	}
	return receipt, nil
}

// Expire expires interrupts whose deadline has passed; see [store.Runs]. A call that finds nothing
// does not wait for writers.
func (s *Store) Expire(ctx context.Context, until time.Time, limit int, writes func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	const op = "expire interrupts of"
	if due, err := s.view().due(ctx, until, min(limit, 1)); err != nil {
		return nil, s.fail(ctx, op, err)
	} else if len(due) == 0 {
		return nil, nil
	}
	return update(ctx, s, op, func(ctx context.Context, t txn) ([]store.Interrupt, error) {
		return t.expire(ctx, until, limit, writes)
	})
}

func (t txn) due(ctx context.Context, until time.Time, limit int) ([]store.Interrupt, error) {
	by := t.now
	if !until.IsZero() {
		by = min(by, until.UnixMicro())
	}
	// SQLite takes a negative limit as unlimited
	return queryAll(ctx, t, scanInterrupt, dueInterruptsSQL, by, max(limit, 0))
}

func (t txn) expire(ctx context.Context, until time.Time, limit int, writes func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	due, err := t.due(ctx, until, limit)
	if err != nil {
		return nil, err
	}
	var expired []store.Interrupt
	for _, i := range due {
		if left, err := t.writeExpiry(ctx, i, writes); err != nil {
			return nil, err
		} else if left {
			continue
		}
		if err := t.wake(ctx, i.Account, i.Run); err != nil {
			return nil, err
		}
		if _, err := t.exec(ctx, expireInterruptSQL, i.Account, i.ID, clockActor, t.now); err != nil {
			return nil, err
		}
		if err := t.addEvent(ctx, i.Account, i.Run, store.EventExpired, i.ID); err != nil {
			return nil, err
		}
		i.State, i.Verdict, i.Source, i.DecidedBy, i.DecidedAt = store.InterruptDecided, store.VerdictExpire, store.SourceClock, clockActor, timeOf(t.now)
		expired = append(expired, i)
	}
	return expired, nil
}

// writeExpiry applies the writes of an expiry and reports whether the interrupt expires. The
// request is read in this transaction. If another document is stale, the interrupt is left for a
// later call and does not block others. It also does not expire if it is postponed.
func (t txn) writeExpiry(ctx context.Context, i store.Interrupt, writes func(store.Interrupt, *store.Document) store.Writes) (left bool, err error) {
	if writes == nil {
		return false, nil
	}
	request, err := t.document(ctx, i.Account, store.RequestDocument, i.ID)
	if err != nil {
		return false, err
	}
	with := writes(i, request)
	if err := with.Validate(); err != nil {
		return false, err
	}
	//mutate:sqlite-stale-does-not-expire
	if stale, err := t.stale(ctx, i.Account, with.Documents); err != nil || stale {
		return stale, err
	}
	if with.Postpones(i.ID) { //mutate:sqlite-postponed-not-expired
		return true, t.applyWrites(ctx, i.Account, with)
	}
	return false, t.writeWithDecisions(ctx, i.Account, with, i.ID)
}
