package admin

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/store"
)

// Reconcile compares the audit log of an account with its runs and effects, and returns the
// differences, the worst first. Nothing is changed, and other processes may work at the same time.
//
// It reads the log once, and each run. A run that is over is compared and dropped where the log
// says so; so memory holds the records of runs that are not over, eight bytes for each of the
// others, and the ids of missing runs until the log says that they were erased. Where something
// differs, the log is read once more for each thousand of such runs.
func (ad *Admin) Reconcile(ctx context.Context, account string) ([]reconcile.Finding, error) {
	now, err := ad.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	r := &reconciliation{
		Admin: ad, account: account, now: now, seed: maphash.MakeSeed(), records: make(map[string][]audit.Record), compared: make(map[uint64]struct{}),
		missing: make(map[string]struct{}), suspect: make(map[string]struct{}), senders: make(map[string]time.Time),
	}
	if err := r.scan(ctx); err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(r.suspect)), confirmPerPass) {
		if err := r.confirm(ctx, chunk); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(r.findings, reconcile.CompareFindings)
	return r.findings, nil
}

const (
	confirmPerPass   = 1000 // how many runs are looked at again with one reading of the log
	maxConfirmPasses = 3    // how often, if they change in between
)

// reconciliation is a comparison under way.
type reconciliation struct {
	*Admin
	account string
	now     time.Time
	seed    maphash.Seed

	records  map[string][]audit.Record // what the log says so far of runs that are not over, by run
	compared map[uint64]struct{}       // the hashes of the ids of runs that were compared
	// runs that are not there any more, and the log has not said so yet
	missing map[string]struct{}
	// runs where something does not agree, or did not when it was looked at
	suspect  map[string]struct{}
	senders  map[string]time.Time // since when agents send receipts; zero for those that do not
	findings []reconcile.Finding
}

// scan finds the runs where something does not agree, at first sight.
func (r *reconciliation) scan(ctx context.Context) error {
	for record, err := range audit.ParseRecords(audit.NewStoreLog(r.store).Records(ctx, r.account, 0, 0)) {
		if err != nil {
			return err
		}
		run := record.Location.Run
		if !isReconciled(record) {
			continue
		}
		if isErasedRecord(record) && r.wasCompared(run) {
			delete(r.missing, run)
			continue
		}
		if r.wasCompared(run) { // something was said of it after its end
			r.suspect[run] = struct{}{}
			continue
		}
		r.records[run] = append(r.records[run], record)
		if _, ended := record.Body.(audit.RunEnded); ended {
			if err := r.compareRun(ctx, run); err != nil {
				return err
			}
		}
	}
	for run := range r.records {
		if err := r.compareRun(ctx, run); err != nil {
			return err
		}
	}
	// runs without records in the log
	for run, err := range r.docs.EachRun(ctx, r.account, store.RunFilter{}) {
		if err != nil {
			return err
		}
		if !r.wasCompared(run.ID) {
			if err := r.compareRun(ctx, run.ID); err != nil {
				return err
			}
		}
	}
	maps.Copy(r.suspect, r.missing)
	return nil
}

// isReconciled reports whether another book knows of what a record says.
func isReconciled(record audit.Record) bool {
	switch record.Body.(type) {
	case audit.RunStarted, audit.RequestDecided, audit.RequestExpired, audit.EffectBegun, audit.EffectEnded, audit.RunEnded, audit.PayloadsErased:
		return record.Location.Run != ""
	default:
		return false
	}
}

// isErasedRecord reports whether a record says that a run was deleted. It is written when that is
// done.
func isErasedRecord(record audit.Record) bool {
	_, erased := record.Body.(audit.PayloadsErased)
	return erased
}

func (r *reconciliation) wasCompared(run string) bool {
	_, seen := r.compared[maphash.String(r.seed, run)]
	return seen
}

// compareRun compares what the log has said of a run so far.
func (r *reconciliation) compareRun(ctx context.Context, run string) error {
	records := r.records[run]
	delete(r.records, run)
	r.compared[maphash.String(r.seed, run)] = struct{}{}
	lines, err := r.stateOf(ctx, run)
	if err != nil {
		return err
	}
	if lines.gone { // the log may say so later
		if !slices.ContainsFunc(records, isErasedRecord) {
			r.missing[run] = struct{}{}
		}
		return nil
	}
	found, err := r.compare(ctx, lines, records)
	if len(found) > 0 {
		r.suspect[run] = struct{}{}
	}
	return err
}

// confirm compares runs with differences again. A run that is active changes between a read of the
// log and one of the run; so it is read before and after the log, and only if nothing has changed
// there is a difference. Runs that never hold still are left for the next time.
func (r *reconciliation) confirm(ctx context.Context, runs []string) error {
	for range maxConfirmPasses {
		before := make(map[string]runState, len(runs))
		for _, run := range runs {
			lines, err := r.stateOf(ctx, run)
			if err != nil {
				return err
			}
			before[run] = lines
		}
		said := make(map[string][]audit.Record, len(runs))
		for record, err := range audit.ParseRecords(audit.NewStoreLog(r.store).Records(ctx, r.account, 0, 0)) {
			if err != nil {
				return err
			}
			if _, wanted := before[record.Location.Run]; wanted && isReconciled(record) {
				said[record.Location.Run] = append(said[record.Location.Run], record)
			}
		}
		var changed []string
		for _, run := range runs {
			after, err := r.stateOf(ctx, run)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(before[run], after) {
				changed = append(changed, run)
				continue
			}
			found, err := r.compare(ctx, after, said[run])
			if err != nil {
				return err
			}
			r.findings = append(r.findings, found...)
		}
		if runs = changed; len(runs) == 0 {
			return nil
		}
	}
	return nil
}

// runState is what the store says of a run.
type runState struct {
	run        string
	gone       bool // it was forgotten
	effects    []reconcile.EffectEntry
	interrupts []reconcile.InterruptEntry
	byRule     *ruleReceipt // of an external run that no person decided
}

func (r *reconciliation) stateOf(ctx context.Context, run string) (lines runState, err error) {
	lines.run = run
	history, err := r.store.History(ctx, r.account, run)
	if docs.IsNotFound(err) {
		lines.gone = true
		return lines, nil
	}
	if err != nil {
		return lines, err
	}
	for _, line := range history.Effects {
		lines.effects = append(lines.effects, reconcile.EffectEntry{
			Run: line.Run, Interrupt: line.Interrupt, Number: line.Attempt, Digest: line.ActionDigest, Key: line.IdempotencyKey,
			State: audit.EffectState(line.State), Begun: line.Started, Ended: line.Ended,
		})
	}
	p, _ := r.providers.Of(history.Run)
	elsewhere := p != nil && !p.Capabilities().Effects
	// A ready run that was never attempted has no worker, which is worth a page.
	onItsWay := elsewhere && (history.Run.Status == store.StatusRunning || history.Run.Status == store.StatusReady && history.Run.Attempts > 0)
	receipts, err := r.receiptsOf(ctx, history, elsewhere)
	if err != nil {
		return lines, err
	}
	lines.byRule = receipts.byRule
	again := replacedInterrupts(history.Interrupts)
	for _, i := range history.Interrupts {
		if i.Source == store.SourcePolicy {
			continue // a policy decided it
		}
		over := i.State == store.InterruptWithdrawn || !history.Run.Status.Active()
		lines.interrupts = append(lines.interrupts, reconcile.InterruptEntry{
			Run: i.Run, Interrupt: i.ID, Outcome: reconcile.Outcome(i.Verdict), Applied: i.Applied, Closed: over, EffectExternal: elsewhere, Redelivering: onItsWay, AskedAgain: again[i.ID],
			Receipt: receipts.entry, ReceiptExpected: receipts.expected,
		})
	}
	return lines, nil
}

// replacedInterrupts are the questions after which the same was asked once more, about a target
// that had changed: of those at the place, the last one before.
func replacedInterrupts(all []store.Interrupt) map[string]bool {
	again := make(map[string]bool)
	for _, next := range all {
		address, err := fermata.ParseAddress(next.Address)
		if err != nil || !history.HasSegmentAfterApproval(address, history.TargetChangedSegment) {
			continue
		}
		place := history.OriginalAddress(address, false).String()
		var last *store.Interrupt
		for n, i := range all {
			if i.Address == place && !i.Created.After(next.Created) && (last == nil || !i.Created.Before(last.Created)) {
				last = &all[n]
			}
		}
		if last != nil {
			again[last.ID] = true
		}
	}
	return again
}

// compare holds the books against each other for one run. Of a run that was erased only the log is
// left.
func (r *reconciliation) compare(ctx context.Context, lines runState, records []audit.Record) ([]reconcile.Finding, error) {
	switch {
	case lines.gone && (len(records) == 0 || slices.ContainsFunc(records, isErasedRecord)):
		return nil, nil
	case lines.gone:
		return []reconcile.Finding{{
			Severity: reconcile.SeverityPage, Code: reconcile.FindingRunGone, Run: lines.run, Seq: records[0].Seq,
			Text: fmt.Sprintf("%s is not there any more, and the record does not say that it was erased.", lines.run),
		}}, nil
	}
	found, err := reconcile.Run(reconcile.Input{
		ReceiptAfter: r.config.Audit.ReceiptAfter, Now: r.now, Audit: seqOf(records), Effects: seqOf(lines.effects), Interrupts: seqOf(lines.interrupts), Payload: r.saltOf(ctx, r.account, lines.run),
	})
	return append(found, r.ruleFindings(lines)...), err
}

func seqOf[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// saltOf finds the salt of a run, under which its digests stand in the log.
func (ad *Admin) saltOf(ctx context.Context, account, run string) func(id string) (audit.Payload, bool) {
	var known *audit.Payload
	return func(id string) (audit.Payload, bool) {
		if id != run {
			return audit.Payload{}, false
		}
		if known == nil {
			known = &audit.Payload{ID: id}
			if d, err := ad.docs.ReadMeta(ctx, account, id); err == nil {
				copy(known.Salt[:], d.Salt)
			}
		}
		return *known, known.Salt != (audit.Salt{})
	}
}
