package main

// gap is a mutant that no test catches yet. When there is a test, the mutant moves to the other
// lists.
type gap struct {
	mutant
	missing string // the test that is missing
}

// gaps are tried only with -gaps.
var gaps = []gap{
	{mutant{"I16", "fenced-execution-cancelled", "A worker continues after it has lost its run.",
		drop, "./internal/executor/...", "TestI16|TestCancel"},
		"A provider waits for its context while the store answers Renew with ErrFenced. The context must end."},
	{mutant{"I16", "provider-store-fenced", "A provider saves without a fence.",
		swap(`.Fenced(work.Lease)`, ``), "./internal/executor/...", "TestI16|TestI4"},
		"A provider saves after its run was taken over. It must get ErrFenced even if the version matches."},
	{mutant{"I2", "applied-by-provider", "A decision that the provider did not take is marked as applied.",
		condTrue, "./internal/executor/...", "TestAsk|TestExecute"},
		"Two interrupts are decided and the provider takes one of them. The other must be in Decided of the next execution."},
	{mutant{"I11", "expiry-reaches-provider", "An expiry reaches the provider as an answer.",
		element(2, `false`), "./internal/executor/...", "TestI11"},
		"The action of a run expires. The code of its outcome must say so, and must differ from that of an invalid answer."},
	{mutant{"I1", "actor-from-session", "A person submits a decision in the name of another.",
		swap(`text != request.Actor`, `false`), "./internal/executor/...", "TestAsk_PersonCannotExpireARequestOrActForAnother"},
		"Ann sends a rejection with \"by\":\"bob\". It must be rejected, and the request stays open."},
	{mutant{"I7", "label-has-account", "A sealed value is not bound to its account.",
		arg(2, `""`), "./internal/executor/...", "TestKeys|TestI7"},
		"Two accounts use the same ids. A sealed value of one account in a row of the other must not open."},
	{mutant{"I7", "effect-error-not-stored", "The error text of a failed effect is stored in plain text.",
		swap(`"the effect failed"`, `line.Error`), "./internal/executor/...", "TestI7|TestI4"},
		"TestI7 with an effect whose error contains the secret."},
	{mutant{"I4", "effect-end-ignores-cancel", "The end of an effect is lost when its execution is cancelled.",
		swap(`context.WithoutCancel(ctx)`, `ctx`), "./internal/executor/...", "TestI4|TestStop|TestCancel"},
		"The context of an effect ends while the effect runs. Its end must still be recorded."},
	{mutant{"I5", "memory-withdrawn-refused", "In the memory store, a withdrawn interrupt is answered.",
		ignore(1), "./internal/store/memory", "TestStore/Runs/Decide_ReturnsTheReason"},
		"Decide on an interrupt that an execution has withdrawn, of a live run. The result must be Gone."},
	{mutant{"I17", "memory-one-live-run", "In the memory store, two runs of one state key are live.",
		condFalse, "./internal/store/memory", "TestStore/Runs/Create"},
		"Create with After set to the generation of a live run. It must return ErrExists."},
	{mutant{"I9", "wait-saved-first", "A request is created although the interrupt could not be saved.",
		condFalse, "./graph", "TestI9"},
		"TestI9_WhenSavingFails with the fourth save, which is the save of the wait, and with SaveOnHold."},
	{mutant{"I5", "open-interrupt-raised-again", "A node waits for another interrupt although its first one is open.",
		condFalse, "./graph", "TestI5|TestInterrupt"},
		"A node that raised Interrupt raises another interrupt of a kind in the next execution, without raising the first one again. It must get ErrUnanswered."},
	{mutant{"I15", "activation-parts-removed", "The stored parts of an activation stay after it has ended.",
		drop, "./graph", "TestI15"},
		"TestI15 with a Do in the node of the loop."},
	{mutant{"I6", "effect-gets-approved-copy", "An effect runs with arguments that were changed after the approval.",
		arg(2, `e.approved.args`), ".", "TestI6"},
		"An Approved value that is a pointer or slice is changed between Approve and Effect. The effect must get the approved value."},
}

// uncaught returns the mutants of the gaps, with the missing test in the description.
func uncaught() []mutant {
	var list []mutant
	for _, g := range gaps {
		m := g.mutant
		m.without += " Missing test: " + g.missing
		list = append(list, m)
	}
	return list
}
