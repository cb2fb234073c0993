package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/fermata-go/fermata/store"
)

const (
	resumeSQL = `SELECT s.body, ` + receiptColumns + ` FROM resumes AS s WHERE s.account = ?1 AND s.actor = ?2 AND s.id = ?3`

	// refusalSQL says why an answer cannot be taken, or 'accepted'; without a row there is no such interrupt in this run. The
	// order of the reasons is the port's.
	//mutate:sqlite-decide-checks
	refusalSQL = `
SELECT CASE
       WHEN i.state = 'decided' THEN 'already_decided'
       WHEN i.state = 'withdrawn' OR NOT r.` + alive + ` THEN 'superseded'
       WHEN i.deadline <= ?4 THEN 'expired'
       WHEN length(?5) > 0 AND i.shown <> ?5 THEN 'digest_mismatch'
       ELSE 'accepted' END
FROM interrupts AS i JOIN runs AS r ON r.account = i.account AND r.run = i.run
WHERE i.account = ?1 AND i.id = ?2 AND i.run = ?3`

	recordSQL = `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

	// decideSQL and expireSQL are the compare-and-set of the write-once register that an interrupt is: whoever finds it
	// pending has decided it, be it a person or the clock.
	decideSQL = `
UPDATE interrupts SET state = 'decided', verdict = ?3, final = ?4, answer = ?5, decided_by = ?6, via = ?7, source = 'person',
       resume = ?8, decided_at = ?9
WHERE account = ?1 AND id = ?2 AND state = 'pending' AND (deadline IS NULL OR deadline > ?9)`

	expireSQL = `
UPDATE interrupts SET state = 'decided', verdict = 'expire', final = x'', decided_by = ?3, via = x'', source = 'clock', decided_at = ?4
WHERE account = ?1 AND id = ?2 AND state = 'pending' AND deadline <= ?4`

	// CROSS JOIN keeps the order: from what is due to its run, and never from the runs to what they ask.
	dueSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i INDEXED BY interrupts_due
CROSS JOIN runs AS r ON r.account = i.account AND r.run = i.run
WHERE i.state = 'pending' AND i.deadline <= ?1 AND r.` + alive + `
ORDER BY i.deadline LIMIT ?2`
)

// theClock is who decided what was over its deadline.
const theClock = "clock"

// Decide records a decision; see [store.Runs].
func (s *Store) Decide(ctx context.Context, decision store.Decision) (store.Receipt, error) {
	if err := decision.Beside.Check(); err != nil {
		return store.Receipt{}, err
	}
	return do(ctx, s, "decide in", func(ctx context.Context, t turn) (store.Receipt, error) { return t.decide(ctx, decision) })
}

func (t turn) decide(ctx context.Context, d store.Decision) (store.Receipt, error) {
	receipt, body, known, err := t.resume(ctx, d.Account, d.Actor, d.ResumeID)
	switch {
	case err != nil:
		return store.Receipt{}, err
	case known && body != d.Body: //mutate:sqlite-resume-id-conflict
		return store.Receipt{}, store.ErrReused
	case known:
		return receipt, nil
	case len(d.Answers) == 0:
		return store.Receipt{}, store.ErrKey
	}
	if receipt, err = t.judge(ctx, d); err != nil {
		return store.Receipt{}, err
	}
	if receipt.Result == store.Unknown {
		var status store.Status
		if there, err := t.find(ctx, []any{&status}, statusSQL, d.Account, d.Run); err != nil || !there {
			return receipt, err
		}
	}
	if receipt.Result != store.Accepted && !d.Beside.IsEmpty() { //mutate:sqlite-refusal-not-final
		return store.Receipt{}, store.ErrStale
	}
	if _, err := t.exec(ctx, recordSQL, d.Account, d.Actor, d.ResumeID, d.Body, receipt.Run, receipt.Result, receipt.Interrupt, t.now); err != nil {
		return store.Receipt{}, err
	}
	if receipt.Result != store.Accepted {
		return receipt, nil
	}
	if err := t.bring(ctx, d); err != nil {
		return store.Receipt{}, err
	}
	if err := t.wake(ctx, d.Account, d.Run); err != nil { //mutate:sqlite-decision-wakes
		return store.Receipt{}, err
	}
	for _, a := range d.Answers {
		if err := t.answer(ctx, d, a.Interrupt); err != nil {
			return store.Receipt{}, err
		}
	}
	if d.Claim != nil {
		receipt.Work, err = t.claim(ctx, store.Claim{Owner: d.Claim.Owner, Lease: d.Claim.Lease, Account: d.Account, Run: d.Run})
	}
	return receipt, err
}

// answer decides an interrupt, unless that was done a moment ago: of two answers to one interrupt the last counts.
func (t turn) answer(ctx context.Context, d store.Decision, interrupt string) error {
	var last store.Answer
	for _, a := range d.Answers {
		if a.Interrupt == interrupt {
			last = a
		}
	}
	decided, err := t.exec(ctx, decideSQL, d.Account, interrupt, last.Verdict, last.Final, last.Data, d.Actor, d.Via, d.ResumeID, t.now)
	switch {
	case err != nil && strings.Contains(err.Error(), "approve_says_what"): // the driver tells the name of the constraint in no other way
		return store.ErrKey
	case err != nil || decided == 0:
		return err
	}
	return t.note(ctx, d.Account, d.Run, store.EventDecided, interrupt)
}

// judge says what becomes of a decision, and changes nothing. One answer that cannot be taken stands for all.
func (t turn) judge(ctx context.Context, d store.Decision) (store.Receipt, error) {
	receipt := store.Receipt{Run: d.Run, Result: store.Accepted, At: atMicro(t.now)}
	for _, a := range d.Answers {
		result := store.Unknown
		if _, err := t.find(ctx, []any{&result}, refusalSQL, d.Account, a.Interrupt, d.Run, t.now, a.Shown); err != nil {
			return store.Receipt{}, err
		}
		if result != store.Accepted {
			receipt.Result, receipt.Interrupt = result, a.Interrupt
			break
		}
	}
	return receipt, nil
}

// resume returns the receipt of a resume id and the digest of what was said.
func (t turn) resume(ctx context.Context, account, actor, id string) (receipt store.Receipt, body string, known bool, err error) {
	receipt.Replayed = true
	dest := append([]any{&body}, receiptDest(&receipt)...)
	known, err = t.find(ctx, dest, resumeSQL, account, actor, id)
	return receipt, body, known, err
}

// Resumed returns the receipt of a resume id; see [store.Runs].
func (s *Store) Resumed(ctx context.Context, account, actor, resumeID string) (store.Receipt, error) {
	receipt, _, known, err := s.look().resume(ctx, account, actor, resumeID)
	if err == nil && !known {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Receipt{}, s.fail(ctx, "look up a resume in", err)
	}
	return receipt, nil
}

// Expire decides what is over its deadline; see [store.Runs]. A call that finds nothing does not disturb those who write.
func (s *Store) Expire(ctx context.Context, until time.Time, limit int, beside func(store.Interrupt, *store.Paper) store.Beside) ([]store.Interrupt, error) {
	const op = "expire interrupts of"
	if due, err := s.look().due(ctx, until, min(limit, 1)); err != nil {
		return nil, s.fail(ctx, op, err)
	} else if len(due) == 0 {
		return nil, nil
	}
	return do(ctx, s, op, func(ctx context.Context, t turn) ([]store.Interrupt, error) {
		return t.expire(ctx, until, limit, beside)
	})
}

func (t turn) due(ctx context.Context, until time.Time, limit int) ([]store.Interrupt, error) {
	by := t.now
	if !until.IsZero() {
		by = min(by, until.UnixMicro())
	}
	return list(ctx, t, scanInterrupt, dueSQL, by, max(limit, 0)) // to SQLite, a negative limit is none
}

func (t turn) expire(ctx context.Context, until time.Time, limit int, beside func(store.Interrupt, *store.Paper) store.Beside) ([]store.Interrupt, error) {
	due, err := t.due(ctx, until, limit)
	if err != nil {
		return nil, err
	}
	var expired []store.Interrupt
	for _, i := range due {
		if left, err := t.besideExpiry(ctx, i, beside); err != nil {
			return nil, err
		} else if left {
			continue
		}
		if err := t.wake(ctx, i.Account, i.Run); err != nil {
			return nil, err
		}
		if _, err := t.exec(ctx, expireSQL, i.Account, i.ID, theClock, t.now); err != nil {
			return nil, err
		}
		if err := t.note(ctx, i.Account, i.Run, store.EventExpired, i.ID); err != nil {
			return nil, err
		}
		i.State, i.Verdict, i.Source, i.By, i.At = store.Decided, store.Expired, store.Clock, theClock, atMicro(t.now)
		expired = append(expired, i)
	}
	return expired, nil
}

// besideExpiry writes what goes with an expiry. The request is read in this very transaction; another paper may be stale, and then the
// interrupt is left for later, and holds up no other. It is left, too, if it is put off.
func (t turn) besideExpiry(ctx context.Context, i store.Interrupt, beside func(store.Interrupt, *store.Paper) store.Beside) (left bool, err error) {
	if beside == nil {
		return false, nil
	}
	request, err := t.paper(ctx, i.Account, store.RequestPaper, i.ID)
	if err != nil {
		return false, err
	}
	with := beside(i, request)
	if err := with.Check(); err != nil {
		return false, err
	}
	//mutate:sqlite-stale-does-not-expire
	if stale, err := t.stale(ctx, i.Account, with.Papers); err != nil || stale {
		return stale, err
	}
	if with.PutsOff(i.ID) { //mutate:sqlite-postponed-not-expired
		return true, t.beside(ctx, i.Account, with)
	}
	return false, t.besideDecided(ctx, i.Account, with, i.ID)
}
