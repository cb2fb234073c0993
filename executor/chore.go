package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// chorePaper says when a chore is due, and what its last pass came to. It belongs to no account.
const chorePaper store.PaperKind = "chore"

const (
	choreLease = 2 * time.Minute // after which another process does a chore, if the one that began it says nothing
	choreLook  = time.Minute     // how often it is looked whether a chore is due
	choreAgain = time.Minute     // after how long a chore that could not be done is tried again
)

// chore is work on all accounts that is done at intervals, by one process at a time. Its paper says when it is due. The process that does it claims it by
// moving that time, and moves it again and again while it is at work; the paper's revision keeps two processes from claiming it.
//
//	due ──claim──▶ held ──done──▶ due after every
//	 ▲              └── silent for choreLease, or stopped ──▶ due
//	 └───────────────── failed ──▶ due after choreAgain
type chore struct {
	name  string
	every time.Duration
	// visit does the work for one account, and counts it in pass. An error ends the pass.
	visit func(ctx context.Context, account string, pass *Pass) error
}

// Pass is the result of the last time that a chore was done, by whichever process.
type Pass struct {
	// At is when it was over; zero if it never was.
	At time.Time `json:"at,omitzero"`
	// Accounts counts the accounts that were visited, Failed those among them where the work could not be done, Unsound those whose log was changed.
	Accounts int64 `json:"accounts"`
	Failed   int64 `json:"failed"`
	Unsound  int64 `json:"unsound"`
	// Findings counts where audit log, runs and effects do not agree, by how soon somebody should look: of one code some are urgent and others are not.
	Findings map[audit.Severity]map[audit.FindingCode]int64 `json:"bySeverity,omitempty"`
}

func (p *Pass) count(f audit.Finding) {
	if p.Findings == nil {
		p.Findings = make(map[audit.Severity]map[audit.FindingCode]int64)
	}
	if p.Findings[f.Severity] == nil {
		p.Findings[f.Severity] = make(map[audit.FindingCode]int64)
	}
	p.Findings[f.Severity][f.Code]++
}

// do does a chore whenever it is due, until the executor is stopped.
func (e *Executor) do(c chore) {
	for !e.closing() {
		wait, err := e.turn(c)
		if err != nil && e.life.Err() == nil {
			e.complain("a chore could not be done", err, "chore", c.name)
			wait = max(wait, e.config.Poll)
		}
		e.rests(min(wait, choreLook))
	}
}

// turn does a chore if it is due and nobody else does it, and returns when to look again.
func (e *Executor) turn(c chore) (wait time.Duration, err error) {
	var pass Pass
	paper, err := e.readFacts(e.life, "", chorePaper, c.name, &pass)
	if err != nil {
		return 0, err
	}
	now, err := e.store.Now(e.life)
	if err != nil {
		return 0, err
	}
	if wait := paper.Next.Sub(now); wait > 0 && wait <= max(c.every, choreLease) { //mutate:job-wait-limited
		return wait, nil
	} // a time that is further away was written by a clock that was wrong
	h := &hold{Executor: e, paper: paper, pass: pass}
	if err := h.say(now.Add(choreLease)); errors.Is(err, store.ErrStale) {
		return choreLook, nil // another process was faster
	} else if err != nil {
		return 0, err
	}
	return c.every, h.perform(c)
}

// hold is a chore that this process has claimed.
type hold struct {
	*Executor
	mu    sync.Mutex
	paper store.Paper
	pass  Pass
}

// say writes when the chore is due next. It returns ErrStale if another process has claimed it.
func (h *hold) say(next time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.note(h.life, &h.paper, h.pass, next)
}

// perform visits all accounts, and writes the result.
func (h *hold) perform(c chore) error {
	ctx, cancel := context.WithCancelCause(h.life)
	defer cancel(nil)
	var beating sync.WaitGroup
	over := make(chan struct{})
	beating.Go(func() { h.beat(over, cancel) })
	var pass Pass
	err := h.visit(ctx, c, &pass)
	close(over)
	beating.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	now, nowErr := h.store.Now(h.life)
	if nowErr != nil {
		return errors.Join(err, nowErr) // the lease will end
	}
	next := now.Add(c.every)
	switch {
	case errors.Is(err, store.ErrStale): // somebody else has it
		return nil
	case errors.Is(err, ErrClosed):
		next, err = now, nil // another process does it
	case err != nil:
		next = now.Add(min(choreAgain, c.every))
	default:
		pass.At = now
		h.pass = pass
	}
	return errors.Join(err, h.say(next))
}

// beat renews the claim until over is closed. It calls end if another process has claimed the chore, or the executor is stopped.
func (h *hold) beat(over <-chan struct{}, end context.CancelCauseFunc) {
	tick := time.NewTicker(choreLease / 4)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-h.over:
			end(ErrClosed)
			return
		case <-tick.C:
			now, err := h.store.Now(h.life)
			if err == nil {
				err = h.say(now.Add(choreLease))
			}
			if errors.Is(err, store.ErrStale) {
				end(err)
				return
			} // any other error may pass: the lease is longer than this
		}
	}
}

// accountsAtOnce is how many accounts are listed at a time.
const accountsAtOnce = 200

// eachAccount calls visit for every account that has an audit log: whoever has a run has one.
func (e *Executor) eachAccount(ctx context.Context, visit func(account string) error) error {
	for after := ""; ; {
		accounts, next, err := e.store.AuditAccounts(ctx, after, accountsAtOnce)
		if err != nil {
			return err
		}
		for _, account := range accounts {
			if err := visit(account); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

func (h *hold) visit(ctx context.Context, c chore, pass *Pass) error {
	return h.eachAccount(ctx, func(account string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		pass.Accounts++
		return c.visit(ctx, account, pass)
	})
}
