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
		run  func(t *testing.T, h *storeTester)
	}{
		{"Events_SayWhatHappenedInOrder", testEventsOfARun},
		{"Events_OfWhatPoliciesAllow", testEventPolicy},
		{"Events_OfARunThatIsEndedOrExpires", testEventEnds},
		{"Events_ASleepThatEndedAtOnceHappened", testEventReadyAtOnce},
		{"Events_NoneOfWhatChangesNothing", testEventsOfRejectedCalls},
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

		{"Asked_TheOldestFirstInPages", testInboxItems},
		{"Question_ByItsIdAndHowManyAreOpen", testInboxItem},
		{"Standing_TheRunWhatItAsksAndItsPapers", testRunSnapshot},
		{"Standing_OfTheNewestRunAlone", testRunSnapshotNewest},
		{"I8_StandingIsOfOneAccount", testI8RunSnapshot},
		{"Waits_AreCountedByKindInAllAccounts", testPendingByKind},
		{"Credentials_AreMadeAndRevokedOnce", testCredentials},
		{"Credentials_AreInTheLogThatTheyAreMadeAndEnded", testCredentialsAudit},
		{"Credentials_ThoseThatAreOverAreForgotten", testPurgeCredentials},

		{"Papers_AreMadeAndChangedByRevision", testDocuments},
		{"Papers_AllOrNoneOfWhatIsStale", testDocumentsStale},
		{"Due_TheLongestWaitingFirst", testDocumentsDue},
		{"I12_EveryChangeBringsItsLine", testWrites},
		{"I12_NoChangeWithoutItsLine", testWritesStale},
		{"I13_WhatNobodyCanWriteChangesNothing", testWritesInvalid},
		{"Withdrawn_TogetherWithTheRequest", testWithdrawalRevisesRequestOnce},
		{"Begin_AgainWithStalePapers", testBeginEffectAgainWithStaleWrites},
		{"Retry_WithPapers", testRetryWrites},
		{"Decide_WhatPeopleHaveBeforeThem", testDecideRequest},
		{"Expire_TogetherWithTheRequest", testExpireWrites},
		{"Expire_LeavesWhatIsStale", testExpireSkipsStale},
		{"I10_Expire_LeavesOpenWhatIsPutOff", testExpirePostpones},
		{"I10_Expire_PutsOffOnce", testExpirePostponesOnce},
		{"I10_ADeadlineMovesWithItsRequest", testDeadlineMoves},
		{"Forget_ThePapersOfARun", testDocumentsOfRun},
		{"Concurrent_PapersAndTheirLog", testDocumentsRace},
		{"I8_PapersStayInTheirAccount", testI8Documents},

		{"Finished_TheLongestOverFirst", testFinishedRuns},
		{"Forget_LeavesNothingOfARun", testDeleteRun},
		{"Forget_LeavesEverythingOfOthers", testDeleteRunKeepsOthers},
		{"Forget_NothingOfARunThatIsAlive", testDeleteRunActive},
		{"Concurrent_ForgettingIsAllOrNothing", testDeleteRunRace},
		{"History_IsEverythingThatIsKnown", testHistory},
		{"Once_TheFirstIsKept", testPutIfAbsent},
		{"Concurrent_OnceIsTheSameForAll", testPutIfAbsentRace},
		{"Size_SaysHowMuchThereIs", testSize},
		{"Vacuum_ChangesNothing", testVacuum},

		{"I3_AResumeKeepsItsOutcomeWhateverComesLater", testReceiptOutcomes},
		{"I3_TheFirstOutcomeOfAResumeStands", testReceiptOutcomeOnce},
		{"I3_TheSameAgainGetsTheSameOutcome", testReceiptOutcomeReplay},
		{"Reseal_EverySealedValueOnce", testReencrypt},
		{"Reseal_InPages", testReencryptPages},
		{"Reseal_NilKeepsAndAnErrorEndsIt", testReencryptKeepsNil},
		{"Reseal_WhatWasChangedMeanwhileStays", testReencryptSkipsChanged},
		{"I3_Reseal_WhatIsHandedToAResumeMeanwhileIsSealedAnew", testReencryptDuringOutcomeCopy},
		{"Concurrent_ResealLosesNoWrite", testReencryptRace},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, &storeTester{&runsTester{t, s}, s})
		})
	}
}

// storeTester is a desk with everything else that is kept.
type storeTester struct {
	*runsTester
	store store.Store
}

// rest gives a run back.
func (h *storeTester) endExecution(lease store.Lease, end store.ExecutionEnd) store.Status {
	h.t.Helper()
	status, err := h.store.EndExecution(h.ctx(), lease, end)
	h.must(err)
	return status
}

// effect begins one of what was approved.
func (h *storeTester) beginEffect(lease store.Lease, interrupt string) {
	h.t.Helper()
	_, begun, err := h.store.BeginEffect(h.ctx(), lease, store.NewEffect{Interrupt: interrupt, Attempt: 1, ActionDigest: "action-" + interrupt, IdempotencyKey: "k"})
	h.must(err)
	if !begun {
		h.t.Fatal("the effect was begun before")
	}
}

func (h *storeTester) endEffect(interrupt string, state store.EffectState) {
	h.t.Helper()
	h.must(h.store.EndEffect(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: interrupt, Attempt: 1, State: state, Receipt: []byte("receipt of " + interrupt)}))
}

// life takes a run through nearly everything, up to its end.
func (h *storeTester) fullRun(id string) {
	h.t.Helper()
	lease := h.create(id)
	_, err := h.store.Fenced(lease).Save(h.ctx(), store.Key{Account: "acme", Run: id}, 0, parts{"state": "state of " + id}.delta())
	h.must(err)
	allowed := store.NewEffect{Interrupt: id + "-allowed", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{Data: []byte("what is allowed"), By: "policy"}}
	_, _, err = h.store.BeginEffect(h.ctx(), lease, allowed)
	h.must(err)
	h.endEffect(id+"-allowed", store.EffectSucceeded)
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: "vote", ID: id + "-vote", Run: id, Body: []byte("vote in " + id)}}}))
	h.endWaiting(lease, id+"-1", id+"-2")
	h.wantResult(approve(id, id, id+"-1"), store.ResultAccepted)
	h.wantResult(approve(id, id+" refused", "unknown"), store.ResultNotFound)
	lease = h.claimed("w", id).Lease
	h.beginEffect(lease, id+"-1")
	h.endEffect(id+"-1", store.EffectSucceeded)
	h.endExecution(lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{id + "-1"}, Outcome: []byte("outcome of " + id)})
}

func (h *storeTester) history(account, run string) store.History {
	h.t.Helper()
	history, err := h.store.History(h.ctx(), account, run)
	h.must(err)
	return history
}
