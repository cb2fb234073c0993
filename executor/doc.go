// Package executor starts runs, takes people's decisions on what they wait for, and goes on with them: in this process or in any other
// that works on the same store.
//
// It is the only writer of a run's status. Four things take the place of one lock (see store.Runs for the states):
//
//	decision   a write-once register per interrupt: the first valid word counts, a person's or the clock's
//	resume id  answered once and for ever; the same again gives the same answer
//	fence      whoever works on a run has the highest; a write with a lower one is refused
//	effect     begun in a ledger that has no line without an approve of exactly these arguments
//
// Deciding and executing are two acts. [Executor.Run] records the decision in one short transaction. Execution is done by whoever claims the
// run, this process or another; Run waits a moment for it, as callers like to have the outcome, and says [ErrPending] if it takes longer.
//
// Whatever could be secret is sealed before it reaches the store: inputs, outcomes, questions, answers, receipts, the provider's
// names for runs, and the state of runs.
//
//	request.go   start, resume       worker.go   look for work, expire    keep.go     retention, export, erase
//	answer.go    check what is said  execute.go  work on a run            keys.go     seal, reseal
//	ask.go       show what is asked  owner.go    the right to a run       events.go   what happened, and what was answered
package executor
