package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/store"
)

// list returns copies of runs without what is sealed in them.
func (b *book) list(account string, f store.Filter) []store.Run {
	var list []store.Run
	for key, run := range b.runs {
		if key.Account == account && wanted(run.Run, f) {
			list = append(list, bare(run.Run))
		}
	}
	slices.SortFunc(list, func(a, b store.Run) int { return placed(b, place(a)) })
	return list[:min(len(list), page(f.Limit, 100))]
}

func wanted(run store.Run, f store.Filter) bool {
	return (len(f.Status) == 0 || slices.Contains(f.Status, run.Status)) &&
		(f.Provider == "" || f.Provider == run.Provider) && (f.Graph == "" || f.Graph == run.Graph) &&
		(f.Before == (store.RunPlace{}) || placed(run, f.Before) < 0)
}

func place(run store.Run) store.RunPlace { return store.RunPlace{Created: run.Created, ID: run.ID} }

func placed(run store.Run, at store.RunPlace) int {
	return cmp.Or(run.Created.Compare(at.Created), cmp.Compare(run.ID, at.ID))
}

func bare(run store.Run) store.Run {
	run.Ref, run.Input, run.Outcome = nil, nil, nil
	return run
}

// page is how many are returned at most.
func page(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return min(limit, 1000)
}

func (b *book) finished(from, before time.Time, limit int) []store.Run {
	var list []store.Run
	for _, run := range b.runs {
		if !run.Status.Alive() && run.Updated.Before(before) && !run.Updated.Before(from) {
			over := bare(run.Run)
			over.Ref = run.Ref
			list = append(list, over)
		}
	}
	slices.SortFunc(list, func(a, b store.Run) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), page(limit, 1000))]
}

// forget reports whether the run was there.
func (b *book) forget(now time.Time, account, id string, beside store.Beside) (bool, error) {
	key := store.Key{Account: account, Run: id}
	run := b.runs[key]
	switch {
	case run == nil:
		return false, nil
	case run.Status.Alive(): //mutate:memory-live-run-kept
		return false, store.ErrAlive
	}
	write, err := b.beside(now, account, beside)
	if err != nil {
		return false, err
	}
	write() //mutate:memory-deletion-audited
	delete(b.runs, key)
	maps.DeleteFunc(b.resumes, func(key resumeKey, r *bookedResume) bool { return key.account == account && r.Run == id })
	//mutate:memory-effects-deleted-with-run
	maps.DeleteFunc(b.effects, func(key effectKey, line *store.Effect) bool { return key.account == account && line.Run == id })
	maps.DeleteFunc(b.papers, func(key paperKey, p *store.Paper) bool { return key.account == account && p.Run == id })
	b.log.lines = slices.DeleteFunc(b.log.lines, func(line happened) bool { return line.Account == account && line.Run == id })
	return true, nil
}

func (b *book) history(account, id string) (store.History, error) {
	run := b.runs[store.Key{Account: account, Run: id}]
	if run == nil {
		return store.History{}, store.ErrNotFound
	}
	history := store.History{Run: run.Run, Events: b.eventsOf(account, id, 0)}
	for _, i := range run.asked {
		history.Interrupts = append(history.Interrupts, *i)
	}
	for key, r := range b.resumes {
		if key.account == account && r.Run == id {
			history.Resumes = append(history.Resumes, store.Resume{Actor: key.actor, ID: key.id, Body: r.body, Receipt: r.Receipt})
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
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Interrupt, b.Interrupt), cmp.Compare(a.Number, b.Number))
	})
	history.Papers = b.papersOf(func(p *store.Paper) bool { return p.Account == account && p.Run == id })
	return history, nil
}
