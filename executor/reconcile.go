package executor

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
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// Reconcile compares what the audit log of an account says with what its runs know and which effects were begun, and returns where they do
// not agree, the worst first. Nothing is changed, and others may work meanwhile: what is told was true for as long as it took to look.
//
// It reads the log once, and each run. A run that is over is compared and forgotten where the log says so; so memory holds what the log says of runs
// that are not over, eight bytes for each of the others, and the ids of those that are gone until it says that they were erased. Where something does not agree, the log is
// read once more for each thousand of such runs.
func (e *Executor) Reconcile(ctx context.Context, account string) ([]audit.Finding, error) {
	now, err := e.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	r := &reconciling{
		Executor: e, account: account, now: now, seed: maphash.MakeSeed(), open: make(map[string][]audit.Record), seen: make(map[uint64]struct{}),
		gone: make(map[string]struct{}), doubtful: make(map[string]struct{}),
	}
	if err := r.clear(ctx); err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(r.doubtful)), atOnceAgain) {
		if err := r.confirm(ctx, chunk); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(r.found, audit.Worse)
	return r.found, nil
}

const (
	atOnceAgain = 1000 // how many runs are looked at again with one reading of the log
	looksAgain  = 3    // how often, if they change meanwhile
)

// reconciling is a comparison under way.
type reconciling struct {
	*Executor
	account string
	now     time.Time
	seed    maphash.Seed

	open     map[string][]audit.Record // what the log says so far of runs that are not over, by run
	seen     map[uint64]struct{}       // the hashes of the ids of runs that were compared
	gone     map[string]struct{}       // runs that are not there any more, and the log has not said so yet
	doubtful map[string]struct{}       // runs where something does not agree, or did not when it was looked at
	found    []audit.Finding
}

// clear finds the runs where something does not agree, at first sight.
func (r *reconciling) clear(ctx context.Context) error {
	for record, err := range audit.Records(audit.Over(r.store).Records(ctx, r.account, 0, 0)) {
		if err != nil {
			return err
		}
		run := record.Place.Run
		if !matters(record) {
			continue
		}
		if isErased(record) && r.wasSeen(run) {
			delete(r.gone, run)
			continue
		}
		if r.wasSeen(run) { // something was said of it after its end
			r.doubtful[run] = struct{}{}
			continue
		}
		r.open[run] = append(r.open[run], record)
		if _, ended := record.Body.(audit.RunEnded); ended {
			if err := r.look(ctx, run); err != nil {
				return err
			}
		}
	}
	for run := range r.open {
		if err := r.look(ctx, run); err != nil {
			return err
		}
	}
	for run, err := range r.runs(ctx, r.account, store.Filter{}) { // those of which the log says nothing
		if err != nil {
			return err
		}
		if !r.wasSeen(run.ID) {
			if err := r.look(ctx, run.ID); err != nil {
				return err
			}
		}
	}
	maps.Copy(r.doubtful, r.gone)
	return nil
}

// matters reports whether another book knows of what a record says.
func matters(record audit.Record) bool {
	switch record.Body.(type) {
	case audit.RunStarted, audit.Decided, audit.Expired, audit.EffectBegun, audit.EffectEnded, audit.RunEnded, audit.Erased:
		return record.Place.Run != ""
	default:
		return false
	}
}

// isErased reports whether a record says that a run was deleted. It is written when that is done.
func isErased(record audit.Record) bool {
	_, erased := record.Body.(audit.Erased)
	return erased
}

func (r *reconciling) wasSeen(run string) bool {
	_, seen := r.seen[maphash.String(r.seed, run)]
	return seen
}

// look compares what the log has said of a run so far.
func (r *reconciling) look(ctx context.Context, run string) error {
	records := r.open[run]
	delete(r.open, run)
	r.seen[maphash.String(r.seed, run)] = struct{}{}
	lines, err := r.linesOf(ctx, run)
	if err != nil {
		return err
	}
	if lines.gone { // the log may say so later
		if !slices.ContainsFunc(records, isErased) {
			r.gone[run] = struct{}{}
		}
		return nil
	}
	found, err := r.compare(ctx, lines, records)
	if len(found) > 0 {
		r.doubtful[run] = struct{}{}
	}
	return err
}

// confirm looks again at runs where something did not agree. A run that is under way changes between a look at the log and one at the run; so it is
// looked at before and after the log was read, and only if nothing has changed the difference is one. What never holds still is left for the next time.
func (r *reconciling) confirm(ctx context.Context, runs []string) error {
	for range looksAgain {
		before := make(map[string]runLines, len(runs))
		for _, run := range runs {
			lines, err := r.linesOf(ctx, run)
			if err != nil {
				return err
			}
			before[run] = lines
		}
		said := make(map[string][]audit.Record, len(runs))
		for record, err := range audit.Records(audit.Over(r.store).Records(ctx, r.account, 0, 0)) {
			if err != nil {
				return err
			}
			if _, wanted := before[record.Place.Run]; wanted && matters(record) {
				said[record.Place.Run] = append(said[record.Place.Run], record)
			}
		}
		var changed []string
		for _, run := range runs {
			after, err := r.linesOf(ctx, run)
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
			r.found = append(r.found, found...)
		}
		if runs = changed; len(runs) == 0 {
			return nil
		}
	}
	return nil
}

// runLines are what the books beside the log say of a run.
type runLines struct {
	run        string
	gone       bool // it was forgotten
	effects    []audit.EffectLine
	interrupts []audit.InterruptLine
}

func (r *reconciling) linesOf(ctx context.Context, run string) (lines runLines, err error) {
	lines.run = run
	history, err := r.store.History(ctx, r.account, run)
	if isNotFound(err) {
		lines.gone = true
		return lines, nil
	}
	if err != nil {
		return lines, err
	}
	for _, line := range history.Effects {
		lines.effects = append(lines.effects, audit.EffectLine{
			Run: line.Run, Interrupt: line.Interrupt, Number: line.Number, Digest: line.Digest, Key: line.Key,
			State: audit.EffectState(line.State), Begun: line.Started, Ended: line.Ended,
		})
	}
	p := r.providers[history.Run.Provider]
	elsewhere := p != nil && !p.Capabilities().Effects
	// It was tried at least once: what is ready and was never begun nobody executes, and that is worth a page.
	onItsWay := elsewhere && (history.Run.Status == store.Running || history.Run.Status == store.Ready && history.Run.Attempts > 0)
	again := askedAgain(history.Interrupts)
	for _, i := range history.Interrupts {
		if i.Source == store.Policy {
			continue // nobody was asked
		}
		over := i.State == store.Withdrawn || !history.Run.Status.Alive()
		lines.interrupts = append(lines.interrupts, audit.InterruptLine{
			Run: i.Run, Interrupt: i.ID, Outcome: audit.Outcome(i.Verdict), Applied: i.Applied, Over: over, Elsewhere: elsewhere, OnItsWay: onItsWay, Again: again[i.ID],
		})
	}
	return lines, nil
}

// askedAgain are the questions after which the same was asked once more, about a target that had changed: of those at the place, the last one before.
func askedAgain(all []store.Interrupt) map[string]bool {
	again := make(map[string]bool)
	for _, next := range all {
		address, err := fermata.ParseAddress(next.Address)
		if err != nil || !within(address, driftSegment) {
			continue
		}
		place := undrifted(address, false).String()
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

// compare holds the books against each other for one run. Of a run that was erased only the log is left.
func (r *reconciling) compare(ctx context.Context, lines runLines, records []audit.Record) ([]audit.Finding, error) {
	switch {
	case lines.gone && (len(records) == 0 || slices.ContainsFunc(records, isErased)):
		return nil, nil
	case lines.gone:
		return []audit.Finding{{
			Severity: audit.Page, Code: audit.RunGone, Run: lines.run, Seq: records[0].Seq,
			Text: fmt.Sprintf("%s is not there any more, and the record does not say that it was erased.", lines.run),
		}}, nil
	}
	return audit.Reconcile(audit.Books{
		Now: r.now, Audit: listed(records), Effects: listed(lines.effects), Interrupts: listed(lines.interrupts), Payload: r.payloads(ctx, r.account, lines.run),
	})
}

func listed[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// payloads finds the salt of a run, under which its digests stand in the log.
func (e *Executor) payloads(ctx context.Context, account, run string) func(id string) (audit.Payload, bool) {
	var known *audit.Payload
	return func(id string) (audit.Payload, bool) {
		if id != run {
			return audit.Payload{}, false
		}
		if known == nil {
			known = &audit.Payload{ID: id}
			if d, err := e.readDossier(ctx, account, id); err == nil {
				copy(known.Salt[:], d.Salt)
			}
		}
		return *known, known.Salt != (audit.Salt{})
	}
}
