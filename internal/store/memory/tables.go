package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// tables implements the protocol of [store.Runs] without locks, clocks and disks. It is the
// reference for the SQL of the other stores. The model check explores this code.
type tables struct {
	runs        map[store.Key]*runRow
	resumes     map[resumeKey]*resumeRow
	effects     map[effectKey]*store.Effect
	named       map[string][]byte
	readyCount  int64 // number of transitions to ready, for the order of claims
	events      eventLog
	credentials map[string]store.Credential
	documents   map[documentKey]*store.Document
	audit       map[string]*auditChain
}

type runRow struct {
	store.Run
	interrupts []*store.Interrupt // in the order in which they became visible
	readyAt    int64
	notBefore  time.Time // ready, but not to be claimed before
	events     int64     // number of events
}

type resumeKey struct{ account, actor, id string }

type resumeRow struct {
	store.DecisionReceipt
	bodyDigest string
}

func (r *resumeRow) replay() store.DecisionReceipt {
	receipt := r.DecisionReceipt
	receipt.Replayed = true
	return receipt
}

type effectKey struct {
	account, interrupt string
	attempt            int
}

func newTables() tables {
	return tables{
		runs: make(map[store.Key]*runRow), resumes: make(map[resumeKey]*resumeRow), effects: make(map[effectKey]*store.Effect),
		named: make(map[string][]byte), documents: make(map[documentKey]*store.Document), audit: make(map[string]*auditChain),
	}
}

// newest returns the newest run of a state key, or nil.
func (b *tables) newest(account, stateKey string) *runRow {
	var newest *runRow
	for key, run := range b.runs {
		//mutate:memory-state-key-account
		if key.Account == account && run.StateKey == stateKey && (newest == nil || run.Generation > newest.Generation) {
			newest = run
		}
	}
	return newest
}

func (b *tables) create(now time.Time, n store.NewRun) (store.Lease, error) {
	if n.ID == "" || n.StateKey == "" {
		return store.Lease{}, store.ErrInvalid
	}
	newest := 0
	if last := b.newest(n.Account, n.StateKey); last != nil {
		if last.Status.Active() { //mutate:memory-one-live-run
			return store.Lease{}, store.ErrExists
		}
		newest = last.Generation
	}
	if newest != n.AfterGeneration {
		return store.Lease{}, store.ErrExists
	}
	key := store.Key{Account: n.Account, Run: n.ID}
	if b.runs[key] != nil {
		return store.Lease{}, store.ErrExists
	}
	write, err := b.prepareWrites(now, n.Account, n.Writes)
	if err != nil {
		return store.Lease{}, err
	}
	run := &runRow{Run: store.Run{
		Account: n.Account, ID: n.ID, StateKey: n.StateKey, Generation: n.AfterGeneration + 1, Provider: n.Provider, Graph: n.Graph,
		ProviderRef: n.ProviderRef, Input: n.Input, InputDigest: n.InputDigest, Status: store.StatusRunning, Fence: 1, Owner: n.Owner, LeaseUntil: now.Add(n.Lease),
		Created: now, Updated: now,
	}}
	b.runs[key] = run
	b.addEvent(now, run, store.EventCreated, "")
	write()
	return store.Lease{Account: n.Account, Run: n.ID, Fence: 1}, nil
}

func (b *tables) claim(now time.Time, c store.Claim) *store.ClaimedRun {
	var best *runRow
	for _, run := range b.runs {
		if c.Run != "" && (run.ID != c.Run || run.Account != c.Account) || !claimable(run, now) {
			continue
		}
		if best == nil || claimedBefore(run, best) {
			best = run
		}
	}
	if best == nil {
		return nil
	}
	takenOver := best.Status == store.StatusRunning
	best.Status, best.Owner, best.LeaseUntil, best.Updated = store.StatusRunning, c.Owner, now.Add(c.Lease), now
	best.Fence++ //mutate:memory-claim-raises-fence
	if takenOver {
		best.Attempts++
	}
	work := &store.ClaimedRun{Lease: store.Lease{Account: best.Account, Run: best.ID, Fence: best.Fence}, Run: best.Run, TakenOver: takenOver}
	for _, i := range best.interrupts {
		if i.State == store.InterruptDecided && !i.Applied {
			work.Decided = append(work.Decided, *i)
		}
	}
	return work
}

func claimable(run *runRow, now time.Time) bool {
	//mutate:memory-claim-expired-only
	return run.Status == store.StatusReady && !run.notBefore.After(now) || run.Status == store.StatusRunning && !run.LeaseUntil.After(now)
}

// claimedBefore orders claims: ready runs first, the longest ready one first; then runs whose lease
// expired.
func claimedBefore(a, b *runRow) bool {
	if a.Status != b.Status {
		return a.Status == store.StatusReady
	}
	if a.Status == store.StatusReady {
		return a.readyAt < b.readyAt
	}
	return a.LeaseUntil.Before(b.LeaseUntil) || a.LeaseUntil.Equal(b.LeaseUntil) && cmp.Less(a.ID, b.ID)
}

// owned returns the run of a lease that is still valid.
func (b *tables) owned(lease store.Lease) (*runRow, error) {
	run := b.runs[store.Key{Account: lease.Account, Run: lease.Run}]
	if run == nil || run.Status != store.StatusRunning || run.Fence != lease.Fence { //mutate:memory-lease-fence
		return nil, store.ErrFenced
	}
	return run, nil
}

func (b *tables) endExecution(now time.Time, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	run, err := b.owned(lease)
	if err != nil {
		return "", err
	}
	write, err := b.prepareWrites(now, run.Account, end.Writes)
	if err != nil {
		return "", err
	}
	for _, i := range run.interrupts {
		//mutate:memory-applied-by-provider
		if slices.Contains(end.Applied, i.ID) && i.State == store.InterruptDecided && !i.Applied {
			i.Applied = true
			for key, resume := range b.resumes {
				//mutate:memory-first-outcome
				if key.account == run.Account && key.id == i.ResumeID && key.actor == i.DecidedBy && resume.Outcome == nil {
					// the first outcome is kept: a resume id has one receipt
					resume.Outcome = end.Outcome
				}
			}
		}
	}
	b.showInterrupts(now, run, end.Open, end.Writes.RequestIDs())
	run.Outcome, run.Attempts = end.Outcome, 0
	b.addEvent(now, run, store.EventKind(end.Status), "")
	b.releaseOwner(now, run, end.Status)
	write()
	return run.Status, nil
}

// showInterrupts makes open interrupts visible and withdraws the others. changed lists the requests
// that are changed in the same transaction.
func (b *tables) showInterrupts(now time.Time, run *runRow, open []store.NewInterrupt, changed []string) {
	for _, i := range run.interrupts {
		still := slices.ContainsFunc(open, func(n store.NewInterrupt) bool { return n.ID == i.ID })
		if i.State == store.InterruptPending && !still {
			i.State = store.InterruptWithdrawn
			if !slices.Contains(changed, i.ID) {
				b.reviseWithdrawnRequest(now, i)
			}
			b.addEvent(now, run, store.EventWithdrawn, i.ID)
		}
		if i.State == store.InterruptWithdrawn && still {
			i.State = store.InterruptPending
			b.addEvent(now, run, store.EventAsked, i.ID)
		}
	}
	for _, n := range open {
		if slices.ContainsFunc(run.interrupts, func(i *store.Interrupt) bool { return i.ID == n.ID }) {
			continue
		}
		i := &store.Interrupt{Account: run.Account, Run: run.ID, NewInterrupt: n, Created: now, State: store.InterruptPending}
		if n.Timeout > 0 {
			i.Deadline = now.Add(n.Timeout)
		}
		run.interrupts = append(run.interrupts, i)
		b.addEvent(now, run, store.EventAsked, i.ID)
	}
}

// releaseOwner removes the owner. The run becomes ready if it has a decision that was not applied.
func (b *tables) releaseOwner(now time.Time, run *runRow, status store.Status) {
	unapplied := slices.ContainsFunc(run.interrupts, func(i *store.Interrupt) bool { return i.State == store.InterruptDecided && !i.Applied })
	run.Owner, run.LeaseUntil, run.Updated = "", time.Time{}, now
	if unapplied && status == store.StatusWaiting { //mutate:memory-settle-sees-decision
		b.wake(now, run)
		return
	}
	run.Status = status
}

// wake makes a run ready.
func (b *tables) wake(now time.Time, run *runRow) {
	b.readyCount++
	run.Status, run.readyAt, run.notBefore, run.Updated = store.StatusReady, b.readyCount, time.Time{}, now
	b.events.touch(run)
}

func (b *tables) release(now time.Time, lease store.Lease, r store.Release) error {
	run, err := b.owned(lease)
	if err != nil {
		return err
	}
	run.Owner, run.LeaseUntil, run.Updated = "", time.Time{}, now
	run.Attempts++
	if r.Park {
		run.Status = store.StatusParked
		b.addEvent(now, run, store.EventParked, "")
		return nil
	}
	b.wake(now, run)
	run.notBefore = now.Add(r.Delay)
	return nil
}

func (b *tables) retry(now time.Time, account, id string, writes store.Writes) (store.Run, error) {
	run := b.runs[store.Key{Account: account, Run: id}]
	failed := run != nil && run.Status == store.StatusFailed && b.newest(account, run.StateKey) == run
	if run == nil || run.Status != store.StatusParked && !failed {
		return store.Run{}, store.ErrNotFound
	}
	write, err := b.prepareWrites(now, account, writes)
	if err != nil {
		return store.Run{}, err
	}
	write()
	run.Attempts = 0
	b.wake(now, run)
	return run.Run, nil
}

func (b *tables) decide(now time.Time, d store.Decision) (store.DecisionReceipt, error) {
	key := resumeKey{d.Account, d.Actor, d.ResumeID}
	if known := b.resumes[key]; known != nil { //mutate:memory-resume-id-known
		if known.bodyDigest != d.BodyDigest { //mutate:memory-resume-id-conflict
			return store.DecisionReceipt{}, store.ErrResumeIDReused
		}
		return known.replay(), nil
	}
	if len(d.Answers) == 0 {
		return store.DecisionReceipt{}, store.ErrInvalid
	}
	receipt := store.DecisionReceipt{Run: d.Run, Result: store.ResultAccepted, At: now}
	run := b.runs[store.Key{Account: d.Account, Run: d.Run}] //mutate:memory-decision-account
	for _, answer := range d.Answers {
		if result := run.check(now, answer); result != store.ResultAccepted {
			receipt.Result, receipt.Interrupt = result, answer.Interrupt //mutate:memory-refused-together
			break
		}
	}
	switch {
	case run == nil:
		return receipt, nil
	case receipt.Result != store.ResultAccepted && !d.Writes.IsEmpty(): //mutate:memory-refusal-not-final
		return store.DecisionReceipt{}, store.ErrStale
	}
	if receipt.Result == store.ResultAccepted {
		write, err := b.prepareWrites(now, d.Account, d.Writes)
		switch {
		case run.lacksActionDigest(d):
			err = store.ErrInvalid
		case err == nil && !b.changesRequests(d): //mutate:memory-decision-has-request
			err = store.ErrStale
		}
		if err != nil {
			return store.DecisionReceipt{}, err
		}
		for _, answer := range d.Answers {
			i := run.interrupt(answer.Interrupt)
			// otherwise it is a second answer to the same interrupt; the last one counts
			if i.State != store.InterruptDecided {
				b.addEvent(now, run, store.EventDecided, i.ID)
			}
			i.State, i.Verdict, i.ApprovedDigest, i.Answer = store.InterruptDecided, answer.Verdict, answer.ApprovedDigest, answer.Data
			i.DecidedBy, i.DecidedVia, i.Source, i.DecidedAt, i.ResumeID = d.Actor, d.Via, store.SourcePerson, now, d.ResumeID
		}
		// a decided interrupt has no deadline that could move
		write()
		if run.Status == store.StatusWaiting { //mutate:memory-decision-wakes
			b.wake(now, run)
		}
	}
	b.resumes[key] = &resumeRow{DecisionReceipt: receipt, bodyDigest: d.BodyDigest}
	if receipt.Result == store.ResultAccepted && d.Claim != nil {
		receipt.Claimed = b.claim(now, store.Claim{Owner: d.Claim.Owner, Lease: d.Claim.Lease, Account: d.Account, Run: d.Run})
	}
	return receipt, nil
}

// lacksActionDigest reports whether a decision approves an action without its digest. Of two
// answers to one interrupt the last counts.
func (run *runRow) lacksActionDigest(d store.Decision) bool {
	said := make(map[string]bool)
	for _, answer := range slices.Backward(d.Answers) {
		i := run.interrupt(answer.Interrupt)
		if !said[i.ID] && answer.Verdict == store.VerdictApprove && answer.ApprovedDigest == "" && i.ActionDigest != "" {
			return true
		}
		said[i.ID] = true
	}
	return false
}

func (run *runRow) interrupt(id string) *store.Interrupt {
	if run == nil {
		return nil
	}
	for _, i := range run.interrupts {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// check returns why an answer cannot be accepted, or ResultAccepted.
func (run *runRow) check(now time.Time, answer store.Answer) store.DecisionResult {
	i := run.interrupt(answer.Interrupt)
	switch {
	case i == nil:
		return store.ResultNotFound
	case i.State == store.InterruptDecided: //mutate:memory-already-decided
		return store.ResultAlreadyDecided
	case i.State == store.InterruptWithdrawn || !run.Status.Active(): //mutate:memory-withdrawn-refused
		return store.ResultWithdrawn
	case !i.Deadline.IsZero() && !i.Deadline.After(now): //mutate:memory-decision-in-time
		return store.ResultExpired
	case answer.ShownDigest != "" && answer.ShownDigest != i.ShownDigest: //mutate:memory-shown-compared
		return store.ResultDigestMismatch
	}
	return store.ResultAccepted
}

func (b *tables) expire(now, until time.Time, limit int, with func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	var due []*store.Interrupt
	for _, run := range b.runs {
		for _, i := range run.interrupts {
			//mutate:memory-expiry-due
			if run.Status.Active() && i.State == store.InterruptPending && !i.Deadline.IsZero() && !i.Deadline.After(now) && (until.IsZero() || !i.Deadline.After(until)) {
				due = append(due, i)
			}
		}
	}
	slices.SortFunc(due, func(a, b *store.Interrupt) int { return a.Deadline.Compare(b.Deadline) })
	var expired []store.Interrupt
	for _, i := range due[:min(limit, len(due))] {
		write := func() {}
		if with != nil {
			writes := with(*i, b.request(i))
			err := writes.Validate()
			if err != nil {
				return expired, err
			}
			if write, err = b.prepareWrites(now, i.Account, writes); err != nil {
				continue
			}
			if writes.Postpones(i.ID) { //mutate:memory-postponed-not-expired
				write()
				continue
			}
		}
		//mutate:memory-expiry-verdict
		i.State, i.Verdict, i.Source, i.DecidedBy, i.DecidedAt = store.InterruptDecided, store.VerdictExpire, store.SourceClock, "clock", now
		write()
		run := b.runs[store.Key{Account: i.Account, Run: i.Run}]
		b.addEvent(now, run, store.EventExpired, i.ID)
		if run.Status == store.StatusWaiting {
			b.wake(now, run)
		}
		expired = append(expired, *i)
	}
	return expired, nil
}

// waitsFor reports whether ids are exactly the pending interrupts of the run.
func (r *runRow) waitsFor(ids []string) bool {
	var pending []string
	for _, i := range r.interrupts {
		if i.State == store.InterruptPending {
			pending = append(pending, i.ID)
		}
	}
	slices.Sort(pending)
	return slices.Equal(pending, slices.Sorted(slices.Values(ids)))
}

func (b *tables) cancel(now time.Time, account, id string, as store.Status, waits []string, writes store.Writes) (store.Run, error) {
	run := b.runs[store.Key{Account: account, Run: id}]
	if run == nil || !run.Status.Active() {
		return store.Run{}, store.ErrNotFound
	}
	if waits != nil && !run.waitsFor(waits) { //mutate:memory-cancel-knows-interrupts
		return store.Run{}, store.ErrStale
	}
	write, err := b.prepareWrites(now, account, writes)
	if err != nil {
		return store.Run{}, err
	}
	b.showInterrupts(now, run, nil, writes.RequestIDs())
	write()
	run.Status, run.Owner, run.LeaseUntil, run.Updated = as, "", time.Time{}, now
	run.Fence++ //mutate:memory-cancel-raises-fence
	b.addEvent(now, run, store.EventKind(as), "")
	return run.Run, nil
}
