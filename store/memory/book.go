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
	runs    map[store.Key]*bookedRun
	resumes map[resumeKey]*bookedResume
	effects map[effectKey]*store.Effect
	ready   int64 // counts how often a run became ready, for the order of claims
}

type bookedRun struct {
	store.Run
	asked   []*store.Interrupt // in the order in which they became visible
	readyAt int64
	delayed time.Time // it is ready, but not before that
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
	return book{runs: make(map[store.Key]*bookedRun), resumes: make(map[resumeKey]*bookedResume), effects: make(map[effectKey]*store.Effect)}
}

// newest is the newest run of a state key, or nil.
func (b *book) newest(account, stateKey string) *bookedRun {
	var newest *bookedRun
	for key, run := range b.runs {
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
	generation := 1
	if last := b.newest(n.Account, n.StateKey); last != nil {
		if last.Status.Alive() {
			return store.Lease{}, store.ErrExists
		}
		generation = last.Generation + 1
	}
	key := store.Key{Account: n.Account, Run: n.ID}
	if b.runs[key] != nil {
		return store.Lease{}, store.ErrExists
	}
	b.runs[key] = &bookedRun{Run: store.Run{
		Account: n.Account, ID: n.ID, StateKey: n.StateKey, Generation: generation, Provider: n.Provider, Graph: n.Graph,
		Ref: n.Ref, Input: n.Input, InputDigest: n.InputDigest, Status: store.Running, Fence: 1, Owner: n.Owner, Until: now.Add(n.Lease),
		Created: now, Updated: now,
	}}
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
	best.Fence++
	work := &store.Work{Lease: store.Lease{Account: best.Account, Run: best.ID, Fence: best.Fence}, Run: best.Run, TakenOver: takenOver}
	for _, i := range best.asked {
		if i.State == store.Decided && !i.Applied {
			work.Decided = append(work.Decided, *i)
		}
	}
	return work
}

func claimable(run *bookedRun, now time.Time) bool {
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
	if run == nil || run.Status != store.Running || run.Fence != lease.Fence {
		return nil, store.ErrFenced
	}
	return run, nil
}

func (b *book) rest(now time.Time, lease store.Lease, rest store.Rest) (store.Status, error) {
	run, err := b.owned(lease)
	if err != nil {
		return "", err
	}
	for _, i := range run.asked {
		if slices.Contains(rest.Applied, i.ID) && i.State == store.Decided && !i.Applied {
			i.Applied = true
			for key, resume := range b.resumes {
				if key.account == run.Account && key.id == i.ResumeID && key.actor == i.By && resume.Outcome == nil {
					resume.Outcome = rest.Outcome // the first stands: a resume id has one answer
				}
			}
		}
	}
	run.show(now, rest.Open)
	run.Outcome, run.Attempts = rest.Outcome, 0
	b.settle(now, run, rest.Status)
	return run.Status, nil
}

// show makes what is asked visible, and withdraws what is asked no longer.
func (run *bookedRun) show(now time.Time, open []store.NewInterrupt) {
	for _, i := range run.asked {
		still := slices.ContainsFunc(open, func(n store.NewInterrupt) bool { return n.ID == i.ID })
		if i.State == store.Pending && !still {
			i.State = store.Withdrawn
		}
		if i.State == store.Withdrawn && still {
			i.State = store.Pending
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
	}
}

// settle takes the run from its owner. What was decided and not applied is still to be done.
func (b *book) settle(now time.Time, run *bookedRun, status store.Status) {
	unapplied := slices.ContainsFunc(run.asked, func(i *store.Interrupt) bool { return i.State == store.Decided && !i.Applied })
	run.Owner, run.Until, run.Updated = "", time.Time{}, now
	knows := status == store.Parked && !b.doubtful(run) // what it was to wait for was said meanwhile
	if unapplied && status == store.Waiting || knows {
		b.wake(now, run)
		return
	}
	run.Status = status
}

// wake makes a run ready.
func (b *book) wake(now time.Time, run *bookedRun) {
	b.ready++
	run.Status, run.readyAt, run.delayed, run.Updated = store.Ready, b.ready, time.Time{}, now
}

func (b *book) release(now time.Time, lease store.Lease, delay time.Duration) error {
	run, err := b.owned(lease)
	if err != nil {
		return err
	}
	run.Owner, run.Until = "", time.Time{}
	run.Attempts++
	b.wake(now, run)
	run.delayed = now.Add(delay)
	return nil
}

func (b *book) decide(now time.Time, d store.Decision) (store.Receipt, error) {
	key := resumeKey{d.Account, d.Actor, d.ResumeID}
	if known := b.resumes[key]; known != nil {
		if known.body != d.Body {
			return store.Receipt{}, store.ErrReused
		}
		return known.again(), nil
	}
	if len(d.Answers) == 0 {
		return store.Receipt{}, store.ErrKey
	}
	receipt := store.Receipt{Run: d.Run, Result: store.Accepted, At: now}
	run := b.runs[store.Key{Account: d.Account, Run: d.Run}]
	for _, answer := range d.Answers {
		if result := run.refusal(now, answer); result != store.Accepted {
			receipt.Result, receipt.Interrupt = result, answer.Interrupt
			break
		}
	}
	if receipt.Result == store.Accepted {
		for _, answer := range d.Answers {
			i := run.find(answer.Interrupt)
			i.State, i.Verdict, i.Final, i.Answer = store.Decided, answer.Verdict, answer.Final, answer.Data
			i.By, i.Via, i.Source, i.At, i.ResumeID = d.Actor, d.Via, store.Person, now, d.ResumeID
		}
		if run.Status == store.Waiting {
			b.wake(now, run)
		}
	}
	b.resumes[key] = &bookedResume{Receipt: receipt, body: d.Body}
	return receipt, nil
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
	case i.State == store.Decided:
		return store.AlreadyDecided
	case i.State == store.Withdrawn || !run.Status.Alive():
		return store.Gone
	case !i.Deadline.IsZero() && !i.Deadline.After(now):
		return store.TooLate
	case answer.Shown != "" && answer.Shown != i.Shown:
		return store.Mismatch
	}
	return store.Accepted
}

func (b *book) begin(now time.Time, lease store.Lease, n store.NewEffect) (store.Effect, bool, error) {
	run, err := b.owned(lease)
	if err != nil {
		return store.Effect{}, false, err
	}
	i := run.find(n.Interrupt)
	if i == nil || i.State != store.Decided || i.Verdict != store.Approve || i.Final == "" || i.Final != n.Digest {
		return store.Effect{}, false, store.ErrNotApproved
	}
	key := effectKey{lease.Account, n.Interrupt, n.Number}
	if line := b.effects[key]; line != nil {
		return *line, false, nil
	}
	line := &store.Effect{Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.Started, Started: now}
	b.effects[key] = line
	return *line, true, nil
}

func (b *book) end(now time.Time, end store.EffectEnd) error {
	line := b.effects[effectKey{end.Account, end.Interrupt, end.Number}]
	if line == nil {
		return store.ErrNotFound
	}
	if line.State != store.Started && line.State != store.Indeterminate {
		return nil
	}
	line.State, line.Receipt, line.Error, line.Ended = end.State, end.Receipt, end.Error, now
	run := b.runs[store.Key{Account: line.Account, Run: line.Run}]
	if run.Status == store.Parked && !b.doubtful(run) {
		b.wake(now, run)
	}
	return nil
}

// doubtful reports whether the run has an effect of which nobody knows whether it happened.
func (b *book) doubtful(run *bookedRun) bool {
	for key, line := range b.effects {
		if key.account == run.Account && line.Run == run.ID && (line.State == store.Indeterminate || line.State == store.Started) {
			return true
		}
	}
	return false
}

func (b *book) expire(now time.Time, limit int) []store.Interrupt {
	var due []*store.Interrupt
	for _, run := range b.runs {
		for _, i := range run.asked {
			if run.Status.Alive() && i.State == store.Pending && !i.Deadline.IsZero() && !i.Deadline.After(now) {
				due = append(due, i)
			}
		}
	}
	slices.SortFunc(due, func(a, b *store.Interrupt) int { return a.Deadline.Compare(b.Deadline) })
	var expired []store.Interrupt
	for _, i := range due[:min(limit, len(due))] {
		i.State, i.Verdict, i.Source, i.By, i.At = store.Decided, store.Expired, store.Clock, "clock", now
		if run := b.runs[store.Key{Account: i.Account, Run: i.Run}]; run.Status == store.Waiting {
			b.wake(now, run)
		}
		expired = append(expired, *i)
	}
	return expired
}

func (b *book) cancel(now time.Time, account, stateKey string, as store.Status) (store.Run, error) {
	run := b.newest(account, stateKey)
	if run == nil || !run.Status.Alive() {
		return store.Run{}, store.ErrNotFound
	}
	run.show(now, nil)
	run.Status, run.Owner, run.Until, run.Updated = as, "", time.Time{}, now
	run.Fence++
	return run.Run, nil
}
