package seedmodel

import (
	"testing"

	"github.com/fermata-go/fermata/internal/modelcheck"
)

// scenario is what people do, and which faults may happen.
type scenario struct {
	gates    int
	requests []request
	chances  faultBudget
}

func submit(person, id string, w decision, gate int) request {
	return request{person: person, id: id, decision: w, question: gate - 1}
}

func (r request) untilAnswered() request {
	r.persistent = true
	return r
}

func (r request) whenAnswered(n int) request {
	r.after = partyOf(n)
	return r
}

func exploreAll(t *testing.T, s scenario) modelcheck.Result {
	t.Helper()
	start := world{provider: provider{gates: s.gates}, left: s.chances}
	copy(start.requests[:], s.requests)
	result, err := modelcheck.Run(modelcheck.Model[world, world]{
		Start: start, Key: func(w world) world { return w }, Steps: steps, Violated: brokenInvariants, Settled: settled, Limit: 1_000_000, CollectAll: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// mustHold checks that the scenario breaks no invariant.
func mustHold(t *testing.T, s scenario) {
	t.Helper()
	result := exploreAll(t, s)
	for promise, path := range result.Violations {
		t.Errorf("%s:\n%s", promise, path)
	}
	if result.Stuck > 0 {
		t.Errorf("%d of %d states cannot settle, for example:\n%s", result.Stuck, result.States, result.StuckAt)
	}
	t.Logf("%d states, and each invariant holds in all of them", result.States)
}

// mustRefute checks that the scenario can break an invariant, and how many faults the shortest
// trace has.
func mustRefute(t *testing.T, s scenario, promise string, faults int) {
	t.Helper()
	result := exploreAll(t, s)
	path, found := result.Violations[promise]
	if !found {
		t.Fatalf("not refuted in %d states: %s; but %v", result.States, promise, result.Violations)
	}
	if path.Faults() != faults {
		t.Errorf("refuted with %d faults, want %d", path.Faults(), faults)
	}
	t.Logf("%s, after %d steps, %d of them faults (%d states):\n%s", promise, len(path), path.Faults(), result.States, path)
}

// mustLoseDecision checks that the scenario can reach a state from which a decision can never
// count.
func mustLoseDecision(t *testing.T, s scenario, faults int) {
	t.Helper()
	result := exploreAll(t, s)
	if result.Stuck == 0 {
		t.Fatalf("each of %d states can settle", result.States)
	}
	if got := result.StuckAt.Faults(); got != faults {
		t.Errorf("lost with %d faults, want %d", got, faults)
	}
	t.Logf("I2: a decision can never count, after %d steps (%d states):\n%s", len(result.StuckAt), result.States, result.StuckAt)
}

// The first five show that the checker does not refute everything.

func TestSeed_OneApproveAndNothingElseHolds(t *testing.T) {
	mustHold(t, scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1)}})
}

func TestSeed_OneRejectAndNothingElseHolds(t *testing.T) {
	mustHold(t, scenario{gates: 2, requests: []request{submit("ann", "a", reject, 1)}})
}

func TestSeed_OneRejectUntilItIsAnsweredHoldsThroughCrashes(t *testing.T) {
	mustHold(t, scenario{gates: 2, requests: []request{submit("ann", "a", reject, 1).untilAnswered()}, chances: faultBudget{crashes: 2}})
}

func TestSeed_OneWordPerGateOneAfterTheOtherHolds(t *testing.T) {
	mustHold(t, scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("bob", "b", approve, 2).whenAnswered(0)}})
}

func TestSeed_ASecondClickAfterTheAnswerHolds(t *testing.T) {
	mustHold(t, scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("ann again", "a", approve, 1).whenAnswered(0)}})
}

func TestSeed_ADoubleClickPassesALaterGateWithoutAnyFault(t *testing.T) {
	s := scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("ann again", "a", approve, 1)}}
	mustRefute(t, s, onlyApproved, 0)
	mustRefute(t, s, noBypass, 0)
}

func TestSeed_ADoubleClickIsToldThatSomebodyElseWasFaster(t *testing.T) {
	mustRefute(t, scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1), submit("ann again", "a", approve, 1)}}, noTwoAnswers, 0)
}

func TestSeed_AResumeSlowerThanTheLockRunsTwice(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1), submit("ann again", "a", approve, 1)}, chances: faultBudget{lapses: 1}}
	mustRefute(t, s, oneOwner, 1)
	mustRefute(t, s, once, 1)
}

func TestSeed_AResumeSlowerThanTheLockFreesTheLockOfItsRetry(t *testing.T) {
	s := scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("ann again", "a", approve, 1)}, chances: faultBudget{lapses: 1}}
	mustRefute(t, s, ownLock, 1)
}

func TestSeed_ACrashAfterTheEffectRepeatsIt(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1).untilAnswered()}, chances: faultBudget{crashes: 1}}
	mustRefute(t, s, once, 1)
}

func TestSeed_ACrashAfterTheCheckpointPassesTheNextGate(t *testing.T) {
	s := scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1).untilAnswered()}, chances: faultBudget{crashes: 1}}
	mustRefute(t, s, onlyApproved, 1)
}

func TestSeed_OnlyTheLastResumeIDIsRemembered(t *testing.T) {
	// A proxy sends ann's first click again much later. Two gates later it is an approval.
	s := scenario{gates: 3, requests: []request{
		submit("ann", "a", approve, 1), submit("bob", "b", approve, 2).whenAnswered(0), submit("ann again", "a", approve, 1).whenAnswered(1),
	}}
	mustRefute(t, s, onlyApproved, 0)
}

func TestSeed_ATabThatIsOutOfDatePassesTheNextGate(t *testing.T) {
	s := scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("bob", "b", approve, 1).whenAnswered(0)}}
	mustRefute(t, s, onlyApproved, 0)
}

func TestSeed_ANoComesTooLateAndStopsAnotherGate(t *testing.T) {
	s := scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("bob", "b", reject, 1).whenAnswered(0)}}
	mustRefute(t, s, noBypass, 0)
}

func TestSeed_AnAnswerToOneOfSeveralOpenQuestionsIsTakenForAnother(t *testing.T) {
	s := scenario{gates: 2, requests: []request{submit("bob", "b", approve, 2)}, chances: faultBudget{atOnce: true}}
	mustRefute(t, s, onlyApproved, 0)
}

func TestSeed_AnApprovalOfAnOldRunPassesAGateOfTheNew(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1)}, chances: faultBudget{sweeps: 1, restarts: 1}}
	mustRefute(t, s, onlyApproved, 0)
}

func TestSeed_ADecisionDiesWithItsRequest(t *testing.T) {
	mustLoseDecision(t, scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1)}, chances: faultBudget{crashes: 1}}, 1)
}

func TestSeed_ADecisionThatFindsTheLockTakenIsLost(t *testing.T) {
	// Both questions are open. Bob's decision arrives while Ann's is being applied, and Bob is
	// never asked again.
	s := scenario{gates: 2, requests: []request{submit("ann", "a", approve, 1), submit("bob", "b", approve, 2)}, chances: faultBudget{atOnce: true}}
	mustLoseDecision(t, s, 0)
}

func TestSeed_AnErrorOfAMomentIsTheAnswerForEver(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1).untilAnswered()}, chances: faultBudget{errors: 1}}
	mustLoseDecision(t, s, 1)
}

func TestSeed_TimeoutAndApprovalBothWin(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1)}, chances: faultBudget{sweeps: 1}}
	mustRefute(t, s, noLateEffect, 0)
	mustRefute(t, s, noConflict, 0)
}

func TestSeed_AnExpiredRunIsCompleted(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1)}, chances: faultBudget{sweeps: 1}}
	mustRefute(t, s, overIsOver, 0)
}

func TestSeed_AYesAndANoAreBothFinal(t *testing.T) {
	s := scenario{gates: 1, requests: []request{submit("ann", "a", approve, 1), submit("bob", "b", reject, 1)}, chances: faultBudget{lapses: 1}}
	mustRefute(t, s, noConflict, 1)
}
