package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// Audited returns a store that forwards every call to s and fails the test if a call changes the
// status of a run, a request or an effect without an audit line in the same call (invariant I12).
// All stores wrapped for the same test share their knowledge of its runs, so several executors can
// be tested on one store.
//
// Audited belongs directly below the executor. It reads from s only to confirm a violation.
// [AuditedMethods] lists what is checked and what is exempt.
func Audited(t testing.TB, s store.Store) store.Store {
	a := &audited{Store: s, seen: seenBy(t)}
	if w, ok := s.(store.WriteChecker); ok {
		return &auditedWritable{a, w}
	}
	return a
}

// auditedWritable is a checked store that is a [store.WriteChecker].
type auditedWritable struct {
	*audited
	inner store.WriteChecker
}

func (a *auditedWritable) CheckWritable(ctx context.Context) error { return a.inner.CheckWritable(ctx) }

// AuditRule is the rule of [Audited] for one method of the port.
type AuditRule struct {
	// Checked reports that the method is checked. Otherwise Exempt is the reason why it is not.
	Checked bool
	Exempt  string
}

// Reasons that several methods share.
const (
	reads       = "reads only"
	notStatus   = "changes no status of a run, a request or an effect"
	ownershipOf = "changes who owns a run, not the result of the run or its requests"
)

// AuditedMethods returns the rule of every method of [store.Store].
func AuditedMethods() map[string]AuditRule {
	rules := map[string]AuditRule{
		"Claim":   {Exempt: ownershipOf + ": ready or running becomes running"},
		"Release": {Exempt: ownershipOf + ": running becomes ready. Parking is documented as two transactions: run.parked is written by CommitWrites just before"},
	}
	for _, name := range []string{"Create", "EndExecution", "Retry", "Decide", "Expire", "Cancel", "BeginEffect", "EndEffect", "CommitWrites", "DeleteRun"} {
		rules[name] = AuditRule{Checked: true}
	}
	for _, name := range []string{"Renew", "SetProviderRef", "Save", "Delete", "Vacuum", "Reencrypt", "PutIfAbsent", "AddCredential", "RevokeCredential", "PurgeCredentials"} {
		rules[name] = AuditRule{Exempt: notStatus}
	}
	for _, name := range []string{
		"Load", "Get", "List", "Receipt", "Interrupts", "Fenced", "Now", "Events", "Feed", "Watch", "InboxItems", "InboxItem", "RunSnapshot", "CountPending", "PendingByKind",
		"Document", "Documents", "DueDocuments", "AuditHead", "AuditAccounts", "AuditLines", "FinishedRuns", "History", "Size", "Credential", "Credentials",
	} {
		rules[name] = AuditRule{Exempt: reads}
	}
	return rules
}

// The kinds of the audit lines, as package audit names them. They are part of the stored format.
const (
	lineRunStarted       = "run.started"
	lineRunEnded         = "run.ended"
	lineRunRetried       = "run.retried"
	lineErased           = "audit.erased"
	lineRequestAsked     = "request.asked"
	lineRequestDecided   = "request.decided"
	lineRequestExpired   = "request.expired"
	lineRequestWithdrawn = "request.withdrawn"
	lineEffectBegun      = "effect.begun"
	lineEffectEnded      = "effect.ended"
)

// interruptOf names an interrupt of a run.
type interruptOf struct{ account, run, id string }

// requestIndex is the part of a request's index that holds its state.
type requestIndex struct {
	State    string `json:"state"`
	Revision int64  `json:"revision"`
}

// seenCalls holds what the wrapped stores of one test have seen.
type seenCalls struct {
	t testing.TB

	mu    sync.Mutex
	ended bool
	// asked holds the interrupts with a line request.asked, open or not. withdrawn holds those with
	// a line request.withdrawn since. Both are noted before the call that writes the line.
	asked, withdrawn map[interruptOf]bool
	// open holds the interrupts that runs wait for, as of the last call that set them.
	open map[store.Key][]string
	// requests holds the last known index of requests.
	requests map[store.Key]requestIndex
}

var seenByTest struct {
	sync.Mutex
	all map[testing.TB]*seenCalls
}

func seenBy(t testing.TB) *seenCalls {
	seenByTest.Lock()
	defer seenByTest.Unlock()
	if s := seenByTest.all[t]; s != nil {
		return s
	}
	s := &seenCalls{t: t, asked: make(map[interruptOf]bool), withdrawn: make(map[interruptOf]bool), open: make(map[store.Key][]string), requests: make(map[store.Key]requestIndex)}
	if seenByTest.all == nil {
		seenByTest.all = make(map[testing.TB]*seenCalls)
	}
	seenByTest.all[t] = s
	t.Cleanup(func() {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		seenByTest.Lock()
		defer seenByTest.Unlock()
		delete(seenByTest.all, t)
	})
	return s
}

// fail reports a violation, unless the test has ended.
func (s *seenCalls) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.t.Errorf("I12: "+format, args...)
	}
}

// auditedLine holds the fields of an audit line that are needed here.
type auditedLine struct {
	Kind  string `json:"kind"`
	Place struct {
		Run       string `json:"run"`
		Interrupt string `json:"interrupt"`
		Request   string `json:"request"`
	} `json:"place"`
}

// written are the audit lines of one call.
type written []auditedLine

func linesOf(writes store.Writes) (lines written) {
	for _, raw := range writes.Audit {
		var line auditedLine
		if json.Unmarshal(raw, &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

func (w written) hasRun(kind, run string) bool {
	return slices.ContainsFunc(w, func(l auditedLine) bool { return l.Kind == kind && l.Place.Run == run })
}

func (w written) has(kind, interrupt string) bool {
	return slices.ContainsFunc(w, func(l auditedLine) bool {
		return l.Kind == kind && (l.Place.Interrupt == interrupt || l.Place.Request == interrupt)
	})
}

func (w written) names(interrupt string) bool {
	return slices.ContainsFunc(w, func(l auditedLine) bool { return l.Place.Interrupt == interrupt || l.Place.Request == interrupt })
}

// note records the lines of a call before it is made.
func (s *seenCalls) note(account, run string, lines written) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		at := interruptOf{account, run, l.Place.Interrupt}
		switch l.Kind {
		case lineRequestAsked:
			s.asked[at] = true
			delete(s.withdrawn, at)
		case lineRequestWithdrawn:
			s.withdrawn[at] = true
		}
	}
}

// requestsChanged checks the requests that a successful call changed: if the state of a request
// changed, an audit line must name it.
func (s *seenCalls) requestsChanged(method, account string, writes store.Writes) {
	lines := linesOf(writes)
	for _, p := range writes.Documents {
		if p.Kind != store.RequestDocument {
			continue
		}
		var now requestIndex
		if json.Unmarshal(p.Index, &now) != nil {
			continue
		}
		key := store.Key{Account: account, Run: p.ID}
		s.mu.Lock()
		before, known := s.requests[key]
		s.requests[key] = now
		s.mu.Unlock()
		if (known || p.BaseRevision == 0) && before != now && !lines.names(p.ID) {
			s.fail("%s changes request %s from %+v to %+v without an audit line", method, p.ID, before, now)
		}
	}
}

// audited is a checked store.
type audited struct {
	store.Store
	seen *seenCalls
}

func (a *audited) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	lease, err := a.Store.Create(ctx, run)
	if err == nil && !linesOf(run.Writes).hasRun(lineRunStarted, run.ID) {
		a.seen.fail("Create begins run %s without a line %s", run.ID, lineRunStarted)
	}
	if err == nil {
		a.seen.requestsChanged("Create", run.Account, run.Writes)
	}
	return lease, err
}

func (a *audited) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	lines := linesOf(end.Writes)
	unasked := a.unasked(ctx, lease, end, lines)
	a.seen.note(lease.Account, lease.Run, lines)
	status, err := a.Store.EndExecution(ctx, lease, end)
	if err != nil {
		return status, err
	}
	if !status.Active() && !lines.hasRun(lineRunEnded, lease.Run) {
		a.seen.fail("EndExecution ends run %s as %s without a line %s", lease.Run, status, lineRunEnded)
	}
	for _, id := range unasked {
		a.seen.fail("EndExecution makes interrupt %s of run %s visible without a line %s", id, lease.Run, lineRequestAsked)
	}
	var open []string
	for _, i := range end.Open {
		open = append(open, i.ID)
	}
	a.seen.decided(lease.Account, lease.Run, end.Applied...)
	a.withdrawn(ctx, "EndExecution", lease.Account, lease.Run, open, lines)
	a.seen.requestsChanged("EndExecution", lease.Account, end.Writes)
	return status, nil
}

// unasked returns the interrupts that EndExecution would make visible without a line request.asked.
func (a *audited) unasked(ctx context.Context, lease store.Lease, end store.ExecutionEnd, lines written) (ids []string) {
	for _, i := range end.Open {
		at := interruptOf{lease.Account, lease.Run, i.ID}
		a.seen.mu.Lock()
		asked, gone := a.seen.asked[at], a.seen.withdrawn[at]
		a.seen.mu.Unlock()
		if lines.has(lineRequestAsked, i.ID) || asked && !gone {
			continue
		}
		known, err := a.Store.Interrupts(ctx, lease.Account, lease.Run)
		if err != nil {
			continue // EndExecution will hardly succeed either
		}
		if !slices.ContainsFunc(known, func(k store.Interrupt) bool { return k.ID == i.ID && k.State != store.InterruptWithdrawn }) {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// decided records that interrupts of a run were decided or expired, so they are not withdrawn
// later.
func (s *seenCalls) decided(account, run string, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := store.Key{Account: account, Run: run}
	s.open[key] = slices.DeleteFunc(slices.Clone(s.open[key]), func(id string) bool { return slices.Contains(ids, id) })
}

// withdrawn checks, after a call that leaves only some interrupts of a run open, that each
// interrupt that the call withdrew has a line.
func (a *audited) withdrawn(ctx context.Context, method, account, run string, open []string, lines written) {
	s := a.seen
	key := store.Key{Account: account, Run: run}
	s.mu.Lock()
	before := s.open[key]
	s.open[key] = open
	var suspects []string
	for _, id := range before {
		if !slices.Contains(open, id) && !lines.has(lineRequestWithdrawn, id) && !s.withdrawn[interruptOf{account, run, id}] {
			suspects = append(suspects, id)
		}
	}
	s.mu.Unlock()
	if len(suspects) == 0 {
		return
	}
	now, err := a.Store.Interrupts(ctx, account, run)
	if err != nil {
		return
	}
	for _, i := range now {
		if i.State == store.InterruptWithdrawn && slices.Contains(suspects, i.ID) {
			s.fail("%s withdraws interrupt %s of run %s without a line %s", method, i.ID, run, lineRequestWithdrawn)
		}
	}
}

func (a *audited) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, writes store.Writes) (store.Run, error) {
	lines := linesOf(writes)
	a.seen.note(account, run, lines)
	ended, err := a.Store.Cancel(ctx, account, run, as, waits, writes)
	if err != nil {
		return ended, err
	}
	if !lines.hasRun(lineRunEnded, run) {
		a.seen.fail("Cancel ends run %s as %s without a line %s", run, as, lineRunEnded)
	}
	for _, id := range waits {
		// an approver who abandons the run decides
		if !lines.has(lineRequestWithdrawn, id) && !lines.has(lineRequestDecided, id) {
			a.seen.fail("Cancel withdraws interrupt %s of run %s without a line %s", id, run, lineRequestWithdrawn)
		}
	}
	a.withdrawn(ctx, "Cancel", account, run, nil, append(lines, withdrawnLines(waits)...))
	a.seen.requestsChanged("Cancel", account, writes)
	return ended, nil
}

// withdrawnLines returns lines for interrupts that were already checked.
func withdrawnLines(ids []string) (lines written) {
	for _, id := range ids {
		line := auditedLine{Kind: lineRequestWithdrawn}
		line.Place.Interrupt = id
		lines = append(lines, line)
	}
	return lines
}

func (a *audited) Retry(ctx context.Context, account, run string, writes store.Writes) (store.Run, error) {
	again, err := a.Store.Retry(ctx, account, run, writes)
	if err == nil && !linesOf(writes).hasRun(lineRunRetried, run) {
		a.seen.fail("Retry makes run %s ready without a line %s", run, lineRunRetried)
	}
	return again, err
}

func (a *audited) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	receipt, err := a.Store.Decide(ctx, decision)
	if err != nil || receipt.Result != store.ResultAccepted || receipt.Replayed {
		return receipt, err
	}
	lines := linesOf(decision.Writes)
	for _, answer := range decision.Answers {
		if !lines.has(lineRequestDecided, answer.Interrupt) {
			a.seen.fail("Decide decides interrupt %s of run %s without a line %s", answer.Interrupt, decision.Run, lineRequestDecided)
		}
		a.seen.decided(decision.Account, decision.Run, answer.Interrupt)
	}
	a.seen.requestsChanged("Decide", decision.Account, decision.Writes)
	return receipt, nil
}

func (a *audited) Expire(ctx context.Context, until time.Time, limit int, writes func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	var mu sync.Mutex
	with := make(map[interruptOf]store.Writes)
	of := func(i store.Interrupt) interruptOf { return interruptOf{i.Account, i.Run, i.ID} }
	noting := writes
	if writes != nil {
		noting = func(i store.Interrupt, request *store.Document) store.Writes {
			b := writes(i, request)
			mu.Lock()
			defer mu.Unlock()
			with[of(i)] = b
			return b
		}
	}
	expired, err := a.Store.Expire(ctx, until, limit, noting)
	mu.Lock()
	defer mu.Unlock()
	for _, i := range expired {
		if !linesOf(with[of(i)]).has(lineRequestExpired, i.ID) {
			a.seen.fail("Expire lets interrupt %s of run %s expire without a line %s", i.ID, i.Run, lineRequestExpired)
		}
		a.seen.decided(i.Account, i.Run, i.ID)
		a.seen.requestsChanged("Expire", i.Account, with[of(i)])
	}
	return expired, err
}

func (a *audited) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (store.Effect, bool, error) {
	line, begun, err := a.Store.BeginEffect(ctx, lease, effect)
	if err == nil && begun && !linesOf(effect.Writes).has(lineEffectBegun, effect.Interrupt) {
		a.seen.fail("BeginEffect starts effect %d of %s without a line %s", effect.Attempt, effect.Interrupt, lineEffectBegun)
	}
	return line, begun, err
}

// EndEffect checks every call, also for an effect that has already ended, because the port does not
// report which it was.
func (a *audited) EndEffect(ctx context.Context, end store.EffectEnd) error {
	err := a.Store.EndEffect(ctx, end)
	if err == nil && !linesOf(end.Writes).has(lineEffectEnded, end.Interrupt) {
		a.seen.fail("EndEffect ends effect %d of %s without a line %s", end.Attempt, end.Interrupt, lineEffectEnded)
	}
	return err
}

func (a *audited) CommitWrites(ctx context.Context, account string, writes store.Writes) error {
	err := a.Store.CommitWrites(ctx, account, writes)
	if err == nil {
		a.seen.requestsChanged("CommitWrites", account, writes)
	}
	return err
}

// DeleteRun checks every call, also for a run that is already deleted, because the port does not
// report which it was.
func (a *audited) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	err := a.Store.DeleteRun(ctx, account, run, writes)
	if err == nil && !linesOf(writes).hasRun(lineErased, run) {
		a.seen.fail("DeleteRun deletes run %s without a line %s", run, lineErased)
	}
	return err
}
