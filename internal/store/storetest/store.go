package storetest

import (
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// Store tests an implementation of the complete [store.Store]. open is called once per test and
// returns an empty store; it registers its cleanup with t.Cleanup.
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
		{"Events_AreInOrder", testEventsOfARun},
		{"Events_OfPolicyRulings", testEventPolicy},
		{"Events_OfCancelledAndExpiredRuns", testEventEnds},
		{"Events_WaitingIsRecordedEvenIfReadyAtOnce", testEventReadyAtOnce},
		{"Events_NoneForCallsWithoutChange", testEventsOfRejectedCalls},
		{"Events_AfterASeqInPages", testEventPages},
		{"Events_AtMostOneThousand", testEventLimit},
		{"Feed_AllRunsOfAnAccountInPages", testFeed},
		{"Feed_ForeignCursorReturnsErrInvalid", testFeedCursor},
		{"I8_EventsStayInTheirAccount", testEventAccounts},
		{"I8_NamesWithAnyBytesAreSeparate", testNames},
		{"Names_HaveAnyLength", testLongNames},
		{"Concurrent_AFeedHasEveryEventOnceAndInOrder", testFeedWriters},
		{"Concurrent_AFeedHasTheEventsOfOneRunInOrder", testFeedOneRun},
		{"Watch_HintsAtEveryChange", testWatch},
		{"Watch_WritesAreAHintAtTheirAccount", testWatchWrites},
		{"Watch_EndsWithItsContext", testWatchEnds},
		{"Watch_SlowWatcherDoesNotBlock", testWatchSlow},

		{"InboxItems_OldestFirstInPages", testInboxItems},
		{"InboxItem_ByIDAndCountPending", testInboxItem},
		{"RunSnapshot_HasRunInterruptsAndDocuments", testRunSnapshot},
		{"RunSnapshot_OfTheNewestRunOnly", testRunSnapshotNewest},
		{"I8_RunSnapshotIsOfOneAccount", testI8RunSnapshot},
		{"PendingByKind_CountsAllAccounts", testPendingByKind},
		{"Credentials_AreCreatedAndRevokedOnce", testCredentials},
		{"Credentials_AreAudited", testCredentialsAudit},
		{"Credentials_EndedOnesArePurged", testPurgeCredentials},

		{"Documents_AreCreatedAndChangedByRevision", testDocuments},
		{"Documents_StaleChangeRejectsAll", testDocumentsStale},
		{"DueDocuments_OldestFirst", testDocumentsDue},
		{"I12_EveryChangeWritesItsLine", testWrites},
		{"I12_NoChangeWithoutItsLine", testWritesStale},
		{"I13_InvalidWritesChangeNothing", testWritesInvalid},
		{"Withdrawn_RevisesTheRequestOnce", testWithdrawalRevisesRequestOnce},
		{"BeginEffect_AgainWithStaleWrites", testBeginEffectAgainWithStaleWrites},
		{"Retry_AppliesWrites", testRetryWrites},
		{"Decide_ChangesTheRequest", testDecideRequest},
		{"Expire_AppliesWrites", testExpireWrites},
		{"Expire_SkipsStaleWrites", testExpireSkipsStale},
		{"I10_Expire_PostponedInterruptStaysOpen", testExpirePostpones},
		{"I10_Expire_PostponesOnce", testExpirePostponesOnce},
		{"I10_ADeadlineMovesWithItsRequest", testDeadlineMoves},
		{"DeleteRun_DeletesDocuments", testDocumentsOfRun},
		{"Concurrent_DocumentsAndAuditLog", testDocumentsRace},
		{"I8_DocumentsStayInTheirAccount", testI8Documents},

		{"FinishedRuns_OldestFirst", testFinishedRuns},
		{"DeleteRun_LeavesNothing", testDeleteRun},
		{"DeleteRun_KeepsOtherRuns", testDeleteRunKeepsOthers},
		{"DeleteRun_ActiveRunReturnsErrRunActive", testDeleteRunActive},
		{"Concurrent_DeleteRunIsAtomic", testDeleteRunRace},
		{"History_IsComplete", testHistory},
		{"PutIfAbsent_KeepsTheFirst", testPutIfAbsent},
		{"Concurrent_PutIfAbsentReturnsOneValue", testPutIfAbsentRace},
		{"Size_CountsRowsAndBytes", testSize},
		{"Vacuum_ChangesNothing", testVacuum},

		{"I3_AReceiptKeepsItsOutcome", testReceiptOutcomes},
		{"I3_TheFirstOutcomeOfAResumeCounts", testReceiptOutcomeOnce},
		{"I3_ARepeatedDecisionGetsTheSameOutcome", testReceiptOutcomeReplay},
		{"Reencrypt_EverySealedValueOnce", testReencrypt},
		{"Reencrypt_InPages", testReencryptPages},
		{"Reencrypt_NilKeepsAndErrorStops", testReencryptKeepsNil},
		{"Reencrypt_KeepsConcurrentChanges", testReencryptSkipsChanged},
		{"I3_Reencrypt_CoversOutcomesCopiedConcurrently", testReencryptDuringOutcomeCopy},
		{"Concurrent_ReencryptLosesNoWrite", testReencryptRace},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, &storeTester{&runsTester{t, s}, s})
		})
	}
}

// storeTester extends runsTester to the complete store.
type storeTester struct {
	*runsTester
	store store.Store
}

// endExecution ends an execution.
func (h *storeTester) endExecution(lease store.Lease, end store.ExecutionEnd) store.Status {
	h.t.Helper()
	status, err := h.store.EndExecution(h.ctx(), lease, end)
	h.must(err)
	return status
}

// beginEffect begins an approved effect.
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

// fullRun takes a run through nearly every call, up to its end.
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
