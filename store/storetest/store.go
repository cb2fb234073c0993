package storetest

import (
	"testing"

	"github.com/fermata-go/fermata/store"
)

// Store tests an implementation of [store.Store], all of it: checkpoints, runs, events and keeping. open is called once per test and
// returns an empty store; what has to be closed is registered with t.Cleanup.
func Store(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	t.Run("Checkpoints", func(t *testing.T) {
		Checkpoints(t, func(t *testing.T) store.Checkpoints { return open(t) })
	})
	t.Run("Runs", func(t *testing.T) {
		Runs(t, func(t *testing.T) store.Runs { return open(t) })
	})
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h *house)
	}{
		{"Events_SayWhatHappenedInOrder", testEventStory},
		{"Events_OfWhatPoliciesAllow", testEventPolicy},
		{"Events_OfARunThatIsEndedOrExpires", testEventEnds},
		{"Events_ASleepThatEndedAtOnceHappened", testEventMoment},
		{"Events_NoneOfWhatChangesNothing", testEventNothing},
		{"Events_BehindANumberInPages", testEventPages},
		{"Events_AThousandAtMost", testEventLimit},
		{"Feed_AllRunsOfAnAccountInPages", testFeed},
		{"Feed_ACursorOfSomebodyElseIsRefused", testFeedCursor},
		{"I8_EventsStayInTheirAccount", testEventAccounts},
		{"I8_AnyBytesInEveryNameAreKeptApart", testNames},
		{"Names_HaveAnyLength", testLongNames},
		{"Concurrent_AFeedHasEveryEventOnceAndInOrder", testFeedWriters},
		{"Concurrent_AFeedHasTheEventsOfOneRunInOrder", testFeedOneRun},
		{"Watch_HintsAtEverythingThatHappens", testWatch},
		{"Watch_EndsWithItsContext", testWatchEnds},
		{"Watch_ASlowWatcherStopsNobody", testWatchSlow},

		{"Asked_TheOldestFirstInPages", testAsked},
		{"Question_ByItsIdAndHowManyAreOpen", testQuestion},
		{"Standing_TheRunWhatItAsksAndItsPapers", testStanding},
		{"Standing_OfTheNewestRunAlone", testStandingNewest},
		{"I8_StandingIsOfOneAccount", testI8Standing},
		{"Waits_AreCountedByKindInAllAccounts", testWaits},
		{"Credentials_AreMadeAndRevokedOnce", testCredentials},
		{"Credentials_AreInTheLogThatTheyAreMadeAndEnded", testCredentialsInTheLog},
		{"Credentials_ThoseThatAreOverAreForgotten", testForgetCredentials},

		{"Papers_AreMadeAndChangedByRevision", testPapers},
		{"Papers_AllOrNoneOfWhatIsStale", testPapersStale},
		{"Due_TheLongestWaitingFirst", testPapersDue},
		{"I12_EveryChangeBringsItsLine", testBeside},
		{"I12_NoChangeWithoutItsLine", testBesideStale},
		{"I13_WhatNobodyCanWriteChangesNothing", testBesideBad},
		{"Withdrawn_TogetherWithTheRequest", testWithdrawnWithItsRequest},
		{"Begin_AgainWithStalePapers", testBeginAgainWithStalePapers},
		{"Retry_WithPapers", testRetryWithPapers},
		{"Decide_WhatPeopleHaveBeforeThem", testDecideRequest},
		{"Expire_TogetherWithTheRequest", testExpireBeside},
		{"Expire_LeavesWhatIsStale", testExpireLeavesTheStale},
		{"I10_Expire_LeavesOpenWhatIsPutOff", testExpirePutsOff},
		{"I10_Expire_PutsOffOnce", testExpirePutsOffOnce},
		{"I10_ADeadlineMovesWithItsRequest", testDeadlineMoves},
		{"Forget_ThePapersOfARun", testPapersOfARun},
		{"Concurrent_PapersAndTheirLog", testPapersRace},
		{"I8_PapersStayInTheirAccount", testI8Papers},

		{"Finished_TheLongestOverFirst", testFinished},
		{"Forget_LeavesNothingOfARun", testForget},
		{"Forget_LeavesEverythingOfOthers", testForgetOthers},
		{"Forget_NothingOfARunThatIsAlive", testForgetAlive},
		{"Concurrent_ForgettingIsAllOrNothing", testForgetRace},
		{"History_IsEverythingThatIsKnown", testHistory},
		{"Once_TheFirstIsKept", testOnce},
		{"Concurrent_OnceIsTheSameForAll", testOnceRace},
		{"Size_SaysHowMuchThereIs", testSize},
		{"Vacuum_ChangesNothing", testVacuum},

		{"I3_AResumeKeepsItsOutcomeWhateverComesLater", testResumeOutcomes},
		{"I3_TheFirstOutcomeOfAResumeStands", testResumeOutcomeOnce},
		{"I3_TheSameAgainGetsTheSameOutcome", testResumeOutcomeReplay},
		{"Reseal_EverySealedValueOnce", testReseal},
		{"Reseal_InPages", testResealPages},
		{"Reseal_NilKeepsAndAnErrorEndsIt", testResealKeeps},
		{"Reseal_WhatWasChangedMeanwhileStays", testResealChanged},
		{"I3_Reseal_WhatIsHandedToAResumeMeanwhileIsSealedAnew", testResealHandsOver},
		{"Concurrent_ResealLosesNoWrite", testResealRace},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, &house{&desk{t, s}, s})
		})
	}
}

// house is a desk with everything else that is kept.
type house struct {
	*desk
	store store.Store
}

// rest gives a run back.
func (h *house) rest(lease store.Lease, rest store.Rest) store.Status {
	h.t.Helper()
	status, err := h.store.Rest(h.ctx(), lease, rest)
	h.must(err)
	return status
}

// effect begins one of what was approved.
func (h *house) effect(lease store.Lease, interrupt string) {
	h.t.Helper()
	_, begun, err := h.store.Begin(h.ctx(), lease, store.NewEffect{Interrupt: interrupt, Number: 1, Digest: "action-" + interrupt, Key: "k"})
	h.must(err)
	if !begun {
		h.t.Fatal("the effect was begun before")
	}
}

func (h *house) end(interrupt string, state store.EffectState) {
	h.t.Helper()
	h.must(h.store.End(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: interrupt, Number: 1, State: state, Receipt: []byte("receipt of " + interrupt)}))
}

// life takes a run through nearly everything, up to its end.
func (h *house) life(id string) {
	h.t.Helper()
	lease := h.begin(id)
	_, err := h.store.Fenced(lease).Save(h.ctx(), store.Key{Account: "acme", Run: id}, 0, parts{"state": "state of " + id}.delta())
	h.must(err)
	allowed := store.NewEffect{Interrupt: id + "-allowed", Number: 1, Digest: "d", Allowed: &store.Allowed{Data: []byte("what is allowed"), By: "policy"}}
	_, _, err = h.store.Begin(h.ctx(), lease, allowed)
	h.must(err)
	h.end(id+"-allowed", store.Succeeded)
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{{Kind: "vote", ID: id + "-vote", Run: id, Body: []byte("vote in " + id)}}}))
	h.ask(lease, id+"-1", id+"-2")
	h.gets(approve(id, id, id+"-1"), store.Accepted)
	h.gets(approve(id, id+" refused", "unknown"), store.Unknown)
	lease = h.claimed("w", id).Lease
	h.effect(lease, id+"-1")
	h.end(id+"-1", store.Succeeded)
	h.rest(lease, store.Rest{Status: store.Completed, Applied: []string{id + "-1"}, Outcome: []byte("outcome of " + id)})
}

func (h *house) history(account, run string) store.History {
	h.t.Helper()
	history, err := h.store.History(h.ctx(), account, run)
	h.must(err)
	return history
}
