package main

// A gap is a mutant that no test catches yet, and the test that is missing. When there is one, the mutant goes to the others.
type gap struct {
	mutant
	missing string
}

// gaps are tried with -gaps, and not otherwise.
var gaps = []gap{
	{mutant{"I16", "a worker goes on when it has lost its run", "executor/holding.go",
		swap("\t\te.held.remove(one)\n\t\tone.cancel()\n", "\t\te.held.remove(one)\n"),
		"./executor", "TestI16|TestCancel"}, "a provider that waits for its context while the store says ErrFenced to Renew: the context has to end"},
	{mutant{"I16", "a provider saves without a fence", "executor/draft.go",
		swap(`&sealedState{e.store.Fenced(work.Lease), e}`, `&sealedState{e.store, e}`),
		"./executor", "TestI16|TestI4"}, "a provider that saves after its run was taken over: ErrFenced, also where the version would fit"},
	{mutant{"I2", "a decision that the provider has not taken is applied", "executor/execute.go",
		swap(`if slices.Contains(result.Applied, questionID(i.ID)) {`, `if slices.Contains(result.Applied, questionID(i.ID)) || true {`),
		"./executor", "TestAsk|TestExecute"}, "two questions decided, and a provider that takes one of them: the other is in Decided of the next execution"},
	{mutant{"I11", "an approval that nobody gave in time reaches the provider as an answer", "executor/execute.go",
		swap(`Expired: i.Verdict == store.Expired, By:`, `Expired: false, By:`),
		"./executor", "TestI11"}, "the outcome of a run whose action expired: its code says so, and it is not that of a bad answer"},
	{mutant{"I1", "a person speaks for another", "executor/answer.go",
		swap(`decision.By, decision.At = actor, time.Time{}`, `decision.At = time.Time{}`),
		"./executor", "TestAsk_APersonCannot"}, "the run itself sees By: a reject with \"by\":\"bob\" by ann, and the RejectedError names ann"},
	{mutant{"I7", "a sealed value is not bound to its account", "executor/keys.go",
		swap("return fmt.Sprintf(\"%q/%q/%s/%q\", account, id, what, part)", "return fmt.Sprintf(\"%q/%q/%s/%q\", \"\", id, what, part)"),
		"./executor", "TestKeys|TestI7"}, "two accounts with the same ids: a value of the one, put into a row of the other, does not open"},
	{mutant{"I7", "what an effect said when it failed is kept in the clear", "executor/owner.go",
		swap(`end.State, end.Error = store.Faulted, "the effect failed"`, `end.State, end.Error = store.Faulted, line.Error`),
		"./executor", "TestI7|TestI4"}, "TestI7 with an effect that fails with the secret in its error"},
	{mutant{"I4", "the end of an effect is lost with its owner", "executor/owner.go",
		swap(`context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	for pause`, `context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for pause`),
		"./executor", "TestI4|TestStop|TestCancel"}, "the context of an effect ends while it is at work: its line has ended all the same"},
	{mutant{"I5", "a question that was withdrawn is answered", "store/memory/book.go",
		swap(`case i.State == store.Withdrawn || !run.Status.Alive():`, `case !run.Status.Alive():`),
		"./store/memory", "TestStore/Runs/Decide_SaysWhyNot"}, "Decide on a question that a rest has withdrawn, of a run that is alive: Gone"},
	{mutant{"I17", "two runs of one state key are alive", "store/memory/book.go",
		swap(`if last.Status.Alive() {`, `if false {`),
		"./store/memory", "TestStore/Runs/Create"}, "Create with After at the generation of a run that is alive: ErrExists"},
	{mutant{"I9", "somebody is asked although the question could not be saved", "graph/run.go",
		swap(`	if err := s.flush(ctx); err != nil {
		return s.fail(ctx, err)
	}
	return &fermata.InterruptError{`, `	_ = s.flush(ctx)
	return &fermata.InterruptError{`),
		"./graph", "TestI9"}, "TestI9_WhenSavingFails with the fourth save, which is that of the wait; and with SaveOnHold"},
	{mutant{"I5", "a node waits for something else although its question is open", "graph/step.go",
		swap(`if r.Kind == "" && !r.Composite {`, `if false {`),
		"./graph", "TestI5|TestInterrupt"}, "a node that raised Interrupt asks something else of a kind in the next entry, without raising it again: ErrUnanswered"},
	{mutant{"I15", "what a visit remembered stays when it is over", "graph/step.go",
		swap(`f.remove(v.Parts()...)`, `_ = v.Parts()`),
		"./graph", "TestI15"}, "TestI15 with a Do in the node that goes round"},
	{mutant{"I6", "an effect runs with arguments that were changed after the approval", "effect.go",
		swap(`result, err := e.fn(e.config.withFence(ctx, entry.Try), args, entry.Key)`, `result, err := e.fn(e.config.withFence(ctx, entry.Try), e.approved.args, entry.Key)`),
		".", "TestI6"}, "an Approved of a pointer or a slice, changed between Approve and Effect: what runs is what was approved"},
}

func uncaught() []mutant {
	var list []mutant
	for _, g := range gaps {
		m := g.mutant
		m.off += " [missing: " + g.missing + "]"
		list = append(list, m)
	}
	return list
}
