// Package executor starts runs, records what people decide on the questions that runs ask, and continues runs after a decision: in this
// process, or in any other that works on the same store.
//
// It is the only package that changes a run's status. There is no lock per run; four rules, which the store enforces, take its place
// (see store.Runs for the states of a run):
//
//	decision   an interrupt is decided once: the first valid decision counts, whether a person or the clock makes it
//	resume id  belongs to one request for ever: repeating the request gives the same answer, another request under the id is refused
//	fence      a number that grows with each owner of a run: a write with a lower one is refused
//	effect     an outside action has a line in a ledger before it is called, and gets none without an approval of exactly its arguments
//
// Deciding and executing are two steps. [Executor.Run] records a decision in one short transaction. Whichever process claims the run then
// executes it. Run waits a few seconds for the outcome, and returns [ErrPending] if it takes longer.
//
// Whatever may be secret is sealed before it reaches the store: inputs, outcomes, questions, answers, receipts, the provider's
// names for runs, and the state of runs.
//
// # Words
//
//	paper     a document in the store that is changed by compare-and-set on its revision: a request, a vote, a notice, a counter
//	filing    the papers and audit lines that will be written in the same transaction as a change, while they are collected
//	dossier   the paper of a run: who started it, the salt of its digests in the audit log, where its trace began
//	word      what one person says to one question, before it is known whether that decides it
//	request   a question as people see it. Package desk has the rules for it and stores nothing; this package stores it
//	draft     the checkpoint of a run while it is executed, with saves that are not written yet
//	rest      how an execution ends: the run waits, is completed, or has failed
//	lapse     the deadline of a question passes without a decision
//
// # Files
//
//	start, decide, wait   request.go, standing.go, answer.go, vote.go, resumed.go, await.go
//	execute               worker.go, execute.go, owner.go, holding.go, contact.go, draft.go, ask.go, parking.go
//	people                desk.go, act.go, askback.go, withdrawn.go, doubt.go, outbox.go, lapse.go, beat.go, refused.go
//	policy                rules.go, rulings.go, counters.go, grants.go, suppose.go, replay.go, drift.go
//	audit and figures     record.go, chore.go, auditing.go, reconcile.go, facts.go, stats.go, trace.go
//	read and keep         papers.go, read.go, live.go, events.go, check.go, keep.go, export.go, dossier.go, keys.go
//	a store that fails    retry.go, ready.go, complain.go, tally.go, errors.go
package executor
