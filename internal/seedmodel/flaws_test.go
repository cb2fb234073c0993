package seedmodel

import (
	"testing"

	"github.com/fermata-go/fermata/internal/explore"
)

// story is what people do, and what else may happen.
type story struct {
	gates    int
	requests []request
	chances  chances
}

func says(person, id string, w word, gate int) request {
	return request{person: person, id: id, word: w, question: gate - 1}
}

func (r request) untilAnswered() request {
	r.persistent = true
	return r
}

func (r request) whenAnswered(n int) request {
	r.after = partyOf(n)
	return r
}

func explored(t *testing.T, s story) explore.Result {
	t.Helper()
	start := world{provider: provider{gates: s.gates}, left: s.chances}
	copy(start.requests[:], s.requests)
	result, err := explore.Run(explore.Model[world, world]{
		Start: start, Key: func(w world) world { return w }, Steps: steps, Broken: broken, Settled: settled, Limit: 1_000_000, All: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// holds says that nothing can go wrong in the story.
func holds(t *testing.T, s story) {
	t.Helper()
	result := explored(t, s)
	for promise, path := range result.Broken {
		t.Errorf("%s:\n%s", promise, path)
	}
	if result.Stuck > 0 {
		t.Errorf("%d of %d states cannot settle, as:\n%s", result.Stuck, result.States, result.StuckAt)
	}
	t.Logf("%d states, and each promise holds in all of them", result.States)
}

// refuted says that the story can break a promise, and how many faults the shortest way to it has.
func refuted(t *testing.T, s story, promise string, faults int) {
	t.Helper()
	result := explored(t, s)
	path, found := result.Broken[promise]
	if !found {
		t.Fatalf("not refuted in %d states: %s; but %v", result.States, promise, result.Broken)
	}
	if path.Faults() != faults {
		t.Errorf("refuted with %d faults, want %d", path.Faults(), faults)
	}
	t.Logf("%s, after %d steps, %d of them faults (%d states):\n%s", promise, len(path), path.Faults(), result.States, path)
}

// lost says that the story can come to a point from which somebody's word can never count.
func lost(t *testing.T, s story, faults int) {
	t.Helper()
	result := explored(t, s)
	if result.Stuck == 0 {
		t.Fatalf("each of %d states can settle", result.States)
	}
	if got := result.StuckAt.Faults(); got != faults {
		t.Errorf("lost with %d faults, want %d", got, faults)
	}
	t.Logf("I2: what was said can never count, after %d steps (%d states):\n%s", len(result.StuckAt), result.States, result.StuckAt)
}

// The first five show that the checker does not refute everything.

func TestSeed_OneApproveAndNothingElseHolds(t *testing.T) {
	holds(t, story{gates: 1, requests: []request{says("ann", "a", approve, 1)}})
}

func TestSeed_OneRejectAndNothingElseHolds(t *testing.T) {
	holds(t, story{gates: 2, requests: []request{says("ann", "a", reject, 1)}})
}

func TestSeed_OneRejectUntilItIsAnsweredHoldsThroughCrashes(t *testing.T) {
	holds(t, story{gates: 2, requests: []request{says("ann", "a", reject, 1).untilAnswered()}, chances: chances{crashes: 2}})
}

func TestSeed_OneWordPerGateOneAfterTheOtherHolds(t *testing.T) {
	holds(t, story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("bob", "b", approve, 2).whenAnswered(0)}})
}

func TestSeed_ASecondClickAfterTheAnswerHolds(t *testing.T) {
	holds(t, story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("ann again", "a", approve, 1).whenAnswered(0)}})
}

func TestSeed_ADoubleClickPassesALaterGateWithoutAnyFault(t *testing.T) {
	s := story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("ann again", "a", approve, 1)}}
	refuted(t, s, onlyApproved, 0)
	refuted(t, s, noBypass, 0)
}

func TestSeed_ADoubleClickIsToldThatSomebodyElseWasFaster(t *testing.T) {
	refuted(t, story{gates: 1, requests: []request{says("ann", "a", approve, 1), says("ann again", "a", approve, 1)}}, noTwoAnswers, 0)
}

func TestSeed_AResumeSlowerThanTheLockRunsTwice(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1), says("ann again", "a", approve, 1)}, chances: chances{lapses: 1}}
	refuted(t, s, oneOwner, 1)
	refuted(t, s, once, 1)
}

func TestSeed_AResumeSlowerThanTheLockFreesTheLockOfItsRetry(t *testing.T) {
	s := story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("ann again", "a", approve, 1)}, chances: chances{lapses: 1}}
	refuted(t, s, ownLock, 1)
}

func TestSeed_ACrashAfterTheEffectRepeatsIt(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1).untilAnswered()}, chances: chances{crashes: 1}}
	refuted(t, s, once, 1)
}

func TestSeed_ACrashAfterTheCheckpointPassesTheNextGate(t *testing.T) {
	s := story{gates: 2, requests: []request{says("ann", "a", approve, 1).untilAnswered()}, chances: chances{crashes: 1}}
	refuted(t, s, onlyApproved, 1)
}

func TestSeed_OnlyTheLastResumeIDIsRemembered(t *testing.T) {
	// The first click of ann is sent once more by a proxy, when all is long over; two gates further on it is an approval.
	s := story{gates: 3, requests: []request{
		says("ann", "a", approve, 1), says("bob", "b", approve, 2).whenAnswered(0), says("ann again", "a", approve, 1).whenAnswered(1),
	}}
	refuted(t, s, onlyApproved, 0)
}

func TestSeed_ATabThatIsOutOfDatePassesTheNextGate(t *testing.T) {
	s := story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("bob", "b", approve, 1).whenAnswered(0)}}
	refuted(t, s, onlyApproved, 0)
}

func TestSeed_ANoComesTooLateAndStopsAnotherGate(t *testing.T) {
	s := story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("bob", "b", reject, 1).whenAnswered(0)}}
	refuted(t, s, noBypass, 0)
}

func TestSeed_AnAnswerToOneOfSeveralOpenQuestionsIsTakenForAnother(t *testing.T) {
	s := story{gates: 2, requests: []request{says("bob", "b", approve, 2)}, chances: chances{atOnce: true}}
	refuted(t, s, onlyApproved, 0)
}

func TestSeed_AnApprovalOfAnOldRunPassesAGateOfTheNew(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1)}, chances: chances{sweeps: 1, restarts: 1}}
	refuted(t, s, onlyApproved, 0)
}

func TestSeed_ADecisionDiesWithItsRequest(t *testing.T) {
	lost(t, story{gates: 1, requests: []request{says("ann", "a", approve, 1)}, chances: chances{crashes: 1}}, 1)
}

func TestSeed_ADecisionThatFindsTheLockTakenIsLost(t *testing.T) {
	// Both questions are open. Bob's word comes while Ann's is at work, and nobody will ever ask him again.
	s := story{gates: 2, requests: []request{says("ann", "a", approve, 1), says("bob", "b", approve, 2)}, chances: chances{atOnce: true}}
	lost(t, s, 0)
}

func TestSeed_AnErrorOfAMomentIsTheAnswerForEver(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1).untilAnswered()}, chances: chances{errors: 1}}
	lost(t, s, 1)
}

func TestSeed_TimeoutAndApprovalBothWin(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1)}, chances: chances{sweeps: 1}}
	refuted(t, s, noLateEffect, 0)
	refuted(t, s, noConflict, 0)
}

func TestSeed_AnExpiredRunIsCompleted(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1)}, chances: chances{sweeps: 1}}
	refuted(t, s, overIsOver, 0)
}

func TestSeed_AYesAndANoAreBothFinal(t *testing.T) {
	s := story{gates: 1, requests: []request{says("ann", "a", approve, 1), says("bob", "b", reject, 1)}, chances: chances{lapses: 1}}
	refuted(t, s, noConflict, 1)
}
