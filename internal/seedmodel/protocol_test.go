package seedmodel

import (
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/modelcheck"
)

// transition is one row of the protocol: what a request does at a stage. # is the gate that its
// provider has loaded.
type transition struct {
	at    stage
	what  string
	when  func(w world, r request) bool // nil: always
	do    func(w *world, n int)         // nil: only the stage changes
	to    stage
	fault bool
}

// protocol is the design, statement by statement.
var protocol = append([]transition{
	{at: received, what: "its id is the last one: gets the cached outcome", when: all(shown, isLast, not(lastFailed)), to: answered},
	{at: received, what: "its id is the last one: gets the cached error", when: all(shown, isLast, lastFailed), to: failed},
	{at: received, what: "its id is not the last one", when: all(shown, not(isLast)), to: checked},

	{at: checked, what: "takes the lock", when: lockable, do: takeLock, to: locked},
	{at: checked, what: "cannot take the lock: 409", when: not(lockable), to: conflicted},

	{at: locked, what: "the provider waits at gate #", when: providerWaits, do: load, to: loaded},
	{at: locked, what: "the provider does not wait", when: not(providerWaits), do: load, to: saved},
	{at: loaded, what: "the effect behind gate # happens", when: approves, do: happen, to: acted},
	{at: loaded, what: "gate # is rejected, nothing happens", when: not(approves), to: acted},
	{at: acted, what: "the provider saves that gate # is passed", when: approves, do: save, to: saved},
	{at: acted, what: "the provider saves that it was stopped at gate #", when: not(approves), do: save, to: saved},

	{at: saved, what: "frees the lock and caches the outcome", when: lockHasItsID, do: freeLock, to: released},
	{at: saved, what: "does not free the lock, which it no longer owns; this is not detected", when: not(lockHasItsID), to: released},
	{at: released, what: "is told 200", do: tell, to: answered},

	{at: locked, what: "the provider fails temporarily", when: mayFail, do: fail, to: failing, fault: true},
	{at: failing, what: "frees the lock and caches the error", when: lockHasItsID, do: freeLock, to: failed},
	{at: failing, what: "does not free the lock, which it no longer owns", when: not(lockHasItsID), to: failed},

	{at: conflicted, what: "retries with the same id", when: persistent, to: received},
	{at: failed, what: "retries with the same id", when: persistent, to: received},
	{at: dead, what: "got no answer and retries with the same id", when: persistent, to: received},
}, crashes()...)

// crashes lets a process die wherever it holds something.
func crashes() []transition {
	var rows []transition
	for at := locked; at <= released; at++ {
		rows = append(rows, transition{at: at, what: "its process dies", when: mayDie, do: die, to: dead, fault: true})
	}
	return rows
}

type condition = func(world, request) bool

func all(conditions ...condition) condition {
	return func(w world, r request) bool {
		for _, c := range conditions {
			if !c(w, r) {
				return false
			}
		}
		return true
	}
}

func not(c condition) condition { return func(w world, r request) bool { return !c(w, r) } }

// shown: people answer only what they have seen, and some answer only after another request was
// answered.
func shown(w world, r request) bool {
	current := w.provider.generation*maxGates + w.provider.gate
	return (w.left.atOnce || r.question <= current) && (r.after == nobody || w.requests[r.after-1].stage == answered)
}

func isLast(w world, r request) bool     { return w.row.last == r.id }
func lastFailed(w world, _ request) bool { return w.row.lastError }
func lockable(w world, _ request) bool {
	return w.row.status == active && (w.row.lock == "" || w.row.stale)
}
func providerWaits(w world, _ request) bool { return w.provider.waits() }
func approves(_ world, r request) bool      { return r.decision == approve }
func lockHasItsID(w world, r request) bool  { return w.row.lock == r.id }
func mayFail(w world, _ request) bool       { return w.left.errors > 0 }
func mayDie(w world, _ request) bool        { return w.left.crashes > 0 }
func persistent(_ world, r request) bool    { return r.persistent }

func takeLock(w *world, n int) {
	w.row.lock, w.row.stale, w.row.holder = w.requests[n].id, false, partyOf(n)
}

func load(w *world, n int) { w.requests[n].loaded = w.provider.question() }

func happen(w *world, n int) { w.outside.happened[w.requests[n].loaded]++ }

func save(w *world, n int) {
	r := w.requests[n]
	w.outside.decided[r.loaded] |= r.decision
	if r.decision == approve {
		w.provider.gate = r.loaded%maxGates + 1
	} else {
		w.provider.stopped = true
	}
}

func freeLock(w *world, n int) {
	r := w.requests[n]
	w.outside.robbed = w.outside.robbed || w.row.holder != partyOf(n)
	w.row.lock, w.row.stale, w.row.holder = "", false, nobody
	w.row.last, w.row.lastError = r.id, r.stage == failing
	if r.stage == saved && !w.provider.waits() {
		w.outside.revived = w.outside.revived || w.row.status != active
		w.row.status = completed
	}
}

func tell(w *world, n int) {
	if r := w.requests[n]; r.loaded != noQuestion {
		w.outside.told[r.loaded] |= r.decision
	}
}

func fail(w *world, _ int) { w.left.errors-- }

func die(w *world, n int) {
	w.left.crashes--
	if w.row.holder == partyOf(n) {
		w.row.holder = nobody
	}
}

// event is something that happens to a run without a request.
type event struct {
	what  string
	when  func(world) bool
	do    func(*world)
	fault bool
}

var events = []event{
	{what: "30 seconds pass, and the lock holder is still working", fault: true,
		when: func(w world) bool { return w.ages() && w.row.holder != nobody && w.left.lapses > 0 },
		do:   func(w *world) { w.row.stale = true; w.left.lapses-- }},
	{what: "30 seconds pass, and the lock holder is dead",
		when: func(w world) bool { return w.ages() && w.row.holder == nobody },
		do:   func(w *world) { w.row.stale = true }},
	{what: "the deadline passes: the run is set to expired",
		when: func(w world) bool { return w.row.status == active && w.left.sweeps > 0 },
		do:   sweep},
	{what: "the run is started again under its state key",
		when: func(w world) bool { return w.row.status != active && w.left.restarts > 0 },
		do:   restart},
}

// ages reports whether time can make the lock stale.
func (w world) ages() bool { return w.row.lock != "" && !w.row.stale }

func sweep(w *world) {
	w.left.sweeps--
	w.row.status = expired
	if q := w.provider.question(); q != noQuestion {
		w.outside.told[q] |= expire
	}
}

func restart(w *world) {
	w.left.restarts--
	w.row = row{}
	w.provider = provider{gates: w.provider.gates, generation: w.provider.generation + 1}
}

// steps returns everything that can happen next.
func steps(w world) []modelcheck.Step[world] {
	var list []modelcheck.Step[world]
	for n, r := range w.requests {
		if r.person == "" {
			continue
		}
		for _, row := range protocol {
			if row.at == r.stage && (row.when == nil || row.when(w, r)) {
				list = append(list, modelcheck.Step[world]{Name: row.say(w, n), Fault: row.fault, To: row.take(w, n)})
			}
		}
	}
	for _, e := range events {
		if e.when(w) {
			next := w
			e.do(&next)
			list = append(list, modelcheck.Step[world]{Name: e.what, Fault: e.fault, To: next})
		}
	}
	return list
}

func (t transition) take(w world, n int) world {
	if t.do != nil {
		t.do(&w, n)
	}
	w.requests[n].stage = t.to
	return w
}

func (t transition) say(w world, n int) string {
	r := w.requests[n]
	gate := r.loaded
	if r.stage == locked {
		gate = w.provider.question()
	}
	return fmt.Sprintf("%s: %s", r, strings.ReplaceAll(t.what, "#", name(gate)))
}
