// Package executor starts runs, records decisions on their requests, and continues runs after a
// decision, in this process or in any other that works on the same store.
//
// It is the only package that changes a run's status. There is no lock per run. The store enforces
// four rules instead (see store.Runs for the states of a run):
//
//	decision   an interrupt is decided once: the first valid decision counts, by a person or by expiry
//	resume id  belongs to one request: repeating the request returns the same answer, another request with the id is refused
//	fence      a number that grows with each owner of a run: a write with a lower one is refused
//	effect     an effect is written to the ledger before it is called, and only after an approval of exactly its arguments
//
// Deciding and executing are two steps. [Executor.Decide] records a decision in one short
// transaction. The process that claims the run then executes it. Decide waits a few seconds for
// the outcome, and returns [ErrPending] if it takes longer.
//
// Everything that may be secret is encrypted by package store/encrypted: inputs, outcomes,
// requests, answers, receipts, provider refs, and checkpoints.
//
// # Structure
//
// The executor is a facade over packages in executor/internal. A package uses only those above it:
//
//	errs, ids, retry, stats, progress   errors and limits, ids and digests, retries, counters, progress
//	storeclock, background              the clock of the store, the lifecycle of goroutines
//	docs                                documents: reading, writing, run metadata
//	txn, auditrec                       the unit of work (documents and audit lines of one transaction), audit lines
//	history, providers, tracing         what a run has asked, its provider, its spans
//	govern                              policy: rulings, counters, grants, explain, replay
//	requests                            requests: creation, routes and reminders, acts, withdrawal, clarifications
//	outbox, expiry                      delivery of notices and messages, deadlines and outages
//	await, view                         waiting for outcomes, reads
//	decide                              snapshot, submissions, votes, resume ids
//	worker                              start, claim, lease, write-behind, effects, publishing of interrupts
//	periodic, admin                     periodic jobs, retention, export, audit jobs, reconciliation
//
// A decision takes this path: Decide (run.go), decide/snapshot.go, decide/submission.go,
// decide/votes.go, the store's Decide transaction, worker/execute.go, await/await.go.
package executor
