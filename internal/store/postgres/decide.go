package postgres

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// decideSQL checks a decision, inserts the receipt and applies the decision. The run is locked,
	// so what it reads stays valid; without a locked run it does nothing. A concurrent call with
	// the same resume id for another run waits at the insert of the receipt. Then there is no row,
	// and the existing receipt is returned.
	//
	// If the decision has writes, a rejection is not recorded, and there is no row either.
	//
	// The order of the reasons is defined by the port. All answers are checked; of several to one
	// interrupt the last counts.
	//mutate:postgres-decide-statement
	decideSQL = `
WITH ` + clockCTE + `,
answer AS MATERIALIZED (
    SELECT sha256(sha256($1) || sha256(interrupt)) AS key, *
    FROM unnest($7::bytea[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::boolean[], $13::integer[])
         WITH ORDINALITY AS a (interrupt, verdict, shown, final, data, counts, place, n)
), refusal AS (
    SELECT a.interrupt, CASE
           WHEN i.key IS NULL OR i.run_key IS DISTINCT FROM ` + lockedRunKey + ` THEN 'not_found'
           WHEN i.state = 'decided' THEN 'already_decided'
           WHEN i.state = 'withdrawn' OR NOT r.` + activeCondition + ` THEN 'superseded'
           WHEN i.deadline <= clock.now THEN 'expired'
           ELSE 'digest_mismatch' END AS result
    FROM clock CROSS JOIN answer AS a
    LEFT JOIN interrupts AS i ON i.key = a.key AND i.account = $1
    LEFT JOIN runs AS r ON r.key = i.run_key AND r.account = $1
    WHERE (i.run_key = ` + lockedRunKey + ` AND i.state = 'pending' AND r.` + activeCondition + ` AND (i.deadline IS NULL OR i.deadline > clock.now)
           AND (a.shown = '' OR i.shown = a.shown)) IS NOT TRUE
    ORDER BY a.n LIMIT 1
), receipt AS (
    INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
    SELECT $1, $3, $4, $5, $2, coalesce(refusal.result, 'accepted'), coalesce(refusal.interrupt, ''), clock.now
    FROM clock LEFT JOIN refusal ON true WHERE ` + hasLockedRun + ` AND (refusal.result IS NULL OR NOT $15::boolean)
    ON CONFLICT (key) DO NOTHING
    RETURNING run, result, interrupt, created_at
), decided AS (
    UPDATE interrupts AS i SET state = 'decided', verdict = a.verdict, final = a.final, answer = a.data, decided_by = $3, via = $6,
           source = 'person', resume = $4, decided_at = p.created_at
    FROM receipt AS p CROSS JOIN answer AS a
    WHERE p.result = 'accepted' AND a.counts AND i.key = a.key AND i.account = $1
), changed AS (
    UPDATE runs AS r SET events = r.events + $14::integer, ` + wakeRun + `
    FROM receipt AS p CROSS JOIN clock
    WHERE p.result = 'accepted' AND r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.account, r.run, r.events - $14 AS before
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at)
    SELECT r.account, r.run, r.before + a.place, 'decided', a.interrupt, clock.now
    FROM changed AS r CROSS JOIN clock CROSS JOIN answer AS a WHERE a.counts ORDER BY a.place
)
SELECT ` + newReceiptColumns + `, set_config('fermata.made', CASE p.result WHEN 'accepted' THEN 'on' ELSE '' END, true) FROM receipt AS p`

	// wakeRun makes a waiting run ready.
	//mutate:postgres-wake-statement
	wakeRun = `status = CASE r.status WHEN 'waiting' THEN 'ready' ELSE r.status END,
           ready_no = CASE r.status WHEN 'waiting' THEN nextval('ready_numbers') ELSE r.ready_no END,
           updated_at = CASE r.status WHEN 'waiting' THEN clock.now ELSE r.updated_at END`

	receiptSQL = `
SELECT p.body, ` + receiptColumns + ` FROM resumes AS p
WHERE p.key = sha256(sha256($1) || sha256($2) || sha256($3)) AND p.account = $1`
)

// Decide records a decision; see [store.Runs].
func (s *Store) Decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	if len(d.Answers) == 0 {
		receipt, err := s.replay(ctx, d)
		if err == store.ErrNotFound {
			err = store.ErrInvalid
		}
		return receipt, err
	}
	var t txn
	var receipt store.DecisionReceipt
	locked, given := false, false
	t.lockRun(&locked, lockRunSQL, d.Account, d.Run)
	said := []any{d.Account, d.Run, d.Actor, d.ResumeID, d.BodyDigest, d.Via}
	var made string
	t.queryRow(&given, append(receiptDest(&receipt), &made), decideSQL, append(said, answerColumns(d)...)...)
	work := new(claimResult)
	if d.Claim != nil {
		work = t.claim(claimDecidedSQL, d.Claim.Owner, micros(d.Claim.Lease), d.Account)
	}
	// Last, because it takes the lock of the account's audit log, for which all other decisions of
	// the account wait until the commit.
	if err := t.applyWrites(d.Account, d.Writes); err != nil {
		return store.DecisionReceipt{}, err
	}
	switch err := s.update(ctx, "decide in", &t); {
	case violates(err, "approve_says_what"):
		return store.DecisionReceipt{}, store.ErrInvalid
	case err != nil:
		return store.DecisionReceipt{}, err
	}
	if !given {
		known, err := s.replay(ctx, d)
		switch {
		case errors.Is(err, store.ErrNotFound) && locked:
			err = store.ErrStale
		case errors.Is(err, store.ErrNotFound):
			known = store.DecisionReceipt{Run: d.Run, Result: store.ResultNotFound, Interrupt: d.Answers[0].Interrupt}
			known.At, err = s.Now(ctx)
		}
		return known, err
	}
	receipt.Claimed = work.claimedRun()
	if receipt.Result == store.ResultAccepted {
		s.publish(d.Account, d.Run)
	}
	return receipt, nil
}

// answerColumns returns the arguments of decideSQL for the answers, and whether there are writes.
// Of several answers to one interrupt the last counts, at the position of the first.
func answerColumns(d store.Decision) []any {
	answers := d.Answers
	interrupts, verdicts := make([][]byte, len(answers)), make([]string, len(answers))
	shown, finals, data := make([][]byte, len(answers)), make([][]byte, len(answers)), make([][]byte, len(answers))
	counts, places := make([]bool, len(answers)), make([]int32, len(answers))
	last := make(map[string]int, len(answers))
	for i, a := range answers {
		interrupts[i], verdicts[i] = []byte(a.Interrupt), string(a.Verdict)
		shown[i], finals[i], data[i] = []byte(a.ShownDigest), []byte(a.ApprovedDigest), a.Data
		counts[i], places[i] = true, int32(len(last)+1)
		if before, again := last[a.Interrupt]; again {
			counts[before], places[i] = false, places[before]
		}
		last[a.Interrupt] = i
	}
	return []any{interrupts, verdicts, shown, finals, data, counts, places, len(last), !d.Writes.IsEmpty()}
}

// replay returns the existing receipt of a resume id.
func (s *Store) replay(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	receipt, body, err := s.receipt(ctx, d.Account, d.Actor, d.ResumeID)
	if err == nil && body != d.BodyDigest { //mutate:postgres-resume-id-conflict
		return store.DecisionReceipt{}, store.ErrResumeIDReused
	}
	return receipt, err
}

// receipt returns the receipt of a resume id and the digest of its body.
func (s *Store) receipt(ctx context.Context, account, actor, id string) (receipt store.DecisionReceipt, body string, err error) {
	var t txn
	known := false
	t.queryRow(&known, append([]any{nameScanner{&body}}, receiptDest(&receipt)...), receiptSQL, account, actor, id)
	if err := s.view(ctx, "read a receipt in", &t); err != nil {
		return store.DecisionReceipt{}, "", err
	}
	if !known {
		return store.DecisionReceipt{}, "", store.ErrNotFound
	}
	receipt.Replayed = true
	return receipt, body, nil
}

// Receipt returns the receipt of a resume id; see [store.Runs].
func (s *Store) Receipt(ctx context.Context, account, actor, resumeID string) (store.DecisionReceipt, error) {
	receipt, _, err := s.receipt(ctx, account, actor, resumeID)
	return receipt, err
}
