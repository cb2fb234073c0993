package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/fermata-go/fermata/store"
)

// book is the protocol of [store.Runs] without locks, clocks and disks: what the SQL of the other stores has to come to. The
// model check explores this very code.
type book struct {
	runs        map[store.Key]*bookedRun
	resumes     map[resumeKey]*bookedResume
	effects     map[effectKey]*store.Effect
	once        map[string][]byte
	ready       int64 // counts how often a run became ready, for the order of claims
	log         chronicle
	credentials map[string]store.Credential
	papers      map[paperKey]*store.Paper
	audit       map[string]*logbook
}

type bookedRun struct {
	store.Run
	asked   []*store.Interrupt // in the order in which they became visible
	readyAt int64
	delayed time.Time // it is ready, but not before that
	events  int64     // how many it has
}

type resumeKey struct{ account, actor, id string }

type bookedResume struct {
	store.Receipt
	body string
}

func (r *bookedResume) again() store.Receipt {
	receipt := r.Receipt
	receipt.Replayed = true
	return receipt
}

type effectKey struct {
	account, interrupt string
	number             int
}

func newBook() book {
	return book{
		runs: make(map[store.Key]*bookedRun), resumes: make(map[resumeKey]*bookedResume), effects: make(map[effectKey]*store.Effect),
		once: make(map[string][]byte), papers: make(map[paperKey]*store.Paper), audit: make(map[string]*logbook),
	}
}

// newest is the newest run of a state key, or nil.
func (b *book) newest(account, stateKey string) *bookedRun {
	var newest *bookedRun
	for key, run := range b.runs {
		//mutate:memory-state-key-account
		if key.Account == account && run.StateKey == stateKey && (newest == nil || run.Generation > newest.Generation) {
			newest = run
		}
	}
	return newest
}

func (b *book) create(now time.Time, n store.NewRun) (store.Lease, error) {
	if n.ID == "" || n.StateKey == "" {
		return store.Lease{}, store.ErrKey
	}
	newest := 0
	if last := b.newest(n.Account, n.StateKey); last != nil {
		if last.Status.Alive() { //mutate:memory-one-live-run
			return store.Lease{}, store.ErrExists
		}
		newest = last.Generation
	}
	if newest != n.After {
		return store.Lease{}, store.ErrExists
	}
	key := store.Key{Account: n.Account, Run: n.ID}
	if b.runs[key] != nil {
		return store.Lease{}, store.ErrExists
	}
	write, err := b.beside(now, n.Account, n.Beside)
	if err != nil {
		return store.Lease{}, err
	}
	run := &bookedRun{Run: store.Run{
		Account: n.Account, ID: n.ID, StateKey: n.StateKey, Generation: n.After + 1, Provider: n.Provider, Graph: n.Graph,
		Ref: n.Ref, Input: n.Input, InputDigest: n.InputDigest, Status: store.Running, Fence: 1, Owner: n.Owner, Until: now.Add(n.Lease),
		Created: now, Updated: now,
	}}
	b.runs[key] = run
	b.note(now, run, store.EventCreated, "")
	write()
	return store.Lease{Account: n.Account, Run: n.ID, Fence: 1}, nil
}

func (b *book) claim(now time.Time, c store.Claim) *store.Work {
	var best *bookedRun
	for _, run := range b.runs {
		if c.Run != "" && (run.ID != c.Run || run.Account != c.Account) || !claimable(run, now) {
			continue
		}
		if best == nil || before(run, best) {
			best = run
		}
	}
	if best == nil {
		return nil
	}
	takenOver := best.Status == store.Running
	best.Status, best.Owner, best.Until, best.Updated = store.Running, c.Owner, now.Add(c.Lease), now
	best.Fence++ //mutate:memory-claim-raises-fence
	if takenOver {
		best.Attempts++
	}
	work := &store.Work{Lease: store.Lease{Account: best.Account, Run: best.ID, Fence: best.Fence}, Run: best.Run, TakenOver: takenOver}
	for _, i := range best.asked {
		if i.State == store.Decided && !i.Applied {
			work.Decided = append(work.Decided, *i)
		}
	}
	return work
}

func claimable(run *bookedRun, now time.Time) bool {
	//mutate:memory-claim-expired-only
	return run.Status == store.Ready && !run.delayed.After(now) || run.Status == store.Running && !run.Until.After(now)
}

// before says which of two runs is claimed first: the ready ones, the longest ready first; then those whose lease is over.
func before(a, b *bookedRun) bool {
	if a.Status != b.Status {
		return a.Status == store.Ready
	}
	if a.Status == store.Ready {
		return a.readyAt < b.readyAt
	}
	return a.Until.Before(b.Until) || a.Until.Equal(b.Until) && cmp.Less(a.ID, b.ID)
}

// owned returns the run of a lease that is still good.
func (b *book) owned(lease store.Lease) (*bookedRun, error) {
	run := b.runs[store.Key{Account: lease.Account, Run: lease.Run}]
	if run == nil || run.Status != store.Running || run.Fence != lease.Fence { //mutate:memory-lease-fence
		return nil, store.ErrFenced
	}
	return run, nil
}

func (b *book) rest(now time.Time, lease store.Lease, rest store.Rest) (store.Status, error) {
	run, err := b.owned(lease)
	if err != nil {
		return "", err
	}
	write, err := b.beside(now, run.Account, rest.Beside)
	if err != nil {
		return "", err
	}
	for _, i := range run.asked {
		//mutate:memory-applied-by-provider
		if slices.Contains(rest.Applied, i.ID) && i.State == store.Decided && !i.Applied {
			i.Applied = true
			for key, resume := range b.resumes {
				//mutate:memory-first-outcome
				if key.account == run.Account && key.id == i.ResumeID && key.actor == i.By && resume.Outcome == nil {
					resume.Outcome = rest.Outcome // the first stands: a resume id has one answer
				}
			}
		}
	}
	b.show(now, run, rest.Open, rest.Beside.Requests())
	run.Outcome, run.Attempts = rest.Outcome, 0
	b.note(now, run, store.EventKind(rest.Status), "")
	b.settle(now, run, rest.Status)
	write()
	return run.Status, nil
}

// show makes what is asked visible, and withdraws what is asked no longer. changed are requests that are changed with it.
func (b *book) show(now time.Time, run *bookedRun, open []store.NewInterrupt, changed []string) {
	for _, i := range run.asked {
		still := slices.ContainsFunc(open, func(n store.NewInterrupt) bool { return n.ID == i.ID })
		if i.State == store.Pending && !still {
			i.State = store.Withdrawn
			if !slices.Contains(changed, i.ID) {
				b.moveOn(now, i)
			}
			b.note(now, run, store.EventWithdrawn, i.ID)
		}
		if i.State == store.Withdrawn && still {
			i.State = store.Pending
			b.note(now, run, store.EventAsked, i.ID)
		}
	}
	for _, n := range open {
		if slices.ContainsFunc(run.asked, func(i *store.Interrupt) bool { return i.ID == n.ID }) {
			continue
		}
		i := &store.Interrupt{Account: run.Account, Run: run.ID, NewInterrupt: n, Created: now, State: store.Pending}
		if n.Timeout > 0 {
			i.Deadline = now.Add(n.Timeout)
		}
		run.asked = append(run.asked, i)
		b.note(now, run, store.EventAsked, i.ID)
	}
}

// settle takes the run from its owner. What was decided and not applied is still to be done.
func (b *book) settle(now time.Time, run *bookedRun, status store.Status) {
	unapplied := slices.ContainsFunc(run.asked, func(i *store.Interrupt) bool { return i.State == store.Decided && !i.Applied })
	run.Owner, run.Until, run.Updated = "", time.Time{}, now
	if unapplied && status == store.Waiting { //mutate:memory-settle-sees-decision
		b.wake(now, run)
		return
	}
	run.Status = status
}

// wake makes a run ready.
func (b *book) wake(now time.Time, run *bookedRun) {
	b.ready++
	run.Status, run.readyAt, run.delayed, run.Updated = store.Ready, b.ready, time.Time{}, now
	b.log.touch(run)
}

func (b *book) release(now time.Time, lease store.Lease, r store.Release) error {
	run, err := b.owned(lease)
	if err != nil {
		return err
	}
	run.Owner, run.Until, run.Updated = "", time.Time{}, now
	run.Attempts++
	if r.Park {
		run.Status = store.Parked
		b.note(now, run, store.EventParked, "")
		return nil
	}
	b.wake(now, run)
	run.delayed = now.Add(r.Delay)
	return nil
}

func (b *book) retry(now time.Time, account, id string, beside store.Beside) (store.Run, error) {
	run := b.runs[store.Key{Account: account, Run: id}]
	if run == nil || run.Status != store.Parked {
		return store.Run{}, store.ErrNotFound
	}
	write, err := b.beside(now, account, beside)
	if err != nil {
		return store.Run{}, err
	}
	write()
	run.Attempts = 0
	b.wake(now, run)
	return run.Run, nil
}

func (b *book) decide(now time.Time, d store.Decision) (store.Receipt, error) {
	key := resumeKey{d.Account, d.Actor, d.ResumeID}
	if known := b.resumes[key]; known != nil { //mutate:memory-resume-id-known
		if known.body != d.Body { //mutate:memory-resume-id-conflict
			return store.Receipt{}, store.ErrReused
		}
		return known.again(), nil
	}
	if len(d.Answers) == 0 {
		return store.Receipt{}, store.ErrKey
	}
	receipt := store.Receipt{Run: d.Run, Result: store.Accepted, At: now}
	run := b.runs[store.Key{Account: d.Account, Run: d.Run}] //mutate:memory-decision-account
	for _, answer := range d.Answers {
		if result := run.refusal(now, answer); result != store.Accepted {
			receipt.Result, receipt.Interrupt = result, answer.Interrupt //mutate:memory-refused-together
			break
		}
	}
	switch {
	case run == nil:
		return receipt, nil
	case receipt.Result != store.Accepted && !d.Beside.IsEmpty(): //mutate:memory-refusal-not-final
		return store.Receipt{}, store.ErrStale
	}
	if receipt.Result == store.Accepted {
		write, err := b.beside(now, d.Account, d.Beside)
		switch {
		case run.vague(d):
			err = store.ErrKey
		case err == nil && !b.brings(d): //mutate:memory-decision-has-request
			err = store.ErrStale
		}
		if err != nil {
			return store.Receipt{}, err
		}
		for _, answer := range d.Answers {
			i := run.find(answer.Interrupt)
			if i.State != store.Decided { // or it is the second answer to the same, of which the last counts
				b.note(now, run, store.EventDecided, i.ID)
			}
			i.State, i.Verdict, i.Final, i.Answer = store.Decided, answer.Verdict, answer.Final, answer.Data
			i.By, i.Via, i.Source, i.At, i.ResumeID = d.Actor, d.Via, store.Person, now, d.ResumeID
		}
		write()                          // what is decided has no deadline any more that could move
		if run.Status == store.Waiting { //mutate:memory-decision-wakes
			b.wake(now, run)
		}
	}
	b.resumes[key] = &bookedResume{Receipt: receipt, body: d.Body}
	if receipt.Result == store.Accepted && d.Claim != nil {
		receipt.Work = b.claim(now, store.Claim{Owner: d.Claim.Owner, Lease: d.Claim.Lease, Account: d.Account, Run: d.Run})
	}
	return receipt, nil
}

// vague reports whether a decision approves an action and does not say which. Of two answers to one interrupt the last counts.
func (run *bookedRun) vague(d store.Decision) bool {
	said := make(map[string]bool)
	for _, answer := range slices.Backward(d.Answers) {
		i := run.find(answer.Interrupt)
		if !said[i.ID] && answer.Verdict == store.Approve && answer.Final == "" && i.Action != "" {
			return true
		}
		said[i.ID] = true
	}
	return false
}

func (run *bookedRun) find(id string) *store.Interrupt {
	if run == nil {
		return nil
	}
	for _, i := range run.asked {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// refusal says why an answer cannot be taken, or Accepted.
func (run *bookedRun) refusal(now time.Time, answer store.Answer) store.Result {
	i := run.find(answer.Interrupt)
	switch {
	case i == nil:
		return store.Unknown
	case i.State == store.Decided: //mutate:memory-already-decided
		return store.AlreadyDecided
	case i.State == store.Withdrawn || !run.Status.Alive(): //mutate:memory-withdrawn-refused
		return store.Gone
	case !i.Deadline.IsZero() && !i.Deadline.After(now): //mutate:memory-decision-in-time
		return store.TooLate
	case answer.Shown != "" && answer.Shown != i.Shown: //mutate:memory-shown-compared
		return store.Mismatch
	}
	return store.Accepted
}

func (b *book) expire(now, until time.Time, limit int, with func(store.Interrupt, *store.Paper) store.Beside) ([]store.Interrupt, error) {
	var due []*store.Interrupt
	for _, run := range b.runs {
		for _, i := range run.asked {
			//mutate:memory-expiry-due
			if run.Status.Alive() && i.State == store.Pending && !i.Deadline.IsZero() && !i.Deadline.After(now) && (until.IsZero() || !i.Deadline.After(until)) {
				due = append(due, i)
			}
		}
	}
	slices.SortFunc(due, func(a, b *store.Interrupt) int { return a.Deadline.Compare(b.Deadline) })
	var expired []store.Interrupt
	for _, i := range due[:min(limit, len(due))] {
		write := func() {}
		if with != nil {
			beside := with(*i, b.request(i))
			err := beside.Check()
			if err != nil {
				return expired, err
			}
			if write, err = b.beside(now, i.Account, beside); err != nil {
				continue
			}
			if beside.PutsOff(i.ID) { //mutate:memory-postponed-not-expired
				write()
				continue
			}
		}
		//mutate:memory-expiry-verdict
		i.State, i.Verdict, i.Source, i.By, i.At = store.Decided, store.Expired, store.Clock, "clock", now
		write()
		run := b.runs[store.Key{Account: i.Account, Run: i.Run}]
		b.note(now, run, store.EventExpired, i.ID)
		if run.Status == store.Waiting {
			b.wake(now, run)
		}
		expired = append(expired, *i)
	}
	return expired, nil
}

// waitsFor reports whether these are the interrupts that a run waits for.
func (r *bookedRun) waitsFor(ids []string) bool {
	var pending []string
	for _, i := range r.asked {
		if i.State == store.Pending {
			pending = append(pending, i.ID)
		}
	}
	slices.Sort(pending)
	return slices.Equal(pending, slices.Sorted(slices.Values(ids)))
}

func (b *book) cancel(now time.Time, account, id string, as store.Status, waits []string, beside store.Beside) (store.Run, error) {
	run := b.runs[store.Key{Account: account, Run: id}]
	if run == nil || !run.Status.Alive() {
		return store.Run{}, store.ErrNotFound
	}
	if waits != nil && !run.waitsFor(waits) { //mutate:memory-cancel-knows-interrupts
		return store.Run{}, store.ErrStale
	}
	write, err := b.beside(now, account, beside)
	if err != nil {
		return store.Run{}, err
	}
	b.show(now, run, nil, beside.Requests())
	write()
	run.Status, run.Owner, run.Until, run.Updated = as, "", time.Time{}, now
	run.Fence++ //mutate:memory-cancel-raises-fence
	b.note(now, run, store.EventKind(as), "")
	return run.Run, nil
}
