package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// list returns copies of runs without their sealed values.
func (b *tables) list(account string, f store.RunFilter) []store.Run {
	var list []store.Run
	for key, run := range b.runs {
		if key.Account == account && matches(run.Run, f) {
			list = append(list, withoutSealed(run.Run))
		}
	}
	slices.SortFunc(list, func(a, b store.Run) int { return comparePosition(b, positionOf(a)) })
	return list[:min(len(list), pageSize(f.Limit, 100))]
}

func matches(run store.Run, f store.RunFilter) bool {
	return (len(f.Status) == 0 || slices.Contains(f.Status, run.Status)) &&
		(f.Provider == "" || f.Provider == run.Provider) && (f.Graph == "" || f.Graph == run.Graph) &&
		(f.Before == (store.RunPosition{}) || comparePosition(run, f.Before) < 0)
}

func positionOf(run store.Run) store.RunPosition {
	return store.RunPosition{Created: run.Created, ID: run.ID}
}

func comparePosition(run store.Run, at store.RunPosition) int {
	return cmp.Or(run.Created.Compare(at.Created), cmp.Compare(run.ID, at.ID))
}

func withoutSealed(run store.Run) store.Run {
	run.ProviderRef, run.Input, run.Outcome = nil, nil, nil
	return run
}

// pageSize returns the maximum number of results.
func pageSize(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return min(limit, 1000)
}

func (b *tables) finishedRuns(from, before time.Time, limit int) []store.Run {
	var list []store.Run
	for _, run := range b.runs {
		if !run.Status.Active() && run.Updated.Before(before) && !run.Updated.Before(from) {
			over := withoutSealed(run.Run)
			over.ProviderRef = run.ProviderRef
			list = append(list, over)
		}
	}
	slices.SortFunc(list, func(a, b store.Run) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), pageSize(limit, 1000))]
}

// deleteRun reports whether the run existed.
func (b *tables) deleteRun(now time.Time, account, id string, writes store.Writes) (bool, error) {
	key := store.Key{Account: account, Run: id}
	run := b.runs[key]
	switch {
	case run == nil:
		return false, nil
	case run.Status.Active(): //mutate:memory-live-run-kept
		return false, store.ErrRunActive
	}
	write, err := b.prepareWrites(now, account, writes)
	if err != nil {
		return false, err
	}
	write() //mutate:memory-deletion-audited
	delete(b.runs, key)
	maps.DeleteFunc(b.resumes, func(key resumeKey, r *resumeRow) bool { return key.account == account && r.Run == id })
	//mutate:memory-effects-deleted-with-run
	maps.DeleteFunc(b.effects, func(key effectKey, line *store.Effect) bool { return key.account == account && line.Run == id })
	maps.DeleteFunc(b.documents, func(key documentKey, p *store.Document) bool { return key.account == account && p.Run == id })
	b.events.entries = slices.DeleteFunc(b.events.entries, func(line loggedEvent) bool { return line.Account == account && line.Run == id })
	return true, nil
}

func (b *tables) history(account, id string) (store.History, error) {
	run := b.runs[store.Key{Account: account, Run: id}]
	if run == nil {
		return store.History{}, store.ErrNotFound
	}
	history := store.History{Run: run.Run, Events: b.eventsOf(account, id, 0)}
	for _, i := range run.interrupts {
		history.Interrupts = append(history.Interrupts, *i)
	}
	for key, r := range b.resumes {
		if key.account == account && r.Run == id {
			history.Resumes = append(history.Resumes, store.Resume{Actor: key.actor, ID: key.id, BodyDigest: r.bodyDigest, Receipt: r.DecisionReceipt})
		}
	}
	slices.SortFunc(history.Resumes, func(a, b store.Resume) int {
		return cmp.Or(a.Receipt.At.Compare(b.Receipt.At), cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.ID, b.ID))
	})
	for key, line := range b.effects {
		if key.account == account && line.Run == id {
			history.Effects = append(history.Effects, *line)
		}
	}
	slices.SortFunc(history.Effects, func(a, b store.Effect) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Interrupt, b.Interrupt), cmp.Compare(a.Attempt, b.Attempt))
	})
	history.Documents = b.documentsWhere(func(p *store.Document) bool { return p.Account == account && p.Run == id })
	return history, nil
}
